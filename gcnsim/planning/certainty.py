"""How sure an answer is: calibrated or not, what each assumption does to it, which settings can be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Final

import numpy as np

from gcnsim.machine import TRANSPORT, resolve_machine
from gcnsim.planning.assumptions import LABEL, assumptions_by_name, figure_words, times_alone
from gcnsim.planning.candidate import Candidate, canonical, central, seconds_on
from gcnsim.planning.study_cache import StudyCache
from gcnsim.results import MEASURE_CORES, NO_RANGE, AssumptionEffect, Certainty
from gcnsim.scenario import Scenario, setting_text
from gcnsim.uncertainty import DRAWS, PARTITION, WORKLOAD, other_paths
from gcnsim.units import format_gbps, format_seconds

LABELS = ("UNCALIBRATED", "FITTED TO PUBLISHED RUNS", "CALIBRATED")

METHOD = f"{DRAWS} joint draws: every assumed figure anywhere in its range, independently; "

SIMULATED = "all are simulated of {settings}; of other settings "
SOME_SIMULATED = "the first {draws} are simulated of {settings}; of the others, and of other settings, "
"""What goes before ESTIMATED where draws of settings were simulated: all, or those there was time for."""

ESTIMATED = (
    "the simulated time of a draw is that at the stated values, moved as the analytic estimate moves "
    "(docs/assumptions.md)"
)

ALONE = f"every assumption alone at the two ends of its range; what else may be wrong is not known of {NO_RANGE}"
"""The method where joint draws do not say how far a time may be off."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting against another under the same draws of the assumptions: time over the other's, less one; 90 %."""

    low: float
    high: float

    @classmethod
    def of(cls, one: Candidate, other: Candidate) -> Difference | None:
        """How much longer `one` takes than `other`, per epoch; None where draws do not say it of both."""
        if not (one.ranged and other.ranged):
            return None
        share = one.epochs_over(other) - 1.0
        low, high = central(share)
        now = one.epoch_s / other.epoch_s - 1.0
        return cls(min(low, now), max(high, now))

    @property
    def distinguishable(self) -> bool:
        """Whether one of them is faster in nearly every draw."""
        return self.low > 0 or self.high < 0


def label_of(scenario: Scenario) -> str:
    """What the answer's figures are fitted to, in a word or a few."""
    machine = resolve_machine(scenario.cluster)
    if machine.measured is not None:
        return LABEL.format(device=machine.measured.device["name"])
    if machine.calibration is not None:
        return LABELS[2]
    return LABELS[1] if machine.platform is not None else LABELS[0]


def certainty(studies: StudyCache, chosen: Candidate) -> Certainty:
    """The answer's certainty: the label, and every assumption with what it does to the time of `chosen`,
    those that matter most first.
    """
    label = label_of(chosen.scenario)
    several = len({scenario.cluster for scenario in studies.with_draws}) > 1

    def name_of(scenario: Scenario) -> str:
        cluster = scenario.cluster
        machine = f" on {cluster.gpus} x {cluster.device} at {format_gbps(cluster.bandwidth)}" if several else ""
        return setting_text(scenario.method) + machine

    simulated = tuple(map(name_of, studies.with_draws))
    limit = studies.max_wait
    which = SIMULATED if limit is None or limit.complete else SOME_SIMULATED.replace("{draws}", str(limit.draws))
    joint = METHOD + (which.format(settings=" and of ".join(simulated)) if simulated else "") + ESTIMATED
    method = joint if chosen.ranged else ALONE
    effects = tuple(sensitivity(studies, chosen))
    first = measure_first(chosen.scenario, effects) if chosen.ranged else ""
    return Certainty(label == LABELS[2], label, DRAWS, simulated, method, effects, first or None)


def sensitivity(studies: StudyCache, chosen: Candidate) -> list[AssumptionEffect]:
    """Per assumption: its range, the time at its two ends alone, its share of what they all leave open."""
    scenario = chosen.scenario
    alone, simplest = times_alone(studies, chosen), canonical(scenario)
    alone |= {
        path.name: np.array([seconds_on(studies, simplest, path), chosen.iteration_s])
        for path in other_paths(simplest)
        if path.name in alone
    }
    known = assumptions_by_name(scenario)
    spread = {name: float(np.log(ends[1] / ends[0]) ** 2) for name, ends in alone.items()}
    whole = sum(spread.values()) or 1.0
    rows = []
    for name in sorted(alone, key=lambda name: (-spread[name], name)):
        low, high = (float(end) for end in alone[name])
        about = figure_words(known[name]) if name in known else _of_workload(studies, scenario, name)
        rows.append(AssumptionEffect(name, *about, low, high, spread[name] / whole))
    return rows


def _of_workload(studies: StudyCache, scenario: Scenario, name: str) -> tuple[str, str, str, str]:
    """Value, low and high end, and basis of what the workload leaves open."""
    path = next((one for one in other_paths(scenario) if one.name == name), None)
    if path is not None:
        return path.value, path.otherwise, path.value, path.basis
    if name == PARTITION:
        return "of one seed", "low end", "high end", studies.accesses.partition_note(scenario) or "of one partition"
    basis = "what is assumed of the graph's partitions, all together (--provenance)"
    return "as stated", "low end", "high end", basis


LEAST_SHARE: Final = 0.2
"""Share of all squared spreads from which on one figure is worth measuring first."""

LEAST_SPAN: Final = 1.05
"""Time at one end of its range over that at the other, from which on a figure is worth measuring."""

MEASURE: Final = "python -m runtime.measure --device cuda"
"""What measures one's own workload on one GPU."""

SURVEY: Final = "python -m runtime.survey --device cuda"
"""What measures a GPU, its host and the copies between them."""

OF_GRAPH: Final = frozenset({WORKLOAD, PARTITION})
"""What a real graph says."""


def measure_first(scenario: Scenario, effects: Sequence[AssumptionEffect]) -> str:
    """The figure that moves the time most, by how much, and how it is measured; empty where none stands out.

    effects: what each assumption alone does to the time of `scenario`.
    """
    most = max(effects, key=span_of, default=None)
    if most is None or most.share < LEAST_SHARE or span_of(most) < log(LEAST_SPAN):
        return ""
    low, high = sorted((most.iteration_s_low, most.iteration_s_high))
    ends = f"{format_seconds(low)} to {format_seconds(high)}"
    return f"{most.name} ({ends}, {100 * most.share:.0f} % of the uncertainty): {how_to_measure(scenario, most.name)}"


def how_to_measure(scenario: Scenario, name: str) -> str:
    """How an assumption of a question is put to the test."""
    cluster = scenario.cluster
    if name == TRANSPORT:
        return "say what your software does, --transport direct or --transport staged"
    if name in OF_GRAPH:
        return "partition your own graph (--graph)" if scenario.workload.graph is None else "try --partition-seeds 5"
    machine = resolve_machine(cluster)
    if machine.kind == "cpu":
        return MEASURE_CORES
    profile = name.rpartition(".")[0]
    if profile in {device.name for device in machine.devices or (machine.device,)}:
        return f"{MEASURE} on one {profile}, then --measured-compute"
    if profile == machine.network.name and cluster.servers > 1:
        return f"{SURVEY} on two servers (torchrun --nnodes 2), then gcnsim calibrate"
    return f"{SURVEY} on one server, then gcnsim calibrate"


def span_of(effect: AssumptionEffect) -> float:
    """How far an assumption moves the time, in logarithms."""
    return abs(log(effect.iteration_s_high / effect.iteration_s_low))
