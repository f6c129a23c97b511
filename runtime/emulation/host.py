"""One emulated host: torchrun, and a report of how its workers ended.

`python -m runtime.emulation.host PARENT REPORT TORCHRUN-ARGUMENTS...` runs inside the host's namespace, ends with the
process PARENT, and takes its workers along. What torchrun would print of a failure goes to the file REPORT instead, as
facts; the parent says it in one line.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gcnsim.core.atomic import atomic_write
from gcnsim.core.signals import die_with_parent
from runtime.launch.verdict import describe
from runtime.launch.watch import AGENT

_SEEN_S = 0.2
"""torchrun looks at its workers ten times a second; a worker ended no later than this before a report."""


def main(argv: Sequence[str]) -> int:
    """Be the host; torchrun's exit code, 128 + n when signal n ended it."""
    parent, report, *words = argv
    die_with_parent(int(parent))
    os.environ[AGENT] = str(os.getpid())
    if os.environ.get("GCNSIM_DEBUG") != "1":
        logging.disable(logging.CRITICAL)
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    # Workers are no foreground processes of the terminal; where it stops such a one that writes, they write on.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        _one_session()
        run(parse_args(words))  # type: ignore[no-untyped-call]
    except ChildFailedError as error:
        at = time.time() - _SEEN_S
        exits = [{"rank": rank, "code": failure.exitcode, "at": at} for rank, failure in error.failures.items()]
        _write(Path(report), {"exits": exits, "error": None})
        return 1
    except SignalException as error:
        return 128 + int(error.sigval)
    except Exception as error:
        _write(Path(report), {"exits": [], "error": describe(error)})
        return 1
    return 0


def _one_session() -> None:
    """Have torchrun start its workers in the session of this process."""
    from torch.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler

    if not hasattr(SubprocessHandler, "_popen"):
        raise RuntimeError(f"torch {version('torch')} starts workers otherwise than the versions that are supported")
    SubprocessHandler._popen = _in_this_session  # type: ignore[assignment]


def _in_this_session(handler: Any, args: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a worker in a process group of its own, by which torchrun ends it, and in the session of this host.

    torchrun gives each worker a session. Linux shares cores among sessions first (autogroups, sched(7)), with weights
    and debts per core: one worker then had both cores for 60 ms while others, with as much to do, had none. Workers of
    emulated hosts are on the same cores only because they are emulated; there each gets an equal share.
    """
    return subprocess.Popen(args, env=env, stdout=handler._stdout, stderr=handler._stderr, process_group=0)


def _write(path: Path, report: dict[str, Any]) -> None:
    with atomic_write(path, text=True) as file:
        file.write(json.dumps(report))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
