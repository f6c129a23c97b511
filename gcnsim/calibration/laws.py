"""From micro-benchmarks to the figures of a device, a host and a network, each law with its residuals.

Every law is the simulator's own (`gcnsim.cost`), solved for the figure it rests on at each measured size; the figure is
the geometric mean over the sizes, so that twice too fast and twice too slow weigh alike. The laws' own units come
first: memory bandwidth is what the quickest pass over rows reached, flop/s what the quickest product did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gcnsim.cost.core import RELU_BACKWARD_PASSES, RELU_PASSES, RESULT_PASSES, map_bytes
from gcnsim.cost.device import INDEX, VALUE
from gcnsim.errors import ScenarioError
from gcnsim.ids import FloatArray
from gcnsim.record import Fitted, Measurement, Measurements, Residual

Values: TypeAlias = Sequence[float] | NDArray[Any]

LARGE_ROWS = 200
"""Kernels on fewer rows say more of their launch than of their rate."""

NARROW = 16
"""Maps of fewer columns say more of their launch than of arithmetic."""

LEAST_ARITHMETIC = 0.2
"""Share of a kernel's time that is left for its main part at least, whatever its operands take by the laws."""

SPMM_ENTRIES = 50_000
"""So do products with fewer entries."""

QUEUE = 262_144.0
"""Bytes one connection may have in the queues of an emulated link: the socket buffers of its hosts."""

SMALL = 65_536
"""Bytes of a message whose size costs little."""

SLICE_S = 8e-3
"""How long a thread keeps a core that another waits for: two ticks of 250 a second. Runs refine it."""

STEP = 4.0
"""Sizes of the SpMM curve lie within a factor of this of its points."""

NORMAL_90 = 1.2816
"""The 90th percentile of the standard normal distribution."""

LONG_S = 2e-4
"""Kernels quicker than this are timed many at once, which hides how much one varies."""

KERNELS_OF_TINY = 16
"""Kernels that the laws count in an iteration of a two-layer network: sums, maps, activation, loss and step."""


@dataclass
class Laws:
    """Figures found so far, by part of the record, and how well each law fits."""

    device: dict[str, Fitted] = field(default_factory=dict)
    host: dict[str, Fitted] = field(default_factory=dict)
    network: dict[str, Fitted] = field(default_factory=dict)
    curve: tuple[tuple[float, float], ...] = ()
    residuals: list[Residual] = field(default_factory=list)


def fit_laws(measured: Measurements) -> Laws:
    """All figures that `measured` can give. Raises ScenarioError when a kernel the laws need is not in it."""
    laws = Laws()
    _rates(laws, measured)
    _spmm(laws, measured)
    _rows(laws, measured)
    _loss(laws, measured)
    _drawing(laws, measured)
    _sharing(laws, measured)
    _iteration(laws, measured)
    _varied(laws, measured)
    _sockets(laws, measured)
    return laws


def residual(term: str, predicted: Values, seconds: Values) -> Residual:
    """How well `predicted` fits `seconds`."""
    error = np.asarray(predicted) / np.asarray(seconds) - 1.0
    size = np.abs(error)
    return Residual(term, error.size, float(size.mean()), float(np.percentile(size, 90)), float(error.mean()))


