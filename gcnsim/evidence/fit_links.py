"""What processes cost one another: messages at both of their ends, and cores beside busy ones; no kernel's own time."""

from __future__ import annotations

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.evidence.fitting import Laws, coefficients, every, mean, residual
from gcnsim.records.calibration import Fitted
from gcnsim.records.measurements import Measurements

QUEUE = 262_144.0
"""Bytes one connection may have in the queues of an emulated link: the socket buffers of its hosts."""

SMALL = 65_536
"""Bytes of a message whose size costs little."""

SLICE_S = 4e-3
"""How long a thread keeps a core that another waits for: `benchmarks/bench_waking.py`, a tick of 250 a second."""

WAKE_S = 5e-5
"""How long it keeps one from a thread that a message wakes: the same benchmark, the mean on crowded cores."""


def fit_links(measured: Measurements) -> Laws:
    """The figures of messages, on CPUs also of busy cores. Raises ScenarioError where they were not measured."""
    laws = Laws()
    if measured.device == "cpu":
        _sharing(laws, measured)
        _sockets(laws, measured)
    else:
        laws.host["cores"] = Fitted(float(measured.machine["cores"]), "cores of the machine")
        messages(laws, measured)
    if not laws.network:
        raise ScenarioError(f"{measured.path}: has no transfers; python -m runtime.measure --links measures them")
    return laws


def messages(laws: Laws, measured: Measurements) -> bool:
    """Fit the CPU time of a message, per byte and per message at each end, and the delay of a small message.

    Returns whether transfers were measured.
    """
    sent, received = measured.of("p2p_oneway_cpu_sender"), measured.of("p2p_oneway_cpu_receiver")
    if not sent:
        return False
    # One message and a tiny answer: two messages at each end.
    nbytes = np.array([item.params["bytes"] for item in (*sent, *received)])
    seconds = np.array([item.seconds for item in (*sent, *received)])
    per_message, per_byte = coefficients(seconds, np.full(nbytes.shape, 2.0), nbytes)
    laws.host["message_s"] = Fitted(per_message, "processor time of point-to-point messages, per message and end")
    laws.host["socket_bandwidth"] = Fitted(1.0 / per_byte, "processor time of messages, per byte and end")
    laws.residuals.append(residual("sockets", 2.0 * per_message + nbytes * per_byte, seconds))
    tiny = min(every(measured, "p2p_oneway"), key=lambda item: item.params["bytes"])
    # The round trip less the CPU time at both ends.
    latency = max(tiny.seconds / 2 - 2 * per_message, 1e-6)
    laws.network["latency_s"] = Fitted(latency, "half of a small message and its answer, less the processors' work")
    return True


def _sharing(laws: Laws, measured: Measurements) -> None:
    """What a core does when all are busy."""
    laws.host["cores"] = Fitted(float(measured.machine["cores"]), "cores of the machine")
    cores = max(1, int(measured.machine["cores"]) // measured.kernels.threads)
    rates = []
    for name in ("shared_spmm", "shared_gemm", "shared_relu", "shared_iteration"):
        for alone in [item for item in measured.of(name) if item.processes == 1]:
            busy = [
                measurement
                for measurement in measured.of(name)
                if measurement.processes == cores and measurement.params == alone.params
            ]
            rates += [min(alone.seconds / item.seconds, 1.0) for item in busy]
    if not rates:
        raise ScenarioError(
            f"{measured.path}: no kernel ran in {cores} processes; python -m runtime.measure --links measures it"
        )
    laws.host["busy_core_rate"] = Fitted(mean(rates), f"{cores} processes at once, over one alone")


def _sockets(laws: Laws, measured: Measurements) -> None:
    """What else a message costs where its ends take turns on cores, and on an emulated link."""
    if not messages(laws, measured):
        return
    laws.host["reduce_step_s"] = Fitted(_ring_step(measured), "processor time of small all-reduces, per step")
    laws.host["slice_s"] = Fitted(SLICE_S, "turns of busy processes on crowded cores, median; another machine")
    laws.host["wake_s"] = Fitted(WAKE_S, "answers of a process that messages wake on busy cores, mean; another machine")
    laws.network["queue"] = Fitted(QUEUE, "bytes one connection may have in the queues of an emulated link")


def _ring_step(measured: Measurements) -> float:
    """Processor time per process of one of the 2 (P - 1) steps of a small all-reduce; of crowded cores if there are."""
    steps: dict[bool, list[float]] = {True: [], False: []}
    for measurement in measured.of("all_reduce_cpu"):
        if measurement.params["bytes"] <= SMALL:
            step = measurement.seconds / (2.0 * (measurement.processes - 1))
            steps[measurement.processes > int(measured.machine["cores"])].append(step)
    return float(np.median(steps[True] or steps[False]))
