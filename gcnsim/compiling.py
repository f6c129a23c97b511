"""Functions as machine code, kept beside their file or in the user's cache folder for the processes to come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from numba import njit

Compiled = TypeVar("Compiled", bound=Callable[..., Any])

LOCK = ".lock"
"""What the lock's name has after that of the index of the code that is kept."""


def compiled(*, nogil: bool = False) -> Callable[[Compiled], Compiled]:
    """Makes a function machine code, when it is first called with types; nogil: without the interpreter's lock."""

    def made_of(function: Compiled) -> Compiled:
        try:
            made: Any = njit(cache=True, nogil=nogil, error_model="numpy")(function)
        except RuntimeError:  # Neither folder can be written: compile anew in each process.
            return cast(Compiled, njit(nogil=nogil, error_model="numpy")(function))
        _kept_one_by_one(made._cache._cache_file)
        return cast(Compiled, made)

    return made_of


def _kept_one_by_one(kept: Any) -> None:
    """Let one process at a time add to what is `kept` of a function.

    Numba reads which file has the code of which types, takes the next number for that of new ones, and writes both. Of
    two processes that do so at once both take the same number: from then on every process that asks for the one finds
    the code of the other and fails.
    """
    save = kept.save

    def alone(key: Any, data: Any) -> None:
        with _locked(kept._index_path + LOCK) as locked:
            if locked:
                save(key, data)

    kept.save = alone


@contextmanager
def _locked(path: str) -> Iterator[bool]:
    """A block that one process at a time is in: False where the lock cannot be written, so that nothing else can."""
    try:
        file = open(path, "a", encoding="utf-8")  # noqa: SIM115
    except OSError:
        yield False
        return
    with file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        except (ImportError, OSError):  # No such locks on this system.
            yield True
            return
        yield True
