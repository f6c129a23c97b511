"""Fit the figures of a GPU, its host and its links to micro-benchmarks, with the residuals of each law.

The laws are those that simulate GPU workers (`gcnsim.cost.device`), evaluated at an efficiency of one. The efficiency
is that time over the measured time; the fit takes the geometric mean over sizes. Benchmarks issue the next kernel while
one runs, so a kernel takes the longer of its work and the host's call (`call_s`). Only kernels of at least CALLS calls
count, or the longest one if there is none. They follow one another without a gap, so a fitted launch takes no time.

Effects without a law appear among the residuals, as the error of ignoring them: kernels that overlap copies, and copies
of unpinned memory.

Processes cost one another: messages at both of their ends, and cores beside busy ones, but no kernel's own time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.cost import VALUE, elementwise_seconds, gemm_seconds, map_bytes, rows_seconds, spmm_seconds
from gcnsim.cost.layers import RELU_BACKWARD_PASSES, RELU_PASSES
from gcnsim.evidence.fitting import (
    Laws,
    Measurement,
    Measurements,
    coefficients,
    curve_of,
    every,
    mean,
    residual,
    single,
)
from gcnsim.hardware import Curve, DeviceProfile, device
from gcnsim.records.calibration import Fitted, Residual
from gcnsim.scenario.machine_profiles import CALIBRATED, as_fitted

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


CALLS: Final = 8.0
"""Kernels shorter than this number of the host's calls are not fitted."""

BOUND: Final = 1.5
"""A product that lasts this many times longer than reading its operands is bound by arithmetic."""

Law: TypeAlias = Callable[[DeviceProfile, Measurement], float]


GATHERED: Final = {"spmm": "columns", "spmm_copying": "columns", "spmm_t": "rows"}
"""The side of the matrix whose rows a sparse product gathers; it writes one row per row of the other side."""


def _spmm(chosen: DeviceProfile, measurement: Measurement) -> float:
    facts, gathered = measurement.params, GATHERED[measurement.kernel]
    written = facts["rows" if gathered == "columns" else "columns"]
    return float(spmm_seconds(chosen, facts["entries"], written, int(facts["width"]), facts[gathered]))


def _gemm(chosen: DeviceProfile, measurement: Measurement) -> float:
    facts = measurement.params
    return _products_in(measurement) * float(gemm_seconds(chosen, facts["rows"], facts["d_in"], facts["d_out"]))


def _rows(chosen: DeviceProfile, measurement: Measurement) -> float:
    return float(rows_seconds(chosen, measurement.params["rows"], int(measurement.params["width"])))


def _relu(chosen: DeviceProfile, measurement: Measurement) -> float:
    passes = RELU_PASSES if measurement.kernel == "relu" else RELU_BACKWARD_PASSES
    return float(elementwise_seconds(chosen, measurement.params["rows"] * measurement.params["width"], passes))


PASSES: Final = ("relu", "relu_backward")
MAPS: Final = ("gemm", "gemm_backward")
SUMS: Final = ("spmm", "spmm_t")
MOVES: Final = ("pack", "scatter")
LAWS: Final[Mapping[str, Law]] = {
    **dict.fromkeys(PASSES, _relu),
    **dict.fromkeys((*MAPS, "gemm_copying"), _gemm),
    **dict.fromkeys((*SUMS, "spmm_copying"), _spmm),
    **dict.fromkeys(MOVES, _rows),
}
"""Seconds of a measured kernel by the simulator's law on a device."""


