"""Points of a sweep and who computes them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gcnsim.cli import main
from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.planning.sweep_points import points_of
from gcnsim.planning.sweep_question import read_question
from gcnsim.planning.sweep_work import executor_of
from gcnsim.scenario import scenario_hash


def points(axes: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [dict(point.values) for point in points_of(read_question(more, (), axes))]


def test_a_point_for_each_combination_the_last_axis_fastest() -> None:
    found = points({"cluster.bandwidth": "5Gbps,10Gbps", "method.tau": "0..2"})
    assert [tuple(entry.values()) for entry in found] == [
        ("5Gbps", 0),
        ("5Gbps", 1),
        ("5Gbps", 2),
        ("10Gbps", 0),
        ("10Gbps", 1),
        ("10Gbps", 2),
    ]


def test_settings_that_differ_in_a_knob_their_method_lacks_are_one_point() -> None:
    found = points({"method.name": "psc-gcn,pipegcn,bns-gcn", "method.tau": "0..2", "method.rate": "0.1,0.5"})
    kinds = [entry["method.name"] for entry in found]
    assert (kinds.count("psc-gcn"), kinds.count("pipegcn"), kinds.count("bns-gcn")) == (3, 1, 2)
    assert {"method.name": "pipegcn"} in found
    assert {"method.name": "bns-gcn", "method.rate": 0.5} in found


def test_knobs_of_the_base_go_to_the_methods_that_have_them() -> None:
    base = {"method": {"name": "psc-gcn", "tau": 3, "rate": 0.25}}
    found = points_of(read_question({"base": base}, (), {"method.name": "psc-gcn,bns-gcn"}))
    methods = [point.scenario.method for point in found if point.scenario is not None]
    assert [(method.name, method.tau, method.rate) for method in methods] == [("psc-gcn", 3, 1.0), ("bns-gcn", 0, 0.25)]


def test_an_overlap_is_only_of_what_waits() -> None:
    found = points({"method.name": "psc-gcn", "method.tau": "0,1", "method.overlap": "none,central"})
    assert [(entry["method.tau"], entry.get("method.overlap")) for entry in found] == [
        (0, "none"),
        (0, "central"),
        (1, "none"),
    ]


def test_equal_values_written_otherwise_are_one_point() -> None:
    assert len(points({"cluster.bandwidth": "10Gbps,10000Mbps,1.25GB/s"})) == 1


def test_a_point_is_known_by_the_hash_of_its_scenario() -> None:
    axes = {"cluster.gpus": "4,6", "workload.dataset": "reddit,yelp", "method.name": "psc-gcn,dgl", "run.seed": "0,1"}
    found = points_of(read_question({"base": {"faults": [{"kind": "pause", "worker": 1, "seconds": "1s"}]}}, (), axes))
    assert [point.id for point in found] == [
        scenario_hash(point.scenario) for point in found if point.scenario is not None
    ]
    assert len({point.id for point in found}) == 16


def test_conditions_choose_points() -> None:
    axes = {"method.name": "psc-gcn,pipegcn", "method.tau": "0..3", "method.epsilon": "0.1,0.5,1"}
    found = points(axes, where=["method.tau <= 1 if method.epsilon < 0.5", "method.epsilon in 0.1,1"])
    assert [(entry.get("method.tau"), entry.get("method.epsilon")) for entry in found] == [
        (0, 0.1),
        (0, 1),
        (1, 0.1),
        (1, 1),
        (2, 1),
        (3, 1),
        (None, None),
    ]
    fields = points(
        {"cluster.gpus": "2,4,8", "cluster.gpus_per_server": "2,4"}, where=["cluster.gpus_per_server < cluster.gpus"]
    )
    assert [(field["cluster.gpus"], field["cluster.gpus_per_server"]) for field in fields] == [(4, 2), (8, 2), (8, 4)]
    fast = points({"cluster.bandwidth": "5Gbps,10Gbps"}, constraints=["cluster.bandwidth >= 1GB/s"])
    assert fast == [{"cluster.bandwidth": "10Gbps"}]


def test_a_combination_that_contradicts_itself_is_a_point_that_says_so() -> None:
    found = points_of(read_question({}, (), {"cluster.sampler_threads": "1,2", "cluster.sampler_device": "cpu,gpu"}))
    assert [point.refused is None for point in found] == [True, True, True, False]
    assert found[3].refused == "cluster.sampler_threads: 2 needs cluster.sampler_device: cpu; it is gpu"
    assert len({point.id for point in found}) == 4


@pytest.mark.parametrize("kind", ["random", "sobol"])
def test_samples_are_drawn_by_their_seed(kind: str) -> None:
    axes = {"cluster.bandwidth": "log(1Gbps,100Gbps)", "method.tau": "0..3"}
    first, again, other = (points(axes, sample={"kind": kind, "points": 64, "seed": seed}) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 64
    taus = [entry["method.tau"] for entry in first]
    assert set(taus) == {0, 1, 2, 3}
    if kind != "random":
        # As many in each quarter.
        assert [taus.count(tau) for tau in range(4)] == [16] * 4


@pytest.mark.parametrize(
    ("question", "axes", "says"),
    [
        ({}, {}, "axes: none is given"),
        ({"axis": {}}, {"method.tau": "1"}, "axis: unknown key; did you mean 'axes'?"),
        ({"interval": "some"}, {"method.tau": "1"}, "interval: 'some' is not allowed; one of full, none"),
        ({"where": ["tau < 1"]}, {"method.tau": "1"}, "where[0]: tau: unknown field; "),
        ({"where": ["method.tau"]}, {"method.tau": "1"}, "where[0]: 'method.tau' is not a comparison"),
        ({"where": ["method.tau < x"]}, {"method.tau": "1"}, "where[0]: method.tau: 'x' is not a whole number"),
        (
            {"where": ["method.tau < cluster.bandwidth"]},
            {"method.tau": "1"},
            "where[0]: method.tau is a number, cluster.bandwidth is a bandwidth; allowed: fields of one kind",
        ),
        ({"where": ["method.name < pipegcn"]}, {"method.tau": "1"}, "where[0]: method.name has no order; allowed: =="),
        ({"where": ["method.tau > 5"]}, {"method.tau": "1"}, "where: no point is left"),
        ({"where": "method.tau > 5"}, {"method.tau": "1"}, "where: 'method.tau > 5' is not a list"),
        ({"sample": {"kind": "some"}}, {"method.tau": "1"}, "sample.kind: 'some' is not allowed"),
        ({"sample": {"sort": 1}}, {"method.tau": "1"}, "sample.sort: unknown key; "),
        ({}, {"cluster.bandwidth": "linear(1Gbps,2Gbps)"}, "has no count, so only a sample draws from it"),
        ({}, {"method.name": "pipegcn", "method.tau": "0..2"}, "axes.method.tau: no method of this sweep has it"),
        ({}, {"cluster.oversubscription": "4"}, "(so for every point)"),
        ({}, {"cluster.latency": "linear(0us,1us,4000)", "run.seed": "0..9999"}, "40,000,000 combinations"),
    ],
)
def test_what_is_no_question_is_refused_in_a_line(question: dict[str, Any], axes: dict[str, Any], says: str) -> None:
    with pytest.raises(GcnsimError) as caught:
        points_of(read_question(question, (), axes))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_field_that_varies_is_not_set_beside_it() -> None:
    with pytest.raises(GcnsimError, match=r"--set cluster\.gpus: it varies, so points have values of their own"):
        read_question({"axes": {"cluster.gpus": "2,4"}}, ("cluster.gpus=8",))


def test_the_base_is_read_with_values_of_the_axes() -> None:
    """Four GPUs in a server do not divide the default six, which no point has."""
    base = {"cluster": {"gpus_per_server": 4}}
    question = read_question({"schema": "gcnsim.sweep/1", "base": base, "axes": {"cluster.gpus": "4..16/4"}})
    assert [point.scenario.cluster.gpus for point in points_of(question) if point.scenario] == [4, 8, 12, 16]


needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="distributed is not installed")
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")

COMMON = """
import hashlib, sys
from gcnsim.api import sweep
axes = {"cluster.bandwidth": "5Gbps,10Gbps", "method.name": "psc-gcn,pipegcn", "run.seed": "0..3"}
small = ["cluster.gpus=2", "cluster.gpus_per_server=1", "run.iterations=4"]
def done(name, **more):
    found = sweep(axes=axes, overrides=small, out=f"{sys.argv[1]}/{name}", **more)
    assert found.status()["done"] == found.status()["points"] == 16, found.status()
    return hashlib.sha256(found.folder.results.read_bytes()).hexdigest()
