"""The best options run again by the reference engine, which must give the same picoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from gcnsim.capacity.search import Option
from gcnsim.engine import by_reference
from gcnsim.planning import StudyCache
from gcnsim.planning.study_cache import canonical
from gcnsim.processes import parallel_map
from gcnsim.simulation import Result, study

CONFIRMED: Final = 3
"""Options that are confirmed, the best first."""

AFFORDED: Final = 120_000
"""Most ops times iterations of a run that is confirmed: about three seconds of the reference engine."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """same: whether every start and end is the same picosecond; None where it was not run again, and why."""

    option: Option
    same: bool | None
    why: str = ""


def confirm(studies: StudyCache, options: Sequence[Option]) -> list[Confirmation]:
    """The first few options by the reference engine, those that it can answer for in a moment."""
    first = options[:CONFIRMED]
    why = [_too_much(each) for each in first]
    wanted = [each for each, reason in zip(first, why, strict=True) if not reason]

    def again(option: Option) -> bool:
        with by_reference():
            return _same(study(canonical(option.scenario), studies.accesses), option.candidate.result)

    told = iter(parallel_map(again, wanted, studies.processes))
    return [
        Confirmation(each, None, reason) if reason else Confirmation(each, next(told))
        for each, reason in zip(first, why, strict=True)
    ]


def _same(one: Result, other: Result) -> bool:
    runs = (one.run, other.run)
    starts, ends = ([getattr(run, name) for run in runs] for name in ("first_starts", "first_ends"))
    return np.array_equal(*starts) and np.array_equal(*ends) and runs[0].iterations == runs[1].iterations


def _too_much(option: Option) -> str:
    """Why an option is not run again; empty where it is."""
    run = option.candidate.result.run
    if run.schedule.grain_s > 0.0:
        return "its links are shared once per grain, which the reference engine does not do"
    effort = run.schedule.columns.size * run.simulated
    return f"{effort:,} ops are more than {AFFORDED:,}" if effort > AFFORDED else ""