def fit_gpu(measured: Measurements, name: str) -> Laws:
    """Return all figures that `measured` determines for the catalogue device `name`.

    Raises ScenarioError if a required kernel is missing.
    """
    laws = Laws()
    (launch, *_) = single(measured, "launch")
    laws.host["call_s"] = Fitted(launch.seconds, "a sum with next to nothing to do")
    # Kernels that follow one another; what a launch takes where calls are not counted stays the catalogue's.
    laws.device["launch_s"] = Fitted(0.0, "kernels that follow one another")
    _rates(laws, measured, name)
    _arithmetic(laws, measured, name)
    _sums(laws, measured, name)
    _share(laws, measured, name, "gather_efficiency", MOVES, "packing and adding of rows")
    chosen = _known(laws, name)
    for term, kernels in {"elementwise": PASSES, "gemm": MAPS, "spmm": SUMS, "rows": MOVES}.items():
        points = _long(laws, measured, kernels)
        laws.residuals.append(_residual(term, chosen, points))
    _drawing(laws, measured)
    laws.host["cores"] = Fitted(float(measured.machine["cores"]), "cores of the machine")
    messages(laws, measured)
    _copies(laws, measured)
    _beside(laws, measured, chosen)
    del laws.device["launch_s"]
    return laws


def _known(laws: Laws, name: str, **assumed: float) -> DeviceProfile:
    """The device with the figures fitted so far; `assumed` replaces some of them."""
    figures = laws.device | {field: Fitted(value, "to solve a law by") for field, value in assumed.items()}
    chosen = as_fitted(device(name), figures)
    if not laws.curve:
        return chosen
    sizes, shares = zip(*laws.curve, strict=True)
    return replace(chosen, spmm_curve=Curve(sizes, shares, "fitted", "micro-benchmarks", CALIBRATED))


def _products_in(measurement: Measurement) -> int:
    """The number of dense products in a measured linear layer; the backward pass adds the gradients of weights and
    maybe input.
    """
    return 1 + int(measurement.kernel == "gemm_backward" and measurement.params.get("input_grad", 0.0) > 0)


def _long(laws: Laws, measured: Measurements, kernels: Sequence[str]) -> list[Measurement]:
    """The kernels to fit, without products whose rows stay in the cache."""
    found = [item for kernel in kernels for item in single(measured, kernel) if not item.params.get("hot")]
    least = CALLS * laws.host["call_s"].value
    chosen = [item for item in found if item.seconds >= least * _products_in(item)]
    return chosen or [max(found, key=lambda item: item.seconds)]


def _residual(term: str, chosen: DeviceProfile, points: Sequence[Measurement]) -> Residual:
    return residual(term, [LAWS[point.kernel](chosen, point) for point in points], [point.seconds for point in points])


def _rates(laws: Laws, measured: Measurements, name: str) -> None:
    """Fit memory bandwidth and elementwise efficiency."""
    points = _long(laws, measured, PASSES)
    slow = _known(laws, name, memory_bandwidth=1.0, elementwise_efficiency=1.0)
    # At one byte per second, seconds equal bytes.
    rates = [LAWS[point.kernel](slow, point) / point.seconds for point in points]
    laws.device["memory_bandwidth"] = Fitted(max(rates), "quickest elementwise pass")
    laws.device["elementwise_efficiency"] = Fitted(mean(rates) / max(rates), "elementwise passes")


def _arithmetic(laws: Laws, measured: Measurements, name: str) -> None:
    """Fit flop/s and gemm efficiency to products bound by arithmetic; without any, the catalogue's figures stay."""
    chosen = _known(laws, name)
    rate = chosen.memory_bandwidth.value * chosen.elementwise_efficiency.value
    speeds = []
    for measurement in _long(laws, measured, MAPS):
        m, k, n = (measurement.params[side] for side in ("rows", "d_in", "d_out"))
        count, left = _products_in(measurement), measurement.seconds
        if left >= BOUND * count * float(map_bytes(m, k, n)) / rate:
            speeds.append(2.0 * count * m * k * n / left)
    if speeds:
        laws.device["flops_fp32"] = Fitted(max(speeds), "quickest dense product")
        laws.device["gemm_efficiency"] = Fitted(mean(speeds) / max(speeds), "dense products bound by arithmetic")


def _sums(laws: Laws, measured: Measurements, name: str) -> None:
    """Fit the SpMM curve: efficiency by the bytes of the gathered rows."""
    points = _long(laws, measured, SUMS)
    shares = _share(laws, measured, name, "spmm_efficiency", SUMS, "sparse products, all sizes")
    sizes = [VALUE * point.params["width"] * point.params[GATHERED[point.kernel]] for point in points]
    laws.curve = curve_of(sizes, shares)


