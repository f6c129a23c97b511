"""Figures of a GPU that the measurements were made from come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.evidence.fit import calibrate
from gcnsim.evidence.fit_gpu import fit_gpu
from gcnsim.evidence.fitting import Laws, read_measurements
from gcnsim.hardware import Curve
from tests.gcnsim.evidence.made_calibration import DRAWING, HOST, NETWORK, write_measurements
from tests.gcnsim.evidence.made_gpu import (
    CALL_S,
    COPIES,
    DEVICE,
    MAP_BESIDE,
    SUM_BESIDE,
    UNPINNED,
    known_gpu,
    measurements,
)

REQUIRED = (
    "launch", "relu", "relu_backward", "gemm", "gemm_backward", "spmm", "spmm_t", "pack", "scatter", "draw", "thin",
    "probabilities", "copy_to_device", "copy_to_host",
)  # fmt: skip


def fit(tmp_path: Path, document: dict[str, Any] | None = None) -> Laws:
    path = write_measurements(tmp_path / "profile.json", document or measurements())
    return fit_gpu(read_measurements(path), "t4")


def without(*kernels: str) -> dict[str, Any]:
    document = measurements()
    document["measurements"] = [
        measurement for measurement in document["measurements"] if measurement["kernel"] not in kernels
    ]
    return document


def found(part: dict[str, Any]) -> dict[str, float]:
    return {name: figure.value for name, figure in part.items()}


def test_known_figures_come_back(tmp_path: Path) -> None:
    laws = fit(tmp_path)
    fitted = {name: value for name, value in DEVICE.items() if name != "launch_s"}
    assert found(laws.device) == pytest.approx(fitted, rel=0.02)
    assert found(laws.copies) == pytest.approx(dict(COPIES), rel=0.01)
    sent = {name: HOST[name] for name in ("message_s", "socket_bandwidth", "cores")}
    assert found(laws.host) == pytest.approx({**DRAWING, **sent, "call_s": CALL_S}, rel=0.02)
    delay = {"latency_s": NETWORK["latency_s"]}
    assert found(laws.network) == pytest.approx(delay, rel=0.02), "queues are those of emulated links"
    assert all(figure.reference for part in (laws.device, laws.host, laws.copies) for figure in part.values())


def test_measurements_that_vary_give_nearly_the_same_figures(tmp_path: Path) -> None:
    document, generator = measurements(), np.random.default_rng(3)
    for measurement in document["measurements"]:
        measurement["seconds"] *= float(generator.lognormal(0.0, 0.03))
    laws = fit(tmp_path, document)
    for ours, known in ((found(laws.device), DEVICE), (found(laws.copies), COPIES)):
        products = [("memory_bandwidth", "elementwise_efficiency"), ("flops_fp32", "gemm_efficiency")]
        products += [("bandwidth", "efficiency")]
        for peak, share in products:
            if peak in known:
                assert ours[peak] * ours[share] == pytest.approx(known[peak] * known[share], rel=0.05)
    assert 0.9 < laws.device["elementwise_efficiency"].value <= 1.0
    assert 0.9 < laws.device["gemm_efficiency"].value <= 1.0
    assert laws.copies["efficiency"].value <= 1.0


def test_residuals_of_exact_laws_are_nothing(tmp_path: Path) -> None:
    content = {residual.term: residual for residual in fit(tmp_path).residuals}
    exact = {"elementwise", "gemm", "spmm", "rows", "sampling", "probabilities", "sockets", "copies"}
    unmodelled = {"copies not pinned (no law)", "spmm beside copies (no law)", "gemm beside copies (no law)"}
    assert set(content) == exact | unmodelled
    assert max(content[term].mape for term in exact) < 0.02
    # Kernels near a call of the host are not fitted to.
    assert content["elementwise"].points == 4
    assert content["gemm"].points == 9
    assert content["copies"].points == 6


def test_what_has_no_law_is_told_as_the_error_of_leaving_it_out(tmp_path: Path) -> None:
    content = {residual.term: residual for residual in fit(tmp_path).residuals}
    assert content["copies not pinned (no law)"].bias == pytest.approx(1 / UNPINNED - 1, rel=0.02)
    assert content["spmm beside copies (no law)"].bias == pytest.approx(1 / SUM_BESIDE - 1, rel=1e-6)
    assert content["gemm beside copies (no law)"].bias == pytest.approx(1 / MAP_BESIDE - 1, rel=0.02)
    fewer = {residual.term for residual in fit(tmp_path, without("spmm_copying", "gemm_copying")).residuals}
    assert not any("beside" in term for term in fewer)


def test_a_curve_by_gathered_bytes_comes_back_at_its_ends(tmp_path: Path) -> None:
    # Rows of 5.8 MB and less are gathered quickly, those from 10 MB on slowly.
    known = Curve((6e6, 9e6), (1.4, 0.4), "fitted", "", "")
    document = measurements(known_gpu(known))
    document["measurements"] = [
        measurement
        for measurement in document["measurements"]
        if measurement["kernel"] not in ("spmm", "spmm_t")
        or not 3e6 < 4 * measurement["params"]["width"] * measurement["params"]["columns"] < 1.2e7
    ]
    sizes, shares = zip(*fit(tmp_path, document).curve, strict=True)
    assert np.interp(np.log([1e5, 3e8]), np.log(sizes), shares) == pytest.approx([1.4, 0.4], rel=0.02)


def test_products_bound_by_memory_say_nothing_of_arithmetic(tmp_path: Path) -> None:
    document = measurements()
    document["measurements"] = [
        measurement for measurement in document["measurements"] if measurement["params"].get("d_in", 0) <= 128
    ]
    laws = fit(tmp_path, document)
    assert {"flops_fp32", "gemm_efficiency"}.isdisjoint(laws.device)
    assert {residual.term: residual.mape for residual in laws.residuals}["gemm"] < 0.02, (
        "memory decides, not the catalogue's rate"
    )


def test_where_every_kernel_is_short_the_longest_counts(tmp_path: Path) -> None:
    laws = fit(tmp_path, measurements(call_s=1e-4))
    assert laws.device["memory_bandwidth"].value == pytest.approx(DEVICE["memory_bandwidth"], rel=0.02)
    assert {residual.term: residual.points for residual in laws.residuals}["elementwise"] == 1


@pytest.mark.parametrize("kernel", REQUIRED)
def test_a_missing_kernel_is_named(tmp_path: Path, kernel: str) -> None:
    with pytest.raises(ScenarioError, match=f"has no kernel '{kernel}'; python -m runtime.profile measures it"):
        fit(tmp_path, without(kernel))


@pytest.mark.parametrize(
    ("gpus", "message"),
    [
        ([], "names no GPU; allowed: GPUs of one kind"),
        (["Tesla T4", "Tesla P6"], "has GPUs of several kinds (Tesla P6, Tesla T4); allowed: GPUs of one kind"),
        (["Tesla P6"], "the catalogue has no GPU 'Tesla P6'; known: a10, a100-40, a100-80,"),
    ],
)
def test_unknown_and_mixed_gpus_are_refused(tmp_path: Path, gpus: list[str], message: str) -> None:
    document = measurements()
    document["machine"]["gpus"] = gpus
    path = write_measurements(tmp_path / "profile.json", document)
    with pytest.raises(ScenarioError) as caught:
        calibrate(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_without_transfers_the_network_stays_that_of_the_catalogue(tmp_path: Path) -> None:
    laws = fit(tmp_path, without("p2p_oneway", "p2p_oneway_cpu_sender", "p2p_oneway_cpu_receiver"))
    assert laws.network == {}
    assert "message_s" not in laws.host
