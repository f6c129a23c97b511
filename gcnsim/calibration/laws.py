"""From micro-benchmarks to the figures of a device, a host and a network, each law with its residuals.

Every law is the simulator's own (`gcnsim.cost`), solved for the figure it rests on at each measured size; the figure is
the geometric mean over the sizes, so that twice too fast and twice too slow weigh alike. The laws' own units come
first: memory bandwidth is what the quickest pass over rows reached, flop/s what the quickest product did.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gcnsim.calibration.attention import fit_attention
from gcnsim.calibration.batches import fit_batches
from gcnsim.calibration.fitting import Laws, coefficients, curve_of, far, mean, near, residual, single, slower_far
from gcnsim.calibration.hosts import drawing, messages
from gcnsim.calibration.maps import fit_maps
from gcnsim.calibration.pooling import fit_pooling
from gcnsim.calibration.sums import fit_sums
from gcnsim.calibration.waking import beside_training
from gcnsim.calibration_record.measurements import Measurement, Measurements
from gcnsim.calibration_record.record import Fitted
from gcnsim.cost.core import RELU_BACKWARD_PASSES, RELU_PASSES, RESULT_PASSES
from gcnsim.cost.device import INDEX, VALUE
from gcnsim.cost.maps import map_bytes
from gcnsim.errors import ScenarioError

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

SLICE_S = 4e-3
"""How long a thread keeps a core that another waits for: `benchmarks/bench_waking.py`, a tick of 250 a second."""

WAKE_S = 5e-5
"""How long it keeps one from a thread that a message wakes, where that was not measured: the same benchmark, the mean
on crowded cores."""

NORMAL_90 = 1.2816
"""The 90th percentile of the standard normal distribution."""

LONG_S = 2e-4
"""Kernels quicker than this are timed many at once, which hides how much one varies."""

KERNELS_OF_TINY = 16
"""Kernels that the laws count in an iteration of a two-layer network: sums, maps, activation, loss and step."""


def fit_laws(measured: Measurements) -> Laws:
    """All figures that `measured` can give. Raises ScenarioError when a kernel the laws need is not in it."""
    laws = Laws()
    _rates(laws, measured)
    _spmm(laws, measured)
    fit_sums(laws, measured)
    fit_attention(laws, measured)
    fit_maps(laws, measured)
    fit_pooling(laws, measured)
    _dropout(laws, measured)
    _rows(laws, measured)
    _loss(laws, measured)
    drawing(laws, measured)
    fit_batches(laws, measured)
    _sharing(laws, measured)
    _iteration(laws, measured)
    _varied(laws, measured)
    _sockets(laws, measured)
    return laws


def fit_links(measured: Measurements) -> Laws:
    """The figures of messages alone, on CPUs also of busy cores. Raises ScenarioError where they were not measured."""
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


def _rates(laws: Laws, measured: Measurements) -> None:
    """Launch, memory bandwidth and flop/s, elementwise and gemm efficiency."""
    tiny = min(single(measured, "iteration"), key=lambda item: item.seconds)
    launch = tiny.seconds / KERNELS_OF_TINY
    laws.device["launch_s"] = Fitted(launch, "iteration of a tiny graph over its kernels")
    passes = {"relu": RELU_PASSES, "relu_backward": RELU_BACKWARD_PASSES}
    points = [
        (VALUE * count * measurement.params["rows"] * measurement.params["width"], measurement.seconds)
        for name, count in passes.items()
        for measurement in near(single(measured, name))
        if measurement.params["rows"] >= LARGE_ROWS
    ]
    rates = [nbytes / max(seconds - _call(seconds, launch), 1e-9) for nbytes, seconds in points]
    bandwidth = max(rates)
    share = mean([rate / bandwidth for rate in rates])
    laws.device["memory_bandwidth"] = Fitted(bandwidth, "quickest elementwise pass")
    laws.device["elementwise_efficiency"] = Fitted(share, "elementwise passes")
    laws.far_passes = slower_far(single(measured, "relu"))
    if cold := far(single(measured, "iteration")):
        laws.far_launch = max(min(measurement.seconds for measurement in cold) / tiny.seconds, 1.0)
    seconds = [item for _, item in points]
    laws.residuals.append(
        residual("elementwise", [_call(s, launch) + n / (bandwidth * share) for n, s in points], seconds)
    )
    rate = bandwidth * share
    maps = [*near(single(measured, "gemm")), *near(single(measured, "gemm_backward"))]
    products = [found for found in (_product(item, rate) for item in maps) if found is not None]
    speeds = [flop / max(seconds - brought, LEAST_ARITHMETIC * seconds) for flop, brought, seconds in products]
    peak = max(speeds)
    share = mean([speed / peak for speed in speeds])
    laws.device["flops_fp32"] = Fitted(peak, "quickest dense product, less the time of its operands")
    laws.device["gemm_efficiency"] = Fitted(share, "dense products, forward and backward")
    predicted = [flop / (peak * share) + brought for flop, brought, _ in products]
    laws.residuals.append(residual("gemm", predicted, [seconds for _, _, seconds in products]))


def _product(measurement: Measurement, rate: float) -> tuple[float, float, float] | None:
    """Flop, seconds to bring the operands and seconds of a measured map or its backward pass; None: a tiny one."""
    facts = measurement.params
    m, k, n = facts["rows"], facts["d_in"], facts["d_out"]
    if min(k, n) < NARROW or m < LARGE_ROWS:
        return None
    count = 1.0 + (facts.get("input_grad", 0.0) if measurement.kernel == "gemm_backward" else 0.0)
    return 2.0 * count * m * k * n, count * float(map_bytes(m, k, n)) / rate, measurement.seconds


def _spmm(laws: Laws, measured: Measurements) -> None:
    """The SpMM curve: efficiency by the bytes of the rows that are gathered."""
    bandwidth, launch = laws.device["memory_bandwidth"].value, laws.device["launch_s"].value
    rate = bandwidth * laws.device["elementwise_efficiency"].value
    sizes, shares, seconds, traffic, results = [], [], [], [], []
    for name, gathered, written in (("spmm", "columns", "rows"), ("spmm_t", "rows", "columns")):
        for measurement in single(measured, name):
            facts, width = measurement.params, measurement.params["width"]
            if facts["entries"] < SPMM_ENTRIES or facts.get("hot"):
                continue
            nbytes = facts["entries"] * (INDEX + VALUE + VALUE * width)
            result = facts[written] * width * VALUE * RESULT_PASSES / rate
            left = measurement.seconds - _call(measurement.seconds, launch) - result
            sizes.append(facts[gathered] * VALUE * width)
            shares.append(nbytes / (bandwidth * max(left, LEAST_ARITHMETIC * measurement.seconds)))
            seconds.append(measurement.seconds)
            traffic.append(nbytes)
            results.append(result)
    laws.curve = curve_of(sizes, shares)
    laws.device["spmm_efficiency"] = Fitted(mean(shares), "sparse products, all sizes")
    ends, values = zip(*laws.curve, strict=True)
    at = np.interp(np.log(np.array(sizes)), np.log(ends), values)
    laws.residuals.append(residual("spmm", np.array(traffic) / (bandwidth * at) + np.array(results), seconds))


def _rows(laws: Laws, measured: Measurements) -> None:
    """Packing and adding rows."""
    bandwidth, launch = laws.device["memory_bandwidth"].value, laws.device["launch_s"].value
    moves = [item for name in ("pack", "scatter") for item in single(measured, name)]
    moves = [move for move in moves if move.params["rows"] >= LARGE_ROWS]
    points = [
        (measurement.params["rows"] * (2 * VALUE * measurement.params["width"] + INDEX), measurement.seconds)
        for measurement in near(moves)
    ]
    share = mean([nbytes / (bandwidth * max(s - _call(s, launch), 1e-9)) for nbytes, s in points])
    slower = slower_far(moves)
    if laws.far is not None and slower is not None:
        laws.far = replace(laws.far, rows=slower)
    laws.device["gather_efficiency"] = Fitted(share, "packing and adding of rows")
    predicted = [_call(s, launch) + nbytes / (bandwidth * share) for nbytes, s in points]
    laws.residuals.append(residual("rows", predicted, [s for _, s in points]))


def _dropout(laws: Laws, measured: Measurements) -> None:
    """Values per second of dropout: masks drawn and multiplied with. Profiles without it say nothing."""
    found = near([item for item in measured.of("dropout") if item.processes == 1])
    if not found:
        return
    values = np.array([item.params["rows"] * item.params["width"] for item in found])
    seconds = np.array([item.seconds for item in found])
    per_value, _ = coefficients(seconds, values, np.ones(values.shape))
    laws.host["dropout_values_per_s"] = Fitted(1.0 / per_value, "dropout, its masks drawn and multiplied with")
    laws.residuals.append(residual("dropout", values * per_value, seconds))


def _loss(laws: Laws, measured: Measurements) -> None:
    """Logits per second of the loss, its gradient and the count of right answers."""
    parts = [single(measured, name) for name in ("loss", "loss_backward", "correct")]
    values = np.array([item.params["rows"] * item.params["classes"] for item in parts[0]])
    seconds = np.array([sum(item.seconds for item in group) for group in zip(*parts, strict=True)])
    per_value, _ = coefficients(seconds, values, np.ones(values.shape))
    laws.host["loss_values_per_s"] = Fitted(1.0 / per_value, "loss, its gradient and the count of right answers")


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
        raise ScenarioError(f"{measured.path}: no kernel ran in {cores} processes; profile with --workers 1,{cores}")
    laws.host["busy_core_rate"] = Fitted(mean(rates), f"{cores} processes at once, over one alone")


def _iteration(laws: Laws, measured: Measurements) -> None:
    """What an iteration costs outside its kernels: the optimizer's calls, the flat gradients."""
    steps = [item.seconds for name in ("optimizer_step", "gradients") for item in single(measured, name)]
    laws.host["iteration_s"] = Fitted(float(np.median(steps)) * 2, "optimizer step and gradient buffer, median sizes")


