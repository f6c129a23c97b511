"""One run, on one screen: scenario -> schedule -> engine -> result.

The result includes the GPU memory of every worker and whether it fits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.core.ids import Bytes, FloatArray, Rank
from gcnsim.cost import Memory, ServerMemory
from gcnsim.engine import Run, simulate
from gcnsim.hardware import DeviceProfile
from gcnsim.hardware.topology import Cluster
from gcnsim.methods import NO_OVERLAP, Facts, Method, MiniBatch, named
from gcnsim.scenario import COARSE, EXACT, RELEASED, Scenario, WorkloadSpec
from gcnsim.scenario.machine import Machine, payload_shares, refuse_unused, resolve_machine
from gcnsim.scenario.machine_links import degree_spread, for_workload, streaming_share
from gcnsim.scenario.machine_profiles import for_graph, with_drawn
from gcnsim.schedule import Schedule, ScheduleBounds, bounds
from gcnsim.simulation.batches import batch_memory_of, placement_of, refuse_unmodelled
from gcnsim.simulation.faults import apply_static_faults, is_transient, struck
from gcnsim.simulation.limit import Limit, find_limit, gain_at_most
from gcnsim.simulation.measured_lengths import with_measured
from gcnsim.simulation.measured_setting import measured_error, refuse_unmeasured
from gcnsim.simulation.metrics import Metrics, at_least, measure
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.part_orders import placed_counts
from gcnsim.simulation.server_memory import server_holds, server_memory_of
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.simulation.steady import Steady
from gcnsim.simulation.templates import rebased, shared
from gcnsim.simulation.time_limit import as_closely, checked_bounds, wrong_by
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload import NO_DROPOUT, LayerShape


def memory_of(scenario: Scenario, counts: AccessCounts, shapes: tuple[LayerShape, ...]) -> tuple[Memory, ...] | None:
    """The GPU memory of each worker; None for methods without a memory law."""
    if isinstance(scenario.method, MiniBatch):
        return batch_memory_of(scenario, counts, shapes)
    norm, payload = scenario.workload.norm == "layer", scenario.cluster.payload
    return scenario.method.memory(counts, shapes, norm=norm, payload=payload)


def fits(memory: Sequence[Memory] | None, room: Sequence[Bytes] | None) -> bool | None:
    """Whether every worker fits in a GPU of `room` bytes; None if unknown."""
    if memory is None or room is None:
        return None
    return all(item.fits(capacity) for item, capacity in zip(memory, room, strict=True))


def both(one: bool | None, other: bool | None) -> bool | None:
    """Whether both hold; None if one of them is unknown and the other does."""
    return False if False in (one, other) else None if one is None else one


def tightest(memory: Sequence[Memory], room: Sequence[Bytes] | None) -> Rank:
    """The worker nearest to its GPU's limit, the first of equals; without limits the one that needs most."""
    limits = room or [0.0] * len(memory)
    return max(range(len(memory)), key=lambda rank: (memory[rank].total - limits[rank], -rank))


@dataclass(frozen=True)
class Result:
    """The result of one scenario.

    low, high: the 90 % interval of the mean iteration. It covers the spread of its iterations, the calibration's
    residual error, and the error of a coarse run. The mean is at least the bound; so is the low end, except for the
    calibration's error. settled: whether the run reached its steady state; if not, `high` extends to the value it was
    drifting towards. warm_up: iterations before the measured ones. per_epoch: iterations in which every training node
    is trained once. memory: the GPU memory of each worker; None without a memory law. server_memory: that of each
    server; None for workers on CPU cores. layers: of the model. law_share: the part of the
    half-width that comes from errors of cost laws (independent errors, whose squares add up).
    """

    scenario: Scenario
    metrics: Metrics
    bounds: ScheduleBounds
    low_s: float
    high_s: float
    cache_hit_rate: float
    cache_fraction: float
    settled: bool
    warm_up: int
    run: Run
    per_epoch: int = 1
    law_share: float = 0.0
    memory: tuple[Memory, ...] | None = None
    server_memory: tuple[ServerMemory, ...] | None = None
    layers: int = 0

    @cached_property
    def limit(self) -> Limit:
        """The bottleneck of its iterations, found by further simulations on first use."""
        measured = 0 if is_transient(self.scenario.faults) else self.scenario.run.iterations
        return find_limit(self.run, self.warm_up, self.metrics.iteration_s, measured)

    def gain_at_most(self, kinds: Collection[str]) -> float:
        """An upper bound on the reduction of its iterations with infinitely fast resources of `kinds`."""
        return gain_at_most(self.run, self.warm_up, self.metrics.iteration_s, kinds)

    @property
    def fits(self) -> bool | None:
        """Whether every worker fits in GPU memory, and every server's part in its memory; None if unknown."""
        return both(fits(self.memory, self.machine.capacities), self.server_fits)

    @property
    def server_fits(self) -> bool | None:
        """Whether every server's part fits in its memory; None if unknown."""
        return server_holds(self.server_memory, self.machine.server_capacity)

    @property
    def fidelity(self) -> str:
        """Whether it was simulated exactly or coarsely."""
        return COARSE if self.run.schedule.grain_s > 0.0 else EXACT

    @property
    def machine(self) -> Machine:
        """The machine of the scenario."""
        return resolve_machine(self.scenario.cluster)


