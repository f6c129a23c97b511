"""The joint draws of the assumptions simulated, of the recommended setting and of those that compete with it.

A draw is a run of its own, so this is done where it may change what is said: of the recommended setting, and of every
setting that the estimates put near it. How many are afforded depends on the work alone, never on a clock: the same
question has the same answer everywhere. Only a longest wait ends it earlier; the answer then says how many were
simulated: it depends on the clock, nothing else does.

More draws of a few settings (`look_closer`) are for a share of them that something hangs on: the chance of meeting a
target. Of DRAWS draws a share is known within 5 points, of CLOSER ones within 2 (95 %, measured over seeds).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from gcnsim import clock
from gcnsim.engine import engine
from gcnsim.errors import ScenarioError, UnitError
from gcnsim.ids import FloatArray, Seconds
from gcnsim.planning.candidate import Candidate, Key, canonical, central, placements_of, times_by_draw
from gcnsim.planning.study_cache import OnProgress, StudyCache, running_total
from gcnsim.processes import parallel_map, parallel_map_counted
from gcnsim.results import MaxWait
from gcnsim.scenario import Scenario
from gcnsim.uncertainty import DRAWS, DrawnRuns, TimeFactors, can_batch_draws, factors, paces_to_factors
from gcnsim.units import SECONDS

COMPETES: Final = 0.1
"""A setting competes with another where its time is within 10 % of the other's in some of the central 90 % of draws."""

AFFORDED: Final = 280_000
"""Most ops times iterations of all simulated draws of a question, for each worker: half a second of a core for six
workers, where an op of an iteration takes three tenths of a microsecond; a quarter of a minute by the reference engine.
With fewer, settings of another tau stay estimated, which estimates do not tell apart."""

AT_MOST: Final = 2_000_000
"""And most of any question: about a second of a core with 24 workers, where an op of an iteration takes half a
microsecond; with more of them it takes longer, and a draw has more of them than are afforded."""

AT_A_TIME: Final = 13
"""Draws that a process simulates before it asks for more."""


def competitors(chosen: Candidate, others: Sequence[Candidate]) -> list[Candidate]:
    """Those of `others` that compete with `chosen`, each once."""
    found = []
    for one in {other.scenario: other for other in others if other.scenario != chosen.scenario}.values():
        over = one.epochs_over(chosen)
        low, high = central(over)
        if low <= 1.0 + COMPETES and high >= 1.0 - COMPETES:
            found.append(one)
    return found


def simulate_draws(
    studies: StudyCache,
    chosen: Candidate,
    others: Sequence[Candidate],
    on_progress: OnProgress = lambda done, total: None,
    deadline: Deadline | None = None,
) -> bool:
    """Simulate the joint draws of `chosen` and of those of `others` that compete with it, as many as are afforded and
    begun before the deadline, of each setting equally many; whether any were. Candidates are to be asked for again."""
    wanted = _afforded(chosen, competitors(chosen, others))
    # The longest first, so that no process is left with one at the end.
    wanted.sort(key=effort_of, reverse=True)
    keys = list(dict.fromkeys(key for setting in wanted for key in placements_of(canonical(setting.scenario))))
    found = simulated_factors(studies, keys, on_progress=on_progress, deadline=deadline)
    made = min((one.size for one in found.values()), default=0)
    if deadline is not None:
        studies.max_wait = MaxWait(deadline.max_wait_s, made, DRAWS if keys else 0)
    if made:
        studies.keep_draws({key: one[:made] for key, one in found.items()})
    return made > 0


def simulated_factors(
    studies: StudyCache,
    keys: Sequence[Key],
    draws: int = DRAWS,
    on_progress: OnProgress = lambda done, total: None,
    deadline: Deadline | None = None,
) -> dict[Key, FloatArray]:
    """So many joint draws of every one of `keys`, simulated: times over the time at the stated values, float64[draws];
    the first of them where the deadline came before the last.

    The draws of each are graphs of one schedule (`can_batch_draws`).
    """
    runs = [DrawnRuns.of(key[0], studies.accesses_of(key), studies.seed, draws) for key in keys]
    # The stated values first, which stand behind the draws: without them no draw says anything.
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
    """`chosen`, and behind it as many of `others` as are afforded beside it, those of the least work first; none where
    its own draws are not, since two settings are compared by the same means."""
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
    """Ops times iterations that all simulated draws of a question may have where so many GPUs are recommended."""
    return min(AFFORDED * gpus, AT_MOST)


def effort_of(candidate: Candidate, draws: int = DRAWS) -> float:
    """Ops times iterations of so many draws of a setting, were each as long as the run at the stated values; infinite
    where draws are not graphs of one schedule."""
    if not can_batch_draws(candidate.scenario):
        return inf
    run = candidate.result.run
    return run.schedule.columns.size * run.iterations * draws * len(placements_of(canonical(candidate.scenario)))


LEAST_S: Final = 1e-3
"""The least limit: less is no time to answer anything in."""


def read_max_wait(text: object) -> Seconds:
    """A longest wait (30s, 2min) in seconds. Raises ScenarioError or UnitError, which name the option."""
    try:
        seconds = SECONDS.parse(text)
    except UnitError as error:
        raise UnitError(f"--max-wait: {error}") from None
    if seconds < LEAST_S:
        raise ScenarioError(f"--max-wait: {text!r} is not allowed; a time of at least {SECONDS.shown_as(LEAST_S)}")
    return seconds


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a longest wait. max_wait_s: as it was given; end_s: on the machine's clock."""

    max_wait_s: Seconds
    end_s: Seconds

    @classmethod
    def after(cls, max_wait_s: Seconds) -> Deadline:
        """The end of a wait that begins now."""
        return cls(max_wait_s, clock.now() + max_wait_s)

    @property
    def over(self) -> bool:
        """Whether the wait is over."""
        return clock.now() >= self.end_s


CLOSER: Final = 512
"""Joint draws of a setting that is looked at more closely."""

AFFORDED_CLOSER: Final = 3_000_000
"""Most ops times iterations of the draws of one setting that are simulated: one to two seconds of a core."""


def look_closer(studies: StudyCache, scenarios: Sequence[Scenario]) -> None:
    """Find the times of `scenarios` under CLOSER joint draws, for `Candidate.closest`."""
    simplest = list(dict.fromkeys(map(canonical, scenarios)))
    keys = [key for scenario in simplest for key in placements_of(scenario)]
    found = parallel_map(
        lambda key: factors(key[0], studies.accesses_of(key), studies.seed, CLOSER), keys, studies.processes
    )
    left_open: dict[Key, TimeFactors] = dict(zip(keys, found, strict=True))
    afforded = [scenario for scenario in simplest if effort_of(studies.candidate(scenario), CLOSER) <= AFFORDED_CLOSER]
    simulated = simulated_factors(studies, [key for one in afforded for key in placements_of(one)], CLOSER)
    studies.keep_closer(
        {
            scenario: times_by_draw(studies, scenario, False, left_open.__getitem__, simulated.get, CLOSER)
            for scenario in simplest
        }
    )
