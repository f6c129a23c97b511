"""The rung on which a question is answered whose time is limited.

It is chosen by the law of durations, as if one core answered, and never by a clock: the same limit has the same answer
whatever else a machine does, and however many cores it has. Engines differ in it, since their rates do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import floor, log10
from typing import Final

from gcnsim.errors import ScenarioError, UnitError
from gcnsim.ids import Seconds
from gcnsim.planning.durations import Law, fitted_law
from gcnsim.planning.patience import Work
from gcnsim.planning.rungs import Rung, ladder
from gcnsim.planning.study_cache import StudyCache
from gcnsim.results import MaxWait
from gcnsim.scenario import Scenario
from gcnsim.units import SECONDS

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


def limited(work: Work, max_wait_s: Seconds, law: Law | None = None) -> tuple[Rung, MaxWait]:
    """The first rung on which `work` is expected to be done in time, or the last, and what to say of it."""
    law = law or fitted_law()
    coarse = law.compiled and _cost(work, Rung(coarse=True), law) < _cost(work, Rung(), law)
    every = (*work.settings, *work.tried)
    rungs = ladder(coarse=coarse, graphs=_fewer(every), runs=not (work.draws or work.steps))
    rung = next((each for each in rungs if _cost(work, each, law) <= max_wait_s), rungs[-1])
    expected = _cost(work, rung, law)
    wider = max(rung.wider(each) for each in every)
    return rung, MaxWait(max_wait_s, _rounded(expected), expected <= max_wait_s, rung.left_out, wider)


def within(studies: StudyCache, work: Work, max_wait_s: Seconds | None) -> Work:
    """What is to be done in that time; `studies` answer on its rung from now on. None: all of the work."""
    if max_wait_s is None:
        return work
    rung, told = limited(work, max_wait_s)
    studies.limit(rung, told)
    return less(work, rung)


def exceeded(max_wait: MaxWait) -> str | None:
    """What is said of a longest wait that is not kept."""
    if max_wait.kept:
        return None
    about, given = SECONDS.shown_as(max_wait.expected_s), SECONDS.shown_as(max_wait.max_wait_s)
    return (
        f"the answer takes about {about} on one core, longer than the limit of {given}, with all left out that can be"
    )


def less(work: Work, rung: Rung) -> Work:
    """What is left of the work on a rung."""
    tried = [*map(rung.applied, work.tried)]
    if rung.most is not None:
        machines = dict.fromkeys(each.cluster for each in tried)
        tried = [each for one in machines for each in [own for own in tried if own.cluster == one][: rung.most]]
    return replace(
        work,
        settings=tuple(map(rung.applied, work.settings)),
        tried=tuple(tried),
        draws=work.draws and rung.draws,
        steps=work.steps and rung.steps,
        mean=rung.mean,
    )


def _fewer(settings: Sequence[Scenario]) -> bool:
    """Whether fewer graphs can be drawn: some are, none are recorded, and no fault strikes one of them."""
    drawn = any(not each.method.sampling().whole for each in settings)
    return drawn and not any(each.faults or each.workload.trace for each in settings)


def _cost(work: Work, rung: Rung, law: Law) -> Seconds:
    return less(work, rung).cost(law).seconds


def _rounded(seconds: Seconds) -> Seconds:
    """To two significant digits: the law knows no more."""
    return round(seconds, 1 - floor(log10(seconds)))
