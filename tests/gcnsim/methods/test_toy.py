"""The worked example of docs/new_method.md: a method of another package, installed and simulated as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TOY = Path(__file__).resolve().parents[2] / "toy"
LINES = 60

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def gcnsim(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """`gcnsim` in an environment that the toy was installed into."""
    place = tmp_path_factory.mktemp("toy")
    for name in ("local_gcn.py", "pyproject.toml"):
        (place / name).write_text((TOY / name).read_text(encoding="utf-8"), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(place / "site"), str(place)], check=True)
    environment = {**os.environ, "PYTHONPATH": str(place / "site")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gcnsim", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def row_of_toy(gcnsim: Run, *more: str) -> dict[str, Any]:
    done = gcnsim("what-if", "--method", "full-graph,local-gcn", "--gpus", "4", "--iterations", "4", "--json", *more)
    assert done.returncode == 0, done.stderr
    rows = {row["method"]: row for row in json.loads(done.stdout)["results"]}
    row: dict[str, Any] = rows["local-gcn"]
    assert row["iteration_s"] < rows["full-graph"]["iteration_s"]
    return row


def test_it_is_short() -> None:
    assert len((TOY / "local_gcn.py").read_text(encoding="utf-8").splitlines()) < LINES


def test_it_is_simulated_with_its_knob(gcnsim: Run) -> None:
    usual, often = row_of_toy(gcnsim), row_of_toy(gcnsim, "--set", "method.local_steps=1")
    assert often["setting"] == "local_steps 1"
    assert often["nic_bytes"] == pytest.approx(4 * usual["nic_bytes"])
    assert often["iteration_s"] > usual["iteration_s"]


def test_the_catalogue_and_messages_know_it(gcnsim: Run) -> None:
    assert "no boundary rows, gradients summed every few iterations" in gcnsim("catalog", "show", "local-gcn").stdout
    refused = gcnsim("what-if", "--method", "local-gcn", "--set", "method.local_steps=0")
    assert refused.returncode == 2
    assert "method.local_steps: 0 is not allowed; a whole number of at least 1" in refused.stderr
    other = gcnsim("what-if", "--method", "local-gcn", "--set", "cluster.nvlink=100GB/s")
    assert "cluster.nvlink: not modelled with local-gcn" in other.stderr
