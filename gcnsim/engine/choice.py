"""Which engine simulates: the compiled one where there is one for this machine, else the reference. Same results.

Where large groups of links are to be shared once per grain only the compiled one does, and about the same results.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from mmap import mmap
from typing import Final, NamedTuple

from gcnsim.engine.kernel.driver import Kernel, simulate_by
from gcnsim.engine.run import Run
from gcnsim.engine.stopping import StopCondition
from gcnsim.errors import ScenarioError, nearest
from gcnsim.schedule import Schedule

VARIABLE: Final = "GCNSIM_ENGINE"
"""The environment variable that chooses: AUTO, REFERENCE, or COMPILED, which compiles if needed."""

AUTO, REFERENCE, COMPILED = "auto", "reference", "compiled"

IN_BACKGROUND: Final = "GCNSIM_COMPILE"
"""The environment variable that, set to `no`, keeps questions from leaving a process behind that compiles."""


_simulated = mmap(-1, 1)
"""Whether this process simulated, or one that it forked: they share this byte."""


class Engine(NamedTuple):
    """The engine in use. kernel: the compiled one, None for the reference. why: in a few words."""

    kernel: Kernel | None
    why: str

    @property
    def name(self) -> str:
        """REFERENCE or COMPILED."""
        return REFERENCE if self.kernel is None else COMPILED


def simulate(schedule: Schedule, iterations: int, enough: StopCondition | None = None, *, endless: bool = False) -> Run:
    """Run `schedule` for at most `iterations` iterations, or until `enough` says so; every op becomes a span.

    endless: the run goes on beyond its last iteration, so that none ends early for want of successors, and what it is
    known to repeat is not simulated (`gcnsim.engine.stopping`); else its last ops have the links to themselves.

    Raises ScenarioError for an engine that is not there: only the compiled one knows grains.
    """
    kernel = engine().kernel
    _simulated[0] = 1
    if kernel is None and schedule.grain_s > 0.0:
        raise ScenarioError(f"links are shared once per grain by the compiled engine alone; {engine().why}")
    if kernel is None:
        from gcnsim.engine.reference import simulate as simulate_by_reference

        return simulate_by_reference(schedule, iterations, enough, endless=endless)
    return simulate_by(kernel, schedule, iterations, enough, endless=endless)


_engine_stack: list[str] = []
"""The engine that a part of the program asked for, the innermost last."""


@contextmanager
def use_reference() -> Iterator[None]:
    """What is simulated within is simulated by the reference engine, also in processes that are forked there."""
    _engine_stack.append(REFERENCE)
    try:
        yield
    finally:
        _engine_stack.pop()


def engine() -> Engine:
    """The engine in use, found once. Raises ScenarioError for one that is asked for and not there."""
    name = _engine_stack[-1] if _engine_stack else os.environ.get(VARIABLE) or AUTO
    if name not in (AUTO, REFERENCE, COMPILED):
        raise ScenarioError(f"{VARIABLE}: {name!r} is not an engine; {nearest(name, (AUTO, REFERENCE, COMPILED))}")
    return _found(name)


@cache
def _found(name: str) -> Engine:
    from gcnsim.engine.kernel import store

    if name == REFERENCE:
        return Engine(None, f"{VARIABLE} is {REFERENCE}")
    try:
        if name == COMPILED and (problem := store.make(wait=True)):
            raise ScenarioError(f"{VARIABLE}: {COMPILED}: {problem}")
        from gcnsim.engine.kernel.store import LoadedKernel

        return Engine(LoadedKernel(*store.read(store.path())), str(store.path()))
    except store.UnusableError as error:
        failed = store.note()
        why = failed.read_text(encoding="utf-8") if failed.is_file() else str(error)
        return Engine(None, f"{why}; now: {store.MAKE}")
    except (OSError, RuntimeError, ImportError) as error:
        return Engine(None, " ".join(str(error).split()))


def compile_in_background() -> None:
    """Where something was simulated and the compiled engine is wanted and not there, let a process of its own make it,
    and do not wait for it."""
    from gcnsim.engine.kernel import store

    wanted = os.environ.get(VARIABLE, AUTO) == AUTO and os.environ.get(IN_BACKGROUND) != "no"
    if _simulated[0] and wanted and engine().kernel is None:
        store.make_later()


def compile_now() -> str | None:
    """Compile the engine where it is not compiled yet, and use it from now on; None, or why it cannot be."""
    from gcnsim.engine.kernel import store

    problem = store.make(wait=True)
    _found.cache_clear()
    return problem