def write_schedule(
    scenario: Scenario, counts: AccessCounts, accesses: Source, sample: Mapping[str, FloatArray] | None = None
) -> Schedule:
    """The schedule of the scenario's method on its machine, for these access counts.

    sample: figures of devices and the host by `NAME.FIGURE`, with one value per graph of the counts, in place of the
    catalogue's (`gcnsim.simulation.propagation`). Such graphs are independent samples, not consecutive iterations.
    """
    machine = resolve_machine(scenario.cluster)
    if sample is not None:
        return _new_schedule(scenario, counts, accesses, sample)
    found = shared("schedule", scenario, (counts, accesses), lambda: _new_schedule(scenario, counts, accesses, None))
    return rebased(found, _topology(scenario, machine))


def _topology(scenario: Scenario, machine: Machine) -> Cluster:
    """The links of the machine as the scenario's method uses them."""
    return machine.batch_topology if scenario.method.mini_batches else machine.topology


def _new_schedule(
    scenario: Scenario, counts: AccessCounts, accesses: Source, sample: Mapping[str, FloatArray] | None
) -> Schedule:
    """The same as `write_schedule`, without the cache."""
    machine = resolve_machine(scenario.cluster)
    shapes = resolve_model(scenario.workload, accesses.declared).shapes
    _refuse_attention(scenario, shapes)
    measured = refuse_unmeasured(scenario, accesses)
    topology, device = _topology(scenario, machine), machine.device
    devices, host = machine.devices, machine.host
    if sample:
        device, host = with_drawn(device, sample), with_drawn(host, sample)
        devices = tuple(with_drawn(item, sample) for item in devices)
    if machine.calibration is not None:
        # Hashing a large graph is slow; only a calibration record needs the hash.
        device = for_graph(device, machine.calibration, accesses.graph_hash)
    if machine.calibration is None or machine.platform is not None:
        device, *others = (
            for_workload(item, machine.platform, scenario.workload.dataset) for item in (device, *devices)
        )
        devices = tuple(others)
    chosen = scenario.method
    _refuse_summed_before(scenario, shapes)
    refuse_unused(scenario.cluster, chosen)
    placement = None
    if isinstance(chosen, MiniBatch):
        refuse_unmodelled(scenario, chosen, shapes)
        placement = placement_of(scenario, counts, shapes) if device.kind == "gpu" else None
    released = scenario.cluster.implementation == RELEASED
    facts = Facts(
        cluster=topology,
        device=device,
        host=host,
        shapes=shapes,
        counts=counts,
        norm=scenario.workload.norm == "layer",
        dropout=_dropout(scenario.workload, device),
        seed=scenario.run.seed,
        rate_beside_copies=machine.rate_beside_copies,
        payload=scenario.cluster.payload,
        devices=devices,
        serial=scenario.cluster.transfers == "serial",
        released=released,
        degree_spread=degree_spread(scenario.workload.dataset),
        streaming=streaming_share(device, machine.platform) if released else None,
        sampler_threads=scenario.cluster.sampler_threads or 1,
        samples_on_gpu=scenario.cluster.sampler_device == "gpu",
        placement=placement,
        unrelated=sample is not None,
    )
    schedule = _written(chosen, facts)
    if measured is None:
        return schedule
    return with_measured(schedule, scenario, counts, measured, replayed=sample is None)


def _dropout(spec: WorkloadSpec, device: DeviceProfile) -> str:
    """The kind of dropout; on GPUs without a given share, that of the published systems."""
    share = spec.dropout if spec.dropout is not None else float(device.kind == "gpu")
    return spec.dropout_order if share else NO_DROPOUT


