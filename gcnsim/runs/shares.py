"""Where a worker's iteration went, as the summary of a run has it."""

from __future__ import annotations

from dataclasses import dataclass

from gcnsim.ids import Rank, Seconds


@dataclass(frozen=True, slots=True)
class Shares:
    """One worker's means over the measured iterations, in seconds per iteration."""

    worker: Rank
    compute_s: Seconds
    """Its spans of the compute phase."""
    wait_s: Seconds
    """Its main stream was blocked."""
    transfer_s: Seconds
    """One of its transfers, sent or received, was under way: packing, copying, unpacking, and a wire from the sender's
    start until both ends are done (a receiver that waits for a sender transfers nothing)."""
    hidden_transfer_s: Seconds
    """That, while the main stream neither waited nor handled a transfer itself."""
    sampling_s: Seconds
    """Drawing, indexing and cache work on any stream."""
    exposed_sampling_s: Seconds
    """That, while the main stream waited or did it itself."""
    reduce_s: Seconds
    """The all-reduce."""
    optimizer_s: Seconds
    """The optimizer."""
    pack_s: Seconds
    """Packing and gathering of rows."""
    unpack_s: Seconds
    """Unpacking and scattering."""
