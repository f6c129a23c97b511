"""Figures that the measurements were made from come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.calibration import fit_laws
from gcnsim.calibration.fitting import Laws, slower_far
from gcnsim.calibration.hosts import drawing
from gcnsim.calibration_record.measurements import read_measurements
from gcnsim.calibration_record.record import Fitted
from gcnsim.errors import ScenarioError
from gcnsim.hardware import Curve, FarFigures
from tests.gcnsim.calibration.made import DEVICE, HOST, NETWORK, measurements, write_measurements

REQUIRED = (
    "iteration", "relu", "relu_backward", "gemm", "gemm_backward", "spmm", "spmm_t", "pack", "scatter", "draw", "thin",
    "probabilities", "inclusion", "reweigh",
)  # fmt: skip


def fit(tmp_path: Path, document: dict[str, Any]) -> Any:
    return fit_laws(read_measurements(write_measurements(tmp_path / "profile.json", document)))


def without(*kernels: str) -> dict[str, Any]:
    document = measurements()
    document["measurements"] = [
        measurement for measurement in document["measurements"] if measurement["kernel"] not in kernels
    ]
    return document


def test_known_figures_come_back(tmp_path: Path) -> None:
    laws = fit(tmp_path, measurements())
    for part, known in ((laws.device, DEVICE), (laws.host, HOST), (laws.network, NETWORK)):
        expected = {name: value for name, value in known.items() if name in part}
        assert {name: figure.value for name, figure in part.items()} == pytest.approx(expected, rel=0.02, abs=1e-12)
    assert set(laws.device) == set(DEVICE)
    assert set(laws.host) == set(HOST)
    assert set(laws.network) == {"latency_s", "queue"}, "how much of a link's rate arrives only runs can tell"


def test_residuals_of_exact_laws_are_nothing(tmp_path: Path) -> None:
    found = {residual.term: residual for residual in fit(tmp_path, measurements()).residuals}
    assert set(found) == {"elementwise", "gemm", "spmm", "rows", "sampling", "probabilities", "sockets", "dropout"}
    # The curve's points average over a factor of size, and a launch is no part of the products' rates.
    assert max(residual.mape for residual in found.values()) < 0.02
    assert max(residual.p90 for residual in found.values()) < 0.05
    assert found["gemm"].points == 6


SLOWER = {
    "relu": 1.5, "pack": 3.0, "scatter": 3.0, "iteration": 2.5, "draw": 2.0, "thin": 2.0, "probabilities": 4.0,
    "inclusion": 4.0, "reweigh": 4.0, "gemm": 1.25, "dropout": 1.75,
}  # fmt: skip


def at_distances() -> dict[str, Any]:
    """What the machine would say whose kernels of SLOWER take so many times as long from memory."""
    document = measurements()
    for measurement in list(document["measurements"]):
        if measurement["kernel"] in SLOWER and measurement["processes"] == 1:
            measurement["params"]["apart"] = 8e6
            distant = {name: SLOWER[measurement["kernel"]] * measurement[name] for name in ("seconds", "low", "high")}
            document["measurements"].append(
                {**measurement, **distant, "params": {**measurement["params"], "apart": 2e8}}
            )
    return document


def test_what_is_slower_from_memory_comes_back(tmp_path: Path) -> None:
    near, laws = fit(tmp_path, measurements()), fit(tmp_path, at_distances())
    assert laws.far_passes == pytest.approx(1.5)
    assert laws.far_launch == pytest.approx(2.5)
    for part in ("device", "host"):
        content, expected = ({name: value.value for name, value in getattr(one, part).items()} for one in (laws, near))
        assert content == pytest.approx(expected), "what is near is told by what was measured near"
    assert laws.far is None, "maps tell at which distance, and there are too few"


def test_where_distances_are_known_sampling_and_rows_are_told_of_both(tmp_path: Path) -> None:
    read = read_measurements(write_measurements(tmp_path / "p.json", at_distances()))
    laws = Laws(device={name: Fitted(value, "known") for name, value in DEVICE.items()})
    laws.far = FarFigures(3e7, 0.0, 1.5, 1.0, 2.5, {})
    drawing(laws, read)
    known = ("sample_edges_per_s", "build_entries_per_s", "draw_s", "sort_edges_per_s")
    assert {name: laws.host[name].value for name in known} == pytest.approx(
        {name: HOST[name] for name in known}, rel=0.02
    )
    slower = {"sample_edges_per_s": 0.5, "build_entries_per_s": 0.5, "draw_s": 2.0, "sort_edges_per_s": 0.25}
    assert laws.far.host == pytest.approx({name: slower[name] * laws.host[name].value for name in known})
    assert [residual.term for residual in laws.residuals][2:] == ["sampling, from memory", "probabilities, from memory"]
    moves = [item for name in ("pack", "scatter") for item in read.of(name)]
    assert slower_far(moves) == pytest.approx(3.0)
    assert slower_far([move for move in moves if move.params["apart"] < 1e8]) is None


def test_every_figure_says_what_it_was_fitted_to(tmp_path: Path) -> None:
    laws = fit(tmp_path, measurements())
    for part in (laws.device, laws.host, laws.network):
        assert all(figure.reference for figure in part.values())


def test_a_curve_by_gathered_bytes_comes_back_at_its_ends(tmp_path: Path) -> None:
    # Rows of 64 kB to 1 MB are gathered quickly, those from 5 MB on slowly; nothing is measured between.
    known = Curve((2e6, 4e6), (0.8, 0.2), "fitted", "", "")
    document = measurements(known)
    between = ("spmm", "spmm_t")
    document["measurements"] = [
        measurement
        for measurement in document["measurements"]
        if measurement["kernel"] not in between
        or not 1e6 < 4 * measurement["params"]["rows"] * measurement["params"]["width"] < 1e7
    ]
    sizes, shares = zip(*fit(tmp_path, document).curve, strict=True)
    assert list(sizes) == sorted(sizes)
    assert np.interp(np.log([1e5, 1e8]), np.log(sizes), shares) == pytest.approx([0.8, 0.2], rel=0.02)


@pytest.mark.parametrize("kernel", REQUIRED)
def test_a_missing_kernel_is_named(tmp_path: Path, kernel: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        fit(tmp_path, without(kernel))
    text = str(caught.value)
    assert text == f"{tmp_path / 'profile.json'}: has no kernel {kernel!r}; python -m runtime.profile measures it"


def test_sharing_needs_a_kernel_in_as_many_processes_as_cores(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"no kernel ran in 2 processes; profile with --workers 1,2$"):
        fit(tmp_path, without("shared_spmm"))


def test_without_a_network_its_figures_stay_those_of_the_catalogue(tmp_path: Path) -> None:
    laws = fit(tmp_path, without("p2p_oneway", "p2p_oneway_cpu_sender", "p2p_oneway_cpu_receiver"))
    assert laws.network == {}
    assert {"message_s", "socket_bandwidth"}.isdisjoint(laws.host)
    assert laws.host["cores"].value == 2.0
