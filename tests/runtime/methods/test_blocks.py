"""Methods in the registry, and those that send blocks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.graph.parts import Replicas, split
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.knobs import STATIC_CACHE
from runtime.methods import METHODS, method_of, method_type
from tests.runtime.conftest import Case, MakeOptions, model_of, mostly, params_of
from tests.runtime.crew import Crew
from tests.runtime.jobs import RankRecord, final_weights, trained
from tests.runtime.methods.test_methods import equals_reference
from tests.runtime.reference.blocks import Stale, blocks
from tests.runtime.reference.training import History, Training, single
from tests.runtime.train.test_equality import close, same_run

BOUND = 1e-9
"""Relative, float64: sums run in another order."""

EVERY = {"stale_test": "fixed", "threshold": 0.0}
MODELS: dict[str, dict[str, Any]] = {
    "gcn": {},
    "gcn-norm": {"norm": "layer"},
    "sage": {"model": "graphsage"},
    "sage-self": {"model": "graphsage", "sage_mean": "with-self", "norm": "layer"},
}
TESTS: dict[str, tuple[dict[str, Any], Stale]] = {
    "fixed": ({"stale_test": "fixed", "threshold": 1}, Stale("fixed", 1)),
    "adaptive": ({"stale_test": "adaptive", "threshold": 1}, Stale("adaptive", 1)),
    "at-once": ({"stale_test": "adaptive", "threshold": 3, "detection": "at-once"}, Stale("at-once", 3)),
    "gap": ({"stale_test": "gap", "threshold": 0.15}, Stale("gap", 0.15)),
    "warm": ({"stale_test": "fixed", "threshold": 2, "warm_iterations": 4}, Stale("fixed", 2, warm=4)),
    "backward": ({"stale_test": "gap", "threshold": 0.15, "skip_backward": "yes"}, Stale("gap", 0.15, backward=True)),
    "clip": ({"stale_test": "fixed", "threshold": 1, "clip": 0.004}, Stale("fixed", 1, clip=0.004)),
}


def equals(rank_records: list[RankRecord], wanted: History, case: Case, workers: int, cut: str = "random") -> None:
    equals_reference(rank_records, wanted, case.parts(workers, cut), BOUND)
    for t, gradients in enumerate(wanted.gradients):
        for name, gradient in gradients.items():
            close(rank_records[0].gradients[t][name], gradient.numpy(), f"gradient of {name} at {t}", BOUND)


EACH = [(test, "gcn") for test in TESTS]
EACH += [("gap", "gcn-norm"), ("gap", "sage"), ("backward", "sage-self"), ("warm", "sage-self")]


@pytest.mark.parametrize(("test", "model"), mostly(EACH, TESTS, MODELS))
def test_sancus(crew: Crew, case: Case, options: MakeOptions, test: str, model: str) -> None:
    knobs, stale = TESTS[test]
    requested = options("sancus", {"warm_iterations": 0} | knobs, workers=3, **MODELS[model])
    content = crew.run(3, trained, requested)
    params, training = params_of(content[0].weights[0]), Training(10, requested.lr)
    wanted = blocks(case.graph, case.parts(3), case.problem, model_of(requested, case), params, training, stale)
    equals(content, wanted, case, 3)


HELD = [((2, 2), "gcn"), ((4, 2), "gcn"), ((4, 2), "sage-self"), ((3, 3), "sage-self"), ((4, 4), "gcn")]


@pytest.mark.parametrize(("held", "model"), mostly(HELD, ((2, 2), (4, 2), (3, 3), (4, 4)), ("gcn", "sage-self")))
def test_cagnet_1_5d(crew: Crew, case: Case, options: MakeOptions, held: tuple[int, int], model: str) -> None:
    """Losses, gradients and rows read are those of the plain reference of the blocks that several workers hold."""
    workers, replication = held
    requested = options("cagnet-1.5d", {"replication": replication}, workers=workers, **MODELS[model])
    content = crew.run(workers, trained, requested)
    replicas = Replicas(workers, replication)
    parts = split(case.graph, replicas.merged(case.owners(workers)))
    params, training = params_of(content[0].weights[0]), Training(10, requested.lr)
    wanted = blocks(case.graph, parts, case.problem, model_of(requested, case), params, training, Stale())
    close(np.array(content[0].losses), np.array(wanted.losses), "losses", BOUND)
    for t, gradients in enumerate(wanted.gradients):
        for name, gradient in gradients.items():
            close(content[0].gradients[t][name], gradient.numpy(), f"gradient of {name} at {t}", BOUND)
    for rank, item in enumerate(content):
        mine = replicas.block(rank)
        stages = [block for block in replicas.stages(replicas.member(rank)) if block != mine]
        nodes = np.concatenate([parts[block].inner for block in stages] or [np.zeros(0, np.int64)])
        for t, layers in enumerate(item.used):
            assert set(layers) == (set(range(3)) if stages else set())
            for layer, (index, rows) in layers.items():
                assert np.array_equal(index, nodes)
                close(rows, wanted.rows[t][layer].numpy()[nodes], f"rows of rank {rank}, {t}, {layer}", BOUND)
            for layer in range(3):
                own = wanted.rows[t][layer].numpy()[parts[mine].inner]
                close(item.inputs[t][layer], own, f"own rows of rank {rank}, {t}, {layer}", BOUND)


def test_blocks_held_by_several_are_full_graph_training_and_the_same_to_the_bit_on_all(
    crew: Crew, case: Case, options: MakeOptions
) -> None:
    full = crew.run(4, trained, options(workers=4))
    content = crew.run(4, trained, options("cagnet-1.5d", workers=4))
    same_run(content, full, case.graph.nodes)
    for one, other in ((0, 1), (2, 3)):
        for mine, theirs in zip(content[one].inputs, content[other].inputs, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
    dropped = options("cagnet-1.5d", workers=4, dropout=0.3, dropout_order="dropout-first", dtype="float32")
    runs = [crew.run(4, final_weights, dropped) for _ in range(2)]
    assert len({weights for run in runs for weights in run}) == 1


def test_dropout_in_blocks_held_by_several_is_that_of_the_blocks(
    crew: Crew, case: Case, options: MakeOptions, tmp_path: Path
) -> None:
    """Every holder drops what the block's one worker would: two blocks held by two each, and by one each."""
    fields: dict[str, Any] = {"dropout": 0.3, "dropout_order": "dropout-first"}
    np.save(tmp_path / "owners.npy", Replicas(4, 2).merged(case.owners(4)).owner)
    one = crew.run(2, trained, options("cagnet-1d", workers=2, partition=str(tmp_path / "owners.npy"), **fields))
    same_run(crew.run(4, trained, options("cagnet-1.5d", workers=4, **fields)), one, case.graph.nodes)


