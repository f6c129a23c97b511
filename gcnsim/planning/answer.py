"""Everything that a what-if found, and the answer as plain data: the shape of the JSON schema `gcnsim.what-if/1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from gcnsim.alternatives import sampler_decides
from gcnsim.planning.certainty import Difference
from gcnsim.planning.grid import Grid, LeftOut
from gcnsim.planning.payload import machine_of, row_of, setting_text
from gcnsim.planning.recommend import Choice, Rule
from gcnsim.planning.steps import NoEffect, Step
from gcnsim.planning.study_cache import Candidate, Estimate
from gcnsim.planning.verdict import confidence_text, verdict
from gcnsim.results import Row
from gcnsim.scenario import Scenario, to_mapping

SCHEMA: Final = "gcnsim.what-if/1"

OF_THE_CHOSEN: Final = (
    "gpus",
    "bandwidth",
    "device",
    "method",
    "tau",
    "epsilon",
    "rate",
    "cache_fraction",
    "dataset",
    "iteration_s",
    "iteration_s_low",
    "iteration_s_high",
    "setting",
    "fits",
)
"""What of its row the recommendation says again."""

Told: TypeAlias = tuple[Estimate, float | None]
"""A row with the full-graph iteration time of the same machine, None where it cannot be known."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """The choice on another machine that some would rather take. role: `fewest GPUs` or `cheapest`."""

    role: str
    row: Told
    why: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything a what-if found.

    rows: with the full-graph iteration time of the same machine beside each. memory: of each row, what its GPUs hold.
    choice: the recommended setting, of the machine on which it is the fastest; chosen: it as a row.
    """

    base: Scenario
    dataset: str
    grid: Grid
    rule: Rule
    rows: tuple[Told, ...]
    choice: Choice
    chosen: Told
    steps: tuple[Step, ...]
    idle: tuple[NoEffect, ...]
    origin: dict[str, Any]
    memory: tuple[dict[str, Any] | None, ...]
    certainty: dict[str, Any]
    straggler: dict[str, Any] | None
    utilization: dict[str, Any] | None = None
    rivals: tuple[Candidate, ...] = ()
    """The best settings of the other machines asked for."""
    alternatives: tuple[Alternative, ...] = ()
    target: dict[str, Any] | None = None
    """Per row, iterations, time and cost until an accuracy is reached, where that was asked."""
    left_out: tuple[LeftOut, ...] = ()
    """What was not asked for by name and cannot be answered for."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Answers to what only some questions ask: a measured time, other partitions."""

    def payload(self) -> dict[str, Any]:
        """The answer as plain data."""
        told: dict[str, Any] = {
            "schema": SCHEMA,
            "scenario": to_mapping(self.base)
            | {"asked": self.grid.mapping(), "grid": [machine_of(each.scenario) for each, _ in self.rows]},
            "provenance": self.origin,
            "results": [self._row(each).payload() for each in self.rows],
            "memory": list(self.memory),
            "recommendation": self._recommendation(),
            "next_steps": [self._step(step) for step in self.steps],
            "no_effect": [{"knob": each.knob, "why": each.why} for each in self.idle],
            "straggler": self.straggler,
            "certainty": self.certainty,
        }
        if self.utilization is not None:
            told["utilization"] = self.utilization
        if self.left_out:
            told["left_out"] = [each.payload() for each in self.left_out]
        told |= self.more
        return told if self.target is None else told | {"target": self.target}

    @property
    def place(self) -> int | None:
        """The recommended setting's place among the rows; None where nobody asked for it."""
        same = (each.scenario for each, _ in self.rows)
        return next((place for place, each in enumerate(same) if each == self.chosen[0].scenario), None)

    def _row(self, told: Told) -> Row:
        estimate, baseline = told
        excluded = self._reason(estimate)
        row = replace(
            row_of(estimate, baseline, self.dataset), may_be_recommended=excluded is None, excluded_because=excluded
        )
        if estimate.scenario == self.chosen[0].scenario:
            return replace(row, recommended=True)
        beside = Difference.of(estimate, self.chosen[0])
        return replace(
            row,
            vs_recommended_low=beside.low,
            vs_recommended_high=beside.high,
            distinguishable=beside.distinguishable,
        )

    def _reason(self, estimate: Estimate) -> str | None:
        """Why a row may not be recommended; None where it may."""
        excluded = self.rule.excludes(estimate.scenario)
        return "does not fit the GPUs' memory" if excluded is None and estimate.result.fits is False else excluded

    def _recommendation(self) -> dict[str, Any]:
        estimate, row = self.chosen[0], self._row(self.chosen).payload()
        return {key: row[key] for key in OF_THE_CHOSEN} | {
            "why": self.choice.why,
            "verdict": verdict(self.chosen, several=bool(self.alternatives)),
            "confidence": {"share": self.choice.share, "text": confidence_text(self.choice, self.rivals)},
            "limited_by": row["limited_by"],
            "note": sampler_decides(estimate.result.metrics.limit, estimate.scenario),
            "rule": {"methods": list(self.rule.methods), "min_rate": self.rule.min_rate, "text": self.rule.text},
            "excluded": self._excluded(),
            "row": row,
            "in_results": self.place,
            "alternatives": [
                {"role": each.role, "why": each.why, "row": self._row(each.row).payload()} for each in self.alternatives
            ],
        }

    def _excluded(self) -> list[dict[str, str]]:
        """The rows that may not be recommended, each setting once, and why."""
        found = {}
        several = len({each.scenario.cluster for each, _ in self.rows}) > 1
        for estimate, _ in self.rows:
            reason, on = self._reason(estimate), machine_of(estimate.scenario)
            if reason is not None:
                # What is not allowed is so on every machine; what does not fit may on another.
                where = f" on {on['gpus']} x {on['device']}" if several and estimate.result.fits is False else ""
                found[setting_text(estimate.scenario.method) + where] = reason
        return [{"what": what, "why": why} for what, why in found.items()]

    def _step(self, step: Step) -> dict[str, Any]:
        return {
            "knob": step.knob,
            "from": step.start,
            "to": step.end,
            "iteration_s": step.iteration_s,
            "gain": step.gain,
            "gain_low": step.gain_low,
            "gain_high": step.gain_high,
            "distinguishable": step.distinguishable,
            "fits": step.fits,
            "below_min_rate": step.below_min_rate,
        }
