"""Simulate the joint draws of the assumptions for the recommended setting and for its competitors.

Each draw is a separate run, so only settings near the recommended one are simulated. The number of draws depends on the
amount of work, never on a clock: the same question has the same answer everywhere. Only `--max-wait` ends it earlier,
and the answer then states how many draws were simulated.

`look_closer` simulates more draws of a few settings, for the chance of meeting a target. With DRAWS draws a share is
accurate to 5 points, with CLOSER draws to 2 (95 %, measured over seeds).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from gcnsim.core import clock
from gcnsim.core.clock import OnProgress, running_total
from gcnsim.core.errors import ScenarioError, UnitError
from gcnsim.core.ids import FloatArray, Seconds
from gcnsim.core.processes import parallel_map, parallel_map_counted
from gcnsim.core.units import SECONDS
from gcnsim.engine import engine
from gcnsim.planning.candidate import Candidate, Key, canonical, central, placements_of, times_by_draw
from gcnsim.planning.study_cache import StudyCache
from gcnsim.results import MaxWait
from gcnsim.scenario import Scenario
from gcnsim.simulation.assumed import DRAWS
from gcnsim.simulation.open_assumptions import DrawnRuns, can_batch_draws, paces_to_factors
from gcnsim.simulation.propagation import TimeFactors, factors

COMPETES: Final = 0.1
"""A setting competes with another if their times differ by at most 10 % in some of the central 90 % of draws."""

AFFORDED: Final = 280_000
"""Most ops times iterations of all simulated draws of a question, for each worker: half a second of a core for six
workers, where an op of an iteration takes three tenths of a microsecond; a quarter of a minute by the reference engine.
With fewer, settings of another tau stay estimated, which estimates do not tell apart."""

AT_MOST: Final = 2_000_000
"""The most ops times iterations for any question: about 1 s of a core with 24 workers, at half a microsecond per op.

