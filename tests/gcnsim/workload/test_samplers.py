from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.graph.parts import Part
from gcnsim.workload import samplers
from gcnsim.workload import samplers as samplers_module
from gcnsim.workload.samplers import Full, Uniform, VarianceReduction, sampler
from tests.sampled import edge_probabilities, edge_weights


def test_registry_finds_each_rule_and_hints_at_the_nearest() -> None:
    assert [sampler(name) for name in ("full", "uniform", "vr")] == [Full, Uniform, VarianceReduction]
    with pytest.raises(ScenarioError, match=r"sampler: unknown 'unifrom'; did you mean 'uniform'\?"):
        sampler("unifrom")


@pytest.mark.parametrize("name", ["full", "uniform", "vr"])
@pytest.mark.parametrize("epsilon", [0.0, -0.1, 1.5, float("nan")])
def test_rates_outside_the_range_are_refused(parts: tuple[Part, ...], name: str, epsilon: float) -> None:
    with pytest.raises(ScenarioError, match=r"epsilon: .* is outside \(0, 1\]"):
        sampler(name)(parts[0]).probabilities(epsilon)


def test_full_and_uniform_are_constant(parts: tuple[Part, ...]) -> None:
    part = parts[0]
    assert np.array_equal(edge_probabilities("full", part, 0.1), np.ones(part.entries, np.float32))
    assert np.array_equal(edge_probabilities("uniform", part, 0.1), np.full(part.entries, 0.1, np.float32))


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5, 0.99])
def test_vr_rows_use_up_their_budget(parts: tuple[Part, ...], epsilon: float) -> None:
    for part in parts:
        p = VarianceReduction(part).probabilities(epsilon).p
        degree = np.diff(part.indptr)
        rows = np.repeat(np.arange(part.inner_nodes), degree)
        budget = np.bincount(rows, weights=p, minlength=part.inner_nodes)
        assert budget == pytest.approx(epsilon * degree, rel=1e-5)
        assert p.dtype == np.float32
        assert 0.0 < p.min() <= p.max() <= 1.0


def test_vr_prefers_inner_neighbours_by_the_root_of_their_factor(parts: tuple[Part, ...]) -> None:
    part = parts[1]
    part = replace(part, inner_degree=np.full(part.inner_nodes, 4), boundary_degree=np.full(part.boundary_nodes, 4))
    p = VarianceReduction(part).probabilities(0.1).p
    row = next(
        slice(a, b)
        for a, b in zip(part.indptr[:-1], part.indptr[1:], strict=True)
        if 0 < np.count_nonzero(part.columns[a:b] < part.inner_nodes) < b - a
    )
    inner = part.columns[row] < part.inner_nodes
    assert p[row][inner].min() / p[row][~inner].max() == pytest.approx(np.sqrt(1.1), rel=1e-5)


def test_vr_is_proportional_to_weight_and_norm(parts: tuple[Part, ...]) -> None:
    part = parts[0]
    norms = np.random.default_rng(2).uniform(1.0, 2.0, part.inner_nodes + part.boundary_nodes).astype(np.float32)
    answer = VarianceReduction(part, norms).probabilities(0.01)
    q = edge_weights(part) * norms[part.columns] * np.where(part.columns < part.inner_nodes, np.sqrt(1.1), 1.0)
    rows = np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr))
    total = np.bincount(rows, weights=q, minlength=part.inner_nodes)[rows]
    wanted = 0.01 * np.diff(part.indptr)[rows] * q / total
    assert answer.floored == 0
    assert answer.p == pytest.approx(wanted, rel=1e-5)


def test_floored_entries_are_counted(parts: tuple[Part, ...]) -> None:
    part = parts[0]
    norms = np.ones(part.inner_nodes + part.boundary_nodes, np.float32)
    norms[part.inner_nodes :] = 0.0
    rows = np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr))
    cross = part.columns >= part.inner_nodes
    blank = ~np.isin(np.arange(part.inner_nodes), rows[~cross])
    answer = VarianceReduction(part, norms).probabilities(0.1)
    assert answer.floored == np.count_nonzero(cross & ~blank[rows])
    assert answer.p[cross].min() == pytest.approx(0.01)


def test_one_preparation_answers_every_rate_the_same(parts: tuple[Part, ...]) -> None:
    rule = VarianceReduction(parts[2])
    first = rule.probabilities(0.1).p
    rule.probabilities(0.5)
    assert np.array_equal(first, rule.probabilities(0.1).p)
    assert np.array_equal(first, edge_probabilities("vr", parts[2], 0.1))


def test_chunks_do_not_change_the_answer(parts: tuple[Part, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = VarianceReduction(parts[0]).probabilities(0.3).p
    monkeypatch.setattr(samplers_module, "BLOCK", 16)
    monkeypatch.setattr(samplers, "BLOCK", 16)
    assert np.array_equal(VarianceReduction(parts[0]).probabilities(0.3).p, whole)


def test_rows_without_neighbours_are_left_alone() -> None:
    part = Part(
        rank=0,
        parts=2,
        inner=np.arange(4),
        boundary=np.array([4]),
        boundary_ptr=np.array([0, 0, 1]),
        indptr=np.array([0, 0, 2, 2, 3]),
        columns=np.array([3, 4, 1], np.int32),
        inner_degree=np.array([0, 2, 0, 1]),
        boundary_degree=np.array([1]),
    )
    p = VarianceReduction(part).probabilities(0.5).p
    assert p.size == 3
    assert p[:2].sum() == pytest.approx(1.0)
    assert p[2] == pytest.approx(0.5)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_bad_norms_are_refused(parts: tuple[Part, ...], bad: float) -> None:
    norms = np.ones(parts[0].inner_nodes + parts[0].boundary_nodes, np.float32)
    norms[3] = bad
    with pytest.raises(ValueError, match="finite and not negative"):
        VarianceReduction(parts[0], norms)
    with pytest.raises(ValueError, match="local ids"):
        VarianceReduction(parts[0], norms[1:])
