"""SANCUS (`sancus`): block rows as in CAGNET 1D, but a block that has hardly changed is not broadcast.

Source: SANCUS, Algorithm 1, with its three stale tests (`stale_test`): by age (SCS-E), by age as readers see it
(SCS-A), by how far a block has moved (SCS-H). Who stops sending still receives. Readings (`gcnsim.workload.staleness`,
`families.block_broadcast`): one flag per layer and worker; a worker always has its own block fresh; the backward pass
sends every gradient (Algorithm 1), unless `skip_backward`; kept blocks are multiplied before anything is waited for.
The mean iteration is that of a training, in whose first iterations, a share `warmup`, all blocks are sent: a cycle in
which each block is sent as often as that asks for (`sent_blocks`). Without a skipped block it is `cagnet-1d`.

Assumptions: how far a block moves in an iteration (`drift`), in the same unit as `threshold`; testing it reads the
block and the copy last sent once; other tests cost nothing; blocks are received into the cache: storing them is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from gcnsim.core.ids import FloatArray
from gcnsim.methods.families.block_broadcast import BlockBroadcast
from gcnsim.methods.method import Facts
from gcnsim.workload.knobs import DETECTION, SKIP_BACKWARD, STALE_TEST, THRESHOLD, Knob, knob
from gcnsim.workload.staleness import BlockRule, sent_blocks

DRIFT: Final = Knob(
    "drift", "", "real", 0, 1000, False, 0.01, (), "gap test: largest change of a row in one iteration, assumed"
)
WARMUP: Final = Knob(
    "warmup",
    "%",
    "real",
    0,
    1,
    False,
    0.0,
    (),
    "share of the iterations, at the start, in which every block is sent; means include them",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sancus(BlockBroadcast):
    """Blocks broadcast when a stale test asks for them."""

    name: ClassVar[str] = "sancus"
    about: ClassVar[str] = "like cagnet-1d, without blocks that hardly changed"
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {},
        {"stale_test": "fixed"},
        {"stale_test": "gap", "threshold": 0.02},
    )
    skips: ClassVar[bool] = True
    simulated_only: ClassVar[tuple[str, ...]] = ("drift", "warmup")

    stale_test: str = knob(STALE_TEST)
    threshold: float = knob(THRESHOLD)
    drift: float = knob(DRIFT)
    warmup: float = knob(WARMUP)
    detection: str = knob(DETECTION)
    skip_backward: str = knob(SKIP_BACKWARD)

    @property
    def block_rule(self) -> BlockRule:
        """The rule set by its knobs."""
        return BlockRule(
            test=self.stale_test,
            threshold=self.threshold,
            drift=self.drift,
            warmup=self.warmup,
            delayed=self.detection == "delayed",
            skips_backward=self.skip_backward == "yes",
        )

    def sent(self, facts: Facts) -> FloatArray | None:
        """The blocks sent in one cycle of flags."""
        return sent_blocks(self.block_rule, len(facts.shapes), facts.cluster.gpus, facts.seed)
