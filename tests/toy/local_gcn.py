"""Local training (`local-gcn`), a toy: no boundary rows at all, and gradients summed once every few iterations.

Every worker trains its own part as if it were the whole graph; the last of `local_steps` iterations sums gradients.
Assumption: cross edges are dropped, so a layer sums only entries between inner nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gcnsim.core.ids import Rank
from gcnsim.cost import gradient_bytes, layer_cost, loss_seconds, step_seconds
from gcnsim.methods import Facts, Method
from gcnsim.schedule import Builder, Schedule, allreduce
from gcnsim.timeline import OpKind
from gcnsim.workload.knobs import Knob, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalGcn(Method):
    """Parts trained alone, with gradients summed every few iterations."""

    name: ClassVar[str] = "local-gcn"
    about: ClassVar[str] = "no boundary rows, gradients summed every few iterations"
    uses: ClassVar[frozenset[str]] = frozenset({"allreduce"})

    local_steps: int = knob(
        Knob(
            name="local_steps", unit="iterations", kind="int", low=1, high=100, low_open=False, default=4, choices=(),
            help="iterations between sums of gradients",
        )
    )  # fmt: skip

    def schedule(self, facts: Facts) -> Schedule:
        """Forward, loss, backward, sum, step; a cycle of `local_steps` iterations."""
        builder = Builder(self.name, facts.cluster, self.local_steps)
        made = [self._train(builder, facts, rank) for rank in range(facts.cluster.gpus)]
        summed = np.zeros(self.local_steps)
        summed[-1] = gradient_bytes(facts.shapes)
        reduced = allreduce(builder, summed, made)
        steps = []
        for rank, done in enumerate(reduced):
            seconds = step_seconds(facts.device_of(rank), facts.shapes)
            steps.append(builder.compute(OpKind.STEP, rank, seconds, after=[done]))
        return builder.close(steps, periodic=True)

    def _train(self, builder: Builder, facts: Facts, rank: Rank) -> int:
        """All kernels of one worker; returns the op that computes its last gradient."""
        device, inner = facts.device_of(rank), int(facts.counts.inner_nodes[rank])
        entries = np.array([int(facts.counts.inner_edges[:, rank].mean()) + inner])
        none, seconds = np.zeros(1, dtype=np.int64), loss_seconds(device, inner, facts.shapes[-1].d_out)
        for layer, shape in enumerate(facts.shapes):
            cost = layer_cost(device, shape, first=layer == 0, inner=inner, entries=entries, boundary_rows=none)
            seconds = seconds + float(cost.seconds[0])
        return builder.compute(OpKind.AGGREGATE, rank, seconds)
