"""Where mini-batches of GPUs are drawn, and where the input rows that they read lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HOST: Final = "host"
UVA: Final = "uva"
ON_GPU: Final = "gpu"
FEATURES: Final = (HOST, UVA, ON_GPU)
"""Where input rows lie: in host memory, picked out by its cores; there too, read by the GPU (unified addressing); on
every GPU."""


@dataclass(frozen=True, slots=True)
class Placement:
    """How one worker's batches come to its GPU.

    on_gpu: the GPU draws them, from the graph in its memory where the rows lie there too, else from host memory by
    unified addressing. threads: of the host, which draw batches ahead of training; 0: the trainer draws each before it
    trains. features: one of FEATURES; None: on the GPU where graph and rows fit beside a batch, else UVA.
    """

    on_gpu: bool = False
    threads: int = 1
    features: str | None = HOST

    @property
    def ahead(self) -> bool:
        """Whether the next batch is drawn while one is loaded and trained."""
        return not self.on_gpu and self.threads > 0

    @property
    def graph_on_gpu(self) -> bool:
        """Whether the GPU holds the graph."""
        return self.on_gpu and self.features == ON_GPU


IN_TURN: Final = Placement(threads=0)
"""The trainer's own process draws every batch before it trains, rows lie in host memory."""
