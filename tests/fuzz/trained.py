"""Readers of the runtime: weights, owners, checkpoints, loss logs, plans, rules and folders of surveys."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from gcnsim.core.errors import FileError
from gcnsim.core.json_files import canonical
from gcnsim.graph.formats.arrays import read_npy
from runtime.data.load import load_dataset, partitioning_of
from runtime.emulation.spec import NAME, Emulation
from runtime.model import Network, load_weights, save_weights
from runtime.options import Options
from runtime.record.run_folder import RUN, LossLog
from runtime.survey import SurveyRequest, read_rule
from runtime.survey.folder import SurveyFolder
from runtime.train.checkpoint import WORKERS, complete, read_checkpoint, write_part
from runtime.train.earlier_run import STATE, latest
from runtime.train.tasks import read_plan, tasks_of
from tests.fuzz.documents import ROOT
from tests.fuzz.graphs import npz, ring
from tests.fuzz.readers import Reader, file_named, put, shipped, text
from tests.gcnsim.evidence.conftest import EMULATED, run_document

PLAN = """- {out: runs/a, args: [--method, psc-gcn, --tau, 2]}
- {out: runs/b, args: ["--iterations", 5]}
"""
TINY: Final = ROOT / "tests" / "runtime" / "survey" / "tiny.yaml"
IDENTITY: Final[dict[str, Any]] = {"--model": "gcn", WORKERS: 2, "graph": "ab"}


@cache
def _network() -> Network:
    made = Network(Options(hidden=3, layers=2, norm="layer"), 2, 3)
    with torch.no_grad():
        for weight in made.parameters():
            weight.fill_(0.5)
    return made


def _weights(home: Path) -> None:
    (home / "0").mkdir()
    save_weights(home / "0" / "w.npz", _network())


def _owners(home: Path) -> None:
    (home / "0").mkdir()
    np.save(home / "0" / "owner.npy", np.array([0, 0, 0, 1, 1, 1]))


def _read_owners(folder: Path) -> None:
    class Data:
        graph = ring()

    found: Any = Data()
    partitioning_of(Options(workers=2, partition=str(folder / "owner.npy")), found)


def _data(home: Path) -> None:
    graph, rows = ring(), np.arange(12, dtype=np.float32).reshape(6, 2)
    kinds = np.array([0, 0, 0, 1, 1, 2])
    masks = {f"{name}_mask": kinds == kind for kind, name in enumerate(("train", "val", "test"))}
    edges = {"indptr": graph.indptr, "indices": graph.indices}
    put(home / "0" / "g.npz", npz(x=rows, labels=np.array([0, 1, 2, 0, 1, 2], np.uint8), **edges, **masks))
    put(home / "1" / "g.npz", npz(x=rows.astype(np.int16), labels=np.array([0, 1, 2, 0, 1, -1]), **edges))


def _dataset(folder: Path) -> None:
    """A graph file as training reads it, features and all."""
    requested = Options(graph=str(folder / "g.npz"))
    for options in (requested, replace(requested, feature_norm="standard", feature_dim=2)):
        dataset = load_dataset(options)
        dataset.features.rows(np.arange(dataset.graph.nodes))


def _checkpoint(home: Path) -> None:
    folder = home / "0"
    for rank in range(2):
        tensors = {"own.drawn": torch.tensor([1, 2]), "own.sent": torch.ones(2, 3, dtype=torch.int64)}
        tensors |= {"shared.weight.a": torch.ones(2, 3)} if rank == 0 else {}
        write_part(folder, 4, rank, tensors)
    parts = [hashlib.sha256((folder / f"000004/worker{rank}.safetensors").read_bytes()).digest() for rank in range(2)]
    complete(folder, 4, IDENTITY, {"best": [0.5, 0.5, 0.5], "scores": [0.5, 0.5, None], "norms": []}, parts)


def _sealed_state(whole: dict[str, bytes], changed: dict[str, bytes], draw: random.Random) -> dict[str, bytes]:
    """The state with the sums of its parts and its own put right, three times of four."""
    name = f"000004/{STATE}"
    if draw.random() < 0.25:
        return changed
    with suppress(Exception):  # what is no state any more cannot be sealed
        state = json.loads(whole[name])
        for rank in range(len(state["parts"])):
            state["parts"][rank] = hashlib.sha256(whole[f"000004/worker{rank}.safetensors"]).hexdigest()
        document = {key: value for key, value in state.items() if key != "sha256"}
        state["sha256"] = hashlib.sha256(canonical(document).encode()).hexdigest()
        return changed | {name: json.dumps(state).encode()}
    return changed


def _read_checkpoint(folder: Path) -> None:
    place = latest(folder)
    if place is None:
        raise FileError("no whole checkpoint")
    for rank in range(2):
        read_checkpoint(place, rank, IDENTITY)


def _resumable(home: Path) -> None:
    for number, options in enumerate((Options(threads=1), Options(threads=1, method="graphsage"))):
        put(home / str(number) / RUN, json.dumps(run_document(options)))


def _resumed(folder: Path) -> None:
    """The options of a run that `--resume` names, beside options that are given anew."""
    for given in ((), ("--iterations", "20", "--seed", "0")):
        tasks_of(("--resume", str(folder), *given))


def _losses(folder: Path) -> None:
    """A log that a resumed run goes on with: what is read of it is written back."""
    LossLog(folder / "loss.csv", 3).close()


def _survey(home: Path) -> None:
    folder = SurveyFolder(_request(home / "0"), SURVEYED)
    folder.begin(folder._asked.rule.planned()[0])
    (home / "0" / "unfinished" / "calibration-0").rmdir()
    (home / "0" / "unfinished").rmdir()
    (home / "0" / "runs").rmdir()


@cache
def _rule() -> Any:
    return read_rule(TINY)


def _request(folder: Path) -> SurveyRequest:
    return SurveyRequest(folder, _rule(), "cpu")


SURVEYED: Final[dict[str, Any]] = {
    "rule": "0" * 64, "device": "cpu", "workers": 2, "bandwidth": None, "emulated": None,
    "servers": [{"cpu": "Xeon", "cores": 8, "memory_bytes": 2**35, "gpus": []}], "versions": {"gcnsim": "0.1.0"},
}  # fmt: skip


def _emulation(folder: Path) -> None:
    """What `runtime.emulate` hands to its workers."""
    content = (folder / "told.txt").read_bytes().decode("utf-8", "surrogateescape").replace("\0", "")
    Emulation.here({NAME: content})


def readers() -> Iterator[Reader]:
    """All of this file."""
    yield Reader("weights", _weights, lambda folder: load_weights(folder / "w.npz", _network()))
    yield Reader("owners", _owners, _read_owners)
    yield Reader("array", _owners, file_named(read_npy, "owner.npy"))
    yield Reader("data of a training", _data, _dataset)
    yield Reader("checkpoint", _checkpoint, _read_checkpoint, sealed=_sealed_state)
    yield Reader("run to resume", _resumable, _resumed)
    yield Reader("loss log", text("loss.csv", "iteration,loss\n0,1.5\n1,1.25\n2,1.0\n3,0.5\n"), _losses, writes=True)
    yield Reader("plan", text("p.yaml", PLAN), lambda folder: read_plan(str(folder / "p.yaml")))
    rules = (TINY, *sorted((ROOT / "runtime" / "survey").glob("*.yaml")))
    yield Reader("rule of a survey", shipped("r.yaml", *rules), file_named(read_rule, "r.yaml"))
    yield Reader("folder of a survey", _survey, lambda folder: SurveyFolder(_request(folder), SURVEYED), writes=True)
    yield Reader("emulation", text("told.txt", json.dumps(EMULATED)), _emulation)
