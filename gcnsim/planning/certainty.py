"""How sure an answer is: calibrated or not, what each assumption does to it, which settings can be told apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.machine import resolve_machine
from gcnsim.planning.assumptions import figure_words
from gcnsim.planning.candidate import Candidate, central
from gcnsim.planning.measure_first import measure_first
from gcnsim.planning.measured_times import LABEL
from gcnsim.planning.other_paths import seconds_on
from gcnsim.planning.study_cache import StudyCache, canonical
from gcnsim.results import NO_RANGE, AssumptionEffect, Certainty
from gcnsim.scenario import Scenario, setting_text
from gcnsim.uncertainty import DRAWS, PARTITION, assumptions_of, other_paths
from gcnsim.units import format_gbps

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
    drawn = studies.drawn
    several = len({each.cluster for each in drawn}) > 1
    simulated = tuple(setting_text(each.method) + (f" on {_machine(each)}" if several else "") for each in drawn)
    limit = studies.max_wait
    told = SIMULATED if limit is None or limit.complete else SOME_SIMULATED.replace("{draws}", str(limit.draws))
    method = METHOD + (told.format(settings=" and of ".join(simulated)) if simulated else "") + ESTIMATED
    if not chosen.ranged:
        method = ALONE
    effects = tuple(tornado(studies, chosen))
    first = measure_first(chosen.scenario, effects) if chosen.ranged else ""
    return Certainty(label == LABELS[2], label, DRAWS, simulated, method, effects, first or None)


def _machine(scenario: Scenario) -> str:
    cluster = scenario.cluster
    return f"{cluster.gpus} x {cluster.device} at {format_gbps(cluster.bandwidth)}"


def tornado(studies: StudyCache, chosen: Candidate) -> list[AssumptionEffect]:
    """Per assumption: its range, the time at its two ends alone, its share of what they all leave open."""
    scenario = chosen.scenario
    left_open = studies.factors(scenario)
    alone = {name: left_open.scaled(chosen.iteration_s, np.array(ends)) for name, ends in left_open.alone.items()}
    asked = canonical(scenario)
    alone |= {
        path.name: np.array([seconds_on(studies, asked, path), chosen.iteration_s])
        for path in other_paths(asked)
        if path.name in alone
    }
    machine = resolve_machine(scenario.cluster)
    known = {each.name: each for each in assumptions_of(machine, batches=scenario.method.mini_batches)}
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
    basis = "what is assumed of the graph's partitions, all together (--provenance)"
    path = next((each for each in other_paths(scenario) if each.name == name), None)
    if path is not None:
        return path.value, path.otherwise, path.value, path.basis
    if name == PARTITION:
        basis = studies.accesses.partition_note(scenario) or "of one partition"
        return "one METIS seed", "smallest", "largest boundary of other seeds", basis
    return "estimated boundary", "smallest", "largest", basis
