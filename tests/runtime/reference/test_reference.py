"""The slow references against formulas written out, finite differences, and each other where the methods coincide."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from gcnsim.core.ids import FloatArray
from gcnsim.core.streams import stream
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import Part, split
from gcnsim.workload.samplers import VarianceReduction
from tests.runtime.reference.bns import bns
from tests.runtime.reference.drawn import Rule, measured_in
from tests.runtime.reference.model import Model, Params, initial
from tests.runtime.reference.stale import Lag, stale
from tests.runtime.reference.training import History, Problem, Training, single
from tests.sampled import draw_edges

GCN = Model("gcn", (5, 6, 4, 3))
MODELS = {
    "gcn": GCN,
    "gcn-norm": Model("gcn", (5, 6, 4, 3), norm=True),
    "sage": Model("graphsage", (5, 6, 3)),
    "sage-with-self": Model("graphsage", (5, 6, 3), with_self=True, norm=True),
    "gat": Model("gat", (5, 6, 3)),
    "gat-heads": Model("gat", (5, 6, 4, 3), heads=2, norm=True),
}
SHORT, SGD = Training(iterations=4), Training(iterations=5, lr=0.5, optimizer="sgd")


def graph_of(nodes: int, edges: int) -> Graph:
    """Random ends; the last node has no neighbour."""
    ends = np.random.default_rng(5).integers(0, nodes - 1, (edges, 2))
    return build_csr(ends[:, 0], ends[:, 1], nodes, "small")


def problem_of(nodes: int, multilabel: bool = False) -> Problem:
    rng = np.random.default_rng(6)
    features = torch.tensor(rng.standard_normal((nodes, 5)))
    labels = torch.tensor(rng.integers(0, 3, nodes))
    if multilabel:
        labels = torch.tensor((rng.random((nodes, 3)) < 0.4).astype(np.float64))
    return Problem(features, labels, torch.tensor(rng.random(nodes) < 0.6))


@pytest.fixture(scope="module")
def graph() -> Graph:
    return graph_of(60, 150)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return problem_of(60)


@pytest.fixture(scope="module")
def parts(graph: Graph) -> tuple[Part, ...]:
    return split(graph, partition_graph(graph, 3, "random", seed=2))


def same(one: History, other: History) -> None:
    assert one.losses == pytest.approx(other.losses, rel=1e-12)
    for kind in ("weights", "gradients"):
        for mine, theirs in zip(getattr(one, kind), getattr(other, kind), strict=True):
            assert mine.keys() == theirs.keys()
            for name in mine:
                assert torch.allclose(mine[name], theirs[name], rtol=1e-9, atol=1e-12), (kind, name)
    for mine, theirs in zip(one.rows, other.rows, strict=True):
        assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in zip(mine, theirs, strict=True))


def adjacency(graph: Graph) -> FloatArray:
    matrix = np.zeros((graph.nodes, graph.nodes))
    matrix[np.repeat(np.arange(graph.nodes), graph.degrees), graph.indices] = 1.0
    return matrix


def propagation(graph: Graph) -> FloatArray:
    root = 1.0 / np.sqrt(graph.degrees + 1.0)
    matrix: FloatArray = root[:, None] * (adjacency(graph) + np.eye(graph.nodes)) * root
    return matrix


@pytest.mark.parametrize("with_self", [False, True])
def test_graphsage_is_its_formula(graph: Graph, problem: Problem, with_self: bool) -> None:
    model = Model("graphsage", (5, 3), with_self=with_self)
    params = initial(model, 1)
    weights = adjacency(graph) + with_self * np.eye(graph.nodes)
    mean = weights / np.maximum(weights.sum(1, keepdims=True), 1.0)
    assert weights[-1].sum() == with_self
    x, w = problem.features.numpy(), {name: value.numpy() for name, value in params.items()}
    expected = x @ w["layers.0.linear_self.weight"].T + w["layers.0.linear_self.bias"]
    expected += mean @ x @ w["layers.0.linear_neigh.weight"].T + w["layers.0.linear_neigh.bias"]
    found = single(graph, problem, model, params, SHORT).rows[0][1]
    assert found.numpy() == pytest.approx(expected, rel=1e-12)


def test_gcn_is_its_formula(graph: Graph, problem: Problem) -> None:
    params = initial(GCN, 1)
    rows, matrix = problem.features.numpy(), propagation(graph)
    for index in range(3):
        weight, bias = params[f"layers.{index}.linear.weight"].numpy(), params[f"layers.{index}.linear.bias"].numpy()
        rows = matrix @ rows @ weight.T + bias
        rows = np.maximum(rows, 0.0) if index < 2 else rows
    history = single(graph, problem, GCN, params, SHORT)
    assert history.rows[0][3].numpy() == pytest.approx(rows, rel=1e-10)
    chosen = np.flatnonzero(problem.train.numpy())
    logged = rows - np.log(np.exp(rows).sum(1, keepdims=True))
    assert history.losses[0] == pytest.approx(-logged[chosen, problem.labels.numpy()[chosen]].mean(), rel=1e-10)


@pytest.mark.parametrize("last", [False, True])
def test_gat_is_its_formula_node_by_node(graph: Graph, problem: Problem, last: bool) -> None:
    model = Model("gat", (5, 4) if last else (5, 8, 4), heads=2)
    params = initial(model, 1)
    values = (problem.features @ params["layers.0.linear.weight"].T).view(-1, 2, 4)
    target, source = params["layers.0.attn_target"], params["layers.0.attn_source"]
    expected = torch.zeros(graph.nodes, 2, 4, dtype=torch.float64)
    for i in range(graph.nodes):
        around = [i, *graph.indices[graph.indptr[i] : graph.indptr[i + 1]].tolist()]
        for head in range(2):
            scores = [float(values[i, head] @ target[head] + values[j, head] @ source[head]) for j in around]
            powers = [math.exp(score if score > 0 else 0.2 * score) for score in scores]
            for j, power in zip(around, powers, strict=True):
                expected[i, head] += power / sum(powers) * values[j, head]
    out = (expected.mean(1) if last else expected.flatten(1)) + params["layers.0.bias"]
    found = single(graph, problem, model, params, SHORT).rows[0][1]
    assert torch.allclose(found, out if last else torch.relu(out), rtol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_finite_differences(name: str) -> None:
    graph, problem, model = graph_of(12, 20), problem_of(12), MODELS[name]
    params, once, step = initial(model, 3), Training(iterations=1), 1e-5
    gradient = single(graph, problem, model, params, once).gradients[0]
    for key, value in params.items():
        direction = torch.tensor(stream(4, key).standard_normal(tuple(value.shape)))
        ends = [
            single(graph, problem, model, params | {key: value + sign * direction}, once).losses[0]
            for sign in (step, -step)
        ]
        slope = float((gradient[key] * direction).sum())
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope, rel=1e-5, abs=1e-8), key


@pytest.mark.parametrize("name", MODELS)
def test_without_age_and_sampling_workers_equal_the_single_process(
    name: str, graph: Graph, problem: Problem, parts: tuple[Part, ...]
) -> None:
    model, params = MODELS[name], initial(MODELS[name], 1)
    expected = single(graph, problem, model, params, SHORT)
    assert expected.losses[-1] < expected.losses[0]
    same(stale(parts, problem, model, params, SHORT, Lag(tau=0)), expected)
    same(bns(parts, problem, model, params, SHORT, p=1.0), expected)


def written_out(
    graph: Graph, parts: Sequence[Part], problem: Problem, params: Params, training: Training, tau: int
) -> list[float]:
    """The losses of PipeGCN's listing at any age >= 1: a GCN of two layers, dense, the backward pass by hand."""
    matrix, x = propagation(graph), problem.features.numpy()
    train, labels = problem.train.numpy(), np.eye(3)[problem.labels.numpy()]
    (w0, b0), (w1, b1) = (
        (params[f"layers.{index}.linear.weight"].numpy().T, params[f"layers.{index}.linear.bias"].numpy())
        for index in (0, 1)
    )
    nothing = np.zeros((graph.nodes, w0.shape[1]))
    # What is in flight, the oldest first: features, hidden rows, gradients of hidden rows.
    flying = [(np.zeros_like(x), nothing, nothing)] * tau
    losses = list[float]()
    for _ in range(training.iterations):
        old_x, old_hidden, owed = flying.pop(0)
        hidden, loss, late = np.zeros_like(nothing), 0.0, np.zeros_like(nothing)
        gradients = [np.zeros_like(item) for item in (w0, b0, w1, b1)]
        inner = [np.isin(np.arange(graph.nodes), part.inner)[:, None] for part in parts]
        first = [matrix[part.inner] @ np.where(own, x, old_x) for part, own in zip(parts, inner, strict=True)]
        for part, z in zip(parts, first, strict=True):
            hidden[part.inner] = np.maximum(z @ w0 + b0, 0.0)
        for part, own, z in zip(parts, inner, first, strict=True):
            second = matrix[part.inner] @ np.where(own, hidden, old_hidden)
            power = np.exp(second @ w1 + b1)
            share = power / power.sum(1, keepdims=True)
            chosen = train[part.inner, None] / train.sum()
            loss -= float((chosen * labels[part.inner] * np.log(share)).sum())
            top = chosen * (share - labels[part.inner])
            below = matrix[part.inner].T @ top @ w1.T
            middle = (below + owed)[part.inner] * (hidden[part.inner] > 0)
            late += np.where(own, 0.0, below)
            for total, its in zip(gradients, (z.T @ middle, middle.sum(0), second.T @ top, top.sum(0)), strict=True):
                total += its
        losses.append(loss)
        w0, b0, w1, b1 = (w - training.lr * g for w, g in zip((w0, b0, w1, b1), gradients, strict=True))
        flying.append((x, hidden, late))
    return losses