CUTS = [("random", "gcn"), ("metis", "gcn-norm"), ("random", "sage"), ("metis", "sage-self")]


@pytest.mark.parametrize(("cut", "model"), mostly(CUTS, ("random", "metis"), MODELS))
def test_cagnet_1d(crew: Crew, case: Case, options: MakeOptions, cut: str, model: str) -> None:
    """The plain reference of blocks, all of them sent, which is that of one process."""
    requested = options("cagnet-1d", workers=3, partition_method=cut, **MODELS[model])
    content = crew.run(3, trained, requested)
    params, training, kind = params_of(content[0].weights[0]), Training(10, requested.lr), model_of(requested, case)
    wanted = blocks(case.graph, case.parts(3, cut), case.problem, kind, params, training, Stale())
    equals(content, wanted, case, 3, cut)
    plain = single(case.graph, case.problem, kind, params, training)
    close(np.array(wanted.losses), np.array(plain.losses), "losses of the references", BOUND)
    for t, gradients in enumerate(plain.gradients):
        for name, gradient in gradients.items():
            close(content[0].gradients[t][name], gradient.numpy(), f"gradient of {name} at {t}", BOUND)


def test_without_a_skipped_block_sancus_is_cagnet_1d_to_the_bit(crew: Crew, options: MakeOptions) -> None:
    for model in (MODELS["gcn-norm"], MODELS["sage-self"]):
        runs = [
            crew.run(3, final_weights, options(method, knobs, workers=3, dtype="float32", **model))
            for method, knobs in (("cagnet-1d", {}), ("sancus", EVERY), ("sancus", {"warm_iterations": 10}))
        ]
        assert len({weights for run in runs for weights in run}) == 1


@pytest.mark.parametrize(
    "fields", [{"preaggregate": True}, {"dropout": 0.3, "dropout_order": "dropout-first"}], ids=str
)
def test_layer_0_summed_once_and_rows_dropped_by_their_owner(
    crew: Crew, case: Case, options: MakeOptions, fields: dict[str, Any]
) -> None:
    for model in ("gcn", "sage"):
        full = crew.run(3, trained, options(workers=3, **fields, **MODELS[model]))
        found = crew.run(3, trained, options("cagnet-1d", workers=3, **fields, **MODELS[model]))
        same_run(found, full, case.graph.nodes)


def test_bytes_are_those_of_whole_blocks(crew: Crew, case: Case, options: MakeOptions) -> None:
    """Every block goes around the ring once for each layer and direction in which it is sent."""
    for workers in (2, 3):
        knobs = {"stale_test": "fixed", "threshold": 1, "warm_iterations": 0}
        content = crew.run(workers, trained, options("sancus", knobs, workers=workers, dtype="float32"))
        sent = {kind: sum(n for rank in content for (_, what), n in rank.sent.items() if what == kind)
                for kind in ("rows", "gradients")}  # fmt: skip
        widths = (7, 6, 6, 4)
        copies = (workers - 1) * case.graph.nodes * 4
        assert sent == {"rows": 5 * copies * sum(widths[:-1]), "gradients": 10 * copies * sum(widths[1:])}
        assert all({(rank + 1) % workers} == {peer for peer, _ in item.sent} for rank, item in enumerate(content))


