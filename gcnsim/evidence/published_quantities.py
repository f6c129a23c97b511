"""What each published metric is, read off a run and, for ratios, off the run it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gcnsim.evidence.published_answers import RangeOfResults, TableValues

MEGABYTE: Final = 1e6
GIGABYTE: Final = 1e9

VOLUME_ERROR: Final = 0.37
"""1.645 times the root mean square error of the volumes that may be compared (BNS-GCN, Table 9: -0.5, -7, -38 %)."""

MEMORY_ERROR: Final = 0.1
"""Assumed: BNS-GCN's eq. 4 leaves out the model, the work space and what an allocator keeps."""


@dataclass(frozen=True, slots=True)
class TableQuantity:
    """One metric. of: its value from a run and the run compared with. ratio: whether there is one compared with;
    one_of_base: whether it is 1 for that one by definition.

    grows: whether it rises with the iteration time (-1: falls, 0: counted, not timed).
    counted: of what is counted, half the width of its interval, relative.
    unit_s: of a part of the iteration, the seconds that 1 stands for. What the whole is off may be off in one part
    alone: phases are where a paper's timers stand, and they are told apart no better than that.
    """

    of: Callable[[TableValues, TableValues], float]
    ratio: bool = False
    grows: int = 1
    one_of_base: bool = False
    counted: float = 0.0
    unit_s: Callable[[TableValues], float] | None = None


def _alone(value: Callable[[TableValues], float], grows: int = 1) -> TableQuantity:
    return TableQuantity(lambda run, _: value(run), grows=grows)


def _part(value: Callable[[TableValues], float]) -> TableQuantity:
    return TableQuantity(lambda run, _: value(run), unit_s=lambda _: 1.0)


SECONDS: Final = _alone(lambda run: run.iteration_s)


def _relative(value: Callable[[TableValues, TableValues], float], grows: int = 1) -> TableQuantity:
    return TableQuantity(value, ratio=True, grows=grows, one_of_base=True)


SPEEDUP: Final = _relative(lambda run, base: base.iteration_s / run.iteration_s, grows=-1)

QUANTITIES: Final[Mapping[str, TableQuantity]] = {
    "per_iteration_s": SECONDS,
    "epoch_s": _alone(lambda run: run.per_epoch * run.iteration_s),
    "epoch_time_s": SECONDS,
    "total_s": SECONDS,
    "epochs_per_s": _alone(lambda run: 1.0 / run.iteration_s, grows=-1),
    "compute_s": _part(lambda run: run.iteration_s - run.communication_s - run.reduce_s),
    "communication_s": _part(lambda run: run.communication_s),
    "reduce_s": _part(lambda run: run.reduce_s),
    "comm_ratio_pct": _alone(lambda run: 100.0 * run.communication_s / run.iteration_s),
    "overhead_pct": _alone(lambda run: 100.0 * run.sampling_s / run.iteration_s),
    "epoch_comm_mb": TableQuantity(lambda run, _: run.forward_bytes / MEGABYTE, grows=0, counted=VOLUME_ERROR),
    "throughput_x": SPEEDUP,
    "speedup_x": SPEEDUP,
    "total_x": _relative(lambda run, base: run.iteration_s / base.iteration_s),
    "communication_x": TableQuantity(
        lambda run, base: run.communication_s / base.communication_s,
        ratio=True,
        one_of_base=True,
        unit_s=lambda base: base.communication_s,
    ),
    "memory_x": TableQuantity(
        lambda run, base: run.memory / base.memory, ratio=True, grows=0, one_of_base=True, counted=MEMORY_ERROR
    ),
    "communicate": _relative(lambda run, base: run.exchanging_s / base.exchanging_s),
    "dgl_gb": TableQuantity(lambda run, base: base.loaded_bytes / GIGABYTE, ratio=True, grows=0),
    "pagraph_gb": _alone(lambda run: run.loaded_bytes / GIGABYTE, grows=0),
    "reduction_pct": TableQuantity(
        lambda run, base: 100.0 * (1.0 - run.loaded_bytes / base.loaded_bytes), ratio=True, grows=0
    ),
    "cached_pct": _alone(lambda run: 100.0 * run.cached_share, grows=0),
    "partition_minutes": _alone(lambda run: run.partition_s / 60.0, grows=0),
    "compute": TableQuantity(lambda run, base: (run.iteration_s - run.exchanging_s) / base.exchanging_s, ratio=True),
}
"""By the name of the metric. Communication is what the GPU waits for rows; the rest of the iteration is computed.
SANCUS' two are multiples of the communication of CAGNET in the same configuration, the all-reduce in it.

The volume of an epoch is read as the rows of the forward pass, of all partitions, in millions of bytes: so read, what
BNS-GCN's Table 9 prints for DropEdge agrees best with the boundary counts that the papers print.
"""

WHOLE_S: Final = frozenset({"per_iteration_s", "epoch_s", "epoch_time_s", "total_s"})
"""Seconds of an iteration, or of all of an epoch."""

GIVEN_BASE: Final[Mapping[tuple[str, str], str]] = {("bns_gcn", "table11"): "graphsage"}
"""Tables whose ratios are to a system that has no schedule here, but whose seconds are printed."""


def iteration_seconds(metric: str, value: float, run: TableValues) -> float | None:
    """The seconds of an iteration according to a printed value; None for other kinds of value."""
    if metric == "epochs_per_s":
        return 1.0 / value
    return value / run.per_epoch if metric in WHOLE_S else None


def predicted(metric: str, run: RangeOfResults, base: RangeOfResults | None) -> tuple[float, float, float]:
    """A metric's likely value and its interval: over the assumptions' ends, and what each run leaves open."""
    quantity = QUANTITIES[metric]
    pairs = [(one, other or one) for one, other in zip(run, base or (None, None, None), strict=True)]
    values = [quantity.of(one, other) for one, other in pairs]
    likely = values[1]
    intervals = [_interval(quantity, one, other, value) for (one, other), value in zip(pairs, values, strict=True)]
    low, high = min(least for least, _ in intervals), max(most for _, most in intervals)
    most = 100.0 if metric.endswith("_pct") else high
    return likely, min(low, likely), max(min(high, most), likely)


def _interval(quantity: TableQuantity, run: TableValues, base: TableValues, value: float) -> tuple[float, float]:
    """What one run leaves open of a metric."""
    if quantity.unit_s is not None:
        unit = quantity.unit_s(base)
        less, more = ((end - run.iteration_s) / unit for end in (run.low_s, run.high_s))
        return max(0.0, value + less), min(value + more, run.high_s / unit)
    least, most = run.low_s / run.iteration_s, run.high_s / run.iteration_s
    if quantity.grows < 0:
        least, most = 1.0 / most, 1.0 / max(least, 1e-3)
    if not quantity.grows:
        least, most = 1.0 - quantity.counted, 1.0 + quantity.counted
    return value * least, value * most