def _rates(laws: Laws, measured: Measurements) -> None:
    """Launch, memory bandwidth and flop/s, elementwise and gemm efficiency."""
    tiny = min(_some(measured, "iteration"), key=lambda each: each.seconds)
    launch = tiny.seconds / KERNELS_OF_TINY
    laws.device["launch_s"] = Fitted(launch, "iteration of a tiny graph over its kernels")
    passes = {"relu": RELU_PASSES, "relu_backward": RELU_BACKWARD_PASSES}
    points = [
        (VALUE * count * each.params["rows"] * each.params["width"], each.seconds)
        for name, count in passes.items()
        for each in _some(measured, name)
        if each.params["rows"] >= LARGE_ROWS
    ]
    rates = [nbytes / max(seconds - _call(seconds, launch), 1e-9) for nbytes, seconds in points]
    bandwidth = max(rates)
    share = _mean([rate / bandwidth for rate in rates])
    laws.device["memory_bandwidth"] = Fitted(bandwidth, "quickest elementwise pass")
    laws.device["elementwise_efficiency"] = Fitted(share, "elementwise passes")
    seconds = [each for _, each in points]
    laws.residuals.append(
        residual("elementwise", [_call(s, launch) + n / (bandwidth * share) for n, s in points], seconds)
    )
    rate = bandwidth * share
    maps = [*_some(measured, "gemm"), *_some(measured, "gemm_backward")]
    products = [found for found in (_product(each, rate) for each in maps) if found is not None]
    speeds = [flop / max(seconds - brought, LEAST_ARITHMETIC * seconds) for flop, brought, seconds in products]
    peak = max(speeds)
    share = _mean([speed / peak for speed in speeds])
    laws.device["flops_fp32"] = Fitted(peak, "quickest dense product, less the time of its operands")
    laws.device["gemm_efficiency"] = Fitted(share, "dense products, forward and backward")
    predicted = [flop / (peak * share) + brought for flop, brought, _ in products]
    laws.residuals.append(residual("gemm", predicted, [seconds for _, _, seconds in products]))


def _product(each: Measurement, rate: float) -> tuple[float, float, float] | None:
    """Flop, seconds to bring the operands and seconds of a measured map or its backward pass; None: a tiny one."""
    facts = each.params
    m, k, n = facts["rows"], facts["d_in"], facts["d_out"]
    if min(k, n) < NARROW or m < LARGE_ROWS:
        return None
    count = 1.0 + (facts.get("input_grad", 0.0) if each.kernel == "gemm_backward" else 0.0)
    return 2.0 * count * m * k * n, count * float(map_bytes(m, k, n)) / rate, each.seconds


def _spmm(laws: Laws, measured: Measurements) -> None:
    """The SpMM curve: efficiency by the bytes of the rows that are gathered."""
    bandwidth, launch = laws.device["memory_bandwidth"].value, laws.device["launch_s"].value
    rate = bandwidth * laws.device["elementwise_efficiency"].value
    sizes, shares, seconds, traffic, results = [], [], [], [], []
    for name, gathered, written in (("spmm", "columns", "rows"), ("spmm_t", "rows", "columns")):
        for each in _some(measured, name):
            facts, width = each.params, each.params["width"]
            if facts["entries"] < SPMM_ENTRIES or facts.get("hot"):
                continue
            nbytes = facts["entries"] * (INDEX + VALUE + VALUE * width)
            result = facts[written] * width * VALUE * RESULT_PASSES / rate
            left = each.seconds - _call(each.seconds, launch) - result
            sizes.append(facts[gathered] * VALUE * width)
            shares.append(nbytes / (bandwidth * max(left, LEAST_ARITHMETIC * each.seconds)))
            seconds.append(each.seconds)
            traffic.append(nbytes)
            results.append(result)
    where, share = np.log(np.array(sizes)), np.array(shares)
    points = np.arange(where.min(), where.max() + 1e-9, np.log(STEP))
    curve = [
        (float(np.exp(point)), _mean(share[near]))
        for point in points
        if (near := np.abs(where - point) <= np.log(STEP) / 1.5).any()
    ]
    laws.curve = tuple(curve)
    laws.device["spmm_efficiency"] = Fitted(_mean(shares), "sparse products, all sizes")
    at = np.interp(where, np.log([size for size, _ in curve]), [value for _, value in curve])
    laws.residuals.append(residual("spmm", np.array(traffic) / (bandwidth * at) + np.array(results), seconds))


