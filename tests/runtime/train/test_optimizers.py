"""Trainings: optimizers, dropout, digits, the end."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import Parameter

from gcnsim.core.errors import ScenarioError
from gcnsim.trace import read_trace
from runtime.exchange import Channels, DropoutConfig
from runtime.launch import Place, connect
from runtime.methods import method_type
from runtime.options import Options
from runtime.record import read_run
from runtime.train.reduce import Adam, Optimizer, Sgd
from runtime.train.worker import clock_offset
from tests.runtime.conftest import Case, MakeOptions, mostly
from tests.runtime.crew import Crew
from tests.runtime.jobs import RankRecord, trained
from tests.runtime.reduce_jobs import probed
from tests.runtime.session_jobs import ran, told, worked
from tests.runtime.shell import ROOT, Shell

PAIRS: dict[str, tuple[type[Optimizer], type[torch.optim.Optimizer]]] = {
    "adam": (Adam, torch.optim.Adam),
    "sgd": (Sgd, torch.optim.SGD),
}


@pytest.mark.parametrize("decay", [0.0, 0.03])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", sorted(PAIRS))
def test_as_torch_does(kind: str, dtype: torch.dtype, decay: float) -> None:
    generator = torch.Generator().manual_seed(3)
    first = [torch.randn(size, generator=generator, dtype=dtype) for size in ((4, 3), (3,), (2,))]
    ours, theirs = ([Parameter(item.clone()) for item in first] for _ in range(2))
    own = PAIRS[kind][0](ours, lr=0.1, weight_decay=decay)
    reference = PAIRS[kind][1](theirs, lr=0.1, weight_decay=decay)  # type: ignore[call-arg]
    for _ in range(4):
        for one, other in zip(ours[:2], theirs[:2], strict=True):  # the last has no gradient
            one.grad = torch.randn(one.shape, generator=generator, dtype=dtype)
            other.grad = one.grad.clone()
        own.step()
        reference.step()
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
    assert not torch.equal(ours[0], first[0])
    assert torch.equal(ours[2], first[2])
    for one, other in zip(ours, theirs, strict=True):
        expected = {name: value for name, value in reference.state[other].items() if value is not None}
        assert own.state[one].keys() == expected.keys()
        assert all(torch.equal(own.state[one][name], value) for name, value in expected.items())


@pytest.mark.parametrize("kind", sorted(PAIRS))
def test_one_kernel_for_all_weights_computes_the_same(kind: str) -> None:
    generator = torch.Generator().manual_seed(4)
    first = [torch.randn(size, generator=generator, dtype=torch.float64) for size in ((4, 3), (3,))]
    fused, single = ([Parameter(item.clone()) for item in first] for _ in range(2))
    both = [PAIRS[kind][0](weights, lr=0.1, weight_decay=0.03) for weights in (fused, single)]
    assert not both[0].fused  # on a CPU
    both[0].fused = True
    for _ in range(4):
        for one, other in zip(fused, single, strict=True):
            one.grad = torch.randn(one.shape, generator=generator, dtype=torch.float64)
            other.grad = one.grad.clone()
        for optimizer in both:
            optimizer.step()
    for one, other in zip(fused, single, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
        assert both[0].state[one].keys() == both[1].state[other].keys()


def test_a_step_does_not_import_the_compiler() -> None:
    code = (
        "import sys, torch, runtime.train.worker\n"
        "from runtime.train.reduce import Adam, Sgd\n"
        "weight = torch.nn.Parameter(torch.ones(3)); weight.grad = torch.ones(3)\n"
        "for kind in (Adam, Sgd): kind([weight], lr=0.1, weight_decay=0.1).step()\n"
        "print([name for name in sys.modules if name.startswith('torch._dynamo')])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


RATE = 0.4
ORDERS = ["exchange-first", "dropout-first"]
MODELS = ["gcn", "graphsage", "gat"]
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("full-graph", {}),
    ("pipegcn", {}),
    ("pipegcn-gf", {}),
    ("psc-gcn", {"tau": 2, "epsilon": 0.5, "refresh": 2}),
    ("psc-gcn", {"tau": 0, "epsilon": 0.5, "cache": "30%"}),
    ("bns-gcn", {"rate": 0.4}),
]
FIRST, SECOND = ORDERS
REPEATED = [(index, "gcn", ORDERS[index % 2]) for index in range(len(METHODS))]
REPEATED += [(0, "graphsage", SECOND), (2, "gat", SECOND), (3, "graphsage", FIRST), (4, "gat", FIRST)]
"""Every method, every model in both orders: a place in METHODS, a model and an order."""


@pytest.mark.parametrize(("place", "model", "order"), mostly(REPEATED, range(len(METHODS)), MODELS, ORDERS))
def test_a_repeated_run_gives_the_same_bits(
    crew: Crew, options: MakeOptions, place: int, model: str, order: str
) -> None:
    method, knobs = METHODS[place]
    fields = {"workers": 2, "dropout": RATE, "dropout_order": order, "iterations": 3, "model": model}
    requested = options(method, knobs, dtype="float32", norm="layer", **fields)
    first, again = (crew.run(2, trained, requested) for _ in range(2))
    assert first[0].losses == again[0].losses == first[1].losses
    for name, weight in first[0].weights[-1].items():
        assert np.array_equal(weight, again[0].weights[-1][name])
        assert np.array_equal(weight, first[1].weights[-1][name])
    assert all(np.isfinite(loss) for loss in first[0].losses)
    assert len(set(first[0].losses)) == 3


def sent_by_owners(rank_records: list[RankRecord], seed: int, t: int, layer: int, *, masked: bool) -> Tensor:
    """Rows H^(t,layer) of all nodes; masked: as their owners drop them."""
    width = rank_records[0].inputs[t][layer].shape[1]
    found = torch.full((sum(rank.inner.size for rank in rank_records), width), torch.nan, dtype=torch.float64)
    for n, rank in enumerate(rank_records):
        rows = torch.from_numpy(rank.inputs[t][layer])
        mask = DropoutConfig(RATE, True, seed, n).mask(rows, t, layer, "inner")
        found[torch.from_numpy(rank.inner)] = rows * mask if masked else rows
    return found


RECEIVED = [("full-graph", 0), ("pipegcn", 1), ("bns-gcn", 0)]
OWNERS = [(which, "gcn", order) for which in RECEIVED for order in ORDERS]
OWNERS += [(RECEIVED[0], "graphsage", SECOND), (RECEIVED[2], "gat", SECOND)]
OWNERS += [(RECEIVED[0], "gat", FIRST)]


@pytest.mark.parametrize(("which", "model", "order"), mostly(OWNERS, RECEIVED, MODELS, ORDERS))
def test_rows_received_have_the_owner_s_zeros_only_when_dropout_comes_first(
    crew: Crew, options: MakeOptions, which: tuple[str, int], model: str, order: str
) -> None:
    method, tau = which
    requested = options(method, workers=3, model=model, dropout=RATE, dropout_order=order, iterations=3, seed=11)
    content = crew.run(3, trained, requested)
    for t in range(tau, 3):
        for layer in range(3):
            owners = sent_by_owners(content, 11, t - tau, layer, masked=order == "dropout-first")
            for rank in content:
                index, rows = rank.used[t][layer]
                assert np.array_equal(rows, owners[rank.boundary[index]].numpy()), f"iteration {t}, layer {layer}"
            if order == "dropout-first":
                assert float((owners == 0).double().mean()) > 0.5 * RATE


MASKED = [("gcn", "central"), ("gcn", "none"), ("graphsage", "central"), ("gat", "central")]
PROBED = [(MASKED[0], FIRST), (MASKED[1], SECOND), (MASKED[2], SECOND), (MASKED[3], FIRST)]


@pytest.mark.parametrize(("masked", "order"), mostly(PROBED, MASKED, ORDERS))
def test_gradients_across_workers_are_those_of_the_masks_used(
    crew: Crew, options: MakeOptions, masked: tuple[str, str], order: str
) -> None:
    """Central differences of the global loss, masks held fixed."""
    model, overlap = masked
    fields = {"model": model, "dropout": RATE, "dropout_order": order, "overlap": overlap, "optimizer": "sgd"}
    heads = 2 if model == "gat" else 1
    content = crew.run(3, probed, options(workers=3, lr=0.0, seed=2, heads=heads, **fields), 2)
    for rank in content:
        assert np.array_equal(rank.found, content[0].found)
    scale = np.abs(content[0].found).max()
    assert np.abs(content[0].found - content[0].numerical).max() < 1e-6 * scale
    assert np.count_nonzero(np.abs(content[0].found) > 1e-3 * scale) > 6


@pytest.mark.parametrize("model", ["gcn", "graphsage"])
def test_a_layer_0_summed_once_is_dropped_too(crew: Crew, options: MakeOptions, model: str) -> None:
    fields = {"model": model, "preaggregate": True, "iterations": 3}
    plain = crew.run(2, trained, options(workers=2, **fields))
    content = crew.run(2, trained, options(workers=2, dropout=RATE, **fields))
    assert content[0].losses[0] != plain[0].losses[0]
    assert content[0].losses == crew.run(2, trained, options(workers=2, dropout=RATE, **fields))[0].losses


RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "psc-gcn gat": ("psc-gcn", {"tau": 1, "epsilon": 0.3}),
    "sancus gap": ("sancus", {"stale_test": "gap", "threshold": 0.5, "warm_iterations": 10}),
}


@pytest.mark.parametrize("name", RUNS)
def test_digits_are_told_apart(crew: Crew, tmp_path: Path, name: str) -> None:
    method, knobs = RUNS[name]
    model: dict[str, Any] = {"model": "gat", "heads": 2} if name.endswith("gat") else {}
    given = method_type(method).settled(knobs)
    crew.run(2, ran, Options(method, given, iterations=80, out=str(tmp_path / "run"), **model))
    run = read_run(tmp_path / "run")
    accuracy, last = run.record.accuracy, run.iterations[-1].train_accuracy
    assert accuracy["test"] is not None
    assert accuracy["test"] >= 0.95
    assert last is not None
    assert 0.95 <= last <= 1.0


SMALL = ("--layers", "2", "--hidden", "8", "--quiet", "--json", "--threads", "1")


def test_a_trace_is_saved_without_any_boundary(crew: Crew, case: Case, tmp_path: Path) -> None:
    words = ("--graph", str(case.path), "--iterations", "3", "--workers", "1", "--method", "psc-gcn", "--no-record")
    crew.run(1, worked, [*words, *SMALL, "--epsilon", "0.5", "--save-trace", "one.trace"], str(tmp_path))
    trace = read_trace(tmp_path / "one.trace")
    assert (trace.iterations, trace.parts, trace.workers[0].bits.shape) == (3, 1, (3, 0))
    assert (trace.edges[:, 0, 0] > 0).all()


def test_a_disk_that_is_full_at_the_end_costs_neither_the_figures_nor_the_run_folder(
    crew: Crew, case: Case, tmp_path: Path
) -> None:
    words = ("--graph", str(case.path), "--iterations", "3", "--workers", "1", "--method", "psc-gcn", *SMALL)
    full = [*words, "--epsilon", "0.5", "--save-trace", "/dev/full"]
    ((out, _, why),) = crew.run(1, told, full, str(tmp_path))
    assert why == "/dev/full: cannot be written: No space left on device"
    assert json.loads(out)["iterations"] == 3
    assert json.loads((tmp_path / "run" / "run.json").read_text())["finished"]


@pytest.mark.slow
def test_the_bytes_of_all_iterations_are_those_of_the_run_also_after_a_resume(case: Case, tmp_path: Path) -> None:
    words = ["--graph", str(case.path), *SMALL, "--method", "psc-gcn", "--epsilon", "0.5", "--cache", "30%"]
    words += ["--refresh", "3", "--checkpoint-every", "6"]
    straight = Shell(tmp_path, *words, "--iterations", "12", "--out", "straight")
    assert straight.end()[0] == 0
    assert Shell(tmp_path, *words, "--iterations", "6", "--out", "halves").end()[0] == 0
    assert Shell(tmp_path, *words, "--iterations", "12", "--resume", "halves").end()[0] == 0
    totals = []
    for folder in ("straight", "halves"):
        record = json.loads((tmp_path / folder / "run.json").read_text())
        total = sum(sum(map(sum, table)) for table in record["bytes"].values())
        with open(tmp_path / folder / "iterations.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 12
        assert sum(int(row["bytes_sent"]) for row in rows) == total > 0
        totals.append(total)
    assert totals[0] == totals[1]


def test_the_best_weights_are_those_of_the_best_validation_accuracy(crew: Crew, case: Case, tmp_path: Path) -> None:
    # A step this large makes the accuracy jump up and down: the best is not the last.
    words = ["--graph", str(case.path), *SMALL, "--workers", "1"]
    jumping = ["--iterations", "12", "--eval-every", "1", "--lr", "2", "--optimizer", "adam", "--out", "jumps"]
    (out,) = crew.run(1, worked, [*words, *jumping], str(tmp_path))
    with open(tmp_path / "jumps" / "iterations.csv", newline="") as file:
        seen = [float(row["val_accuracy"]) for row in csv.DictReader(file)]
    assert seen[-1] < max(seen)
    assert json.loads(out)["val_accuracy"] == max(seen)
    again = ["--init-weights", "jumps/best.npz", "--iterations", "1", "--optimizer", "sgd", "--lr", "0", "--no-record"]
    (out,) = crew.run(1, worked, [*words, *again], str(tmp_path))
    assert json.loads(out)["val_accuracy"] == max(seen)


def test_a_cache_beside_a_sum_made_once_is_refused(options: MakeOptions) -> None:
    with pytest.raises(ScenarioError, match=r"^--cache: 30% with --preaggregate"):
        options("psc-gcn", {"cache": "30%"}, preaggregate=True)


def late_clock(place: Place, late_ns: int) -> int:
    """The offset that this worker finds when its clock is `late_ns` behind that of worker 0, on another machine."""
    connect(place, 30.0, "gloo")
    channel = Channels(place.rank, place.world, 30.0, "gloo").open("control")
    behind = late_ns if place.rank else 0
    return clock_offset(channel, place.world, lambda: perf_counter_ns() - behind, str(place.rank).encode())


def test_the_clock_of_a_worker_elsewhere_is_found(crew: Crew) -> None:
    late = 7_000_000_000
    found = np.array(crew.run(3, late_clock, late))
    assert found[0] == 0
    # Round trips on one machine are far below a tenth of a second, however busy it is.
    assert (abs(found[1:] - late) < 100_000_000).all()
