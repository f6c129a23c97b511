"""One worker's process, from its place to its exit code: no error is lost, and nothing keeps it from ending."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Final, NoReturn

from gcnsim.errors import GcnsimError
from runtime.launch.failure_report import report_failure
from runtime.launch.group import disconnect
from runtime.launch.place import Place, place

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
    """All peers have done their work: what fails now fails nobody."""
    with contextlib.suppress(Exception):
        disconnect()
