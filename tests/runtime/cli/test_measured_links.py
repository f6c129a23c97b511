"""`python -m runtime.measure --links`: on this machine, between two servers, and between GPUs."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gcnsim.api import calibrate, simulate
from gcnsim.core.errors import ScenarioError
from gcnsim.evidence.fitting import read_measurements
from runtime.emulation.network import DEVICE, network
from runtime.emulation.spec import PAYLOAD_SHARE
from runtime.measure import main
from runtime.microbench import TINY
from runtime.record import hardware
from tests.measured_files import measured_file, write_graph
from tests.runtime.emulation.places import needs_namespaces
from tests.runtime.shell import TORCHRUN, Shell

BETWEEN = [*TORCHRUN[:3], "--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=static", "--master-port=29411"]


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """In a folder of its own; the tests' process hears signals as before."""
    monkeypatch.chdir(tmp_path)
    old = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, old)


def test_links_are_measured_without_kernels_and_calibrate_measured_compute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("runtime.measure.FULL", TINY)
    monkeypatch.setattr("runtime.measure.cores", lambda: hardware(False)["cores"])
    assert main(["--links", "--out", "links.json", "--quiet"]) == 0
    assert "written to links.json" in capsys.readouterr().out
    measurements = read_measurements("links.json")
    assert measurements.links_only
    kernels = {item.kernel for item in measurements.found}
    assert {"p2p_oneway", "all_reduce_cpu", "shared_spmm"} <= kernels
    assert not kernels & {"spmm", "gemm", "iteration", "links_filled"}
    record = calibrate("links.json", out="record.json")
    assert record.links_only
    assert {"message_s", "socket_bandwidth", "busy_core_rate", "reduce_step_s"} <= record.figures["host"].keys()
    with pytest.raises(ScenarioError, match="runs need the times of their kernels; allowed: with --measured-compute"):
        calibrate("links.json", ["run"])
    graph = write_graph(tmp_path)
    core = measured_file(tmp_path, graph, 2, device={"kind": "cpu", "name": "a core", "threads": 1})
    cluster = {"gpus": 2, "device": "cpu-core", "calibration": "record.json"}
    with pytest.raises(
        ScenarioError, match=r"null is not allowed on CPU cores \(cpu-core\), whose compute is measured"
    ):
        simulate({"schema": "gcnsim.scenario/1", "cluster": cluster, "workload": {"graph": str(graph)}})
    answer = simulate(
        {
            "schema": "gcnsim.scenario/1",
            "cluster": cluster | {"measured_compute": str(core)},
            "workload": {"graph": str(graph)},
            "method": {"name": "full-graph"},
        }
    )
    assert answer.result.metrics.compute_s > 0.09


@pytest.mark.slow
@needs_namespaces
def test_links_between_two_servers_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", DEVICE)
    bandwidth, command = 25e6, ["-m", "tests.runtime.tiny_links", "--links", "--quiet"]
    with network(2, bandwidth, 0.0) as made:
        places = [f"--master-addr={made.address(0)}"]
        shells = [
            Shell(tmp_path, command=[*made.inside(node), *BETWEEN, *places, f"--node-rank={node}",
                                     f"--local-addr={made.address(node)}", *command])
            for node in range(2)
        ]  # fmt: skip
        ends = [shell.end() for shell in shells]
    assert [code for code, _, _ in ends] == [0, 0], ends
    measured = read_measurements(tmp_path / "links.json")
    (filled,) = measured.of("links_filled")
    rate = filled.params["bytes"] / filled.seconds
    assert rate == pytest.approx(bandwidth * PAYLOAD_SHARE, rel=0.1)
    assert (filled.params["servers"], filled.processes) == (2, 2)
    assert [item.params["bytes"] for item in measured.of("p2p_oneway")] == [4, 1024], "none within the first one"
    assert measured.of("shared_iteration")
    said = ends[0][1].splitlines()[-1]
    words = (
        r"between 2 servers: [0-9.]+ MB/s of payload each way, as with --bandwidth (\d+)Mbps; a small message takes .*"
    )
    assert (found := re.fullmatch(words, said))
    assert float(found[1]) * 1e6 / 8 == pytest.approx(bandwidth, rel=0.1)
    assert ends[1][1] == ""
    assert {"latency_s", "queue"} <= calibrate(tmp_path / "links.json").figures["network"].keys()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--links", "--links: torchrun started all workers on one server; allowed: several, or no torchrun"),
        ("", "RANK: is set: one process measures all parts; allowed under torchrun: --links"),
    ],
)
@pytest.mark.parametrize("rank", [0, 1])
def test_of_torchruns_workers_on_one_server_the_first_one_says_what_is_refused(
    words: str, message: str, rank: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": 1}
    for name, value in (place | {"MASTER_ADDR": "127.0.0.1"}).items():
        monkeypatch.setenv(name, str(value))
    assert main(words.split()) == 2
    assert capsys.readouterr() == ("", "" if rank else f"runtime.measure: {message}\n")
    assert not list(Path().iterdir())


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_links_between_gpus_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.measure.FULL", TINY)
    assert main(["--links", "--device", "cuda", "--out", "links.json", "--quiet"]) == 0
    kernels = {item.kernel for item in read_measurements("links.json").found}
    assert {"nccl_p2p_oneway", "nccl_p2p_oneway_cpu_sender", "nccl_all_reduce"} <= kernels
    assert calibrate("links.json").links_only