With more workers, one draw exceeds the limit and takes longer.
"""

AT_A_TIME: Final = 13
"""The draws that a thread or process simulates before it takes more."""


def competitors(chosen: Candidate, others: Sequence[Candidate]) -> list[Candidate]:
    """Return the settings of `others` that compete with `chosen`, each once."""
    competing = []
    for one in {other.scenario: other for other in others if other.scenario != chosen.scenario}.values():
        over = one.epochs_over(chosen)
        low, high = central(over)
        if low <= 1.0 + COMPETES and high >= 1.0 - COMPETES:
            competing.append(one)
    return competing


def simulate_draws(
    studies: StudyCache,
    chosen: Candidate,
    others: Sequence[Candidate],
    on_progress: OnProgress = lambda done, total: None,
    deadline: Deadline | None = None,
) -> bool:
    """Simulate the joint draws of `chosen` and of its competitors in `others`, as many as the limits and the deadline
    allow.

    Each setting gets the same number of draws. Returns whether any were simulated; fetch the candidates again if so.
    """
    wanted = _afforded(chosen, competitors(chosen, others))
    # The longest first, so that no process still works on one at the end.
    wanted.sort(key=effort_of, reverse=True)
    keys = list(dict.fromkeys(key for setting in wanted for key in placements_of(canonical(setting.scenario))))
    by_key = simulated_factors(studies, keys, on_progress=on_progress, deadline=deadline)
    made = min((one.size for one in by_key.values()), default=0)
    if deadline is not None:
        studies.max_wait = MaxWait(deadline.max_wait_s, made, DRAWS if keys else 0)
    if made:
        studies.keep_draws({key: one[:made] for key, one in by_key.items()})
    return made > 0


def simulated_factors(
    studies: StudyCache,
    keys: Sequence[Key],
    draws: int = DRAWS,
    on_progress: OnProgress = lambda done, total: None,
    deadline: Deadline | None = None,
) -> dict[Key, FloatArray]:
    """Return simulated times of joint draws over the time at the stated values, float64[draws], for every key.

    If the deadline passes, only the first draws are returned. The draws of a key are graphs of one schedule
    (`can_batch_draws`).
    """
    runs = [DrawnRuns.of(key[0], studies.accesses_of(key), studies.seed, draws) for key in keys]
    # Start with the stated values: every draw is relative to them.
    order = [draws, *range(draws)]
    shares = [order[start : start + AT_A_TIME] for start in range(0, len(order), AT_A_TIME)]
    items = [(index, share) for share in shares for index in range(len(runs))]

    def paces(item: tuple[int, list[int]], add: Callable[[int], object]) -> list[float]:
        made: list[float] = []
        for draw in item[1]:
            if deadline is not None and deadline.over:
                break
            made.append(runs[item[0]].pace(draw))
            add(1)
        return made

    count = running_total(on_progress, len(runs) * len(order))
    simulated: dict[Key, list[float]] = {key: [] for key in keys}
    ended: set[Key] = set()
    # A draw is mostly the compiled engine's work, which needs no process of its own.
    threads = engine().kernel is not None
    found = parallel_map_counted(paces, items, studies.processes, count, threads=threads)
    for (place, share), some in zip(items, found, strict=True):
        if keys[place] not in ended:
            simulated[keys[place]] += some
        if len(some) < len(share):
            ended.add(keys[place])
    return {key: paces_to_factors([*made[1:], *made[:1]]) for key, made in simulated.items()}


def _afforded(chosen: Candidate, others: Sequence[Candidate]) -> list[Candidate]:
    """Return `chosen` and as many of `others` as the limit allows, least work first.

    Empty if the draws of `chosen` exceed the limit, because two settings must be compared by the same means.
    """
    left: float = most_effort(chosen.scenario.cluster.gpus)
    taken: list[Candidate] = []
    for one in (chosen, *sorted(others, key=effort_of)):
        effort = effort_of(one)
        if effort <= left:
            taken.append(one)
            left -= effort
        elif not taken:
            return []
    return taken


def most_effort(gpus: int) -> int:
    """Return the most ops times iterations that all simulated draws may have if this many GPUs are recommended."""
    return min(AFFORDED * gpus, AT_MOST)


def effort_of(candidate: Candidate, draws: int = DRAWS) -> float:
    """Return ops times iterations of draws of a setting, each as long as the run at the stated values.

    Infinite if the draws are not graphs of one schedule.
    """
    if not can_batch_draws(candidate.scenario):
        return inf
    run = candidate.result.run
    return run.schedule.columns.size * run.iterations * draws * len(placements_of(canonical(candidate.scenario)))


LEAST_S: Final = 1e-3
"""The shortest wait; no question is answered in less."""


def read_max_wait(text: object) -> Seconds:
    """Parse a longest wait (30s, 2min), in seconds. Raises ScenarioError or UnitError, which name the option."""
    try:
        seconds = SECONDS.parse(text)
    except UnitError as error:
        raise UnitError(f"--max-wait: {error}") from None
    if seconds < LEAST_S:
        raise ScenarioError(f"--max-wait: {text!r} is not allowed; a time of at least {SECONDS.shown_as(LEAST_S)}")
    return seconds


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a longest wait. max_wait_s: the wait as given; end_s: its end on the machine's clock."""

    max_wait_s: Seconds
    end_s: Seconds

    @classmethod
    def after(cls, max_wait_s: Seconds) -> Deadline:
        """Return the deadline of a wait that begins now."""
        return cls(max_wait_s, clock.now() + max_wait_s)

    @property
    def over(self) -> bool:
        """Whether the wait is over."""
        return clock.now() >= self.end_s


CLOSER: Final = 512
"""The joint draws of a setting that is examined more closely."""

AFFORDED_CLOSER: Final = 3_000_000
"""The most ops times iterations of the simulated draws of one setting: one to two seconds of a core."""


def look_closer(studies: StudyCache, scenarios: Sequence[Scenario]) -> None:
    """Store the times of `scenarios` under CLOSER joint draws, for `Candidate.closest`."""
    simplest = list(dict.fromkeys(map(canonical, scenarios)))
    keys = [key for scenario in simplest for key in placements_of(scenario)]
    times = parallel_map(
        lambda key: factors(key[0], studies.accesses_of(key), studies.seed, CLOSER), keys, studies.processes
    )
    left_open: dict[Key, TimeFactors] = dict(zip(keys, times, strict=True))
    afforded = [scenario for scenario in simplest if effort_of(studies.candidate(scenario), CLOSER) <= AFFORDED_CLOSER]
    simulated = simulated_factors(studies, [key for one in afforded for key in placements_of(one)], CLOSER)
    studies.keep_closer(
        {
            scenario: times_by_draw(studies, scenario, False, left_open.__getitem__, simulated.get, CLOSER)
            for scenario in simplest
        }
    )
