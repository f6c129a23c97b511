"""What one step more of each knob would bring, from the recommended setting: of the method, the machine, the partition.

A step of the machine that is proven to shorten the iteration by less than 1 %, and whose analytic estimate is the same
under nearly every draw of the assumptions, is not simulated: it has no effect, and the answer says why. The others are
simulated, and their gain is compared under the same draws of the assumptions, since most of what is unknown is shared.

The step to parts with about equally many training nodes, where each worker trains those of its own part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from gcnsim.alternatives import (
    PartitionVariant,
    host_steps,
    partition_seconds,
    partition_setting,
    partition_variants,
    path_steps,
    why_cores_do_not_matter,
)
from gcnsim.errors import ScenarioError
from gcnsim.hardware import device, devices, prices
from gcnsim.ids import FloatArray
from gcnsim.machine import resolve_machine
from gcnsim.methods import Method, method_type
from gcnsim.partition import TRAINING_NODES
from gcnsim.planning.candidate import central
from gcnsim.planning.recommend import Rule
from gcnsim.planning.studied import PRECISION
from gcnsim.planning.study_cache import OnProgress, StudyCache, canonical
from gcnsim.results import NoEffect, Step
from gcnsim.scenario import ClusterSpec, Scenario
from gcnsim.simulation import Result, answering
from gcnsim.units import format_gbps

COPY_LINKS: Final = ("pcie3-x16", "pcie4-x16", "pcie5-x16")
FASTER: Final = 1.2
"""Memory bandwidth of the next device over that of this one, at least."""

EVEN: Final = "perfectly even"

SLIGHT: Final = 0.05
"""What can be told apart neither at the stated values nor by so much in the draws has no effect."""

PATIENCE_S: Final = 2.0
"""Seconds of METIS that a step may take unasked."""


TOUCHES: Final[Mapping[str, frozenset[str]]] = {
    "bandwidth": frozenset({"nic", "rack"}),
    "device": frozenset({"compute", "sampling", "packing", "other", "pcie", "nvlink", "memory", "latency"}),
    "PCIe": frozenset({"pcie", "latency"}),
    "host cores": frozenset({"cpu"}),
    "sampler threads": frozenset({"cpu"}),
    "sampler": frozenset({"cpu", "pcie", "latency"}),
}
"""By knob of the machine, the kinds of resources (`gcnsim.simulation.limit.WORDS`) that a step of it makes faster."""


@dataclass(frozen=True, slots=True)
class Move:
    """One knob moved one step. even: it is the partition, the scenario stays."""

    knob: str
    start: int | float | str
    end: int | float | str
    scenario: Scenario
    even: bool = False


def next_steps(
    studies: StudyCache, scenario: Scenario, rule: Rule, on_progress: OnProgress = lambda done, total: None
) -> tuple[list[Step], list[NoEffect]]:
    """A step of each knob from `scenario`, the most useful first, those that do not fit last, and the knobs without
    effect; a step that nothing allows is left out, and one to parts that are known from another source.
    """
    idle = list(pointless(scenario))
    moves = possible_moves(studies, scenario, rule, {each.knob for each in idle})
    # The estimate does not see what another iteration of slack brings, nor how many iterations an epoch has.
    unseen = ("tau", KNOB, "gpus") if scenario.method.mini_batches else ("tau",)
    studies.prepare([scenario, *(move.scenario for move in moves if move.knob in unseen and _allowed(studies, move))])
    even = any(move.even for move in moves)
    none = useless(studies, scenario, moves)
    studies.explore(scenario, [move.scenario for move in moves if not move.even], even, on_progress, none)
    now = studies.result(scenario)
    steps = []
    for move in moves:
        if studies.refused(move.scenario):
            continue
        if not studies.matters(move.scenario, move.even):
            idle.append(_nothing(move, now))
            continue
        result = studies.result(move.scenario, even=move.even)
        seconds = result.metrics.iteration_s
        epochs = result.per_epoch / now.per_epoch
        saved = 1.0 - epochs * _times_over(studies, move, scenario)
        gain = 1.0 - epochs * seconds / now.metrics.iteration_s
        ranged = resolve_machine(scenario.cluster).error_known
        low, high = central(saved) if ranged else (gain, gain)
        if max(abs(gain), abs(low), abs(high)) < PRECISION:
            idle.append(_nothing(move, now))
            continue
        low, high = min(low, gain), max(high, gain)
        if abs(gain) < PRECISION and max(-low, high) < SLIGHT:
            ends = f"{_saved(low)} to {_saved(high)}"
            clear = "makes no clear difference" if low < 0.0 < high else "changes little"
            idle.append(NoEffect(move.knob, f"{move.start} -> {move.end} {clear} ({ends})"))
            continue
        if move.even and gain < 0.0:
            idle.append(NoEffect(move.knob, f"{move.start} -> {move.end} does not shorten it"))
            continue
        below = rule.too_approximate(move.scenario) is not None
        epoch_s = None if epochs == 1 else seconds * result.per_epoch
        step = Step(move.knob, move.start, move.end, seconds, gain, low, high, result.fits, below, epoch_s)
        steps.append(step if ranged else replace(step, gain_low=None, gain_high=None))
    return sorted(steps, key=lambda step: (step.fits is False, -step.gain)), idle


def _allowed(studies: StudyCache, move: Move) -> bool:
    """Whether method and machine allow the move."""
    try:
        studies.check(move.scenario)
    except ScenarioError:
        return False
    return True


def _saved(share: float) -> str:
    return f"{100 * abs(share):.1f} % {'longer' if share < 0 else 'shorter'}"


def _nothing(move: Move, now: Result) -> NoEffect:
    """That a move changes nothing, and why."""
    limit = now.limit
    why = why_cores_do_not_matter(now.scenario) if move.knob == "host cores" else None
    if move.knob == "PCIe" and resolve_machine(now.scenario.cluster).copies_limited:
        why = "copies to and from GPUs are limited by the host's memory copies"
    if move.knob == "device" and limit.kind == "compute" and limit.share > SLIGHT:
        why = "the GPU waits for calls from the host, which take as long on a faster GPU"
    if why is None and limit.kind not in TOUCHES.get(move.knob, ()):
        why = limit.text if limit.share <= PRECISION else f"the limit is {limit.text}"
    return NoEffect(move.knob, f"{move.start} -> {move.end} changes less than 1 %" + (f": {why}" if why else ""))


def useless(studies: StudyCache, scenario: Scenario, moves: Iterable[Move]) -> list[Scenario]:
    """Where those of `moves` lead that are proven to shorten the iteration by less than PRECISION."""
    result = studies.result(scenario)
    if result.scenario.faults:
        return []
    return [
        move.scenario for move in moves if move.knob in TOUCHES and result.gain_at_most(TOUCHES[move.knob]) < PRECISION
    ]


def _times_over(studies: StudyCache, move: Move, scenario: Scenario) -> FloatArray:
    """The time after the move over that before, draw by draw, float64[draws]."""
    if move.even:
        return studies.times(scenario, even=True) / studies.times(scenario)
    return studies.candidate(move.scenario).over(studies.candidate(scenario))


def possible_moves(studies: StudyCache, scenario: Scenario, rule: Rule, idle: Collection[str]) -> list[Move]:
    """The moves worth a look: those of knobs that are not `idle`, which the workload allows, to parts that are known
    from the same source. Times of profiled and of published parts differ by more than a GPU brings.
    """
    return [
        move
        for move in (*_moves(scenario, rule), *_best_cut(studies, scenario), *_even_training(studies, scenario))
        if move.knob not in idle
        and _measured(move)
        and studies.allows(move.scenario)
        and studies.accesses.evidence(scenario) == studies.accesses.evidence(move.scenario)
    ]


def _measured(move: Move) -> bool:
    """Whether the move leads to what was measured, where compute is."""
    if resolve_machine(move.scenario.cluster).measured is None:
        return True
    with suppress(ScenarioError):
        return not move.even and answering(move.scenario) is not None
    return False


def pointless(scenario: Scenario) -> Iterator[NoEffect]:
    """Knobs that cannot matter, whatever their value."""
    cluster = scenario.cluster
    if cluster.servers == 1:
        yield NoEffect("bandwidth", "one server: the network is not used")
    if cluster.gpus == 1:
        yield NoEffect("partition", "one GPU: nothing is exchanged")
        yield NoEffect("tau", "one GPU: nothing is exchanged")
        yield NoEffect("cache", "one GPU: nothing is exchanged")
    drawn = not scenario.method.sampling().whole or scenario.method.mini_batches
    if not drawn and resolve_machine(cluster).kind == "gpu" and cluster.sockets == "free":
        yield NoEffect("host cores", "nothing is sampled, so the GPUs wait for no CPU")


def _moves(scenario: Scenario, rule: Rule) -> Iterator[Move]:
    for general in _as_asked(scenario.method, rule):
        for step in general.steps():
            moved = replace(scenario, method=step.method)
            yield Move(step.knob, step.start, step.end, canonical(moved))
    yield from _of_network(scenario, scenario.cluster)
    yield from _of_servers(scenario, scenario.cluster)
    if scenario.cluster.gpus > 1 and scenario.workload.trace is None:
        yield Move("partition", "as it is", EVEN, scenario, even=True)


def _as_asked(method: Method, rule: Rule) -> list[Method]:
    """The method, and under the name of each one that may be recommended and of which it is a case."""
    kinds = [type(method), *map(method_type, rule.methods)]
    return [found for kind in dict.fromkeys(kinds) if (found := kind.general(method)) is not None]


def _best_cut(studies: StudyCache, scenario: Scenario) -> Iterator[Move]:
    """The setting of METIS with the best analytic estimate, where all of them are cut in a moment."""
    # Parts that were measured are those that there are.
    variants = () if scenario.cluster.measured_compute else partition_variants(scenario)
    graph = studies.accesses.graph
    if not variants or graph is None:
        return
    if sum(partition_seconds(graph.entries, each.scenario.partition) for each in variants) > PATIENCE_S:
        return
    guesses = studies.guesses([each.scenario for each in variants])
    best = variants[guesses.index(min(guesses))]
    yield Move("METIS", partition_setting(scenario.partition), best.setting, best.scenario)


def _even_training(studies: StudyCache, scenario: Scenario) -> Iterator[Move]:
    """Parts with equally many training nodes, where these decide an epoch."""
    found = None if scenario.cluster.measured_compute else even_training(studies, scenario, PATIENCE_S)
    if found is not None:
        yield Move(KNOB, partition_setting(scenario.partition), found.setting, found.scenario)


def one_server_more(scenario: Scenario) -> Scenario | None:
    """The scenario with a server more, or where its last server holds fewer GPUs than others, with that one full; None
    where its cluster or its workload is for just so many workers."""
    cluster, of_one = scenario.cluster, scenario.cluster.gpus_per_server
    if scenario.partition.file is not None or cluster.devices is not None or scenario.workload.trace is not None:
        return None
    try:
        return replace(scenario, cluster=replace(cluster, gpus=(cluster.gpus // of_one + 1) * of_one))
    except ScenarioError:
        return None


def _of_network(scenario: Scenario, cluster: ClusterSpec) -> Iterator[Move]:
    """Twice the bandwidth, one server more: where the cluster's own ranges allow it."""
    with suppress(ScenarioError):
        faster = replace(cluster, bandwidth=2 * cluster.bandwidth)
        ends = format_gbps(cluster.bandwidth), format_gbps(faster.bandwidth)
        yield Move("bandwidth", *ends, replace(scenario, cluster=faster))
    more = one_server_more(scenario)
    if more is not None:
        yield Move("gpus", cluster.gpus, more.cluster.gpus, more)


