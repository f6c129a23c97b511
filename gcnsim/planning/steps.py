"""The gain from changing one knob of the recommended setting: its method, machine or partition.

A change of the machine is not simulated if it has no effect, and the answer says why. That requires a proof that it
shortens the iteration by less than 1 %. Its analytic estimate must also be the same under nearly every draw of the
assumptions. All other changes are simulated. Their gain is compared under the same draws of the assumptions, because
most unknowns are shared.

If each worker trains the training nodes of its part, one change balances these nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Final

from gcnsim.core.clock import OnProgress
from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray
from gcnsim.core.units import format_gbps
from gcnsim.graph.assign import TRAINING_NODES
from gcnsim.hardware import device, devices, prices
from gcnsim.methods import Method, method_type
from gcnsim.planning.alternatives import (
    KnobChange,
    host_steps,
    partition_seconds,
    partition_setting,
    partition_variants,
    path_steps,
    why_cores_do_not_matter,
)
from gcnsim.planning.candidate import PRECISION, canonical, central
from gcnsim.planning.recommend import Rule
from gcnsim.planning.study import Studies
from gcnsim.results import NoEffect, Step
from gcnsim.scenario import BALANCED, RANDOM, ClusterSpec, Scenario
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation import Result, answering
from gcnsim.simulation.part_orders import matters, placement_of_parts

COPY_LINKS: Final = ("pcie3-x16", "pcie4-x16", "pcie5-x16")
FASTER: Final = 1.2
"""The least ratio of memory bandwidths between the next device and this one."""

EVEN: Final = "perfectly even"
PARTS_PLACED: Final = "placement of parts"
TRAINING: Final = "training nodes"

SLIGHT: Final = 0.05
"""A change within this share, at the stated values and in the draws, counts as having no effect."""

PATIENCE_S: Final = 2.0
"""The most seconds of METIS that an unrequested change may take."""


TOUCHES: Final[Mapping[str, frozenset[str]]] = {
    "bandwidth": frozenset({"nic", "rack"}),
    "device": frozenset({"compute", "sampling", "packing", "other", "pcie", "nvlink", "memory", "latency"}),
    "PCIe": frozenset({"pcie", "latency"}),
    "host cores": frozenset({"cpu"}),
    "sampler threads": frozenset({"cpu"}),
    "sampler": frozenset({"cpu", "pcie", "latency"}),
}
"""By machine knob, the kinds of resources (`gcnsim.simulation.limit.WORDS`) that its change makes faster."""


def next_steps(
    studies: Studies, scenario: Scenario, rule: Rule, on_progress: OnProgress = lambda done, total: None
) -> tuple[list[Step], list[NoEffect]]:
    """Return one change of each knob from `scenario`, the most useful first and those that do not fit last.

    It also returns the knobs without effect. Forbidden changes are left out, and so is a change to a partition from
    another source.
    """
    changes, idle = try_changes(studies, scenario, rule, on_progress)
    now = studies.result(scenario)
    steps = []
    for change in changes:
        if not studies.known(change.scenario, change.even):
            idle.append(_nothing(change, now))
            continue
        result = studies.result(change.scenario, even=change.even)
        seconds = result.metrics.iteration_s
        epochs = result.per_epoch / now.per_epoch
        saved = 1.0 - epochs * _times_over(studies, change, scenario)
        gain = 1.0 - epochs * seconds / now.metrics.iteration_s
        low, high = central(saved)
        if max(abs(gain), abs(low), abs(high)) < PRECISION:
            idle.append(_nothing(change, now))
            continue
        low, high = min(low, gain), max(high, gain)
        if abs(gain) < PRECISION and max(-low, high) < SLIGHT:
            ends = f"{_saved(low)} to {_saved(high)}"
            clear = "makes no clear difference" if low < 0.0 < high else "changes little"
            idle.append(NoEffect(change.knob, f"{change.start} -> {change.end} {clear} ({ends})"))
            continue
        if change.even and gain < 0.0:
            idle.append(NoEffect(change.knob, f"{change.start} -> {change.end} does not shorten it"))
            continue
        below = rule.too_approximate(change.scenario) is not None
        epoch_s = None if epochs == 1 else seconds * result.per_epoch
        step = Step(change.knob, change.start, change.end, seconds, gain, low, high, result.fits, below, epoch_s)
        steps.append(step)
    return sorted(steps, key=lambda step: (step.fits is False, -step.gain)), idle


def _saved(share: float) -> str:
    return f"{100 * abs(share):.1f} % {'longer' if share < 0 else 'shorter'}"


def _nothing(change: KnobChange, now: Result) -> NoEffect:
    """Return a row that says a change has no effect, and why."""
    limit = now.limit
    why = why_cores_do_not_matter(now.scenario) if change.knob == "host cores" else None
    if change.knob == "PCIe" and resolve_machine(now.scenario.cluster).copies_limited:
        why = "copies to and from GPUs are limited by the host's memory copies"
    if change.knob == "device" and limit.kind == "compute" and limit.share > SLIGHT:
        why = "the GPU waits for calls from the host, which take as long on a faster GPU"
    if why is None and limit.kind not in TOUCHES.get(change.knob, ()):
        why = limit.text if limit.share <= PRECISION else f"the limit is {limit.text}"
    return NoEffect(change.knob, f"{change.start} -> {change.end} changes less than 1 %" + (f": {why}" if why else ""))


def try_changes(
    studies: Studies, scenario: Scenario, rule: Rule, on_progress: OnProgress = lambda done, total: None
) -> tuple[list[KnobChange], list[NoEffect]]:
    """Return the allowed changes, simulated if they may matter (`Studies.known`), and the knobs without effect."""
    idle = list(no_effect(scenario))
    changes = possible_changes(studies, scenario, rule, {knob.knob for knob in idle})
    even = any(change.even for change in changes)
    result = studies.result(scenario)
    # Proven to shorten the iteration by less than PRECISION.
    useless = [
        change.scenario
        for change in changes
        if not result.scenario.faults
        and change.knob in TOUCHES
        and result.gain_at_most(TOUCHES[change.knob]) < PRECISION
    ]
    studies.explore(scenario, [change.scenario for change in changes if not change.even], even, on_progress, useless)
    return [change for change in changes if not studies.refused(change.scenario)], idle


def possible_changes(studies: Studies, scenario: Scenario, rule: Rule, idle: Collection[str]) -> list[KnobChange]:
    """Return the allowed changes of knobs that are not `idle`, with partitions from the same source.

    Times of profiled and of published partitions differ by more than a GPU gains.
    """
    return [
        change
        for change in (*_changes(scenario, rule), *_best_cut(studies, scenario), *_even_training(studies, scenario))
        if change.knob not in idle
        and _measured(change)
        and studies.allows(change.scenario)
        and studies.accesses.evidence(scenario) == studies.accesses.evidence(change.scenario)
    ]


def _times_over(studies: Studies, change: KnobChange, scenario: Scenario) -> FloatArray:
    """Return the ratio of the time after the change to the time before, float64[draws]."""
    if change.even:
        return studies.times(scenario, even=True) / studies.times(scenario)
    return studies.candidate(change.scenario).over(studies.candidate(scenario))


def _measured(change: KnobChange) -> bool:
    """Whether the change leads to a measured setting, if compute times are measured."""
    if resolve_machine(change.scenario.cluster).measured is None:
        return True
    with suppress(ScenarioError):
        return not change.even and answering(change.scenario) is not None
    return False


def no_effect(scenario: Scenario) -> Iterator[NoEffect]:
    """Return the knobs that have no effect at any value."""
    cluster = scenario.cluster
    if cluster.servers == 1:
        yield NoEffect("bandwidth", "one server: the network is not used")
    if cluster.gpus == 1:
        yield NoEffect("partition", "one GPU: nothing is exchanged")
        yield NoEffect("tau", "one GPU: nothing is exchanged")
        yield NoEffect("cache", "one GPU: nothing is exchanged")
    samples = not scenario.method.sampling().whole or scenario.method.mini_batches
    if not samples and resolve_machine(cluster).kind == "gpu" and cluster.sockets == "free":
        yield NoEffect("host cores", "nothing is sampled, so the GPUs wait for no CPU")


def _changes(scenario: Scenario, rule: Rule) -> Iterator[KnobChange]:
    for general in _as_asked(scenario.method, rule):
        for step in general.steps():
            changed = replace(scenario, method=step.method)
            yield KnobChange(step.knob, step.start, step.end, canonical(changed))
    yield from _of_network(scenario, scenario.cluster)
    yield from _of_servers(scenario, scenario.cluster)
    # Of unequal GPUs, even parts are not the best case: the slowest GPU decides.
    alike = len(set(scenario.cluster.devices or ("",))) == 1
    if scenario.cluster.gpus > 1 and scenario.workload.trace is None and alike:
        yield KnobChange("partition", "as it is", EVEN, scenario, even=True)
    if matters(scenario) and placement_of_parts(scenario) == RANDOM:
        placed = replace(scenario, partition=replace(scenario.partition, placement=BALANCED))
        yield KnobChange(PARTS_PLACED, "any", "balanced", placed)


def _as_asked(method: Method, rule: Rule) -> list[Method]:
    """Return the method, and its equivalents under the names of the methods that may be recommended."""
    kinds = [type(method), *map(method_type, rule.methods)]
    return [found for kind in dict.fromkeys(kinds) if (found := kind.as_this_method(method)) is not None]


def _best_cut(studies: Studies, scenario: Scenario) -> Iterator[KnobChange]:
    """Return the METIS setting with the best analytic estimate, if the graph is partitioned quickly."""
    # Measured compute times fix the partition.
    variants = () if scenario.cluster.measured_compute else partition_variants(scenario)
    graph = studies.accesses.graph
    if not variants or graph is None:
        return
    if sum(partition_seconds(graph.entries, variant.scenario.partition) for variant in variants) > PATIENCE_S:
        return
    estimates = studies.estimates([variant.scenario for variant in variants])
    best = variants[estimates.index(min(estimates))]
    yield KnobChange("METIS", partition_setting(scenario.partition), best.setting, best.scenario)


def _even_training(studies: Studies, scenario: Scenario) -> Iterator[KnobChange]:
    """Return METIS with balanced training nodes, if balanced ones would shorten an epoch.

    None for a given partition, for measured parts, and if METIS would take long.
    """
    graph, spec = studies.accesses.graph, scenario.partition
    fixed = scenario.cluster.measured_compute or spec.file is not None or spec.balance == TRAINING_NODES
    if graph is None or fixed:
        return
    shares = studies.accesses.training_shares(scenario)
    balanced = replace(spec, method="metis", balance=TRAINING_NODES)
    if shares is None or not shares.uneven or partition_seconds(graph.entries, balanced) > PATIENCE_S:
        return
    yield KnobChange(
        TRAINING, partition_setting(spec), partition_setting(balanced), replace(scenario, partition=balanced)
    )


def one_server_more(scenario: Scenario) -> Scenario | None:
    """Return the scenario with one more server, or with its last server filled if it holds fewer GPUs than the others.

    None if its cluster or workload has a fixed number of workers.
    """
    cluster, of_one = scenario.cluster, scenario.cluster.gpus_per_server
    if scenario.partition.file is not None or cluster.devices is not None or scenario.workload.trace is not None:
        return None
    try:
        return replace(scenario, cluster=replace(cluster, gpus=(cluster.gpus // of_one + 1) * of_one))
    except ScenarioError:
        return None


def _of_network(scenario: Scenario, cluster: ClusterSpec) -> Iterator[KnobChange]:
    """Return the changes of the network: twice the bandwidth, one more server, within the limits of the cluster."""
    with suppress(ScenarioError):
        faster = replace(cluster, bandwidth=2 * cluster.bandwidth)
        ends = format_gbps(cluster.bandwidth), format_gbps(faster.bandwidth)
        yield KnobChange("bandwidth", *ends, replace(scenario, cluster=faster))
    more = one_server_more(scenario)
    if more is not None:
        yield KnobChange("gpus", cluster.gpus, more.cluster.gpus, more)


def _of_servers(scenario: Scenario, cluster: ClusterSpec) -> Iterator[KnobChange]:
    """Return the changes of the servers: the next GPU, the next PCIe version, and the sampling on the host."""
    machine = resolve_machine(cluster)
    fixed = cluster.calibration or cluster.platform or cluster.devices or cluster.measured_compute
    if machine.kind == "gpu" and not fixed:
        after = _next_device(cluster.device)
        if after is not None:
            with suppress(ScenarioError):
                yield KnobChange(
                    "device", cluster.device, after, replace(scenario, cluster=replace(cluster, device=after))
                )
        now = machine.copies.name
        faster = dict(pairwise(COPY_LINKS)).get(now)
        if faster is not None:
            yield KnobChange("PCIe", now, faster, replace(scenario, cluster=replace(cluster, pcie=faster)))
    yield from path_steps(scenario)
    yield from host_steps(scenario)


def _next_device(name: str) -> str | None:
    """Return the GPU with the next higher memory bandwidth; if this GPU can be rented, that one can be too."""
    rented = name in devices() and bool(prices(name))
    now = device(name).memory_bandwidth.value
    faster = [
        one
        for one in map(device, (found for found in devices() if not rented or prices(found)))
        if one.kind == "gpu" and one.memory_bandwidth.value >= FASTER * now
    ]
    return min(faster, key=lambda one: one.memory_bandwidth.value).name if faster else None
