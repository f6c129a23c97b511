"""Figures of messages and cores that the measurements were made from come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.evidence.fit_gpu import fit_links
from gcnsim.evidence.fitting import Laws, read_measurements
from tests.gcnsim.evidence.made_calibration import HOST, NETWORK, measurements, messages, write_measurements


def fit(tmp_path: Path, document: dict[str, Any]) -> Laws:
    return fit_links(read_measurements(write_measurements(tmp_path / "links.json", document)))


def without(*kernels: str) -> dict[str, Any]:
    document = measurements()
    document["measurements"] = [
        measurement for measurement in document["measurements"] if measurement["kernel"] not in kernels
    ]
    return document


def test_known_figures_come_back(tmp_path: Path) -> None:
    laws = fit(tmp_path, measurements())
    assert {name: figure.value for name, figure in laws.host.items()} == pytest.approx(dict(HOST), rel=0.02)
    known = {name: NETWORK[name] for name in ("latency_s", "queue")}
    found = {name: figure.value for name, figure in laws.network.items()}
    assert found == pytest.approx(known, rel=0.02), "how much of a link's rate arrives only runs can tell"
    assert laws.device == {}
    (residual,) = laws.residuals
    assert residual.term == "sockets"
    assert residual.mape == pytest.approx(0.0, abs=1e-6)


def test_workers_of_two_threads_fill_both_cores(tmp_path: Path) -> None:
    document = measurements()
    document["options"]["threads"] = 2
    host = fit(tmp_path, document).host
    assert (host["cores"].value, host["busy_core_rate"].value) == (2.0, 1.0)


def test_sharing_needs_a_kernel_in_as_many_processes_as_cores(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"no kernel ran in 2 processes; python -m runtime.measure --links"):
        fit(tmp_path, without("shared_spmm"))


def test_links_of_gpus_have_no_busy_cores(tmp_path: Path) -> None:
    document = measurements() | {"measurements": list(messages())}
    document["options"] |= {"kernels": False, "device": "cuda"}
    laws = fit(tmp_path, document)
    assert set(laws.host) == {"cores", "message_s", "socket_bandwidth"}
    assert laws.host["message_s"].value == pytest.approx(HOST["message_s"], rel=0.02)
    assert laws.network["latency_s"].value == pytest.approx(NETWORK["latency_s"], rel=0.02)
