"""When a worker ended, as its parent notes it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from runtime.launch.parent import ProcessGroup, StopRequests


def test_an_exit_is_never_dated_after_its_true_end() -> None:
    """The parent looks every 50 ms: a peer that fails because of it, and says when, must come later."""
    group = ProcessGroup(StopRequests(), 1.0, 1.0)
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"], process_group=0)
    process.wait()
    group.processes.append(process)
    seen = time.time()
    assert group._alive() == []
    assert group._alive() == []
    (found,) = group.exits
    assert (found.rank, found.code, found.stop_signal) == (0, 3, 0)
    assert seen - 1.0 < found.at < seen


def test_what_the_parent_told_a_worker_is_known_of_its_exit() -> None:
    group = ProcessGroup(StopRequests(), 1.0, 1.0)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], process_group=0)
    group.processes.append(process)
    assert group._alive() == [0]
    group._signal(signal.SIGKILL)
    process.wait()
    assert group._alive() == []
    assert group.exits[0].stuck
