"""Files of one's own in the catalogue's form: what those of devices and of hosts share."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, Final

from gcnsim import units
from gcnsim.errors import FileError, nearest
from gcnsim.fields import shown
from gcnsim.hardware.figure import Figure
from gcnsim.hardware.tables import QUANTITIES, read_figure
from gcnsim.io.yaml_files import read_yaml

SUFFIXES: Final = (".yaml", ".yml")
_HOST: Final = "cores"
"""The figure that a file of a host has and one of a device has not."""


def is_file(name: str) -> bool:
    """Whether a device's or a host's name is that of a file.

    >>> is_file("my_gpu.yaml"), is_file("t4")
    (True, False)
    """
    return name.endswith(SUFFIXES)


def file_stamp(name: str) -> tuple[int, int]:
    """Changes when the file `name` does; of a name of the catalogue, and of a missing file, always the same."""
    if not is_file(name):
        return 0, 0
    try:
        found = os.stat(name)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino


def kind_described(path: str) -> str:
    """What the file at `path` describes, `device` or `host`: a server has cores. Raises FileError."""
    return _kind(path, file_stamp(path))


@lru_cache(maxsize=64)
def _kind(path: str, stamp: tuple[int, int]) -> str:
    raw: Any = read_yaml(path)
    return "host" if isinstance(raw, dict) and _HOST in raw else "device"


def read_own(path: str, noun: str, known: Sequence[str]) -> dict[str, Any]:
    """The fields of the file at `path`, of which its title is checked. noun: what it describes. known: its keys.

    Raises FileError, the path first.
    """
    raw: Any = read_yaml(path)
    if not isinstance(raw, dict):
        raise FileError(f"{path}: is not a {noun}; it has the keys {', '.join(known)}")
    unknown = [key for key in raw if key not in known]
    if unknown:
        raise FileError(f"{path}, {unknown[0]}: unknown key; {nearest(unknown[0], known)}")
    title = raw.get("title")
    if title is not None and not (isinstance(title, str) and title.isprintable() and title):
        raise FileError(f"{path}, title: {shown(title)} is not a title (one line of text)")
    return raw


def refuse_other(path: str, raw: dict[str, Any], key: str, allowed: Collection[str]) -> None:
    """Raises FileError where `raw` has another value of `key` than those allowed."""
    if raw.get(key) is not None and raw[key] not in allowed:
        raise FileError(f"{path}, {key}: {shown(raw[key])} is not allowed; {nearest(str(raw[key]), allowed)}")


def refuse_missing(path: str, raw: dict[str, Any], needed: Sequence[str]) -> None:
    """Raises FileError where one of the keys `needed` is not in `raw`."""
    missing = [key for key in dict.fromkeys(needed) if raw.get(key) is None]
    if missing:
        raise FileError(f"{path}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")


def own_figure(raw: object, key: str, where: str, *, zero: bool = False, whole: bool = False) -> Figure:
    """The figure `key`, above 0, a share at most 100%. zero: may be 0. whole: is a whole number. Raises FileError."""
    quantity = QUANTITIES[key]
    share = quantity is units.FRACTION and key != "work_spread"
    figure = read_figure(raw, quantity, where)
    for value in (figure.low, figure.value, figure.high):
        if value is None:
            continue
        if (value > 0.0 or (zero and value == 0.0)) and not (share and value > 1.0) and not (whole and value % 1):
            continue
        limit = "a whole number of at least 1" if whole else "of at least 0" if zero else "above 0"
        if share:
            limit = "above 0% and at most 100%"
        raise FileError(f"{where}: {value if quantity is None else quantity.exact(value)} is not allowed; {limit}")
    return figure