@pytest.mark.parametrize("tau", [1, 2, 3])
def test_training_with_age_is_the_listing_written_out(
    tau: int, graph: Graph, problem: Problem, parts: tuple[Part, ...]
) -> None:
    params, training = initial(Model("gcn", (5, 6, 3)), 1), Training(iterations=8, lr=0.5, optimizer="sgd")
    found = stale(parts, problem, Model("gcn", (5, 6, 3)), params, training, Lag(tau)).losses
    assert found == pytest.approx(written_out(graph, parts, problem, params, training, tau), rel=1e-10)


def test_smoothing_averages_what_is_received(problem: Problem, parts: tuple[Part, ...]) -> None:
    params = initial(GCN, 1)
    plain = stale(parts, problem, GCN, params, SGD, Lag(1))
    same(stale(parts, problem, GCN, params, SGD, Lag(1, "gf", gamma=0.0)), plain)
    smooth = {kind: stale(parts, problem, GCN, params, SGD, Lag(1, kind, gamma=0.3)) for kind in ("g", "f", "gf")}
    average: Tensor | float = 0.0
    for t in range(1, SGD.iterations):
        average = 0.3 * average + 0.7 * smooth["f"].rows[t - 1][1][parts[0].boundary.tolist()]
        assert torch.allclose(smooth["f"].used[t][0][1].rows, average, rtol=1e-12)
    # Gradients first arrive at t = 1, so the loss differs from t = 2 on; features differ from t = 1 on.
    assert smooth["g"].losses[:2] == plain.losses[:2]
    assert len({history.losses[2] for history in (plain, *smooth.values())}) == 4
    first = {kind: history.gradients[1]["layers.0.linear.weight"] for kind, history in (smooth | {"": plain}).items()}
    synchronous = plain.gradients[1]["layers.2.linear.weight"]
    assert torch.equal(smooth["g"].gradients[1]["layers.2.linear.weight"], synchronous)
    assert not torch.allclose(first["g"], first[""])


