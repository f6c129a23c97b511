"""Workers that share a GPU train the same numbers as on CPUs, and go on from a checkpoint."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from gcnsim.timeline import OpKind
from runtime.record import read_run
from tests.runtime.batch_jobs import CASES as BATCHES
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.cuda.cuda_jobs import Followed, followed, same
from tests.runtime.session_jobs import ran, worked
from tests.runtime.shell import TORCHRUN, Shell
from tests.runtime.train.test_equality import close

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

TIGHT, DRAWN = 1e-9, 1e-6
PSC: dict[str, Any] = {"tau": 2, "epsilon": 0.3, "refresh": 2, "cache": "40%"}
GAT: dict[str, Any] = {"model": "gat", "heads": 2}
RUNS: list[tuple[str, dict[str, Any], dict[str, Any], int]] = [
    ("full-graph", {}, {}, 2),
    ("full-graph", {}, {"overlap": "none"}, 3),
    ("full-graph", {}, {"preaggregate": True}, 2),
    ("full-graph", {}, GAT, 2),
    ("pipegcn", {"cold_start": "features"}, {}, 2),
    ("pipegcn-gf", {"gamma": 0.7}, {"model": "graphsage"}, 3),
    ("bns-gcn", {"rate": 0.35, "boundary_scale": "ratio"}, {}, 2),
    ("psc-gcn", PSC, {}, 2),
    ("psc-gcn", PSC | {"tau": 0}, {}, 2),
    ("psc-gcn", PSC, GAT, 2),
    ("psc-gcn", {"tau": 2, "epsilon": 1.0, "cache": "40%"}, {}, 3),
    ("cagnet-1d", {}, {}, 3),
    ("cagnet-1d", {}, {"model": "graphsage"}, 2),
    ("cagnet-1.5d", {"replication": 2}, {}, 4),
    ("sancus", {"skip_backward": "yes"}, {}, 3),
    ("distdgl", BATCHES["distdgl"], {}, 2),
    ("pagraph", BATCHES["pagraph"], {}, 2),
]


@pytest.mark.parametrize(("method", "knobs", "fields", "workers"), RUNS, ids=str)
def test_losses_and_weights_are_those_of_cpus(
    crew: Crew, options: MakeOptions, method: str, knobs: dict[str, Any], fields: dict[str, Any], workers: int
) -> None:
    requested = options(method, knobs, workers=workers, record=True, **fields)
    found = crew.run(workers, followed, replace(requested, device="cuda"), True)
    same(found, crew.run(workers, followed, requested), DRAWN if method == "psc-gcn" else TIGHT)


def kinds(found: Followed) -> set[OpKind]:
    return {span.kind for span in found.timeline}


EVERY = {OpKind.AGGREGATE, OpKind.UPDATE, OpKind.LOSS, OpKind.STEP, OpKind.ALLREDUCE, OpKind.WAIT, OpKind.WIRE}
COPIES = {OpKind.D2H, OpKind.H2D}


@pytest.mark.parametrize(
    ("method", "knobs", "more"),
    [
        ("full-graph", {}, {OpKind.PACK, OpKind.SCATTER}),
        ("psc-gcn", PSC, {OpKind.PACK, OpKind.SCATTER, OpKind.SAMPLE, OpKind.INDEX, OpKind.LOOKUP}),
        ("cagnet-1d", {}, set()),
    ],
    ids=["full-graph", "psc-gcn", "cagnet-1d"],  # the order of a set differs between processes
)
def test_every_kind_of_work_is_recorded(
    crew: Crew, options: MakeOptions, method: str, knobs: dict[str, Any], more: set[OpKind]
) -> None:
    for found in crew.run(2, followed, options(method, knobs, workers=2, record=True, device="cuda")):
        assert (EVERY | COPIES | more) <= kinds(found)
        assert (found.timeline.end_ps >= found.timeline.start_ps).all()
        assert found.timeline.end_ps.max() <= 1.05 * found.ends[-1] + 1e9


@pytest.mark.parametrize(
    ("method", "knobs"), [("pipegcn-gf", {"gamma": 0.7}), ("psc-gcn", PSC), ("sancus", {})], ids=str
)
def test_a_run_goes_on_from_a_checkpoint(
    crew: Crew, options: MakeOptions, tmp_path: Path, method: str, knobs: dict[str, Any]
) -> None:
    fields: dict[str, Any] = {"workers": 2, "iterations": 8, "record": True, "checkpoint_every": 4, "device": "cuda"}
    requested = options(method, knobs, **fields, out=str(tmp_path / "run"))
    whole = crew.run(2, ran, requested)
    saved = str(tmp_path / "run" / "checkpoints" / "000004")
    again = crew.run(2, ran, replace(requested, out=str(tmp_path / "again"), resume=saved))
    assert again[0].begun == 4
    close(
        np.array([again[0].losses[t] for t in range(4, 8)]),
        np.array([whole[0].losses[t] for t in range(4, 8)]),
        "losses",
        DRAWN,
    )
    record = read_run(tmp_path / "run").record
    assert record.hardware["gpus"] == [torch.cuda.get_device_name(0)]
    assert all((memory["device_bytes"] or 0) > 0 for memory in record.peak_memory)
    assert record.summary is not None


def test_one_worker_under_its_own_command(crew: Crew, case: Case, tmp_path: Path) -> None:
    words = ["--graph", str(case.path), "--partition-method", "random", "--workers", "1", "--iterations", "4"]
    words += ["--device", "cuda", "--backend", "nccl", "--quiet", "--json", "--out", "run"]
    printed = json.loads(crew.run(1, worked, words, str(tmp_path))[0])
    assert printed["iterations"] == 4
    assert 0.0 < printed["compute_s"] <= 1.2 * printed["iteration_s"]
    assert read_run(tmp_path / "run").record.hardware["gpus"] == [torch.cuda.get_device_name(0)]


def test_a_launcher_that_shows_each_worker_the_same_gpu(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    plan = [
        {"out": name, "args": ["--method", name, *more]}
        for name, *more in (["full-graph"], ["psc-gcn", "--epsilon", "0.3", "--cache", "40%"], ["sancus"], ["distdgl"])
    ]
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan), encoding="utf-8")
    words = ["--graph", str(case.path), "--partition-method", "random", "--iterations", "6", "--device", "cuda"]
    run = Shell(tmp_path, "-m", "runtime.train", "--plan", "plan.yaml", *words, command=TORCHRUN)
    code, out, err = run.end()
    assert code == 0, err
    assert out.count("6 iterations of") == len(plan)
    for entry in plan:
        assert read_run(tmp_path / str(entry["out"])).record.finished
