"""Shell completion of option values: allowed names, one or several separated by commas, and files.

Names are looked up only when the user presses the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from gcnsim.core.fields import Choice
from gcnsim.hardware import devices, hosts, links
from gcnsim.methods import methods
from gcnsim.scenario.option import LIST, Option
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
