"""`--measure-now`: the compute times that a prediction of recorded runs needs, measured by `runtime.measure`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from gcnsim.core.errors import ScenarioError
from gcnsim.evidence.recorded_run import MEASURED

MEASURE_NOW: Final = (
    "First measure what the runs trained, on this machine, for a minute (python -m runtime.measure --runs); the files "
    f"go beside the first run, into the folder {MEASURED}, and stay."
)


def measured_now(runs: Sequence[str]) -> str:
    """Measure the parts of recorded `runs`; the folder of the files. Raises ScenarioError if that fails."""
    folder = os.path.join(os.path.dirname(os.path.normpath(runs[0])), MEASURED)
    words = [word for run in runs for word in ("--runs", run)]
    command = [sys.executable, "-m", "runtime.measure", *words, "--out", folder]
    # What it prints is no part of the answer.
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    if done.returncode:
        raise ScenarioError(f"--measure-now: python -m runtime.measure ended with exit code {done.returncode}")
    return folder
