"""Functions as machine code, kept beside their file or in the user's cache folder for the processes to come."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final, TypeVar, cast

from filelock import FileLock
from numba import njit

Compiled = TypeVar("Compiled", bound=Callable[..., Any])

LOCK = ".lock"
"""What the lock's name has after that of the index of the code that is kept."""

NEEDED: Final = ("_index_path", "_load_index", "_save_index", "_save_data", "_data_name")
"""What Numba's files of a function must have to be kept one by one; it has had them since 0.20."""


def compiled(*, nogil: bool = False) -> Callable[[Compiled], Compiled]:
    """Makes a function machine code, when it is first called with types; nogil: without the interpreter's lock."""

    def made_of(function: Compiled) -> Compiled:
        try:
            made: Any = njit(cache=True, nogil=nogil, error_model="numpy")(function)
        except RuntimeError:  # Neither folder can be written: compile anew in each process.
            return cast(Compiled, njit(nogil=nogil, error_model="numpy")(function))
        # Numba makes nothing where it is told not to (NUMBA_DISABLE_JIT), and what is private to it may change.
        cache_file = getattr(getattr(made, "_cache", None), "_cache_file", None)
        if all(hasattr(cache_file, name) for name in NEEDED):
            _kept_one_by_one(cache_file)
        return cast(Compiled, made)

    return made_of


def _kept_one_by_one(cache_file: Any) -> None:
    """Let one process at a time add to what `cache_file` holds of a function, the code before the index that names it.

    Numba reads which file has the code of which types, takes the next number for that of new ones, and writes the index
    and then the code. Of two processes that do so at once both take the same number, and one that is killed between the
    two leaves the number of a file that has other code, or had it before the source changed: from then on every process
    that asks for the one finds the other and fails.
    """

    def alone(key: Any, data: Any) -> None:
        try:
            # For all, since another user may have the folder too.
            lock = FileLock(cache_file._index_path + LOCK, mode=0o666).acquire()
        except OSError:  # There can be no lock, so nothing else can be there.
            return
        with lock:
            names = cache_file._load_index()
            taken = set(names.values())
            name = names.get(key) or next(item for item in map(cache_file._data_name, count(1)) if item not in taken)
            cache_file._save_data(name, data)
            cache_file._save_index({**names, key: name})

    cache_file.save = alone