def test_bytes_of_blocks_held_by_several_are_broadcasts_and_sums(crew: Crew, case: Case, options: MakeOptions) -> None:
    """Each of two blocks goes once to its other holders of the same place, and each holder's sum around two of them."""
    content = crew.run(4, trained, options("cagnet-1.5d", workers=4, dtype="float32"))
    sizes = np.bincount(Replicas(4, 2).merged(case.owners(4)).owner)
    for rank, item in enumerate(content):
        beside, across, block = rank ^ 1, (rank + 2) % 4, rank // 2
        # Of two holders each sends half of its sum twice. Member 0 multiplies block 0, member 1 block 1.
        leaves = 4 * sizes[block] * (block == rank % 2)
        for kind, widths in (("rows", (7, 6, 6)), ("gradients", (6, 6, 4))):
            values = 10 * sum(widths)
            assert item.sent[beside, kind] == pytest.approx(4 * sizes[block] * values, rel=1e-3)
            assert item.sent.get((across, kind), 0) == leaves * values


def test_own_rows_are_always_fresh_and_others_as_old_as_the_test_says(crew: Crew, options: MakeOptions) -> None:
    knobs = {"stale_test": "adaptive", "threshold": 1, "warm_iterations": 2}
    content = crew.run(3, trained, options("sancus", knobs, workers=3))
    for t in range(10):
        # Sent in 0, 1, then found two iterations old in 3, sent in 4, and so on.
        made = t if t < 2 else 1 + 3 * ((t - 1) // 3)
        for layer in range(3):
            owners = np.empty((sum(rank.inner.size for rank in content), content[0].inputs[0][layer].shape[1]))
            for rank in content:
                owners[rank.inner] = rank.inputs[made][layer]
            for rank in content:
                index, rows = rank.used[t][layer]
                assert np.array_equal(rows, owners[index]), (t, layer)


@pytest.mark.parametrize("method", ["sancus", "cagnet-1d", "cagnet-1.5d"])
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "gat"}, "--model: gat with sancus, which sums blocks; allowed: gcn, graphsage"),
        ({"dropout": 0.2}, "--dropout-order: exchange-first with sancus, whose gradients are summed block by block for "
         "rows that all workers have alike; allowed with dropout: dropout-first"),
    ],
)  # fmt: skip
def test_what_does_not_combine_is_refused_in_one_line(
    options: MakeOptions, method: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        options(method, **fields)
    assert str(caught.value) == message.replace("sancus", method)


def test_replicas_that_do_not_divide_and_layer_0_summed_once_are_refused(options: MakeOptions) -> None:
    with pytest.raises(ScenarioError) as caught:
        options("cagnet-1.5d", {"replication": 3}, workers=4)
    assert str(caught.value) == "--replication: 3 does not divide the 4 workers; allowed: 2, 4"
    with pytest.raises(ScenarioError) as caught:
        options("cagnet-1.5d", workers=4, preaggregate=True)
    text = "--preaggregate: cagnet-1.5d cannot sum layer 0 once; allowed where a worker holds its part alone"
    assert str(caught.value) == text


ROOT = Path(__file__).resolve().parents[3]
ALSO_OTHERS = {"dgl", "graphsage"}
"""Names that are something else too: DGL is a library, GraphSAGE a model."""

OPTIONS = "runtime/options.py"
"""Says which method is trained where none is asked for."""


def method_names(path: Path) -> Iterator[str]:
    """The names of methods that a file has as strings of their own, once for each time."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and node.value in METHODS:
            yield str(node.value)


def test_only_its_own_file_names_a_method() -> None:
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "runtime").rglob("*.py")):
        for name in method_names(path):
            found.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    homes = {name: Path(ROOT, *kind.__module__.split(".")) for name, kind in METHODS.items()}
    files = {name: home / "__init__.py" if home.is_dir() else home.with_suffix(".py") for name, home in homes.items()}
    wanted = {name: [path.relative_to(ROOT).as_posix()] for name, path in files.items()}
    wanted["full-graph"].append(OPTIONS)
    assert all(found[name].count(wanted[name][0]) == 1 for name in ALSO_OTHERS & METHODS.keys())
    assert {name: at for name, at in found.items() if name not in ALSO_OTHERS} == {
        name: at for name, at in wanted.items() if name not in ALSO_OTHERS
    }


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_frozen_and_stands_at_its_defaults(name: str) -> None:
    method = method_of(name, method_type(name).settled({}))
    assert method == METHODS[name]()
    for knob in method.knobs():
        value = getattr(method, knob.name)
        with pytest.raises(FrozenInstanceError):
            setattr(method, knob.name, value)
        if knob.kind == "size":
            assert value == (CacheSize(auto=True) if knob == STATIC_CACHE else CacheSize.none())
        elif knob.kind == "list":
            assert value is None
        else:
            knob.rule.check(value, knob.name)
