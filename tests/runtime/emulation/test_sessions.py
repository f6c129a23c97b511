"""Workers of emulated hosts are in one session: Linux may share cores among sessions before it shares among workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SAYS = """
import os, pathlib, sys
pathlib.Path(sys.argv[1], os.environ["RANK"]).write_text(f"{os.getsid(0)} {os.getpgrp()} {os.getpid()}")
"""


def test_torchrun_starts_workers_in_its_own_session_each_in_a_group(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(SAYS)
    words = ["--nnodes=1", "--nproc-per-node=2", "--standalone", str(script), str(tmp_path)]
    host = [sys.executable, "-m", "runtime.emulation.host", str(os.getpid()), str(tmp_path / "report.json"), *words]
    subprocess.run(host, check=True, timeout=60, env=os.environ | {"OMP_NUM_THREADS": "1"})
    for rank in range(2):
        session, group, worker = map(int, (tmp_path / str(rank)).read_text().split())
        assert session == os.getsid(0)
        # Its group is how torchrun ends it, and what it started.
        assert group == worker