def _varied(laws: Laws, measured: Measurements) -> None:
    """How much the time of one kernel varies: half its range from the 10th to the 90th percentile, in logarithms."""
    ranges = [
        np.log(item.high / item.low) / (2 * NORMAL_90)
        for name in ("spmm", "gemm", "relu")
        for item in single(measured, name)
        if item.seconds >= LONG_S and item.low > 0
    ]
    found = float(np.median(ranges)) if ranges else 0.0
    laws.host["work_spread"] = Fitted(found, "kernels repeated, 10th to 90th percentile")


def _sockets(laws: Laws, measured: Measurements) -> None:
    """What else a message costs where its ends take turns on cores, and on an emulated link."""
    if not messages(laws, measured):
        return
    laws.host["reduce_step_s"] = Fitted(_ring_step(measured), "processor time of small all-reduces, per step")
    laws.host["slice_s"] = Fitted(SLICE_S, "turns of busy processes on crowded cores, median; another machine")
    laws.host["wake_s"] = Fitted(WAKE_S, "answers of a process that messages wake on busy cores, mean; another machine")
    beside_training(laws, measured)
    laws.network["queue"] = Fitted(QUEUE, "bytes one connection may have in the queues of an emulated link")


def _ring_step(measured: Measurements) -> float:
    """Processor time per process of one of the 2 (P - 1) steps of a small all-reduce; of crowded cores if there are."""
    steps: dict[bool, list[float]] = {True: [], False: []}
    for measurement in measured.of("all_reduce_cpu"):
        if measurement.params["bytes"] <= SMALL:
            step = measurement.seconds / (2.0 * (measurement.processes - 1))
            steps[measurement.processes > int(measured.machine["cores"])].append(step)
    return float(np.median(steps[True] or steps[False]))


def _call(seconds: float, launch: float) -> float:
    """The launch within a measured kernel, which is at most a tenth of it: benchmarks call kernels back to back."""
    return min(launch, 0.1 * seconds)