def _written(method: Method, facts: Facts) -> Schedule:
    """The method's schedule. Raises ScenarioError, naming the class, if an external method fails."""
    if type(method).__module__.startswith("gcnsim."):
        return method.schedule(facts)
    where = f"method {method.name!r} of {type(method).__module__}:{type(method).__name__}: its schedule"
    try:
        found: object = method.schedule(facts)
    except GcnsimError:
        raise
    except Exception as error:
        raise ScenarioError(f"{where} failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, Schedule):
        raise ScenarioError(f"{where} is {type(found).__name__}, not what Builder.close gives")
    return found


def _refuse_attention(scenario: Scenario, shapes: tuple[LayerShape, ...]) -> None:
    """Raise ScenarioError for attention if no schedule supports it."""
    if not any(shape.heads for shape in shapes):
        return
    on_cores = scenario.method.mini_batches and resolve_machine(scenario.cluster).kind == "cpu"
    if on_cores or not scenario.method.supports_gat:
        allowed = ", ".join(named(lambda kind: kind.supports_gat and not (on_cores and kind.mini_batches)))
        where = scenario.method.name + (" on CPU cores" if on_cores else "")
        raise ScenarioError(f"workload.model: gat is not modelled with {where}; allowed: {allowed}")
    if scenario.method.overlap != NO_OVERLAP:
        raise ScenarioError(
            f"method.overlap: {scenario.method.overlap} is not allowed with gat; none is: a softmax needs every entry"
        )


def _refuse_summed_before(scenario: Scenario, shapes: tuple[LayerShape, ...]) -> None:
    """Raises ScenarioError for an input that is summed before training where edges are drawn."""
    if not shapes[0].gathers and scenario.method.sampling().by_edge:
        raise ScenarioError(
            f"workload.preaggregate: true is not allowed with method.epsilon {scenario.method.epsilon:g}: "
            "edges that are drawn anew cannot be summed before"
        )


def _less(mean_s: float, spread_s: float) -> float:
    """The low end of an interval of random work: divided by the factor that the spread multiplies the high end with.

    Lognormal factors can lengthen an iteration many times, but never shorten it to zero.
    """
    return mean_s / (1.0 + spread_s / mean_s)


def simulate_scenario(scenario: Scenario, accesses: Source | None = None, bound: RangeEnd = RangeEnd.LIKELY) -> Result:
    """Simulate one scenario until it is steady. accesses: from `open_source`, to share slow work between studies.

    Raises GcnsimError for unusable files or names.
    """
    accesses = accesses or open_source(scenario)
    model = resolve_model(scenario.workload, accesses.declared)
    counts = placed_counts(accesses, scenario, model.features, bound)
    chosen = scenario.method.cache
    calm = write_schedule(scenario, counts, accesses)
    machine = resolve_machine(scenario.cluster)
    shares = payload_shares(machine) if scenario.faults else {}
    schedule = apply_static_faults(calm, scenario.faults, shares)
    judge = Steady(schedule, scenario.run.iterations)
    limits = checked_bounds(scenario, calm, schedule, judge)
    schedule = as_closely(schedule, scenario, limits.lower_s)
    run, noise_s = simulate(schedule, judge.most, judge.enough, endless=True), 0.0
    window = judge.window(run.ends)
    settled, measured = window.settled, schedule
    # A run that has not settled still approaches the pace of the op that falls behind.
    lag = 0.0 if settled else max(window.behind, 0.0)
    passes = is_transient(scenario.faults)
    if passes:
        run, window, noise_s = struck(schedule, judge, window, passes, scenario.run.seed)
        measured = run.schedule
    graphs = np.sort(np.arange(window.first, run.iterations) % measured.demand.shape[0])
    often = np.bincount(graphs, minlength=measured.demand.shape[0])
    if often.min() < often.max():
        limits = bounds(measured.of_graphs(graphs))
        measured = measured.of_graphs(np.flatnonzero(often))
    metrics = at_least(measure(run, window.first), limits.lower_s)
    # With explicit faults, the graphs vary as they do without them.
    draw_spread = np.hypot(judge.spread(window, schedule if passes else measured), noise_s / metrics.iteration_s)
    # The error of a coarse run is systematic: it does not average out.
    left_out = machine.law_error(attends=any(shape.heads for shape in model.shapes))
    unsure = float(np.linalg.norm([machine.error, left_out, measured_error(scenario)]))
    chance = float(np.hypot(draw_spread, unsure))
    spread = metrics.iteration_s * (chance + wrong_by(schedule))
    many_times = noise_s > 0.0 or spread >= metrics.iteration_s
    # No run of this work is faster than its bound. Errors of laws, other jitter or an uncalibrated machine would change
    # the bound too.
    least = limits.lower_s * max(0.0, 1.0 - unsure)
    return Result(
        scenario=scenario,
        metrics=metrics,
        bounds=limits,
        low_s=_less(metrics.iteration_s, spread) if many_times else max(least, metrics.iteration_s - spread),
        high_s=metrics.iteration_s * (1.0 + lag) + spread + machine.unexplained_s,
        cache_hit_rate=counts.hit_rate,
        cache_fraction=counts.cache_fraction if chosen.fraction is None else chosen.fraction,
        settled=settled,
        warm_up=window.first,
        run=run,
        per_epoch=1 if counts.batches is None else counts.batches.per_epoch,
        law_share=left_out / chance if chance else 0.0,
        memory=shared("memory", scenario, (counts,), lambda: memory_of(scenario, counts, model.shapes)),
        layers=len(model.shapes),
        server_memory=server_memory_of(scenario, counts, model.shapes),
    )