"""

DASK = """
if __name__ == "__main__":
    import os, signal, threading, time, distributed
    cores = done("cores", processes=1)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        there = {"executor": "dask", "address": cluster.scheduler_address}
        assert done("calm", **there) == cores
        def kill():
            time.sleep(0.5)
            os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)
        threading.Thread(target=kill).start()
        assert done("a worker is killed", **there) == cores
    print("equal")
"""

RAY = """
if __name__ == "__main__":
    assert done("ray", executor="ray", address="local") == done("cores", processes=1)
    print("equal")
"""


def _prints_equal(code: str, folder: Path) -> None:
    # A process of its own: what these libraries warn of is not ours.
    script = folder / "script.py"
    script.write_text(COMMON + code, encoding="utf-8")
    command = [sys.executable, str(script), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONWARNINGS": ""})
    assert done.stdout.splitlines()[-1:] == ["equal"], done.stderr


@needs_dask
def test_dask_gives_the_bytes_of_the_cores_though_a_worker_is_killed(tmp_path: Path) -> None:
    _prints_equal(DASK, tmp_path)


@pytest.mark.slow  # some 20 s on a slow machine: it starts a cluster of Ray
@needs_ray
def test_ray_gives_the_bytes_of_the_cores(tmp_path: Path) -> None:
    _prints_equal(RAY, tmp_path)


COMMAND = ["sweep", "--axis", "run.seed=0..1", "--set", "cluster.gpus=2", "--set", "method.name=pipegcn"]


def _line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--executor", "dask"], "--executor: dask needs --scheduler, where its cluster is"),
        (["--executor", "ray"], "--executor: ray needs --address, where its cluster is"),
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler: only valid with --executor dask; it is cores"),
        (["--executor", "dask", "--address", "a:1"], "--address: only valid with --executor ray; it is dask"),
    ],
)
def test_an_executor_and_its_address_go_together(
    options: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in _line([*COMMAND, "--out", str(tmp_path / "out"), *options], capsys)


@pytest.mark.parametrize(
    ("name", "option", "module"), [("dask", "scheduler", "distributed"), ("ray", "address", "ray")]
)
def test_a_library_that_is_not_installed_is_named(
    name: str,
    option: str,
    module: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    text = _line([*COMMAND, "--out", str(tmp_path / "out"), "--executor", name, f"--{option}", "127.0.0.1:1"], capsys)
    assert f"--executor: {name} is not installed; pip install 'gcnsim[{name}]'" in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["there", "tcp://there:99999"])
def test_what_is_no_address_is_a_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", ModuleType("distributed"))
    with pytest.raises(ScenarioError, match=r"--scheduler: .* is not an address; write e\.g\. tcp://"):
        executor_of("dask", address, 1)


@pytest.mark.parametrize(("name", "option"), [("dask", "scheduler"), ("ray", "address")])
def test_where_nobody_listens_is_a_line_at_once(name: str, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", ModuleType("distributed"))
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    with pytest.raises(ScenarioError, match=f"--{option}: 127.0.0.1:1 cannot be reached: .*refused"):
        executor_of(name, "127.0.0.1:1", 1)
