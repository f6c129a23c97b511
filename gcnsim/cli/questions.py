"""Command-line options made from the fields of questions, and the shell completion of their values.

The help of commands with `--inject` lists the faults. Names are completed one or several separated by commas; they are
looked up only when the user presses the key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, Final, TypeAlias

import click
from click.shell_completion import CompletionItem

from gcnsim.cli.outputs import machine_files, overridden
from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import Choice
from gcnsim.core.help_groups import GroupedCommand
from gcnsim.hardware import devices, hosts, links
from gcnsim.methods import methods
from gcnsim.scenario.load import compared
from gcnsim.scenario.option import LIST, PAIRS, Option, flag, read_pairs, split
from gcnsim.scenario.question import Question, flat_options, options
from gcnsim.scenario.what_if import WhatIf
from gcnsim.workload import datasets


def names_of(option: Option) -> Callable[[], Iterable[str]] | None:
    """Return the names that an option allows; None for an option that takes any text."""
    rule = option.rule
    names = rule.names if isinstance(rule, Choice) else None
    return None if names is None else lambda: (*option.names, *names())


def complete(option: Option) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]:
    """Return the completions of an option that takes names."""

    def completed(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        before, comma, last = incomplete.rpartition(",") if option.many == LIST else ("", "", incomplete)
        names = [name for name in (names_of(option) or tuple)() if name.startswith(last)]
        items: list[CompletionItem[str]] = [CompletionItem(f"{before}{comma}{name}") for name in names]
        if isinstance(option.rule, Choice) and option.rule.own is not None and not items and not comma:
            items.append(CompletionItem(incomplete, type="file"))
        return items

    return completed


def complete_kind(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Return the kinds of the catalogue."""
    kinds = ("devices", "links", "hosts", "datasets", "methods", "prices")
    return [CompletionItem(kind) for kind in kinds if kind.startswith(incomplete)]


def complete_any(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Return every name of the catalogue."""
    names = (*devices(), *hosts(), *links(), *datasets(), *methods())
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class WithFaults(click.Command):
    """A command whose help ends with the list of faults, which are looked up when it is shown."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the faults, one per line."""
        from gcnsim.scenario import fault_lines

        lines = (f"  {line}" for line in fault_lines())
        self.epilog = "\n".join(["\b", "Faults of --inject, each with its fields at their defaults:", *lines])
        super().format_epilog(ctx, formatter)


class GroupedWithFaults(WithFaults, GroupedCommand):
    """A command with both."""


GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "Target": (
        "minimise", "target_iteration", "target_epoch", "target_hours", "confidence", "budget", "hours_per_day",
        "max_cost", "limit",
    ),
    "Graph": ("dataset", "graph", "ids", "nodes", "edges", "features", "classes", "train"),
    "Machine": (
        "gpus", "gpus_per_server", "device", "host", "bandwidth", "link", "pcie", "nvlink", "transport", "payload",
        "calibration", "measured_compute",
    ),
    "Method and model": (
        "method", "allow", "min_sampling_rate", "max_staleness", "tau", "epsilon", "rate", "cache", "cache_policy",
        "norms", "model", "layers", "hidden", "implementation",
    ),
    "A whole training, prices and energy": (
        "target_accuracy", "runs", "iterations_needed", "mtbf", "interruptions", "interruption_notice", "checkpoint",
        "restart", "electricity", "gpu_power", "price", "prices", "pricing",
    ),
    "Simulation": (
        "overrides", "measured", "inject", "partition_seeds", "iterations", "fidelity", "seed", "processes",
    ),
    "Output": (),
}  # fmt: skip
"""The groups of help, and their options in what-if and recommend."""

RARE: Final = frozenset(
    (
        "ids", "classes", "train", "pcie", "nvlink", "payload", "cache_policy", "norms", "implementation", "mtbf",
        "interruption_notice", "checkpoint", "restart", "gpu_power", "prices", "partition_seeds", "overwrite",
        "iterations", "fidelity", "limit", "hours_per_day", "wide", "timeline_detail",
    )
)  # fmt: skip
"""Options that `--help` leaves out."""

