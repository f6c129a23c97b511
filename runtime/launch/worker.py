"""One worker's process, from its rank to its exit code: no error is lost, and nothing keeps it from ending.

The process keeps the memory of freed tensors, so that the next iteration writes into it again. By default glibc returns
blocks of many megabytes to the system when they are freed, and takes new ones an instant later. The system zeroes each
page of these when it is first written, thousands of times in an iteration.

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

from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.core.resources import ALLOCATION
from runtime.launch.group import disconnect
from runtime.launch.place import Place, place
from runtime.launch.verdict import report_failure

_PARTING_S: Final = 5.0
"""The most seconds for leaving the process group."""


def run_worker(main: Callable[[Place], int]) -> NoReturn:
    """Run `main` as this worker and end the process with its code; 2 after a user error, 1 after any other.

    The process ends even if threads or libraries hang: after a success it waits only for the process group, for 5 s. So
    `atexit` functions are not run. With GCNSIM_DEBUG=1 an internal error prints its traceback.
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
    """Leave after all peers have finished: a failure now affects no one else."""
    with contextlib.suppress(Exception):
        disconnect()


_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_NEVER: Final = -1
_PIECE: Final = 1 << 26
"""Bytes by which the heap grows."""


def disable_malloc_trim(environment: Mapping[str, str] = os.environ) -> bool:
    """Make this process keep freed memory and take large blocks from its heap (glibc's mallopt(3)).

    Call it after all imports, so that memory freed before has gone back to the system. Returns False, and changes
    nothing, if a variable of ALLOCATION is set or there is no glibc.
    """
    if any(name in environment for name in ALLOCATION):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all(mallopt(*item) for item in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, _PIECE)))


_NEEDED: Final = ("torch", "safetensors")


def check_libraries() -> None:
    """Raise ScenarioError if torch or safetensors is not installed. Neither is imported."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ScenarioError(f"training needs {' and '.join(missing)}; pip install 'gcnsim[runtime]'")
