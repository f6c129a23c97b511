"""What the spans of a source say: where a simulated, a recorded and a profiled timeline know different things."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gcnsim.timeline import PHASE, OpKind, Phase

RECEIVED: Final = (OpKind.UNPACK, OpKind.SCATTER)
TRANSFERS: Final = tuple(kind for kind, phase in PHASE.items() if phase is Phase.TRANSFER)


class Sampling(Enum):
    """Which sampling is a part of the iteration, where neither computation nor handling nor the optimizer is."""

    BESIDE_WAITS = "while the main stream does not wait for communication"
    WAITED_FOR = "while the main stream waits"
    ALWAYS = "whenever it is under way"


@dataclass(frozen=True, slots=True)
class Reading:
    """What spans mean where sources differ.

    handling: kinds of transfers that the worker's main stream does itself, for communication's sake; handling_on_main:
    only those on that stream, else those on any. sampling: which is a part of the iteration. sent_only: a message is
    its sender's span (a receiver's ends with it, and begins as it starts to wait). peers_copies: a peer's packing and
    copying of rows for this worker counts too. reduce_together: an all-reduce counts from when the last worker is
    there. transfers_wait: nothing says what is waited for, so every transfer and reduction beside other work is.
    """

    handling: tuple[OpKind, ...] = RECEIVED
    handling_on_main: bool = True
    sampling: Sampling = Sampling.BESIDE_WAITS
    sent_only: bool = False
    peers_copies: bool = False
    reduce_together: bool = False
    transfers_wait: bool = False


SIMULATED: Final = Reading(handling=TRANSFERS, peers_copies=True)
"""A simulated run: all is known. Waits for this worker's own sampler and pauses are no communication."""

RECORDED: Final = Reading(sampling=Sampling.WAITED_FOR, sent_only=True, reduce_together=True)
"""A recorded run whose helper threads sample: while the main thread waits, its sampler is what it waits for."""

RECORDED_SAMPLING_ITSELF: Final = Reading(sent_only=True, reduce_together=True)
"""A recorded run whose main thread samples: its waits are never for a sampler."""

PROFILED: Final = Reading(handling_on_main=False, sampling=Sampling.ALWAYS, transfers_wait=True)
"""A trace of the PyTorch profiler: which stream trains is not known, nor what it waits for, nor who sends."""