@pytest.mark.parametrize(("model", "tau"), [(GCN, 0), (GCN, 2), (MODELS["sage"], 1)])
def test_drawn_graphs_follow_the_norms_of_the_last_refresh(
    model: Model, tau: int, problem: Problem, parts: tuple[Part, ...]
) -> None:
    rule, training = Rule(0.4, "vr", refresh=3), Training(iterations=9)
    history = stale(parts, problem, model, initial(model, 1), training, Lag(tau), rule, seed=8)
    assert sorted(history.norms) == [0, 3, 6]
    for t in range(9):
        measured = (t - tau - 1) // 3 * 3 if t > tau else None
        assert measured == measured_in(t, tau, 3)
        for n, part in enumerate(parts):
            p = np.full(part.entries, 0.4, np.float32)
            if measured is not None:
                nodes = np.concatenate([part.inner, part.boundary])
                degree = np.concatenate([part.inner_degree, part.boundary_degree])
                scale = np.sqrt(degree + 1.0) if model.kind == "graphsage" else 1.0
                norms = (history.norms[measured][nodes] * scale).astype(np.float32)
                p = VarianceReduction(part, norms).probabilities(0.4).p
            mask = draw_edges(part, p, stream(8, "trace", n, t))
            assert np.array_equal(history.masks[t][n], mask)
            crossing = part.columns[mask & (part.columns >= part.inner_nodes)] - part.inner_nodes
            assert history.used[t][n][1].index.tolist() == sorted(set(crossing.tolist()))


