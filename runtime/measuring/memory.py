"""Whether a part fits into memory: what it will need, by its sizes, and what is free here.

On a GPU torch says when it does not; on a CPU the system would end the process, so the need is estimated beforehand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from gcnsim.graph import Graph
from gcnsim.ids import Rank
from gcnsim.partition import Partitioning
from gcnsim.resources import usable_resources

ENTRY_BYTES: Final = 110
"""Of a part's entries: its rows, both matrices with their transposes, and what graphs are drawn from."""

COPIES: Final = 3
"""Of a layer's rows that are held at once: kept for the backward pass, their gradients, what a kernel makes."""

_MEMORY: Final = Path("/proc/meminfo")
_ASKED: Final = re.compile(r"Tried to allocate ([0-9.]+) (bytes|KiB|MiB|GiB)")
_UNITS: Final = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True, slots=True)
class PartSizes:
    """Inner nodes, boundary nodes and entries of a part."""

    inner: int
    boundary: int
    entries: int


def sizes_of(graph: Graph, partitioning: Partitioning, rank: Rank) -> PartSizes:
    """Those of part `rank`, counted without building it."""
    own = partitioning.owner == rank
    columns = graph.indices[np.repeat(own, graph.degrees)]
    reached = np.zeros(graph.nodes, np.bool_)
    reached[columns] = True
    return PartSizes(int(np.count_nonzero(own)), int(np.count_nonzero(reached & ~own)), int(columns.size))


def needed_bytes(sizes: PartSizes, widths: tuple[int, ...], itemsize: int, slots: int, stored: int) -> int:
    """About what one part needs while it trains.

    widths: of the rows before the first layer and after each. slots: ages of boundary rows that are held at once.
    stored: nodes of other parts whose features it holds.
    """
    features = (sizes.inner + stored) * widths[0] * (4 + itemsize)
    rows = COPIES * sizes.inner * sum(widths) * itemsize
    # Rows and gradients, each where it is sent from and where it is received.
    boundary = 4 * slots * sizes.boundary * sum(widths[:-1]) * itemsize
    return features + rows + boundary + ENTRY_BYTES * sizes.entries


def free_bytes() -> int | None:
    """Memory that this process can still take; None where the system does not say."""
    limit = usable_resources().memory_bytes
    try:
        lines = _MEMORY.read_text(encoding="ascii").splitlines()
    except OSError:
        return limit
    free = next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)
    return min((each for each in (limit, free) if each is not None), default=None)


def asked_bytes(error: str) -> int:
    """What torch tried to allocate when a GPU had no more, by its message; 0 where it does not say."""
    found = _ASKED.search(error)
    return 0 if found is None else round(float(found[1]) * _UNITS[found[2]])
