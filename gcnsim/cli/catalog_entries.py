"""Entries of the catalogue by name, with their figures as text and as data: what `show` and `compare` print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from gcnsim import hardware, units, workload
from gcnsim.errors import ScenarioError, nearest
from gcnsim.known_names import known_name
from gcnsim.methods import methods

SCHEMA: Final = "gcnsim.catalog/1"
SINGULAR: Final = {"devices": "device", "links": "link", "hosts": "host", "datasets": "dataset", "methods": "method"}
YES: Final = {True: "yes", False: "no"}


def names() -> Mapping[str, Sequence[str]]:
    """The names of the catalogue by kind."""
    return {
        "devices": hardware.devices(),
        "links": hardware.links(),
        "hosts": hardware.hosts(),
        "datasets": workload.datasets(),
        "methods": methods(),
    }


def entry_named(name: str) -> tuple[str, str]:
    """The kind of the entry that `name` is (`devices`), and its own name; a file is of the kind that it describes.

    Raises ScenarioError with the nearest name where there is none, FileError for a file that cannot be read.
    """
    if hardware.is_file(name):
        return f"{hardware.kind_described(name)}s", name
    for kind, known in names().items():
        if (found := known_name(name, known)) is not None:
            return kind, found
    if (device := hardware.known_device(name)) is not None:
        return "devices", device
    raise ScenarioError(
        f"catalog: unknown name {name!r}; {nearest(name, [each for known in names().values() for each in known])}"
    )


def profile_facts(item: Any) -> dict[str, Any]:
    """A device's, link's or host's figures and facts, and what else of the catalogue it names, as plain data."""
    figures = hardware.figures_of(item)
    facts = {"name": item.name, "title": item.title, "figures": {key: asdict(value) for key, value in figures.items()}}
    own = facts_of(item)
    return facts | ({"facts": {name: asdict(fact) for name, fact in own.items()}} if own else {})


def facts_of(item: Any) -> dict[str, hardware.Fact]:
    """What is known to hold, or not to hold, of a device or host."""
    known = {name: getattr(item, name, None) for name in ("peer_to_peer", "gpudirect")}
    return {name: fact for name, fact in known.items() if fact is not None}


def written(key: str, value: float) -> str:
    """The value of the figure `key` with its unit."""
    quantity = hardware.QUANTITIES[key]
    if key.endswith("_bandwidth") or key == "nvlink":  # sold in bytes; networks are in bits
        quantity = replace(units.BANDWIDTH, written=("GB/s", "MB/s", "GiB/s", "B/s"))
    return f"{value:g}" if quantity is None else quantity.exact(value)
