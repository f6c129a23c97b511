"""The workers' timelines as one, and as plain arrays that any process group can carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from gcnsim.ids import AnyArray, Int32Array, frozen
from gcnsim.timeline import Timeline

COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kind": "uint8",
        "worker": "int32",
        "stream": "int32",
        "iteration": "int32",
        "layer": "int32",
        "direction": "uint8",
        "peer": "int32",
        "start_ps": "int64",
        "end_ps": "int64",
        "nbytes": "float64",
    }
)
"""The arrays of a timeline and their types; all have one value per span."""

NAMES = "streams"
"""The array that holds the streams' names: uint8, UTF-8, one per line."""


def merge(timelines: Sequence[Timeline]) -> Timeline:
    """All spans of `timelines` in one, ordered by (start, worker, stream, order in its own timeline).

    Streams of one name become one; they are numbered by their earliest start, then by name.
    """
    names = sorted({name for each in timelines for name in each.streams})
    columns = {
        name: np.concatenate([np.zeros(0, kind), *(getattr(each, name) for each in timelines)])
        for name, kind in COLUMNS.items()
        if name != "stream"
    }
    stream = np.concatenate([np.zeros(0, np.int64), *(_renamed(each, names) for each in timelines)])
    first = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(first, stream, columns["start_ps"])
    by_use = np.argsort(first, kind="stable")
    columns["stream"] = np.argsort(by_use, kind="stable")[stream].astype(np.int32)
    order = np.lexsort((columns["stream"], columns["worker"], columns["start_ps"]))
    streams = tuple(names[number] for number in by_use)
    return Timeline(**{name: frozen(column[order]) for name, column in columns.items()}, streams=streams)


def _renamed(timeline: Timeline, names: list[str]) -> Int32Array:
    """The stream of each span as a position in `names`."""
    place = np.array([names.index(name) for name in timeline.streams], dtype=np.int32)
    return place[timeline.stream]


def to_arrays(timeline: Timeline) -> dict[str, AnyArray]:
    """The columns of `timeline` (types: COLUMNS), and under NAMES its streams' names as bytes."""
    arrays: dict[str, AnyArray] = {name: getattr(timeline, name) for name in COLUMNS}
    arrays[NAMES] = np.frombuffer("\n".join(timeline.streams).encode(), dtype=np.uint8)
    return arrays


def from_arrays(arrays: Mapping[str, AnyArray]) -> Timeline:
    """The timeline that `to_arrays` took apart. Raises ValueError when an array is missing, or of another type or size.

    The arrays are viewed, not copied.
    """
    missing = [name for name in (*COLUMNS, NAMES) if name not in arrays]
    if missing:
        raise ValueError(f"a timeline's arrays lack {missing[0]!r}")
    size = arrays["kind"].size
    for name, kind in COLUMNS.items():
        if arrays[name].dtype != np.dtype(kind) or arrays[name].shape != (size,):
            found = f"{arrays[name].dtype}{list(arrays[name].shape)}"
            raise ValueError(f"a timeline's {name}: {found}, wanted {kind}[{size}]")
    names = arrays[NAMES].tobytes().decode()
    return Timeline(
        **{name: frozen(arrays[name]) for name in COLUMNS}, streams=tuple(names.split("\n")) if names else ()
    )
