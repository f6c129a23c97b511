"""More joint draws of a few settings, for a share of them that something hangs on: the chance of meeting a target.

Of DRAWS draws a share is known within 5 points, of CLOSER ones within 2 (95 %, measured over seeds). They are simulated
where that is afforded, else estimated, by a law of the work alone: the same question has the same answer everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gcnsim.planning.drawn_times import Key, drawn_times, orders_of
from gcnsim.planning.simulated_draws import effort_of, simulated_factors
from gcnsim.planning.study_cache import StudyCache, canonical
from gcnsim.processes import parallel_map
from gcnsim.scenario import Scenario
from gcnsim.uncertainty import Factors, factors

CLOSER: Final = 512
"""Joint draws of a setting that is looked at more closely."""

AFFORDED: Final = 3_000_000
"""Most ops times iterations of the draws of one setting that are simulated: one to two seconds of a core."""


def look_closer(studies: StudyCache, scenarios: Sequence[Scenario]) -> None:
    """Find the times of `scenarios` under CLOSER joint draws, for `StudyCache.closest_times`."""
    asked = list(dict.fromkeys(map(canonical, scenarios)))
    keys = [key for each in asked for key in orders_of(each)]
    found = parallel_map(
        lambda key: factors(key[0], studies.accesses_of(key), studies.seed, CLOSER), keys, studies.processes
    )
    left_open: dict[Key, Factors] = dict(zip(keys, found, strict=True))
    afforded = [each for each in asked if effort_of(studies.candidate(each), CLOSER) <= AFFORDED]
    simulated = simulated_factors(studies, [key for each in afforded for key in orders_of(each)], CLOSER)
    studies.keep_closer(
        {each: drawn_times(studies, each, False, left_open.__getitem__, simulated.get, CLOSER) for each in asked}
    )
