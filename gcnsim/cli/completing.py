"""What a shell completes behind an option: names of the catalogue, one or several between commas, and files.

Names are looked up when somebody presses the key, and only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import click
from click.shell_completion import CompletionItem


def devices() -> Iterable[str]:
    """Devices of the catalogue."""
    from gcnsim import hardware

    return hardware.devices()


def hosts() -> Iterable[str]:
    """Hosts of the catalogue."""
    from gcnsim import hardware

    return hardware.hosts()


def datasets() -> Iterable[str]:
    """Published datasets."""
    from gcnsim import workload

    return workload.datasets()


def methods() -> Iterable[str]:
    """Methods, and all of them."""
    from gcnsim.methods import methods

    return ("all", *methods())


def payloads() -> Iterable[str]:
    """Number formats of boundary rows."""
    from gcnsim import workload

    return workload.PAYLOADS


def models() -> Iterable[str]:
    """Models."""
    from gcnsim import workload

    return workload.MODELS


_NAMES: Final[dict[str, Callable[[], Iterable[str]]]] = {
    "dataset": datasets,
    "device": devices,
    "host": hosts,
    "method": methods,
    "allow": methods,
    "payload": payloads,
    "model": models,
    "cache_policy": lambda: ("inclusion", "degree", "random"),
    "fidelity": lambda: ("auto", "exact", "coarse"),
    "implementation": lambda: ("lean", "released"),
    "transport": lambda: ("direct", "staged"),
}
"""By parameter of a command: what may stand there."""

_LISTS: Final = ("device", "method", "allow")
_FILES: Final = ("device", "host")


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """What may follow `incomplete` behind an option, by the option's name; nothing where that is anything."""
    names = _NAMES.get(param.name or "")
    if names is None:
        return []
    before, comma, last = incomplete.rpartition(",") if param.name in _LISTS else ("", "", incomplete)
    found: list[CompletionItem[str]] = [
        CompletionItem(f"{before}{comma}{name}") for name in names() if name.startswith(last)
    ]
    if param.name in _FILES and not found and not comma:
        found.append(CompletionItem(incomplete, type="file"))
    return found


def complete_kind(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The kinds of the catalogue."""
    kinds = ("devices", "links", "hosts", "datasets", "methods", "prices")
    return [CompletionItem(kind) for kind in kinds if kind.startswith(incomplete)]


def complete_any(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Every name of the catalogue."""
    from gcnsim import hardware

    found = [*devices(), *hosts(), *hardware.links(), *datasets(), *methods()]
    return [CompletionItem(name) for name in found if name.startswith(incomplete) and name != "all"]