def _rows(laws: Laws, measured: Measurements) -> None:
    """Packing and adding rows."""
    bandwidth, launch = laws.device["memory_bandwidth"].value, laws.device["launch_s"].value
    points = [
        (each.params["rows"] * (2 * VALUE * each.params["width"] + INDEX), each.seconds)
        for name in ("pack", "scatter")
        for each in _some(measured, name)
        if each.params["rows"] >= LARGE_ROWS
    ]
    share = _mean([nbytes / (bandwidth * max(s - _call(s, launch), 1e-9)) for nbytes, s in points])
    laws.device["gather_efficiency"] = Fitted(share, "packing and adding of rows")
    predicted = [_call(s, launch) + nbytes / (bandwidth * share) for nbytes, s in points]
    laws.residuals.append(residual("rows", predicted, [s for _, s in points]))


def _loss(laws: Laws, measured: Measurements) -> None:
    """Logits per second of the loss, its gradient and the count of right answers."""
    parts = [_some(measured, name) for name in ("loss", "loss_backward", "correct")]
    values = np.array([each.params["rows"] * each.params["classes"] for each in parts[0]])
    seconds = np.array([sum(each.seconds for each in group) for group in zip(*parts, strict=True)])
    per_value, _ = _fitted(seconds, values, np.ones(values.shape))
    laws.host["loss_values_per_s"] = Fitted(1.0 / per_value, "loss, its gradient and the count of right answers")


def _drawing(laws: Laws, measured: Measurements) -> None:
    """Drawing edges, building the drawn graph's matrices, recomputing probabilities: seconds per entry of each."""
    draw, thin = _some(measured, "draw"), _some(measured, "thin")
    entries = np.array([each.params["entries"] for each in draw])
    kept = np.array([each.params["kept"] for each in draw])
    seconds = np.array([a.seconds + b.seconds for a, b in zip(draw, thin, strict=True)])
    per_entry, per_kept, each_time = _fitted(seconds, entries, kept, np.ones(seconds.shape))
    laws.host["sample_edges_per_s"] = Fitted(1.0 / per_entry, "drawing and thinning, per stored entry")
    laws.host["build_entries_per_s"] = Fitted(1.0 / per_kept, "matrices of a drawn graph, per kept entry")
    laws.host["draw_s"] = Fitted(each_time, "drawing and thinning, whatever the size")
    laws.residuals.append(residual("sampling", entries * per_entry + kept * per_kept + each_time, seconds))
    rules = [_some(measured, name) for name in ("probabilities", "inclusion", "reweigh")]
    whole = np.array([sum(each.seconds for each in group) for group in zip(*rules, strict=True)])
    sizes = np.array([each.params["entries"] for each in rules[0]])
    rate = _mean(sizes / whole)
    laws.host["sort_edges_per_s"] = Fitted(rate, "probabilities, inclusion and weights, per stored entry")
    laws.residuals.append(residual("probabilities", sizes / rate, whole))


def _sharing(laws: Laws, measured: Measurements) -> None:
    """What a core does when all are busy."""
    cores = int(measured.machine["cores"])
    laws.host["cores"] = Fitted(float(cores), "cores of the machine")
    rates = []
    for name in ("shared_spmm", "shared_gemm", "shared_relu", "shared_iteration"):
        for alone in [each for each in measured.of(name) if each.processes == 1]:
            busy = [each for each in measured.of(name) if each.processes == cores and each.params == alone.params]
            rates += [min(alone.seconds / each.seconds, 1.0) for each in busy]
    if not rates:
        raise ScenarioError(f"{measured.path}: no kernel ran in {cores} processes; profile with --workers 1,{cores}")
    laws.host["busy_core_rate"] = Fitted(_mean(rates), f"{cores} processes at once, over one alone")


def _iteration(laws: Laws, measured: Measurements) -> None:
    """What an iteration costs outside its kernels: the optimizer's calls, the flat gradients."""
    steps = [each.seconds for name in ("optimizer_step", "gradients") for each in _some(measured, name)]
    laws.host["iteration_s"] = Fitted(float(np.median(steps)) * 2, "optimizer step and gradient buffer, median sizes")


