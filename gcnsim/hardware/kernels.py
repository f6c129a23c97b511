"""Which kernels workers on CPU cores compute with: what a calibration's figures hold for, and no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PLAIN, NUMBA, DGL = "plain", "numba", "dgl"

AGGREGATORS: Final = (PLAIN, NUMBA, DGL)
"""What sums neighbours: torch, kernels of the training runtime's own, DGL."""


@dataclass(frozen=True, slots=True)
class CoreKernels:
    """aggregator: one of AGGREGATORS. threads: that a worker computes with."""

    aggregator: str = PLAIN
    threads: int = 1

    @property
    def words(self) -> str:
        """`--aggregator numba and --threads 2`: how the training runtime is asked for them."""
        return f"--aggregator {self.aggregator} and --threads {self.threads}"


PLAIN_KERNELS: Final = CoreKernels()
"""Torch's own on one thread: what the catalogue's figures are of, and records that do not say."""