def _share(
    laws: Laws, measured: Measurements, name: str, figure: str, kernels: Sequence[str], reference: str
) -> list[float]:
    """Fit an efficiency as the mean over kernels of the law's time at efficiency one over the measured time."""
    ideal = _known(laws, name, **{figure: 1.0})
    shares = [
        LAWS[measurement.kernel](ideal, measurement) / measurement.seconds
        for measurement in _long(laws, measured, kernels)
    ]
    laws.device[figure] = Fitted(mean(shares), reference)
    return shares


def _copies(laws: Laws, measured: Measurements) -> None:
    """Fit the link between GPU and host to copies of pinned memory; other copies become residuals.

    A single copy takes latency, then its bytes at the link's rate. The part independent of size is latency on its own
    stream: it does not delay other copies.
    """
    every = [item for kernel in ("copy_to_device", "copy_to_host") for item in single(measured, kernel)]
    pinned = [item for item in every if item.params.get("pinned")]
    seconds = np.array([item.seconds for item in pinned])
    nbytes = np.array([item.params["bytes"] for item in pinned])
    once, per_byte = coefficients(seconds, np.ones(seconds.shape), nbytes)
    rate = 1.0 / per_byte
    quickest = max(rate, float((nbytes / seconds).max()))
    laws.copies["bandwidth"] = Fitted(quickest, "quickest copy of pinned memory")
    laws.copies["efficiency"] = Fitted(rate / quickest, "copies of pinned memory, both ways")
    laws.copies["latency_s"] = Fitted(once, "what a copy takes whatever its size")
    laws.residuals.append(residual("copies", once + nbytes * per_byte, seconds))
    others = [item for item in every if not item.params.get("pinned")]
    if others:
        predicted = [once + other.params["bytes"] * per_byte for other in others]
        laws.residuals.append(residual("copies not pinned (no law)", predicted, [other.seconds for other in others]))


def _beside(laws: Laws, measured: Measurements, chosen: DeviceProfile) -> None:
    """Compare kernels during copies in both directions with the simulation, which assumes no slowdown."""
    for kernel in ("spmm", "gemm"):
        found = measured.of(f"{kernel}_copying")
        if not found:
            continue
        by_itself = [
            next((item.seconds for item in measured.of(kernel, **beside.params)), LAWS[beside.kernel](chosen, beside))
            for beside in found
        ]
        laws.residuals.append(residual(f"{kernel} beside copies (no law)", by_itself, [item.seconds for item in found]))


def _drawing(laws: Laws, measured: Measurements) -> None:
    """Drawing edges, building the drawn graph's matrices, recomputing probabilities: seconds per entry of each."""
    draw, thin = (single(measured, name) for name in ("draw", "thin"))
    entries = np.array([item.params["entries"] for item in draw])
    # Every row keeps its self-loop in a sampled graph: it is an entry of the matrices, and predictions count it.
    kept = np.array([item.params["kept"] + item.params["rows"] for item in draw])
    seconds = np.array([a.seconds + b.seconds for a, b in zip(draw, thin, strict=True)])
    per_entry, per_kept, each_time = coefficients(seconds, entries, kept, np.ones(seconds.shape))
    rules = [single(measured, name) for name in ("probabilities", "inclusion", "reweigh")]
    whole = np.array([sum(item.seconds for item in group) for group in zip(*rules, strict=True)])
    sizes = np.array([item.params["entries"] for item in rules[0]])
    rate = mean(sizes / whole)
    laws.host |= {
        "sample_edges_per_s": Fitted(1.0 / per_entry, "drawing and thinning, per stored entry"),
        "build_entries_per_s": Fitted(1.0 / per_kept, "matrices of a drawn graph, per kept entry"),
        "sort_edges_per_s": Fitted(rate, "probabilities, inclusion and weights, per stored entry"),
    }
    laws.residuals += [
        residual("sampling", entries * per_entry + kept * per_kept + each_time, seconds),
        residual("probabilities", sizes / rate, whole),
    ]
