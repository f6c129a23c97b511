"""What each published metric is, read off a run and, for ratios, off the run it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gcnsim.reproduction.answers import Ends, Measured

MEGABYTE: Final = 1e6
GIGABYTE: Final = 1e9


@dataclass(frozen=True, slots=True)
class Quantity:
    """One metric. of: its value from a run and the run compared with. ratio: whether there is one compared with;
    one_of_base: whether it is 1 for that one by definition.

    grows: whether it rises with the iteration time (-1: falls, 0: counted, not timed). A part of the iteration is taken
    to be as uncertain as the whole.
    """

    of: Callable[[Measured, Measured], float]
    ratio: bool = False
    grows: int = 1
    one_of_base: bool = False


def _alone(value: Callable[[Measured], float], grows: int = 1) -> Quantity:
    return Quantity(lambda run, _: value(run), grows=grows)


SECONDS: Final = _alone(lambda run: run.iteration_s)


def _relative(value: Callable[[Measured, Measured], float], grows: int = 1) -> Quantity:
    return Quantity(value, ratio=True, grows=grows, one_of_base=True)


SPEEDUP: Final = _relative(lambda run, base: base.iteration_s / run.iteration_s, grows=-1)

QUANTITIES: Final[Mapping[str, Quantity]] = {
    "per_iteration_s": SECONDS,
    "epoch_s": SECONDS,
    "epoch_time_s": SECONDS,
    "total_s": SECONDS,
    "epochs_per_s": _alone(lambda run: 1.0 / run.iteration_s, grows=-1),
    "compute_s": _alone(lambda run: run.iteration_s - run.communication_s - run.reduce_s),
    "communication_s": _alone(lambda run: run.communication_s),
    "reduce_s": _alone(lambda run: run.reduce_s),
    "comm_ratio_pct": _alone(lambda run: 100.0 * run.communication_s / run.iteration_s),
    "overhead_pct": _alone(lambda run: 100.0 * run.sampling_s / run.iteration_s),
    "epoch_comm_mb": _alone(lambda run: run.forward_bytes / MEGABYTE, grows=0),
    "throughput_x": SPEEDUP,
    "speedup_x": SPEEDUP,
    "total_x": _relative(lambda run, base: run.iteration_s / base.iteration_s),
    "communication_x": _relative(lambda run, base: run.communication_s / base.communication_s),
    "memory_x": _relative(lambda run, base: run.memory / base.memory, grows=0),
    "communicate": _relative(lambda run, base: run.exchanging_s / base.exchanging_s),
    "dgl_gb": Quantity(lambda run, base: base.loaded_bytes / GIGABYTE, ratio=True, grows=0),
    "pagraph_gb": _alone(lambda run: run.loaded_bytes / GIGABYTE, grows=0),
    "reduction_pct": Quantity(
        lambda run, base: 100.0 * (1.0 - run.loaded_bytes / base.loaded_bytes), ratio=True, grows=0
    ),
    "cached_pct": _alone(lambda run: 100.0 * run.cached_share, grows=0),
    "partition_minutes": _alone(lambda run: run.partition_s / 60.0, grows=0),
    "compute": Quantity(lambda run, base: (run.iteration_s - run.exchanging_s) / base.exchanging_s, ratio=True),
}
"""By the name of the metric. Communication is what the GPU waits for rows; the rest of the iteration is computed.
SANCUS' two are multiples of the communication of CAGNET in the same configuration, the all-reduce in it.

The volume of an epoch is read as the rows of the forward pass, of all partitions, in millions of bytes: so read, what
BNS-GCN's Table 9 prints for DropEdge agrees best with the boundary counts that the papers print.
"""

GIVEN_BASE: Final[Mapping[tuple[str, str], str]] = {("bns_gcn", "table11"): "graphsage"}
"""Tables whose ratios are to a system that has no schedule here, but whose seconds are printed."""


def predicted(metric: str, run: Ends, base: Ends | None) -> tuple[float, float, float]:
    """A metric's likely value and its interval: over the assumptions' ends, and what each run leaves open."""
    quantity = QUANTITIES[metric]
    pairs = [(one, other or one) for one, other in zip(run, base or (None, None, None), strict=True)]
    values = [quantity.of(one, other) for one, other in pairs]
    likely = values[1]
    spread = [(one.low_s / one.iteration_s, one.high_s / one.iteration_s) for one, _ in pairs]
    if quantity.grows < 0:
        spread = [(1.0 / high, 1.0 / max(low, 1e-3)) for low, high in spread]
    if quantity.grows == 0:
        spread = [(1.0, 1.0) for _ in spread]
    low = min(value * least for value, (least, _) in zip(values, spread, strict=True))
    high = max(value * most for value, (_, most) in zip(values, spread, strict=True))
    most = 100.0 if metric.endswith("_pct") else high
    return likely, min(low, likely), max(min(high, most), likely)
