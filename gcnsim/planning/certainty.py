"""The confidence of an answer: its assumed and measured figures, the effect of each assumption, and the figure to
measure first.

It also says which settings differ significantly, and which assumption decides between settings: how often its value
makes the choice win or lose in the joint draws. In each draw, one assumption alone is put back to its stated value.
Each setting's time changes as between the ends of that assumption's range (first order in the logarithms). The draws
are those already made; nothing is simulated. It is the total effect of the assumption on the decision: alone and
together with others (Saltelli et al., "Global Sensitivity Analysis", 2008, section 1.2.8), with the stated value in
place of another draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from types import MappingProxyType
from typing import Final

import numpy as np

from gcnsim.core.errors import plural
from gcnsim.core.ids import FloatArray, Seconds
from gcnsim.core.units import format_seconds
from gcnsim.hardware import QUANTITIES, Figure
from gcnsim.planning.candidate import Candidate, canonical, central, on_other_paths
from gcnsim.planning.recommend import NEAR, Choice
from gcnsim.planning.study import Studies, key_of
from gcnsim.results import Assumed, AssumptionEffect, Certainty, MeasuredTimes
from gcnsim.scenario import STAGED, Scenario, setting_text
from gcnsim.scenario.machine import resolve_machine
from gcnsim.scenario.machine_profiles import NVLINK_THERE, TRANSPORT, BetweenGpus
from gcnsim.simulation import answering
from gcnsim.simulation.assumed import (
    DRAWS,
    Assumption,
    OtherPath,
    assumptions_of,
    other_paths,
    path_by_draw,
    used_figures,
)
from gcnsim.simulation.open_assumptions import WORKLOAD, draw_positions, other_orders
from gcnsim.simulation.part_orders import PLACEMENT, placement_words
from gcnsim.simulation.placement import PARTITION

LABELS = ("UNCALIBRATED", "FITTED TO PUBLISHED RUNS", "CALIBRATED")

METHOD = (
    f"{DRAWS} random draws: each assumed figure independently within its range; analytic estimates scale the simulated "
    "time at the stated values"
)

CORRECTED = ", and four simulated draws correct both ends of the range (docs/assumptions.md)"


@dataclass(frozen=True, slots=True)
class Difference:
    """The relative difference in time between two settings under the same draws of the assumptions, with its 90 %
    interval.
    """

    low: float
    high: float

    @classmethod
    def of(cls, one: Candidate, other: Candidate) -> Difference:
        """How much longer `one` takes than `other`, per epoch."""
        share = one.epochs_over(other) - 1.0
        low, high = central(share)
        now = one.epoch_s / other.epoch_s - 1.0
        return cls(min(low, now), max(high, now))

    @property
    def distinguishable(self) -> bool:
        """Whether one of them is faster in nearly every draw."""
        return self.low > 0 or self.high < 0


def label_of(scenario: Scenario) -> str:
    """Return a short label of the data that the figures are fitted to."""
    machine = resolve_machine(scenario.cluster)
    if machine.measured is not None:
        return LABEL.format(device=machine.measured.device["name"])
    if machine.calibration is not None:
        return LABELS[2]
    return LABELS[1] if machine.platform is not None else LABELS[0]


def certainty(
    studies: Studies, chosen: Candidate, decides: Mapping[str, tuple[float, Scenario]] = MappingProxyType({})
) -> Certainty:
    """Return the certainty section: the label, and the effect of every assumption on the time of `chosen`, largest
    first.

    decides: by assumption, how often it decides that `chosen` is recommended, and a setting that assumes it
    (`gcnsim.planning.certainty`).
    """
    label = label_of(chosen.scenario)
    corrected = studies.corrected(chosen.scenario)
    simulated = (setting_text(chosen.scenario.method),) if corrected else ()
    method = METHOD + (CORRECTED if corrected else "")
    own = [replace(effect, decides=decides.get(effect.name, [None])[0]) for effect in sensitivity(studies, chosen)]
    of_rivals = [
        AssumptionEffect(
            name, *_about(studies, setting, name), chosen.iteration_s, chosen.iteration_s, 0.0, decides=share
        )
        for name, (share, setting) in decides.items()
        if name not in {effect.name for effect in own}
    ]
    effects = (*own, *of_rivals)
    first = measure_first(chosen.scenario, effects)
    return Certainty(label == LABELS[2], label, DRAWS, simulated, method, effects, first or None)


def sensitivity(studies: Studies, chosen: Candidate) -> list[AssumptionEffect]:
    """Return, per assumption, its range, the time at both ends of the range, and its share of the total variance."""
    scenario = chosen.scenario
    alone, simplest = times_alone(studies, chosen), canonical(scenario)
    alone |= {
        path.name: np.array([_seconds_on(studies, simplest, path), chosen.iteration_s])
        for path in other_paths(simplest)
        if path.name in alone
    }
    spread = {name: float(np.log(ends[1] / ends[0]) ** 2) for name, ends in alone.items()}
    whole = sum(spread.values()) or 1.0
    rows = []
    for name in sorted(alone, key=lambda name: (-spread[name], name)):
        low, high = (float(end) for end in alone[name])
        rows.append(AssumptionEffect(name, *_about(studies, scenario, name), low, high, spread[name] / whole))
    return rows


def _seconds_on(studies: Studies, scenario: Scenario, path: OtherPath) -> Seconds:
    """Return seconds per iteration of the canonical `scenario` at the stated values, on another path between GPUs."""
    if path in on_other_paths(key_of(scenario)):
        return studies.result(path.scenario).metrics.iteration_s
    left_open = studies.factors(scenario)
    return float(left_open.scaled(studies.result(scenario).metrics.iteration_s, left_open.alone[path.name][0]))


def _about(studies: Studies, scenario: Scenario, name: str) -> tuple[str, str, str, str]:
    """Return value, low end, high end and basis of an assumption of a setting."""
    known = assumptions_by_name(scenario)
    return figure_words(known[name]) if name in known else _of_workload(studies, scenario, name)


def _of_workload(studies: Studies, scenario: Scenario, name: str) -> tuple[str, str, str, str]:
    """Return value, low end, high end and basis of an assumption about the workload."""
    basis = "all assumptions about the graph's partitions together (--explain)"
    path = next((one for one in other_paths(scenario) if one.name == name), None)
    if path is not None:
        return path.value, path.otherwise, path.value, path.basis
    if name == PLACEMENT:
        return placement_words(scenario)
    if name == PARTITION:
        basis = studies.accesses.partition_note(scenario) or "of one partition"
        return "one METIS seed", "smallest", "largest boundary of other seeds", basis
    return "estimated boundary", "smallest", "largest", basis


LEAST_SHARE: Final = 0.2
"""The least share of the variance for which one figure is worth measuring first."""

LEAST_SPAN: Final = 1.05
"""The least ratio of the times at both ends of a range for which the figure is worth measuring."""

MEASURE: Final = "python -m runtime.measure --device cuda"
"""The command that measures your workload on one GPU."""

SURVEY: Final = "python -m runtime.survey --device cuda"
"""The command that measures a GPU, its host and the copies between them."""

OF_GRAPH: Final = frozenset({WORKLOAD, PARTITION})
"""What a real graph would settle."""


def measure_first(scenario: Scenario, effects: Sequence[AssumptionEffect]) -> str:
    """Return the figure with the largest effect on the time, that effect, and how to measure the figure. Empty if no
    figure stands out.

    effects: the effect of each assumption on the time of `scenario`.
    """
    most = max(effects, key=span_of, default=None)
    if most is None or most.share < LEAST_SHARE or span_of(most) < log(LEAST_SPAN):
        return ""
    low, high = sorted((most.iteration_s_low, most.iteration_s_high))
    ends = f"{format_seconds(low)} to {format_seconds(high)}"
    return f"{most.name} ({ends}, {100 * most.share:.0f} % of the uncertainty): {how_to_measure(scenario, most.name)}"


def how_to_measure(scenario: Scenario, name: str) -> str:
    """Return how to measure an assumption of a question."""
    cluster = scenario.cluster
    if name == PLACEMENT:
        return "place the parts: gcnsim graph partition --placement balanced, then --partition"
    if name in OF_GRAPH:
        return "partition your own graph (--graph)" if scenario.workload.graph is None else "try --partition-seeds 5"
    machine = resolve_machine(cluster)
    profile = name.rpartition(".")[0]
    if profile in {device.name for device in machine.devices or (machine.device,)}:
        return f"{MEASURE} on one {profile}, then --measured-compute"
    if profile == machine.network.name and cluster.servers > 1:
        if machine.between.transport == STAGED:
            return f"{SURVEY} on two servers (torchrun --nnodes 2), then gcnsim calibrate"
        if name.endswith(".efficiency"):
            share = "run iperf3 between two servers; its rate divided by the raw bandwidth is SHARE"
            return f"{share}: --set cluster.figures={name}=SHARE"
        return f"measure it between two servers, then --set cluster.figures={name}=VALUE"
    return f"{SURVEY} on one server, then gcnsim calibrate"


def span_of(effect: AssumptionEffect) -> float:
    """Return the effect of an assumption on the time, as a logarithm."""
    low, high = effect.ends
    return abs(log(high / low))


def workload_assumptions(studies: Studies, scenario: Scenario, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
    """Return the assumptions about the workload of `scenarios` that replace unpublished data, with their ranges."""
    if any(scenario.method.mini_batches for scenario in scenarios):
        yield from studies.accesses.batch_assumptions(scenarios)
    placed = (one for one in scenarios if other_orders(one, studies.accesses) is not None)
    for one in [*placed][:1]:
        yield Assumed(PLACEMENT, *placement_words(one), True)
    if not all(scenario.method.mini_batches for scenario in scenarios):
        yield from studies.accesses.assumptions(scenario, scenarios)
    paths = {path.name: path for scenario in scenarios for path in other_paths(scenario)}
    for path in paths.values():
        yield Assumed(path.name, path.value, path.otherwise, path.value, path.basis, True)


def machine_figures(scenario: Scenario, source: str, *, batches: bool = False) -> Iterator[Assumed]:
    """Return the machine's figures that come from `source` and that a cost law reads.

    batches: whether mini-batches are trained; they need more figures.
    """
    for name, figure in used_figures(resolve_machine(scenario.cluster), batches=batches).items():
        if figure.source == source:
            yield Assumed(name, *_written(name.rpartition(".")[2], figure), figure.reference, source == "assumed")


def assumptions_by_name(scenario: Scenario) -> dict[str, Assumption]:
    """Return the assumed figures that the time of the scenario depends on, by name."""
    machine = resolve_machine(scenario.cluster)
    return {assumed.name: assumed for assumed in assumptions_of(machine, batches=scenario.method.mini_batches)}


def times_alone(studies: Studies, candidate: Candidate) -> dict[str, FloatArray]:
    """Return, per assumption, seconds per iteration with only that figure moved to the low and high end of its range,
    float64[2].
    """
    left_open = studies.factors(candidate.scenario)
    return {name: left_open.scaled(candidate.iteration_s, np.array(ends)) for name, ends in left_open.alone.items()}


def figure_words(assumed: Assumption) -> tuple[str, str, str, str]:
    """Return value, low end and high end of an assumed figure with units, and its basis."""
    return *_written(assumed.name.rpartition(".")[2], assumed.figure), assumed.figure.reference


def _written(field: str, figure: Figure) -> tuple[str, str, str]:
    """Format value, low end and high end of a figure with units."""
    quantity = QUANTITIES[field]
    low, high = (figure.value if end is None else end for end in (figure.low, figure.high))
    texts = [f"{one:g}" if quantity is None else quantity.exact(one) for one in (figure.value, low, high)]
    return texts[0], texts[1], texts[2]


ASSUMED = " (assumed)"


def heading_words(scenarios: Sequence[Scenario]) -> str | None:
    """Return the NVLink and transport that all scenarios share: `NVLink 300 GB/s, transport direct (assumed)`.

    None if no data passes between GPUs.
    """
    between_gpuses = _distinct(scenarios)
    if not between_gpuses:
        return None
    parts = []
    if len({one.nvlink and one.nvlink.value for one in between_gpuses}) == 1 and between_gpuses[0].nvlink is not None:
        assumed = NVLINK_THERE in between_gpuses[0].open
        sizes = {scenario.cluster.nvlink_gpus for scenario in scenarios}
        joined = f" within {sizes.pop()} GPUs" if len(sizes) == 1 and None not in sizes else ""
        parts.append(f"NVLink {between_gpuses[0].nvlink.value / 1e9:g} GB/s{joined}{ASSUMED if assumed else ''}")
    transports = {(one.transport, TRANSPORT in one.open) for one in between_gpuses}
    if len(transports) == 1:
        (name, assumed), *_ = transports
        parts.append(f"transport {name}{ASSUMED if assumed else ''}")
    return ", ".join(parts) or None


def basis_words(studies: Studies, scenario: Scenario) -> str | None:
    """Return the source of the paths between the scenario's GPUs, or None if no data passes between GPUs.

    An assumed transport is followed by the time of `scenario` with the other one.
    """
    between_gpuses = _distinct([scenario])
    if not between_gpuses:
        return None
    between, machine = between_gpuses[0], resolve_machine(scenario.cluster)
    how = f"transport {between.transport}: {between.why}"
    if TRANSPORT in between.open:
        staged = studies.result(replace(scenario, cluster=replace(scenario.cluster, transport=STAGED)))
        seconds = format_seconds(staged.metrics.iteration_s)
        how += f" (assumed: --transport chooses), {seconds} if staged through hosts, as gloo does"
    if min(scenario.cluster.gpus, scenario.cluster.gpus_per_server) == 1:
        return how
    if between.nvlink is None:
        used = between.direct and not between.peer_to_peer
        inside = "PCIe, through host memory: its driver has no peer to peer" if used else "PCIe"
        return f"{how}; within a server {inside}"
    rate = f"{between.nvlink.value / 1e9:g} GB/s per direction of one GPU"
    if between.nvlink.source == "given":
        size = scenario.cluster.nvlink_gpus
        joined = "" if size is None else f", within {size} GPUs each, PCIe between others"
        return f"{how}; NVLink, {rate}, as asked{joined}"
    name = "NVLink" if between.generation is None else f"NVLink {between.generation}"
    whose = machine.host.name if machine.host.device is not None else f"{machine.device.name} as a module (assumed)"
    return f"{how}; {name} of {whose}, {rate} ({between.nvlink.reference}, {between.nvlink.date})"


def _distinct(scenarios: Sequence[Scenario]) -> list[BetweenGpus]:
    """Return the distinct paths of the scenarios whose GPUs communicate."""
    sending = [scenario for scenario in scenarios if scenario.cluster.gpus > 1 and "transport" in scenario.method.uses]
    machines = [resolve_machine(cluster) for cluster in dict.fromkeys(one.cluster for one in sending)]
    return [machine.between for machine in machines if machine.kind == "gpu"]


LINKS: Final = "links and messages are still assumed; a calibration gives them (gcnsim calibrate, --calibration)"
LINKS_FITTED: Final = "links and messages are those of the calibration"
LABEL: Final = "MEASURED on {device}"
"""The label of such an answer in the heading."""


def measured_times(scenarios: Sequence[Scenario]) -> MeasuredTimes | None:
    """Return which measured times replace the cost laws of these settings, or None if none do."""
    machine = resolve_machine(scenarios[0].cluster)
    measured = machine.measured
    if measured is None:
        return None
    answers = {scenario: answer for scenario in scenarios if (answer := answering(scenario)) is not None}
    between = tuple(
        dict.fromkeys(setting_text(scenario.method) for scenario, own in answers.items() if own.far is not None)
    )
    interpolated = f", between two measured rates for {', '.join(between)}" if between else ""
    error = max(answer.error for answer in answers.values())
    counts = [len(part.seconds) for answer in answers.values() for part in answer.near.parts.values()]
    times = f"{min(counts)}" + (f" to {max(counts)}" if max(counts) > min(counts) else "")
    text = (
        f"measured on {measured.device['name']}: {plural(measured.parts, 'part')}, each alone, {times} iterations, "
        "known "
        f"to {100 * error:.1f} %{interpolated}; {measured.path} (SHA-256 {measured.sha256[:12]})"
    )
    links = LINKS if machine.calibration is None else LINKS_FITTED
    return MeasuredTimes(measured.path, measured.sha256, str(measured.device["name"]), error, between, links, text)


LEAST: Final = 3
"""Draws below which a share is noise: effects are of first order."""


def decisive(studies: Studies, choice: Choice) -> dict[str, tuple[float, Scenario]]:
    """Return, per assumption, the share of the joint draws in which the choice wins only with or only without it, and
    a setting that assumes it, of those that decide in LEAST draws or more.

    The choice wins if it is the fastest of its pool or within NEAR of it.
    """
    chosen, draws = choice.estimate, choice.wins.size
    moved = {rival.scenario: _moved(studies, rival, draws) for rival in (*choice.pool, chosen)}
    own, still = moved[chosen.scenario], np.ones(draws)
    shares = {}
    for name, setting in {name: setting for setting, effects in moved.items() for name in effects}.items():
        back = [
            chosen.epochs_over(rival) * moved[rival.scenario].get(name, still) / own.get(name, still) <= 1 + NEAR
            for rival in choice.pool
        ]
        changed = np.all(back, axis=0) != choice.wins
        if changed.sum() >= LEAST:
            shares[name] = float(changed.mean()), setting
    return shares


def _moved(studies: Studies, candidate: Candidate, draws: int) -> Mapping[str, FloatArray]:
    """Return, per assumption, the ratio of a setting's time in each draw to that with the stated value,
    float64[draws].
    """
    scenario = canonical(candidate.scenario)
    effects, known = studies.factors(candidate.scenario), assumptions_by_name(scenario)
    paths = other_paths(scenario)
    taken = path_by_draw(paths, studies.seed, draws)
    places = {path.name: np.where(taken == index, -1.0, 0.0) for index, path in enumerate(paths)}
    found = {}
    for name, ends in effects.alone.items():
        shared = known[name].shared if name in known else name
        place = places[name] if name in places else draw_positions(name, shared, studies.seed, draws)
        low, high = effects.scaled(candidate.iteration_s, np.array(ends)) / candidate.iteration_s
        found[name] = np.asarray(np.where(place < 0, low, high) ** np.abs(place))
    return found
