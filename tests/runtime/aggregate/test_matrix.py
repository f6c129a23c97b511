"""Sums over neighbours."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from torch import Tensor

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray
from gcnsim.core.streams import stream
from runtime.aggregate import Matrix, NumbaMatrix, PlainMatrix, Rows, matrix_kind
from runtime.aggregate import matrix as matrix_module
from tests.runtime.aggregate.matrices import made, rows_of

KINDS = [
    "plain",
    "numba",
    pytest.param("dgl", marks=pytest.mark.skipif(find_spec("dgl") is None, reason="DGL is not installed")),
]
BOUND = {torch.float32: 1e-5, torch.float64: 1e-12}
CPU = torch.device("cpu")


def sparse(rows: int, columns: int, density: float, seed: int) -> FloatArray:
    draw = stream(seed, "matrix", rows, columns)
    values: FloatArray = draw.standard_normal((rows, columns)) * (draw.random((rows, columns)) < density)
    return values


def near(found: Tensor, wanted: Tensor) -> None:
    assert found.shape == wanted.shape
    scale = max(float(wanted.abs().max()), 1.0) if wanted.numel() else 1.0
    assert not wanted.numel() or float((found - wanted).abs().max()) <= BOUND[found.dtype] * scale * 10


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", KINDS)
@settings(deadline=None, max_examples=25)
@given(
    rows=st.integers(1, 9),
    columns=st.integers(0, 9),
    width=st.integers(0, 5),
    density=st.sampled_from([0.0, 0.2, 0.7, 1.0]),
    add=st.booleans(),
    others=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_products_are_the_dense_ones(
    name: str,
    dtype: torch.dtype,
    rows: int,
    columns: int,
    width: int,
    density: float,
    add: bool,
    others: bool,
    seed: int,
) -> None:
    """Empty rows, no columns, no width; into a buffer of anything, or on top of it; with other values in the places."""
    dense = sparse(rows, columns, density, seed)
    matrix = made(matrix_kind(name), dense, dtype)
    values = None
    whole = torch.from_numpy(dense).to(dtype)
    if others:
        drawn = stream(seed, "values").standard_normal(matrix.rows.columns.size)
        values = torch.from_numpy(drawn).to(dtype)
        whole[torch.from_numpy(dense != 0)] = values
    x = torch.from_numpy(stream(seed, "x").standard_normal((columns, width))).to(dtype)
    g = torch.from_numpy(stream(seed, "g").standard_normal((rows, width))).to(dtype)
    for product, given_, map_ in ((matrix.multiply, x, whole), (matrix.multiply_transposed, g, whole.T)):
        before = torch.ones(map_.shape[0], width, dtype=dtype)
        out = before.clone() if add else torch.full_like(before, torch.nan)
        product(given_, out, add=add, values=values)
        near(out, map_ @ given_ + (before if add else 0.0))


@pytest.mark.parametrize("name", KINDS)
def test_other_values_leave_the_matrix_as_it_is(name: str) -> None:
    dense = sparse(6, 4, 0.6, 11)
    matrix = made(matrix_kind(name), dense)
    x = torch.eye(4, dtype=torch.float64)
    out = torch.empty(6, 4, dtype=torch.float64)
    matrix.multiply(x, out, values=torch.full((matrix.rows.columns.size,), 5.0, dtype=torch.float64))
    assert torch.equal(out, torch.from_numpy(np.where(dense != 0, 5.0, 0.0)))
    matrix.multiply(x, out)
    assert torch.equal(out, torch.from_numpy(dense))


@pytest.mark.parametrize("name", KINDS)
def test_the_transpose_need_not_be_made(name: str) -> None:
    rows = rows_of(sparse(6, 4, 0.6, 11))
    one_way = matrix_kind(name)(rows, torch.float64, CPU, turned=False)
    x, out, both = torch.randn(4, 3, dtype=torch.float64), *torch.empty(2, 6, 3, dtype=torch.float64)
    one_way.multiply(x, out)
    matrix_kind(name)(rows, torch.float64, CPU).multiply(x, both)
    assert torch.equal(out, both)
    with pytest.raises(AttributeError):
        one_way.multiply_transposed(out, x)


@pytest.mark.parametrize("name", KINDS)
def test_entries_need_not_ascend_within_a_row(name: str) -> None:
    """Drawn graphs number boundary columns by owner, misses first: not ascending."""
    rows = Rows(np.array([0, 3, 3, 5]), np.array([2, 0, 3, 1, 0], np.int32), np.array([1.0, 2, 3, 4, 5]), 4)
    matrix = matrix_kind(name)(rows, torch.float64, CPU)
    whole = torch.tensor([[2.0, 0, 1, 3], [0, 0, 0, 0], [5, 4, 0, 0]], dtype=torch.float64)
    found, back = torch.empty(3, 4, dtype=torch.float64), torch.empty(4, 3, dtype=torch.float64)
    matrix.multiply(torch.eye(4, dtype=torch.float64), found)
    matrix.multiply_transposed(torch.eye(3, dtype=torch.float64), back)
    assert torch.equal(found, whole)
    assert torch.equal(back, whole.T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 7, 16, 40, 128, 301])
def test_compiled_sums_are_the_same_bytes_for_any_number_of_threads(width: int, dtype: torch.dtype) -> None:
    """Every way of a width through vectors of 8, 2 and 1 and a rest; a sum goes entry by entry, so no thread shows."""
    dense = sparse(400, 300, 0.1, 5)
    dense[[0, 200, 399]] = 0.0
    matrix = made(NumbaMatrix, dense, dtype)
    whole = torch.from_numpy(dense).to(dtype)
    x = torch.from_numpy(stream(1, "x").standard_normal((300, width))).to(dtype)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            out, back = torch.full((400, width), torch.nan, dtype=dtype), torch.ones(300, width, dtype=dtype)
            matrix.multiply(x, out)
            matrix.multiply_transposed(out, back, add=True)
            found.append((out, back))
    finally:
        torch.set_num_threads(before)
    near(found[0][0], whole @ x)
    near(found[0][1], whole.T @ (whole @ x) + 1.0)
    assert all(torch.equal(out, found[0][0]) and torch.equal(back, found[0][1]) for out, back in found)


def test_compiled_sums_take_rows_and_results_that_lie_apart() -> None:
    dense = sparse(9, 6, 0.5, 5)
    matrix = made(NumbaMatrix, dense)
    x, out = torch.arange(24.0, dtype=torch.float64).view(4, 6).T, torch.ones(5, 9, dtype=torch.float64).T[:, :4]
    matrix.multiply(x, out, add=True)
    near(out, torch.from_numpy(dense) @ x + 1.0)


def test_the_transpose_names_the_place_of_every_entry() -> None:
    dense = sparse(7, 5, 0.5, 2)
    rows = rows_of(dense)
    indptr, columns, place = rows.transposed()
    entries = np.arange(rows.columns.size)
    expected = csr_array((entries, rows.columns, rows.indptr), shape=(7, 5)).tocsc()
    for mine, theirs in zip((indptr, columns, place), (expected.indptr, expected.indices, expected.data), strict=True):
        assert np.array_equal(mine, theirs)
    again = np.zeros((5, 7))
    again[np.repeat(np.arange(5), np.diff(indptr)), columns] = rows.values[place]
    assert np.array_equal(again, dense.T)


def test_without_mkl_the_products_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_module, "_MKL", False)
    dense = sparse(20, 12, 0.3, 4)
    matrix: Matrix = made(PlainMatrix, dense)
    x = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    out = torch.ones(20, 3, dtype=torch.float64)
    matrix.multiply(x, out, add=True)
    near(out, torch.from_numpy(dense) @ x + 1.0)
    matrix.multiply(x, out)
    near(out, torch.from_numpy(dense) @ x)


def test_kinds_by_name() -> None:
    assert matrix_kind("plain") is PlainMatrix
    assert matrix_kind("numba") is NumbaMatrix
    pytest.importorskip("dgl", reason="DGL is not installed")
    assert matrix_kind("dgl").__name__ == "DglMatrix"


def test_dgl_that_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dgl", None)
    monkeypatch.delitem(sys.modules, "runtime.aggregate.dgl_matrix", raising=False)
    with pytest.raises(ScenarioError) as caught:
        matrix_kind("dgl")
    text = str(caught.value)
    assert text.startswith("--aggregator: dgl cannot be imported (")
    assert text.endswith("; install it (pip install 'gcnsim[dgl]') or use plain")
    assert "\n" not in text
