"""Apply faults to a schedule: they change work, capacities and start times of ops, so the engine needs no knowledge of
them.

Static faults hold for the whole run: slow links, and GPUs that are slow from the first measured iteration to the last.
They are part of the machine, so the run is evaluated like any other. Transient faults hit a run that has settled
without them: pauses, jitter, GPUs that are slow for some iterations. Such a run has a fixed length, and its interval
includes the randomness of the faults and of the settled state.

A paused worker starts nothing during the pause, and no transfer to it starts either. One extra op, on a separate
stream, delays all that the worker would start in the paused iteration. With staleness, messages and copies of earlier
iterations may still be queued; a stopped process serves none of them. If they had not begun before the pause, they
begin after it, whether they belong to the worker or to others. Active transfers continue, as into buffers of the
operating system.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.ids import BoolArray, FloatArray, Iteration, Rank
from gcnsim.core.streams import stream
from gcnsim.core.units import BANDWIDTH
from gcnsim.engine import Run, begun, lookahead, simulate
from gcnsim.scenario import Background, Fault, Jitter, LossyLink, Pause, Scenario, SlowGpu, SlowLink
from gcnsim.scenario.machine import resolve_machine
from gcnsim.schedule import Schedule, stream_waits, with_op
from gcnsim.simulation.steady import PAUSE, Steady, Window, quantile_90
from gcnsim.simulation.time_limit import refuse_too_long
from gcnsim.timeline import PHASE, PS_PER_S, OpKind, Phase

HANDLING: Final = frozenset({OpKind.PACK, OpKind.UNPACK, OpKind.SCATTER, OpKind.LOOKUP})
"""The work of a worker's device on messages and on its stored rows."""

KERNELS: Final = HANDLING | {kind for kind, phase in PHASE.items() if phase in (Phase.COMPUTE, Phase.OPTIMIZER)}
"""The computation of a worker's device, i.e. the work that a slow device slows down."""

WORK: Final = {
    "compute": KERNELS,
    "sampling": frozenset(kind for kind, phase in PHASE.items() if phase is Phase.SAMPLING) - KERNELS,
}
"""The ops that jitter may affect, by `Jitter.on`."""


def is_static(fault: Fault) -> bool:
    """Whether a fault holds for the whole run."""
    if isinstance(fault, SlowGpu):
        return fault.first == 0 and fault.last is None
    return isinstance(fault, SlowLink | LossyLink | Background)


