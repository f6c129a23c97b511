"""Clusters answer as this machine's cores do; where none can be reached, a line says so."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from gcnsim.cli import main
from gcnsim.core.errors import ScenarioError
from gcnsim.planning.sweep_work import executor_of

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


@pytest.mark.parametrize(
    ("name", "option", "address"),
    [
        pytest.param("dask", "scheduler", "tcp://127.0.0.1:1", marks=needs_dask),
        pytest.param("ray", "address", "127.0.0.1:1", marks=needs_ray),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_a_line(name: str, option: str, address: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gcnsim", *COMMAND, "--out", str(tmp_path / "out")]
    command += ["--executor", name, f"--{option}", address]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"gcnsim: --{option}: {address} cannot be reached: " in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("address", ["there", "tcp://there", "tcp://there:99999", "a b:1", ""])
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