Function: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Function], Function]


class Values(click.ParamType[list[Any]]):
    """One value or several, separated by commas, parsed by `read`."""

    def __init__(self, name: str, read: Callable[[str, str], list[Any]]) -> None:
        self.name = name
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The values as a list. Raises ScenarioError naming the option and the value."""
        return self.read(str(value), f"--{self.name}")


def columns_option(help: str) -> Decorator:
    """Return the option that names columns of a table."""
    return click.option("--columns", type=Values("columns", partial(split, noun="a column")), help=help)


class OneNumber(click.ParamType[Any]):
    """One number for the scenario field at `path`; of several it says which command compares them."""

    def __init__(self, kind: click.ParamType[Any], path: str) -> None:
        self.name, self.kind, self.path = kind.name, kind, path

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Raises ScenarioError for a list."""
        if isinstance(value, str) and "," in value:
            flag = self.path if param is None else param.opts[0]
            raise ScenarioError(f"{flag}: {value!r} is several values, one is allowed; {compared(self.path, value)}")
        return self.kind.convert(value, param, ctx)


class Pairs(click.ParamType[dict[str, int]]):
    """[NAME=]N: a name and an integer, or several separated by commas."""

    name = "pairs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        """The numbers by name. Raises ScenarioError naming the option."""
        return read_pairs(str(value), "" if param is None else param.opts[0])


def question_options(kind: type[Question]) -> Decorator:
    """Return a decorator that adds one option for every field of a question."""
    return options_of(flat_options(kind))


def options_of(fields: Mapping[str, Option]) -> Decorator:
    """Return a decorator that adds one option for each field."""
    return lambda command: reduce(lambda made, name: _option(name, fields[name])(made), reversed([*fields]), command)


def options_as(default: str, *names: str) -> Decorator:
    """Return the what-if options for another command. default: what applies without the option, in words."""
    every = {name: options(WhatIf)[name] for name in names}
    return options_of({name: replace(value, default=default if value.usual else "") for name, value in every.items()})


def _option(name: str, option: Option) -> Decorator:
    return click.option(
        option.flag or flag(name),
        name,
        type=_type(name, option),
        multiple=bool(option.many) and option.many != LIST,
        metavar=option.metavar,
        help=option.line,
        shell_complete=None if names_of(option) is None else complete(option),
    )


def _type(name: str, option: Option) -> Any:
    """Return the option's type, which parses its text; the rule of the field checks the meaning."""
    if option.many == LIST:
        return Values(flag(name).removeprefix("--"), option.values)
    if option.many == PAIRS:
        return Pairs()
    if option.choice:
        return click.Choice([*(names_of(option) or tuple)()])
    if option.least is not None:
        return click.IntRange(min=option.least)
    kinds: dict[str, click.ParamType[Any]] = {"whole": click.INT, "real": click.FLOAT, "file": click.Path()}
    kind = kinds.get(option.written)
    return kind if kind is None or not option.path or option.written == "file" else OneNumber(kind, option.path)


def files_read(kind: type[Question], values: Mapping[str, Any]) -> Iterator[str | None]:
    """Return the files that a question's options name."""
    for name, value in flat_options(kind).items():
        if value.written == "file":
            yield from values[name] if value.many else [values[name]]
    yield from machine_files(values["device"], values["host"])
    yield from overridden(values["overrides"])


def with_fields(overrides: tuple[str, ...], **fields: str | None) -> tuple[str, ...]:
    """Return the overrides, with those of options that are fields of a scenario."""
    every = options(WhatIf)
    assignments = (f"{every[name].path}={json.dumps(value)}" for name, value in fields.items() if value is not None)
    return (*overrides, *assignments)
