"""Choose the engine: the compiled one if available on this machine, otherwise the reference. Both give the same
results.

Sharing large groups of links once per grain is only in the compiled engine, with approximately the same results.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from mmap import mmap
from typing import Final, NamedTuple

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.engine.kernel.driver import Kernel, simulate_by
from gcnsim.engine.run import Run
from gcnsim.engine.stopping import StopCondition
from gcnsim.schedule import Schedule

VARIABLE: Final = "GCNSIM_ENGINE"
"""The environment variable that chooses: AUTO, REFERENCE, or COMPILED, which compiles if needed."""

AUTO, REFERENCE, COMPILED = "auto", "reference", "compiled"

IN_BACKGROUND: Final = "GCNSIM_COMPILE"
"""The environment variable that, set to `no`, prevents background compilation."""


_simulated = mmap(-1, 1)
"""Whether this process or a forked one has simulated; they share this byte."""


class Engine(NamedTuple):
    """The engine in use. kernel: the compiled one, None for the reference. why: the reason in a few words."""

    kernel: Kernel | None
    why: str

    @property
    def name(self) -> str:
        """REFERENCE or COMPILED."""
        return REFERENCE if self.kernel is None else COMPILED


def simulate(schedule: Schedule, iterations: int, enough: StopCondition | None = None, *, endless: bool = False) -> Run:
    """Run `schedule` for at most `iterations` iterations, or until `enough` returns true; every op becomes a span.

    endless: the run continues beyond its last iteration, so that the last ops still share the links, and repetitions
    are not simulated (`gcnsim.engine.stopping`). Otherwise the last ops have the links to themselves.

    Raises ScenarioError for an unavailable engine: only the compiled one supports grains.
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
"""The stack of requested engines, innermost last."""


@contextmanager
def use_reference() -> Iterator[None]:
    """Use the reference engine inside this block, also in processes forked there."""
    _engine_stack.append(REFERENCE)
    try:
        yield
    finally:
        _engine_stack.pop()


def engine() -> Engine:
    """The engine in use, chosen once. Raises ScenarioError if the requested one is unavailable."""
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
    """Start a process that compiles the engine if a simulation ran without it; do not wait for the process."""
    from gcnsim.engine.kernel import store

    wanted = os.environ.get(VARIABLE, AUTO) == AUTO and os.environ.get(IN_BACKGROUND) != "no"
    if _simulated[0] and wanted and engine().kernel is None:
        store.make_later()


def compile_now() -> str | None:
    """Compile the engine if needed and use it from now on. Returns None, or why it cannot be compiled."""
    from gcnsim.engine.kernel import store

    problem = store.make(wait=True)
    _found.cache_clear()
    return problem
