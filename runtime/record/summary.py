"""The parts of a run's time, per worker and for the slowest one, as means over the iterations after the warm-up.

All workers' iterations have the same length, because the all-reduce ends them together. The slowest worker is the one
the others wait for: the one with most work, i.e. compute plus exposed sampling. Each part is the union of its spans, so
concurrent spans do not count twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

import numpy as np

from gcnsim.core.ids import AnyArray, BoolArray, FloatArray, IntArray, Iteration, Rank, Seconds
from gcnsim.core.shapes import Count, OneOrMore, Within
from gcnsim.core.terminal import aligned
from gcnsim.core.units import format_bytes, format_fraction, format_seconds
from gcnsim.records.run_files import Shares
from gcnsim.timeline import PS_PER_S, Intervals, OpKind, Phase, Timeline
from gcnsim.timeline.breakdown import Spans
from runtime.record.recorder import MAIN_STREAM

RECEIVING = "rx"
"""The prefix of the last part of a receiving stream's name (`f.rx2`): the far end of a message of `f.tx`."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Where the time went."""

    measured: OneOrMore
    """Iterations that the means cover."""
    warmup: Count
    """Iterations left out before them."""
    iteration_s: Seconds
    """Mean of the measured iterations."""
    iteration_s_p10: Seconds
    """Their 10th percentile, linear between neighbours."""
    iteration_s_p90: Seconds
    """Their 90th percentile."""
    slowest: Rank
    """The worker with most compute and exposed sampling, the lowest rank of equals."""
    workers: Annotated[tuple[Shares, ...], Within(min_items=1)]

    @property
    def shares(self) -> Shares:
        """The means of the slowest worker."""
        return self.workers[self.slowest]

    def asdict(self) -> dict[str, Any]:
        """All fields as plain JSON values."""
        return asdict(self) | {"workers": [asdict(worker) for worker in self.workers]}


def summarise(
    timeline: Timeline,
    iteration_s: Sequence[float] | FloatArray,
    *,
    workers: int,
    warmup: int,
    first: Iteration = 0,
    waits_labelled: bool = False,
) -> Summary:
    """The summary of the iterations in `timeline` (of all workers).

    iteration_s[i]: the length of iteration first + i in seconds; first is not 0 in a resumed run. The first `warmup` of
    these are left out, but at least one is measured. waits_labelled: the main stream's spans name what it waits for, so
    a wait is never attributed to an active sampler. Raises ValueError without iterations.
    """
    seconds = np.asarray(iteration_s, dtype=np.float64)
    if not seconds.size:
        raise ValueError("no iterations to summarise")
    warmup = min(warmup, seconds.size - 1)
    low, high = first + warmup, first + seconds.size
    window = _Window(timeline, (timeline.iteration >= low) & (timeline.iteration < high))
    shares = tuple(
        _shares(window, rank, seconds.size - warmup, waits_labelled=waits_labelled) for rank in range(workers)
    )
    p10, p90 = (float(value) for value in np.percentile(seconds[warmup:], (10, 90)))
    return Summary(
        measured=int(seconds.size - warmup),
        warmup=warmup,
        iteration_s=float(seconds[warmup:].mean()),
        iteration_s_p10=p10,
        iteration_s_p90=p90,
        slowest=max(range(workers), key=lambda rank: (shares[rank].compute_s + shares[rank].exposed_sampling_s, -rank)),
        workers=shares,
    )


class _Window:
    """The spans of the measured iterations, and the instants of their masks."""

    def __init__(self, timeline: Timeline, measured: BoolArray) -> None:
        self.timeline = timeline
        self.spans = Spans(timeline, MAIN_STREAM)
        self.main = self.spans.main
        self.measured = measured
        self.wire = self.kinds(OpKind.WIRE)
        receiving = [name.rpartition(".")[2].startswith(RECEIVING) for name in timeline.streams]
        self.received: BoolArray = self.wire & self.spans.streams(receiving)
        self.sent: BoolArray = self.wire & ~self.received
        self.landed = _landed(timeline, np.flatnonzero(self.sent), np.flatnonzero(self.received))

    def kinds(self, *kinds: OpKind) -> BoolArray:
        """Mask of the measured spans of these kinds."""
        return self.measured & self.spans.kinds(*kinds)

    def phase(self, phase: Phase) -> BoolArray:
        """Mask of the measured spans of this phase."""
        return self.measured & self.spans.phase(phase)

    def of(self, rank: Rank, mask: BoolArray) -> Intervals:
        """The instants at which one of the worker's spans in `mask` was active."""
        return self.spans.covers(mask & self.spans.of(rank))

    def transfers(self, rank: Rank) -> Intervals:
        """The instants at which one of the worker's transfers, sent or received, was active."""
        handled = self.of(rank, self.phase(Phase.TRANSFER) & ~self.wire)
        near = self.sent & self.spans.near(rank)
        return handled.union(Intervals.of(self.timeline.start_ps[near], self.landed[near]))


