"""One worker's process, from its place to its exit code: no error is lost, and nothing keeps it from ending.

Freed memory of tensors stays with the process, so that the next iteration writes into it again. By default glibc
returns blocks of many megabytes to the system when they are freed, and takes new ones an instant later. The system
zeroes each page of these when it is first written, thousands of times in an iteration.

Required libraries are checked before anything is started: the extra `runtime` may not be installed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Final, NoReturn

from gcnsim.errors import GcnsimError, ScenarioError
from runtime.launch.group import disconnect
from runtime.launch.place import Place, place
from runtime.launch.verdict import report_failure

_PARTING_S: Final = 5.0
"""How long leaving the process group may take."""


def run_worker(main: Callable[[Place], int]) -> NoReturn:
    """Run `main` at this worker's place and end the process with its code; 2 after a user's error, 1 after any other.

    The process ends even where threads or libraries hang: nothing is awaited but the process group, after a success,
    for 5 s. So `atexit` functions are not run. With GCNSIM_DEBUG=1 an error that is not the user's prints where it was
    raised.
    """
    code = _outcome(main)
    if code == 0:
        parting = threading.Thread(target=_part, name="parting", daemon=True)
        parting.start()
        parting.join(_PARTING_S)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _outcome(main: Callable[[Place], int]) -> int:
    try:
        where = place()
        assert where is not None, "a worker has a place"
        return main(where)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        report_failure(RuntimeError(error.code))
        return 1
    except KeyboardInterrupt:
        return 130
    except GcnsimError as error:
        report_failure(error)
        return 2
    except BaseException as error:
        if os.environ.get("GCNSIM_DEBUG") == "1":
            traceback.print_exc()
        report_failure(error)
        return 1


def _part() -> None:
    """All peers have finished: a failure now affects no one else."""
    with contextlib.suppress(Exception):
        disconnect()


_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_NEVER: Final = -1
_PIECE: Final = 1 << 26
"""Bytes by which the heap grows."""

ALLOCATION: Final = (
    "GLIBC_TUNABLES",
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
)
"""Variables by which a user says how memory is allocated; then nothing is changed."""


def disable_malloc_trim(environment: Mapping[str, str] = os.environ) -> bool:
    """Have this process keep the memory that it frees, and take large blocks from its heap (glibc's mallopt(3)).

    To be called once everything is loaded, since what was freed before has then gone back to the system. Gives False,
    and changes nothing, where a variable of ALLOCATION is set or there is no glibc.
    """
    if any(name in environment for name in ALLOCATION):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all(mallopt(*item) for item in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, _PIECE)))


_NEEDED: Final = ("torch", "safetensors")


def check_libraries() -> None:
    """Raise ScenarioError when torch or safetensors is not installed. Neither is imported."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ScenarioError(f"training needs {' and '.join(missing)}; pip install 'gcnsim[runtime]'")
