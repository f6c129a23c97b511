"""Whether a part fits into memory: what it will need, by its sizes, and what is free here.

On a GPU torch says when it does not; on a CPU the system would end the process, so the need is estimated beforehand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch

from gcnsim.core.ids import Rank
from gcnsim.core.resources import usable_resources
from gcnsim.graph import Graph
from gcnsim.graph.parts import Partitioning
from runtime.options import Options

ENTRY_BYTES: Final = 110
"""Of an entry of a part: its rows and both matrices with their transposes."""

DRAWN_BYTES: Final = 100
"""Of an entry besides, where graphs are drawn from them: chances, weights, and the graphs themselves."""

ATTENTION_BYTES: Final = 56
"""Of an entry besides, for each layer and head of attention."""

COPIES: Final = 3
"""Of a layer's rows that are held at once: kept for the backward pass, their gradients, what a kernel makes.

These numbers are rounded from the memory that parts of graphs of 12,000 to 326,000 nodes took: 0.9 to 1.5 of it."""

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


def needed_bytes(sizes: PartSizes, options: Options, widths: tuple[int, ...], stored: int) -> int:
    """About what one part needs while it trains.

    widths: of the rows before the first and after each layer. stored: nodes of other parts whose features it holds.
    """
    itemsize = 8 if options.dtype == "float64" else 4
    knobs = options.knobs
    features = (sizes.inner * COPIES + stored) * widths[0] * itemsize + sizes.inner * widths[0] * 4
    rows = COPIES * sizes.inner * sum(widths[1:]) * itemsize
    # Rows and gradients, each where it is sent from and where it is received, for each age.
    ages = max(int(str(knobs.get("tau", 1))), 1)
    boundary = 4 * ages * sizes.boundary * sum(widths[:-1]) * itemsize
    each = ENTRY_BYTES
    if float(str(knobs.get("epsilon", 1.0))) < 1.0:
        each += DRAWN_BYTES
    if options.model == "gat":
        each += ATTENTION_BYTES * options.heads * options.layers
    return features + rows + boundary + each * sizes.entries


def free_bytes() -> int | None:
    """Memory that this process can still take; None where the system does not say."""
    limit = usable_resources().memory_bytes
    try:
        lines = _MEMORY.read_text(encoding="ascii").splitlines()
    except OSError:
        return limit
    free = next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)
    return min((item for item in (limit, free) if item is not None), default=None)


def free_on_gpu(device: torch.device) -> int:
    """Memory that torch can still take or has taken and does not use."""
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


class GpuPeak:
    """The most bytes at any instant of one part's tensors on a GPU, where other parts may stay meanwhile."""

    def __init__(self, device: torch.device) -> None:
        """What the GPU holds now belongs to others."""
        self._device = device
        self._others = int(torch.cuda.memory_allocated(device))
        self._held: int | None = None
        torch.cuda.reset_peak_memory_stats(device)
        self.nbytes = 0

    def begin(self) -> None:
        """The part goes on, after others may have come or gone."""
        if self._held is not None:
            self._others = int(torch.cuda.memory_allocated(self._device)) - self._held
            torch.cuda.reset_peak_memory_stats(self._device)

    def end(self) -> None:
        """The part stops."""
        self.nbytes = max(self.nbytes, int(torch.cuda.max_memory_allocated(self._device)) - self._others)
        self._held = int(torch.cuda.memory_allocated(self._device)) - self._others


def asked_bytes(error: str) -> int:
    """What torch tried to allocate when a GPU had no more, by its message; 0 where it does not say."""
    search = _ASKED.search(error)
    return 0 if search is None else round(float(search[1]) * _UNITS[search[2]])