def _landed(timeline: Timeline, sent: IntArray, received: IntArray) -> IntArray:
    """The end of each span; for a sent message the end at its receiver, if that is later, int64[spans].

    The two ends of a message have the same iteration, layer, direction and pair of workers; several such messages are
    matched in order.
    """
    landed: IntArray = timeline.end_ps.copy()
    facts = (timeline.iteration, timeline.layer, timeline.direction)
    ends: dict[tuple[int, ...], list[int]] = {}
    for key, end in zip(_keys(timeline.peer, timeline.worker, *facts, at=received), landed[received], strict=True):
        ends.setdefault(key, []).append(end)
    for i, key in zip(sent, _keys(timeline.worker, timeline.peer, *facts, at=sent), strict=True):
        # The k-th sent is the k-th received; each key has few messages.
        if ends.get(key):
            landed[i] = max(landed[i], ends[key].pop(0))
    return landed


def _keys(*columns: AnyArray, at: IntArray) -> Iterator[tuple[int, ...]]:
    return zip(*(column[at].tolist() for column in columns), strict=True)


def _shares(window: _Window, rank: Rank, count: int, *, waits_labelled: bool) -> Shares:
    def mean(intervals: Intervals) -> float:
        return intervals.length / (count * PS_PER_S)

    def phase(which: Phase) -> float:
        return mean(window.of(rank, window.phase(which)))

    waits = window.of(rank, window.phase(Phase.WAIT) & window.main)
    handling = window.of(rank, window.phase(Phase.TRANSFER) & window.main)
    transfers = window.transfers(rank)
    sampling = window.of(rank, window.phase(Phase.SAMPLING))
    own_sampling = window.of(rank, window.phase(Phase.SAMPLING) & window.main)
    return Shares(
        worker=rank,
        compute_s=phase(Phase.COMPUTE),
        wait_s=mean(waits),
        transfer_s=mean(transfers),
        hidden_transfer_s=mean(transfers.difference(waits.union(handling))),
        sampling_s=mean(sampling),
        exposed_sampling_s=mean(own_sampling if waits_labelled else sampling.intersection(waits.union(own_sampling))),
        reduce_s=phase(Phase.REDUCE),
        optimizer_s=phase(Phase.OPTIMIZER),
        pack_s=mean(window.of(rank, window.kinds(OpKind.PACK, OpKind.GATHER))),
        unpack_s=mean(window.of(rank, window.kinds(OpKind.UNPACK, OpKind.SCATTER))),
    )


_OVERLAPPING: Final = (
    ("transfer_s", "transfers"),
    ("sampling_s", "sampling"),
    ("reduce_s", "all-reduce"),
    ("optimizer_s", "optimizer"),
)
"""Activities that take place during the parts of the iteration, on any thread."""


def breakdown(final: Mapping[str, Any]) -> str:
    """The table of a run, without a newline at its end.

    final: method, workers, iterations, test_accuracy, val_accuracy, final_loss, iteration_s, compute_s, wait_s,
    transfer_s, sampling_s, bytes_sent (by all workers in the whole run), cache_hit_rate, seconds; reduce_s,
    optimizer_s, evaluation_s if known. None is shown as `-`.
    """
    workers = final["workers"]
    head = f"{final['method']}: {final['iterations']:,} iterations on {workers} worker{'s' if workers != 1 else ''}"
    lines = [f"{head} in {format_seconds(final['seconds'])}", ""]
    loss = final["final_loss"]
    results = [
        ("test accuracy", _share(final["test_accuracy"])),
        ("validation accuracy", _share(final["val_accuracy"])),
        ("final loss", "-" if loss is None else f"{loss:.4g}"),
        ("bytes sent", _sent(final)),
        ("cache hit rate", _share(final["cache_hit_rate"])),
    ]
    if final.get("evaluation_s") is not None:
        results.append(("evaluation", format_seconds(final["evaluation_s"])))
    overlapping = [
        (title, "-" if final[key] is None else format_seconds(final[key]))
        for key, title in _OVERLAPPING
        if key in final
    ]
    lines += [*aligned(results, left=2, indent=2), "", "Per iteration of the slowest worker:"]
    lines += [*aligned(_parts(final), indent=2), "", "During these, partly at the same time:"]
    return "\n".join([*lines, *aligned(overlapping, indent=2)])


def _parts(final: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The iteration, and the parts that add up to it: an instant that computes and waits counts as computation."""
    whole, compute, wait = (final[name] for name in ("iteration_s", "compute_s", "wait_s"))
    if whole is None or compute is None or wait is None:
        given = (("iteration (mean)", whole), ("compute", compute), ("exposed waiting", wait))
        return [(title, "-" if value is None else format_seconds(value), "") for title, value in given]
    compute = min(compute, whole)
    wait = min(wait, whole - compute)
    parts = (
        ("iteration (mean)", whole),
        ("compute", compute),
        ("exposed waiting", wait),
        ("other", whole - compute - wait),
    )
    return [(title, format_seconds(value), f"{100 * value / whole:.1f} %" if whole else "") for title, value in parts]


def _share(value: float | None) -> str:
    return "-" if value is None else format_fraction(value)


def _sent(final: Mapping[str, Any]) -> str:
    total = final["bytes_sent"]
    if total is None:
        return "-"
    return f"{format_bytes(total)}, {format_bytes(total / max(1, final['iterations']))} an iteration"
