"""A plan: several runs, to be trained one after the other by the same workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gcnsim.errors import FileError, GcnsimError
from gcnsim.fields import shown
from gcnsim.io.yaml_files import read_yaml
from runtime.launch.failure_report import describe
from runtime.options import Options


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of a plan: its folder and its arguments as they are typed. name: plan, number and folder in words."""

    name: str
    out: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """A run to train. name: that of its plan's entry; None for a run that was asked for by itself."""

    options: Options
    name: str | None = None


class EntryError(RuntimeError):
    """An entry of a plan that failed by no user's error; the message names it and what went wrong."""


def read_plan(path: str) -> tuple[Entry, ...]:
    """The entries of a plan file: a list of `{out: FOLDER, args: [ARGUMENT, ...]}`, no folder twice.

    Raises FileError, naming the entry.
    """
    document = read_yaml(path)
    if not isinstance(document, list) or not document:
        raise FileError(f"{path}: not a list of runs; allowed: one or more of {{out: FOLDER, args: [ARGUMENT, ...]}}")
    found: dict[str, Entry] = {}
    for number, each in enumerate(document, 1):
        entry = _entry(f"{path}: entry {number}", each)
        if entry.out in found:
            raise FileError(f"{entry.name}: this folder is already that of {found[entry.out].name}")
        found[entry.out] = entry
    return tuple(found.values())


def _entry(place: str, given: Any) -> Entry:
    if not isinstance(given, dict) or set(given) - {"args"} != {"out"}:
        keys = f"has {', '.join(given) or 'nothing'}" if isinstance(given, dict) else "is not a mapping"
        raise FileError(f"{place}: {keys}; allowed: out, args")
    out, words = given["out"], given.get("args", [])
    if not isinstance(out, str) or not out:
        raise FileError(f"{place}: out is {shown(out)}; allowed: a folder's path")
    if not isinstance(words, list) or not all(_word(word) for word in words):
        raise FileError(f"{place} ({out}): args is not a list of strings; allowed: e.g. [--tau, 2]")
    return Entry(f"{place} ({out})", out, tuple(str(word) for word in words))


def _word(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


@contextmanager
def naming(name: str | None) -> Iterator[None]:
    """Errors in the block name the entry; None: they stay as they are."""
    try:
        yield
    except GcnsimError as error:
        if name is None:
            raise
        raise type(error)(f"{name}: {error}") from error
    except Exception as error:
        if name is None:
            raise
        raise EntryError(f"{name}: {describe(error)}") from error
