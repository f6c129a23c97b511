"""The joint draws of the assumptions simulated, of the recommended setting and of those that compete with it.

A draw is a run of its own, so this is done where it may change what is said: of the recommended setting, and of every
setting that the estimates put near it. How many are afforded depends on the work alone, never on a clock: the same
question has the same answer everywhere. Only a longest wait ends it earlier; the answer then says how many were
simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Final

from gcnsim.ids import FloatArray
from gcnsim.planning.candidate import Candidate, central
from gcnsim.planning.drawn_times import Key, orders_of
from gcnsim.planning.max_wait import Deadline
from gcnsim.planning.study_cache import OnProgress, StudyCache, canonical
from gcnsim.processes import parallel_map_counted
from gcnsim.results import MaxWait
from gcnsim.uncertainty import DRAWS, DrawnRuns, at_once, paces_to_factors

COMPETES: Final = 0.1
"""A setting competes with another where its time is within 10 % of the other's in some of the central 90 % of draws."""

AFFORDED: Final = 280_000
"""Most ops times iterations of all simulated draws of a question, for each worker: six tenths of a second of a core for
six workers, where an op of an iteration takes a third of a microsecond; a quarter of a minute by the reference engine.
With fewer, settings of another tau stay estimated, which estimates do not tell apart."""

AT_MOST: Final = 2_000_000
"""And most of any question: about a second of a core with 24 workers, where an op of an iteration takes half a
microsecond; with more of them it takes longer, and a draw has more of them than are afforded."""

AT_A_TIME: Final = 13
"""Draws that a process simulates before it asks for more."""


def competitors(chosen: Candidate, others: Sequence[Candidate]) -> list[Candidate]:
    """Those of `others` that compete with `chosen`, each once."""
    found = []
    for each in {each.scenario: each for each in others if each.scenario != chosen.scenario}.values():
        over = each.epochs_over(chosen)
        low, high = central(over)
        if low <= 1.0 + COMPETES and high >= 1.0 - COMPETES:
            found.append(each)
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
    keys = list(dict.fromkeys(key for each in wanted for key in orders_of(canonical(each.scenario))))
    found = simulated_factors(studies, keys, on_progress=on_progress, deadline=deadline)
    made = min((each.size for each in found.values()), default=0)
    if deadline is not None:
        studies.max_wait = MaxWait(deadline.max_wait_s, made, DRAWS if keys else 0)
    if made:
        studies.keep_drawn({key: each[:made] for key, each in found.items()})
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

    The draws of each are graphs of one schedule (`at_once`).
    """
    runs = [DrawnRuns.of(key[0], studies.accesses_of(key), studies.seed, draws) for key in keys]
    # The stated values first, which stand behind the draws: without them no draw says anything.
    order = [draws, *range(draws)]
    shares = [order[start : start + AT_A_TIME] for start in range(0, len(order), AT_A_TIME)]
    items = [(place, share) for share in shares for place in range(len(runs))]
    done = 0

    def paces(item: tuple[int, list[int]], add: Callable[[int], object]) -> list[float]:
        found: list[float] = []
        for draw in item[1]:
            if deadline is not None and deadline.over:
                break
            found.append(runs[item[0]].pace(draw))
            add(1)
        return found

    def count(more: int) -> None:
        nonlocal done
        done += more
        if more:
            on_progress(done, len(runs) * len(order))

    drawn: dict[Key, list[float]] = {key: [] for key in keys}
    ended: set[Key] = set()
    for (place, asked), some in zip(items, parallel_map_counted(paces, items, studies.processes, count), strict=True):
        if keys[place] not in ended:
            drawn[keys[place]] += some
        if len(some) < len(asked):
            ended.add(keys[place])
    return {key: paces_to_factors([*each[1:], *each[:1]]) for key, each in drawn.items()}


def _afforded(chosen: Candidate, others: Sequence[Candidate]) -> list[Candidate]:
    """`chosen`, and behind it as many of `others` as are afforded beside it, those of the least work first; none where
    its own draws are not, since two settings are compared by the same means."""
    left: float = most_effort(chosen.scenario.cluster.gpus)
    taken: list[Candidate] = []
    for each in (chosen, *sorted(others, key=effort_of)):
        effort = effort_of(each)
        if effort <= left:
            taken.append(each)
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
    if not at_once(candidate.scenario):
        return inf
    run = candidate.result.run
    return run.schedule.columns.size * run.iterations * draws * len(orders_of(canonical(candidate.scenario)))