def _of_servers(scenario: Scenario, cluster: ClusterSpec) -> Iterator[Move]:
    """The next GPU, the next PCIe, and what draws the graphs on the host."""
    machine = resolve_machine(cluster)
    fixed = cluster.calibration or cluster.platform or cluster.devices or cluster.measured_compute
    if machine.kind == "gpu" and not fixed:
        after = _next_device(cluster.device)
        if after is not None:
            with suppress(ScenarioError):
                yield Move("device", cluster.device, after, replace(scenario, cluster=replace(cluster, device=after)))
        now = machine.copies.name
        faster = dict(pairwise(COPY_LINKS)).get(now)
        if faster is not None:
            yield Move("PCIe", now, faster, replace(scenario, cluster=replace(cluster, pcie=faster)))
    for path in path_steps(scenario):
        yield Move(path.knob, path.start, path.end, path.scenario)
    for step in host_steps(scenario):
        yield Move(step.knob, step.start, step.end, step.scenario)


def _next_device(name: str) -> str | None:
    """The GPU with the next higher memory bandwidth, of those that are rented out where this one is."""
    rented = name in devices() and bool(prices(name))
    now = device(name).memory_bandwidth.value
    faster = [
        each
        for each in map(device, devices())
        if each.kind == "gpu" and each.memory_bandwidth.value >= FASTER * now and (not rented or prices(each.name))
    ]
    return min(faster, key=lambda each: each.memory_bandwidth.value).name if faster else None


KNOB = "training nodes"


def even_training(studies: StudyCache, scenario: Scenario, patience_s: float) -> PartitionVariant | None:
    """The scenario with METIS balancing training nodes too; None where even ones would not shorten an epoch, where
    somebody else cut the graph, and where METIS would take more than `patience_s` seconds.
    """
    graph, spec = studies.accesses.graph, scenario.partition
    if graph is None or spec.file is not None or spec.balance == TRAINING_NODES:
        return None
    shares = studies.accesses.training_shares(scenario)
    balanced = replace(spec, method="metis", balance=TRAINING_NODES)
    if shares is None or not shares.uneven or partition_seconds(graph.entries, balanced) > patience_s:
        return None
    return PartitionVariant(partition_setting(balanced), replace(scenario, partition=balanced))
