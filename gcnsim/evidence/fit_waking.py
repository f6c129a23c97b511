"""What a message costs where all cores train, as in a run, and how long the thread waits that it wakes."""

from __future__ import annotations

from gcnsim.core.errors import ScenarioError
from gcnsim.evidence.fitting import Laws
from gcnsim.records.calibration import Fitted
from gcnsim.records.measurements import Measurements

WOKEN = 4
"""Threads that a message and its answer wake: at either end the one that moves bytes, then the one that waits."""

LEAST_WAKE_S = 1e-6
"""What is left of a difference that noise hides."""


def beside_training(laws: Laws, measured: Measurements) -> None:
    """Replace `message_s` and `wake_s` by what was measured beside training; nothing where it was not.

    Messages one right behind another, alone, find their code in the caches and an idle core. A message and its answer
    wake WOKEN threads, one after the other, and are two messages at each end. Of all numbers of processes that leave no
    core idle the least counts.
    """
    cores = int(measured.machine["cores"])
    crowds = [item for item in measured.of("answer_beside") if item.processes >= cores]
    if not crowds:
        return
    found = min(crowds, key=lambda item: item.processes)
    names = ("answer", "answer_cpu", "answer_beside_cpu")
    others = {
        item.kernel: item.seconds for name in names for item in measured.of(name) if item.processes == found.processes
    }
    if len(others) < len(names):
        missing = next(name for name in names if name not in others)
        raise ScenarioError(
            f"{measured.path}: has no kernel {missing!r} of {found.processes} processes; "
            "python -m runtime.measure --links measures it"
        )
    alone, cpu_alone, cpu = (others[name] for name in names)
    where = f"while {found.processes} processes train on {cores} cores"
    # The processor time of either end has grown too, and is no waiting.
    waited = max((found.seconds - alone - 2 * (cpu - cpu_alone)) / WOKEN, LEAST_WAKE_S)
    laws.host["wake_s"] = Fitted(
        waited, f"a message and its answer {where}, over the same alone, per thread that wakes"
    )
    laws.host["message_s"] = Fitted(cpu / 2, f"processor time of small messages {where}, per message and end")