@pytest.mark.parametrize("estimator", ["inverse", "self-normalised"])
def test_kept_entries_weigh_for_the_dropped_ones(
    estimator: str, graph: Graph, problem: Problem, parts: tuple[Part, ...]
) -> None:
    model = Model("gcn", (5, 3))
    params = initial(model, 1)
    history = stale(parts, problem, model, params, SHORT, Lag(0), Rule(0.5, estimator=estimator))
    expected = np.zeros((60, 5))
    for part, mask in zip(parts, history.masks[0], strict=True):
        nodes, matrix = np.concatenate([part.inner, part.boundary]), propagation(graph)
        for i, node in enumerate(part.inner.tolist()):
            entries = np.arange(part.indptr[i], part.indptr[i + 1])
            whole, left = nodes[part.columns[entries]], nodes[part.columns[entries[mask[entries]]]]
            kept, total = matrix[node, left].sum(), matrix[node, whole].sum()
            factor = 2.0 if estimator == "inverse" else (total / kept if kept else 0.0)
            x = problem.features.numpy()
            expected[node] = factor * matrix[node, left] @ x[left] + matrix[node, node] * x[node]
    weight, bias = params["layers.0.linear.weight"].numpy(), params["layers.0.linear.bias"].numpy()
    assert history.rows[0][1].numpy() == pytest.approx(expected @ weight.T + bias, rel=1e-6)


def test_attention_over_drawn_neighbours_and_the_node_itself(problem: Problem, parts: tuple[Part, ...]) -> None:
    model = Model("gat", (5, 3), heads=2)
    params = initial(model, 1)
    history = stale(parts, problem, model, params, SHORT, Lag(0), Rule(0.4, "vr", refresh=2))
    projected = problem.features @ params["layers.0.linear.weight"].T
    assert history.norms[0] == pytest.approx(projected.norm(dim=1).numpy(), rel=1e-6)
    heads = projected.view(-1, 2, 3)
    for part, mask in zip(parts, history.masks[0], strict=True):
        nodes = np.concatenate([part.inner, part.boundary])
        for i, node in enumerate(part.inner.tolist()):
            entries = np.arange(part.indptr[i], part.indptr[i + 1])
            around = [node, *nodes[part.columns[entries[mask[entries]]]].tolist()]
            made = params["layers.0.bias"].clone()
            for k in range(2):
                source = heads[around, k] @ params["layers.0.attn_source"][k]
                score = heads[node, k] @ params["layers.0.attn_target"][k] + source
                made += torch.softmax(torch.where(score > 0, score, 0.2 * score), 0) @ heads[around, k] / 2
            assert torch.allclose(history.rows[0][1][node], made, rtol=1e-10)


@pytest.mark.parametrize("scale", ["rate", "ratio"])
def test_bns_keeps_its_share_of_each_pair_and_scales_it(
    scale: str, graph: Graph, problem: Problem, parts: tuple[Part, ...]
) -> None:
    model = Model("gcn", (5, 3))
    params = initial(model, 1)
    history = bns(parts, problem, model, params, SHORT, p=0.3, scale=scale)
    expected = np.zeros((60, 5))
    for n, part in enumerate(parts):
        columns = np.zeros(60)
        columns[part.inner] = 1.0
        index = history.used[0][n][0].index
        for owner in range(3):
            first, last = part.boundary_ptr[owner : owner + 2]
            chosen = index[(index >= first) & (index < last)]
            assert chosen.size in (math.floor(0.3 * (last - first)), math.ceil(0.3 * (last - first)))
            columns[part.boundary[chosen]] = 1.0 / 0.3 if scale == "rate" else (last - first) / max(chosen.size, 1)
        expected[part.inner] = (propagation(graph) * columns)[part.inner] @ problem.features.numpy()
    weight, bias = params["layers.0.linear.weight"].numpy(), params["layers.0.linear.bias"].numpy()
    assert history.rows[0][1].numpy() == pytest.approx(expected @ weight.T + bias, rel=1e-10)


def test_bns_attention_runs_over_the_neighbours_present(problem: Problem, parts: tuple[Part, ...]) -> None:
    model = Model("gat", (5, 3))
    params = initial(model, 1)
    history = bns(parts, problem, model, params, SHORT, p=0.5)
    part, mask = parts[1], history.masks[0][1]
    nodes = np.concatenate([part.inner, part.boundary])
    values = problem.features @ params["layers.0.linear.weight"].T
    for i, node in enumerate(part.inner.tolist()):
        entries = np.arange(part.indptr[i], part.indptr[i + 1])
        around = [node, *nodes[part.columns[entries[mask[entries]]]].tolist()]
        score = values[node] @ params["layers.0.attn_target"][0] + values[around] @ params["layers.0.attn_source"][0]
        share = torch.softmax(torch.where(score > 0, score, 0.2 * score), 0)
        assert torch.allclose(history.rows[0][1][node], share @ values[around] + params["layers.0.bias"], rtol=1e-10)
