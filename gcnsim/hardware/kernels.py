"""Which kernels workers on CPU cores compute with: what a calibration's figures hold for, and no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from gcnsim.shapes import OneOrMore, Within

PLAIN, NUMBA, DGL = "plain", "numba", "dgl"

AGGREGATORS: Final = (PLAIN, NUMBA, DGL)
"""What sums neighbours: torch, kernels of the training runtime's own, DGL."""


@dataclass(frozen=True, slots=True)
class CoreKernels:
    """Which kernels figures are of."""

    aggregator: Annotated[str, Within(enum=AGGREGATORS)] = PLAIN
    """What sums neighbours."""
    threads: OneOrMore = 1
    """That a worker computes with."""

    @property
    def words(self) -> str:
        """`--aggregator numba and --threads 2`: how the training runtime is asked for them."""
        return f"--aggregator {self.aggregator} and --threads {self.threads}"


PLAIN_KERNELS: Final = CoreKernels()
"""Torch's own on one thread: what the catalogue's figures are of, and records that do not say."""
