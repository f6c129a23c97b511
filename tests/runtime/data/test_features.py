from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import Float32Array, IntArray
from gcnsim.core.streams import stream
from runtime.data import dataset as module
from runtime.data.dataset import Features, InMemory, Normal, Projection, RowTransform, Standard, UnitRows


def _matrix(rows: int = 30, width: int = 7) -> Float32Array:
    draw = stream(1, "matrix")
    values = draw.standard_normal((rows, width)) * (draw.random((rows, width)) < 0.4)
    values[4] = 0.0
    return values.astype(np.float32)


@pytest.fixture(params=["dense", "sparse"])
def held(request: pytest.FixtureRequest) -> InMemory:
    return InMemory(_matrix() if request.param == "dense" else csr_array(_matrix()))


_NODES: IntArray = np.array([3, 29, 4, 0, 17])


def test_rows_come_in_the_order_asked_for(held: InMemory) -> None:
    features = Features(held)
    found = features.rows(_NODES)
    assert (features.width, found.dtype) == (7, np.dtype(np.float32))
    assert found.tolist() == _matrix()[_NODES].tolist()
    assert features.rows(_NODES[:0]).shape == (0, 7)
    found[:] = 0.0
    assert features.rows(_NODES).tolist() == _matrix()[_NODES].tolist()


def test_unit_rows_sum_to_one_and_zero_rows_stay(held: InMemory) -> None:
    found = Features(held, (UnitRows(),)).rows(np.arange(30))
    sums = np.abs(_matrix()).sum(axis=1)
    assert np.allclose(np.abs(found).sum(axis=1), sums > 0, rtol=1e-6)
    assert np.allclose(found * sums[:, None], _matrix(), rtol=1e-6)
    assert found[4].tolist() == [0.0] * 7


def test_standard_columns_have_mean_0_and_deviation_1_over_the_given_nodes(held: InMemory) -> None:
    nodes = np.arange(20)
    found = Features(held, (Standard.over(Features(held), nodes),)).rows(np.arange(30))
    assert np.allclose(found[:20].mean(axis=0), 0.0, atol=1e-6)
    assert np.allclose(found[:20].std(axis=0), 1.0, rtol=1e-6)
    wide = _matrix().astype(np.float64)
    expected = (wide - wide[:20].mean(axis=0)) / wide[:20].std(axis=0)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_constant_column_is_only_shifted() -> None:
    matrix = np.full((1000, 2), 0.1, dtype=np.float32)
    matrix[0, 1], matrix[999, 0] = 0.2, 0.6
    features = Features(InMemory(matrix))
    found = Features(InMemory(matrix), (Standard.over(features, np.arange(999)),)).rows(np.array([5, 999]))
    assert found[:, 0].tolist() == pytest.approx([0.0, 0.5], abs=1e-6)


@pytest.mark.parametrize("steps", [(), (UnitRows(),)])
def test_projection_is_the_product_with_a_matrix_that_is_always_the_same(
    held: InMemory, steps: tuple[RowTransform, ...]
) -> None:
    projection = Projection.fixed(7, 4)
    features = Features(held, (*steps, projection))
    assert features.width == 4
    before = Features(held, steps).rows(_NODES).astype(np.float64)
    assert np.allclose(features.rows(_NODES), before @ Projection.fixed(7, 4).matrix, rtol=1e-5, atol=1e-6)
    assert np.array_equal(projection.matrix, stream(0, "projection").standard_normal((7, 4)) / 2.0)


def test_projected_lengths_survive_on_average() -> None:
    matrix = Projection.fixed(500, 128).matrix
    assert float(matrix.var()) == pytest.approx(1 / 128, rel=0.02)
    rows = stream(2, "rows").standard_normal((50, 500))
    ratio = np.square(rows @ matrix).sum(axis=1) / np.square(rows).sum(axis=1)
    assert float(ratio.mean()) == pytest.approx(1.0, abs=0.05)


def test_a_projection_beyond_memory_is_refused() -> None:
    with pytest.raises(
        ScenarioError, match=r"--feature-dim: 1000000 is too many for features of 5000 values; .* 53687$"
    ):
        Projection.fixed(5000, 1_000_000)


def test_chunks_change_nothing(held: InMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    def everything() -> Float32Array:
        steps = (UnitRows(), Standard.over(Features(held, (UnitRows(),)), np.arange(20)), Projection.fixed(7, 4))
        return Features(held, steps).rows(np.arange(30))

    whole = everything()
    monkeypatch.setattr(module, "_CHUNK", 21)
    assert [begin for begin, _ in Features(held).blocks(np.arange(8))] == [0, 3, 6]
    assert np.allclose(everything(), whole, rtol=1e-6, atol=1e-7)


def test_a_sparse_matrix_is_never_whole_in_dense_form(monkeypatch: pytest.MonkeyPatch) -> None:
    class Watched(csr_array):
        def toarray(self, *args: Any, **kwargs: Any) -> Any:
            assert self.shape[0] <= 3
            return super().toarray(*args, **kwargs)

    monkeypatch.setattr(module, "_CHUNK", 21)
    watched = InMemory(Watched(_matrix()))
    steps = (UnitRows(), Projection.fixed(7, 7))
    monkeypatch.setattr(Watched, "todense", None)
    assert Features(watched, steps).rows(np.arange(30)).shape == (30, 7)
    assert Features(watched).rows(np.arange(30)).tolist() == _matrix().tolist()


def test_random_rows_depend_on_seed_and_node_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Features(Normal(5, 300)).rows(np.arange(2000))
    requested = np.array([1999, 0, 873, 874, 875])
    assert Features(Normal(5, 300)).rows(requested).tolist() == whole[requested].tolist()
    assert not np.array_equal(Features(Normal(6, 300)).rows(requested), whole[requested])
    assert np.unique(whole).size > 0.99 * whole.size
    assert (float(whole.mean()), float(whole.std())) == pytest.approx((0.0, 1.0), abs=0.01)
    monkeypatch.setattr(module, "_CHUNK", 3000)
    assert np.array_equal(Features(Normal(5, 300)).rows(np.arange(2000)), whole)