def _varied(laws: Laws, measured: Measurements) -> None:
    """How much the time of one kernel varies: half its range from the 10th to the 90th percentile, in logarithms."""
    ranges = [
        np.log(each.high / each.low) / (2 * NORMAL_90)
        for name in ("spmm", "gemm", "relu")
        for each in _some(measured, name)
        if each.seconds >= LONG_S and each.low > 0
    ]
    found = float(np.median(ranges)) if ranges else 0.0
    laws.host["work_spread"] = Fitted(found, "kernels repeated, 10th to 90th percentile")


def _sockets(laws: Laws, measured: Measurements) -> None:
    """Processor time of a message: per byte and per message, at one end; and the delay of a small one."""
    sent, received = measured.of("p2p_oneway_cpu_sender"), measured.of("p2p_oneway_cpu_receiver")
    if not sent:
        return
    # One message and a tiny answer: two messages at each end.
    nbytes = np.array([each.params["bytes"] for each in (*sent, *received)])
    seconds = np.array([each.seconds for each in (*sent, *received)])
    per_message, per_byte = _fitted(seconds, np.full(nbytes.shape, 2.0), nbytes)
    laws.host["message_s"] = Fitted(per_message, "processor time of point-to-point messages, per message and end")
    laws.host["socket_bandwidth"] = Fitted(1.0 / per_byte, "processor time of messages, per byte and end")
    laws.residuals.append(residual("sockets", 2.0 * per_message + nbytes * per_byte, seconds))
    laws.host["reduce_step_s"] = Fitted(_ring_step(measured), "processor time of small all-reduces, per step")
    laws.host["slice_s"] = Fitted(SLICE_S, "two ticks of 250 a second: a fair scheduler looks no more often")
    tiny = min(_all(measured, "p2p_oneway"), key=lambda each: each.params["bytes"])
    # There and back, less the work at both ends.
    latency = max(tiny.seconds / 2 - 2 * per_message, 1e-6)
    laws.network["latency_s"] = Fitted(latency, "half of a small message and its answer, less the processors' work")
    laws.network["queue"] = Fitted(QUEUE, "bytes one connection may have in the queues of an emulated link")
    laws.network["half_size"] = Fitted(0.0, "none: what small messages cost is processor time")


def _ring_step(measured: Measurements) -> float:
    """Processor time per process of one of the 2 (P - 1) steps of a small all-reduce; of crowded cores if there are."""
    steps: dict[bool, list[float]] = {True: [], False: []}
    for each in measured.of("all_reduce_cpu"):
        if each.params["bytes"] <= SMALL:
            step = each.seconds / (2.0 * (each.processes - 1))
            steps[each.processes > int(measured.machine["cores"])].append(step)
    return float(np.median(steps[True] or steps[False]))


def _call(seconds: float, launch: float) -> float:
    """The launch within a measured kernel, which is at most a tenth of it: benchmarks call kernels back to back."""
    return min(launch, 0.1 * seconds)


def _fitted(seconds: FloatArray, *terms: FloatArray) -> list[float]:
    """Non-negative coefficients of seconds as a sum of terms, every point's relative error weighing alike."""
    from scipy.optimize import nnls

    found, _ = nnls(np.stack(terms, axis=1) / seconds[:, None], np.ones(seconds.shape))
    # A rate must be finite: what cannot be told from nothing takes a thousandth of the smallest point.
    least = 1e-3 * float(seconds.min())
    return [max(float(value), least / float(term.max())) for value, term in zip(found, terms, strict=True)]


def _mean(values: Values) -> float:
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=np.float64)))))


def _all(measured: Measurements, kernel: str) -> list[Measurement]:
    found = measured.of(kernel)
    if not found:
        raise ScenarioError(f"{measured.path}: has no kernel {kernel!r}; python -m runtime.profile measures it")
    return found


def _some(measured: Measurements, kernel: str) -> list[Measurement]:
    found = [each for each in measured.of(kernel) if each.processes == 1]
    if not found:
        raise ScenarioError(f"{measured.path}: has no kernel {kernel!r}; python -m runtime.profile measures it")
    return found
