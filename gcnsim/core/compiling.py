"""Compile functions to machine code and cache it in this folder or in the user's cache folder for later processes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final, TypeVar, cast

from filelock import FileLock
from numba import njit

Compiled = TypeVar("Compiled", bound=Callable[..., Any])

LOCK = ".lock"
"""The suffix of the lock's name after that of the index of cached code."""

NEEDED: Final = ("_index_path", "_load_index", "_save_index", "_save_data", "_data_name")
"""The attributes of Numba's cache that the locking needs; they exist since 0.20."""


def compiled(*, nogil: bool = False) -> Callable[[Compiled], Compiled]:
    """A decorator that compiles a function on its first call with given types.

    nogil: without the interpreter's lock.
    """

    def made_of(function: Compiled) -> Compiled:
        try:
            made: Any = njit(cache=True, nogil=nogil, error_model="numpy")(function)
        except RuntimeError:  # If neither folder is writable, compile again in each process.
            return cast(Compiled, njit(nogil=nogil, error_model="numpy")(function))
        # Numba compiles nothing with NUMBA_DISABLE_JIT, and its private attributes may change.
        cache_file = getattr(getattr(made, "_cache", None), "_cache_file", None)
        if all(hasattr(cache_file, name) for name in NEEDED):
            _kept_one_by_one(cache_file)
        return cast(Compiled, made)

    return made_of


def _kept_one_by_one(cache_file: Any) -> None:
    """Let one process at a time add to a function's cache `cache_file`, and write code before the index that names it.

    Numba reads which file has the code of which types, takes the next number for a new one, and writes the index before
    the code. Two concurrent processes would take the same number. A process killed between the two writes would leave a
    number whose file has other or outdated code, and every later process would find it and fail.
    """

    def alone(key: Any, data: Any) -> None:
        try:
            # Writable for all, because another user may own the folder.
            lock = FileLock(cache_file._index_path + LOCK, mode=0o666).acquire()
        except OSError:  # Locking is impossible, so no other process can be there.
            return
        with lock:
            names = cache_file._load_index()
            taken = set(names.values())
            name = names.get(key) or next(item for item in map(cache_file._data_name, count(1)) if item not in taken)
            cache_file._save_data(name, data)
            cache_file._save_index({**names, key: name})

    cache_file.save = alone