def is_transient(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """The faults that do not hold for the whole run."""
    return tuple(fault for fault in faults if not is_static(fault))


def refuse_undrawn(scenarios: Sequence[Scenario]) -> None:
    """Raise ScenarioError for jitter of sampling, or of a sampler, if none of `scenarios` (equal except for methods)
    uses it.
    """
    _refuse_idle_sampler(scenarios)
    if any(not scenario.method.sampling().whole or scenario.method.mini_batches for scenario in scenarios):
        return
    for fault in scenarios[0].faults:
        if isinstance(fault, Jitter) and fault.on == "sampling":
            names = ", ".join(dict.fromkeys(scenario.method.name for scenario in scenarios))
            raise ScenarioError(f"{fault.path}.on: {names} does not sample; allowed: compute")


def _refuse_idle_sampler(scenarios: Sequence[Scenario]) -> None:
    """Raise ScenarioError for a sampler setting if none of `scenarios` would use it."""
    cluster = scenarios[0].cluster
    if resolve_machine(cluster).kind != "gpu":
        return
    devices = {device for scenario in scenarios for device in scenario.method.sampler_devices}
    names = ", ".join(dict.fromkeys(scenario.method.name for scenario in scenarios))
    # One thread is the default anyway.
    threads = None if cluster.sampler_threads == 1 else cluster.sampler_threads
    fields = {"sampler_device": cluster.sampler_device, "sampler_threads": threads}
    for field, value in fields.items():
        if value is not None and (value if field == "sampler_device" else "cpu") not in devices:
            why = "draws nothing" if not devices else f"draws on the {', '.join(sorted(devices)).upper()}"
            raise ScenarioError(f"cluster.{field}: {value} would change nothing; {names} as asked {why}")


def apply_static_faults(schedule: Schedule, faults: Sequence[Fault], shares: Mapping[str, float]) -> Schedule:
    """`schedule` on the machine with those of `faults` that hold for the whole run.

    shares: by link, payload over raw bandwidth; 1 for links that are not named. Other traffic is subtracted from the
    capacity that slow and lossy links have left. Raises ScenarioError for an unknown link or one with no capacity left.
    """
    lasts = [fault for fault in faults if is_static(fault)]
    if not lasts:
        return schedule
    capacity, work = list(schedule.capacity), schedule.demand.copy()
    for fault in sorted(lasts, key=lambda fault: isinstance(fault, Background)):
        if isinstance(fault, SlowGpu):
            work[:, _ops(schedule, "compute", fault.worker)] *= fault.factor
        elif isinstance(fault, SlowLink | LossyLink | Background):
            _reduce_capacity(capacity, schedule, fault, shares)
    return replace(schedule, demand=work, capacity=tuple(capacity))


def _reduce_capacity(
    capacity: list[float], schedule: Schedule, fault: SlowLink | LossyLink | Background, shares: Mapping[str, float]
) -> None:
    """Reduce the capacity of a link, or of both its directions, by the fault."""
    for place in _links(schedule, fault):
        name = schedule.link_names[place]
        if isinstance(fault, SlowLink):
            capacity[place] /= fault.factor
        elif isinstance(fault, LossyLink):
            capacity[place] *= 1.0 - fault.lost
        elif fault.rate < (raw := capacity[place] / shares.get(name, 1.0)) * (1.0 - 1e-9):
            # The other traffic's frames use raw bandwidth; payload gets its share of the rest.
            capacity[place] *= 1.0 - fault.rate / raw
        else:
            raise ScenarioError(
                f"{fault.path}.rate: {BANDWIDTH.exact(fault.rate)} of background leaves {name} nothing of its "
                f"{BANDWIDTH.exact(round(raw))}; allowed: less than that"
            )


def _links(schedule: Schedule, fault: SlowLink | LossyLink | Background) -> list[int]:
    """The links that a fault names.

    Raises ScenarioError if there is none, or for cores, which are not links of bytes.
    """
    names = schedule.link_names
    chosen = [index for index, name in enumerate(names) if fault.link in (name, name.rpartition(".")[0])]
    if not chosen:
        raise ScenarioError(f"{fault.path}.link: {fault.link}: no such link; {nearest(fault.link, names)}")
    if not isinstance(fault, SlowLink) and any(schedule.link_kinds[place] == "cpu" for place in chosen):
        raise ScenarioError(
            f"{fault.path}.link: {fault.link} is cores, which carry no traffic; slow-link is allowed there"
        )
    return chosen


def apply_transient_faults(
    schedule: Schedule, faults: Sequence[Fault], begin: Iteration, measured: int, seed: int, shaken: int = 0
) -> Schedule:
    """`schedule` with the transient `faults`, and with explicit work for all `begin` + `measured` iterations.

    Work is also given for the `lookahead` iterations after them. begin: iterations before the first measured one; they
    have no faults, except that the last `shaken` of them have jitter. Jitter and slow GPUs continue after the last
    measured iteration. More measured iterations do not change the first ones.
    """
    affected = measured + lookahead(schedule)
    rows = np.arange(begin + affected) % schedule.demand.shape[0]
    work: FloatArray = schedule.demand[rows].copy()
    for index, fault in enumerate(faults):
        if isinstance(fault, SlowGpu) and not is_static(fault):
            slowed = slice(begin + fault.first, None if fault.last is None else begin + fault.last + 1)
            work[slowed, _ops(schedule, "compute", fault.worker)] *= fault.factor
        elif isinstance(fault, Jitter):
            chosen = _ops(schedule, fault.on)
            shape = (shaken + affected, int(chosen.sum()))
            work[begin - shaken :, chosen] *= _factors(fault.cv, shape, seed, index)
    changed = replace(schedule, demand=work, periodic=False)
    pauses = [fault for fault in faults if isinstance(fault, Pause)]
    for pause in sorted(pauses, key=lambda pause: pause.iteration):
        changed = with_pause(changed, pause, begin)
    return changed


def _factors(cv: float, shape: tuple[int, int], seed: int, place: int) -> FloatArray:
    """Log-normal factors of mean 1 and coefficient of variation `cv`."""
    spread = float(np.sqrt(np.log1p(cv**2)))
    factors: FloatArray = stream(seed, "jitter", place).lognormal(-(spread**2) / 2, spread, shape)
    return factors


def _ops(schedule: Schedule, on: str, worker: Rank | None = None) -> BoolArray:
    """The ops that do this kind of work, of one worker or all: ops that take time other than for bytes on a link."""
    columns = schedule.columns
    at_work = np.array([all(schedule.link_kinds[link] == "cpu" for link in way) for way in (*columns.routes, ())])
    own: BoolArray = columns.is_kind(*WORK[on]) & at_work[columns.way] & (schedule.demand.max(axis=0) > 0)
    return own if worker is None else own & (columns.worker == worker)


HELD: Final = "held"
"""Prefixes of the streams whose spans delay a message until its worker continues."""


class PauseGate(NamedTuple):
    """Delays op `op` of iteration `row` until `seconds` after the end of iteration `row` - 1 of `worker`."""

    worker: Rank
    row: Iteration
    op: int
    seconds: float


def with_pause(schedule: Schedule, fault: Pause, begin: Iteration) -> Schedule:
    """`schedule` (with explicit work per iteration) with the pause; begin: the first measured iteration."""
    at = begin + fault.iteration
    # Until the pause, the run is the same without it, so its progress can be read from that run.
    holds = list(_pause_gates(simulate(schedule, at + 1, endless=True), fault, at))
    found = _stopped(schedule, fault, at)
    for hold in holds:
        found = _with_op(found, hold, f"{HELD}{found.columns.size}", [hold.op])
    return found


def _stopped(schedule: Schedule, fault: Pause, at: Iteration) -> Schedule:
    """Everything the worker would start in iteration `at` waits for the pause."""
    columns = schedule.columns
    first = np.flatnonzero((stream_waits(columns).lag == 1) & (columns.worker == fault.worker)).tolist()
    stop = PauseGate(fault.worker, at, -1, fault.seconds)
    return _with_op(schedule, stop, f"{PAUSE}{columns.size}", first)


def _with_op(schedule: Schedule, hold: PauseGate, stream: str, followers: Sequence[int]) -> Schedule:
    """`schedule` with a delay that starts with its worker's iteration and that `followers` wait for."""
    after = (schedule.ends[hold.worker], 1)
    columns = with_op(schedule.columns, OpKind.WAIT, hold.worker, stream, after, followers)
    column = np.zeros((schedule.demand.shape[0], 1))
    column[hold.row] = hold.seconds
    return replace(
        schedule,
        columns=columns,
        demand=np.concatenate([schedule.demand, column], axis=1),
    )


def _pause_gates(run: Run, fault: Pause, at: Iteration) -> Iterator[PauseGate]:
    """The first op of each stream that the pause delays, if it belongs to an earlier iteration or is sent to the
    worker.

    Streams run in order, so later ops of its stream wait too. `_stopped` handles what the worker itself starts in the
    paused iteration. A worker's iteration ends when it has sent its share of the all-reduce.
    """
    schedule, worker = run.schedule, fault.worker
    since_when = begun(run)
    stops = int(run.ends[at - 1, schedule.ends[worker]])
    columns = schedule.columns
    reduces = columns.is_kind(OpKind.ALLREDUCE)
    sent = (columns.peer == worker) & columns.is_flow & (columns.thread < 0)
    for queue, lane in zip(schedule.order, schedule.streams, strict=True):
        own = lane.worker == worker
        held = [op for op in queue if not reduces[op]]
        chosen = held if own else [op for op in held if sent[op]]
        late = np.argwhere(since_when[: at if own else at + 1, chosen] >= stops)
        if late.size:
            row, place = (int(value) for value in late[0])
            since = int(run.ends[row - 1, schedule.ends[lane.worker]]) if row else 0
            seconds = (stops - since) / PS_PER_S + fault.seconds
            if seconds > 0:
                yield PauseGate(lane.worker, row, chosen[place], seconds)


MOST_STEPS: Final = 1_000_000
"""The most operations of all iterations that are simulated one by one: about a minute."""

ALWAYS: Final = 100
"""Iterations that any schedule may have, independent of its operations."""

SHAKEN: Final = 10
"""Iterations with jitter before the measurement, per iteration of pipeline depth, until jitter has used up buffers."""

TELLING: Final = 30
"""Iterations that show how much one differs from another."""

OTHER_DRAWS: Final = 2**31
"""Added to a seed, it gives one that no scenario can have."""


class PerturbedRun(NamedTuple):
    """The run, its measured iterations, and the half-width of the interval of their mean from random factors, in
    seconds.
    """

    run: Run
    window: Window
    noise_s: float


def struck(schedule: Schedule, judge: Steady, calm: Window, faults: Sequence[Fault], seed: int) -> PerturbedRun:
    """Simulate `schedule` with `faults` after it has settled without them before `calm.first`.

    Every measured iteration is simulated, so that their mean is the cost of the faults over that many. Some following
    ones are simulated too, because the last ops share the links with them. Jitter starts earlier. The window states the
    difference between the states at its end and at its begin, or the drift of the run without faults.

    Raises ScenarioError for more iterations than can be simulated one by one.
    """
    shaken = _shaken(schedule, faults)
    begin, measured = calm.first + shaken, judge.measured
    _refuse_many(schedule, begin, measured, faults[0].path)
    hit = apply_transient_faults(schedule, faults, begin, measured, seed, shaken)
    refuse_too_long(hit, faults[0].path)
    run = simulate(hit, begin + measured, endless=True)
    behind, ahead = judge.moved(run.ends, begin - 1)
    window = Window(begin, max(calm.behind, behind), max(calm.ahead, ahead))
    return PerturbedRun(run, window, _noise_s(schedule, run, begin, faults, seed))


def _shaken(schedule: Schedule, faults: Sequence[Fault]) -> Iteration:
    """Iterations with jitter before the first measured one; none without staleness.

    Without jitter a pipeline has its buffers full; jitter, which is always present, has used up some before a run is
    measured. For PSC-GCN on Reddit at 15 and 20 Gbit/s with sampling jitter of coefficient of variation 1, the first
    ten iterations at tau 1 and 2 were 4 to 8 % shorter than later ones.
    """
    jittered = any(isinstance(fault, Jitter) for fault in faults)
    columns = schedule.columns
    stale = bool(((columns.lag > 0) & ~np.isin(columns.wait, schedule.ends)).any())
    return SHAKEN * schedule.depth if jittered and stale else 0


def _refuse_many(schedule: Schedule, begin: Iteration, measured: Iteration, path: str) -> None:
    most = max(ALWAYS, MOST_STEPS // schedule.columns.size - begin)
    if measured > most:
        raise ScenarioError(
            f"run.iterations: {measured} iterations of {schedule.columns.size} operations are too many to simulate "
            f"one by one, as {path} needs; allowed with it: at most {most}"
        )


def _noise_s(schedule: Schedule, run: Run, begin: Iteration, faults: Sequence[Fault], seed: int) -> float:
    """Half-width, in seconds, of the 90 % interval of the mean iteration over other draws of the jitter.

    The spread of an iteration comes from a longer run with other draws, or from `run` if that is larger. Each of two
    means has the standard error, so their difference has sqrt(2) times that.
    """
    drawn = [fault for fault in faults if isinstance(fault, Jitter)]
    if not drawn:
        return 0.0
    measured = run.iterations - begin
    count = max(measured, TELLING)
    shaken = _shaken(schedule, faults)
    hit = apply_transient_faults(schedule, drawn, begin, count, seed + OTHER_DRAWS, shaken)
    other = simulate(hit, begin + count, endless=True)
    spread = float(_lasted(other, begin).std(ddof=1))
    if measured > 1 and len(drawn) == len(faults):
        spread = max(spread, float(_lasted(run, begin).std(ddof=1)))
    return quantile_90(count) * spread * float(np.sqrt(2.0 / measured))


def _lasted(run: Run, begin: Iteration) -> FloatArray:
    """Seconds of each measured iteration, float64[T - begin], to the end of the last worker."""
    ends = run.ends[begin - 1 :, list(run.schedule.ends)].max(axis=1)
    seconds: FloatArray = np.diff(ends) / PS_PER_S
    return seconds
