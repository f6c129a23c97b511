"""The largest values over neighbours against dense ones, and where their gradients go."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from gcnsim.core.ids import FloatArray
from runtime.aggregate import NumbaMatrix, PlainMatrix, Rows, matrix_kind, maximum, neighbour_max
from tests.runtime.aggregate.matrices import made
from tests.runtime.aggregate.test_attention import pattern

KINDS = ("plain", "numba")
BOUND = {torch.float32: 1e-5, torch.float64: 1e-11}
"""Gradients' largest error, of the largest value or of 1; values are the same."""

WIDTHS = (1, 7, 16, 19, 64, 80, 101)
"""Of rows: less than a vector, one, several and a rest, four at once, and all of these."""


def dense_max(dense: FloatArray, x: Tensor) -> Tensor:
    """Row after row; 0 where there is no entry."""
    rows = [x[torch.from_numpy(np.flatnonzero(row))] for row in dense]
    return torch.stack([row.max(0).values if len(row) else x.new_zeros(x.shape[1]) for row in rows])


def rows_of(count: int, width: int, dtype: torch.dtype = torch.float64) -> Tensor:
    draw = torch.Generator().manual_seed(5)
    return torch.randn(count, width, dtype=torch.float64, generator=draw).to(dtype).requires_grad_()


def weighing(out: Tensor) -> Tensor:
    """Gradients of `out`: numbers at random."""
    return torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).to(out.dtype)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("chunk", [1, 40, 1 << 19])
def test_values_and_gradients_are_the_dense_ones(name: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maximum, "_CHUNK", {"cpu": chunk})
    dense, x = pattern(17, 23), rows_of(23, 5)
    found, wanted = neighbour_max(made(matrix_kind(name), dense), x), dense_max(dense, x)
    assert torch.equal(found, wanted)
    assert not found[[2, 16]].any()
    (mine,), (theirs,) = (torch.autograd.grad(tensor, x, weighing(found)) for tensor in (found, wanted))
    assert torch.allclose(mine, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_compiled_values_and_gradients_are_the_plain_and_the_dense_ones(width: int, dtype: torch.dtype) -> None:
    """The dense gradient is in double precision always."""
    dense, x = pattern(31, 45), rows_of(45, width, dtype)
    exact = x.detach().double().requires_grad_()
    found, plain = (neighbour_max(made(kind, dense, dtype), x) for kind in (NumbaMatrix, PlainMatrix))
    wanted = dense_max(dense, exact)
    assert found.dtype == dtype
    assert torch.equal(found, plain)
    assert torch.equal(found.double(), wanted)
    back = weighing(found)
    mine, other = (torch.autograd.grad(item, x, back)[0] for item in (found, plain))
    (theirs,) = torch.autograd.grad(wanted, exact, back.double())
    bound = BOUND[dtype] * max(1.0, float(theirs.abs().max()))
    assert float((mine - theirs).abs().max()) <= bound
    assert float((mine - other).abs().max()) <= bound
    assert not mine[1].any(), "no row has an entry of column 1"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [16, 40, 101])
def test_bytes_are_the_same_for_any_number_of_threads(width: int, dtype: torch.dtype) -> None:
    """Enough entries, and rows, that both passes are shared among three where there are as many lines of columns."""
    dense = pattern(3_000, 400)
    matrix, x = made(NumbaMatrix, dense, dtype), rows_of(400, width, dtype)
    assert matrix.rows.columns.size > 3 * 2**15
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            out = neighbour_max(matrix, x)
            found.append((out, *torch.autograd.grad(out, x, weighing(out))))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


@pytest.mark.parametrize("name", KINDS)
def test_rows_and_gradients_may_lie_apart(name: str) -> None:
    matrix, x = made(matrix_kind(name), pattern(17, 23)), rows_of(23, 20)
    apart = x.detach().T.contiguous().T.requires_grad_()
    out, other = neighbour_max(matrix, x), neighbour_max(matrix, apart)
    assert torch.equal(out, other)
    back = weighing(out.T).T
    assert not apart.is_contiguous()
    assert not back.is_contiguous()
    (mine,) = torch.autograd.grad(out, x, back.contiguous())
    assert torch.equal(mine, torch.autograd.grad(other, apart, back)[0])
    (spread,) = torch.autograd.grad(neighbour_max(matrix, x).sum(), x)
    assert float(spread.sum()) == 15 * 20, "each value of the 15 rows with an entry has one winner"


@pytest.mark.parametrize("width", WIDTHS)
def test_a_matrix_without_its_transpose_is_enough(width: int) -> None:
    rows = Rows(np.array([0, 2, 3]), np.array([0, 2, 1], np.int32), np.ones(3), 3)
    x = rows_of(3, width)
    tensor = neighbour_max(NumbaMatrix(rows, torch.float64, torch.device("cpu"), turned=False), x)
    assert torch.equal(tensor, torch.stack([torch.maximum(x[0], x[2]), x[1]]))
    assert torch.equal(torch.autograd.grad(tensor.sum(), x)[0][1], torch.ones(width, dtype=torch.float64))


@pytest.mark.parametrize("width", [2, 16, 21, 64])
@pytest.mark.parametrize("name", KINDS)
def test_of_equal_values_the_first_entry_alone_gets_the_gradient(name: str, width: int) -> None:
    dense = np.array([[0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
    for value in (0.0, -torch.inf, torch.inf):
        x = torch.full((4, width), value, dtype=torch.float64, requires_grad=True)
        tensor = neighbour_max(made(matrix_kind(name), dense), x)
        assert torch.equal(tensor, x[:2])
        (gradient,) = torch.autograd.grad(tensor, x, torch.ones_like(tensor))
        assert gradient.tolist() == [[1.0] * width, [1.0] * width, [0.0] * width, [0.0] * width]


@pytest.mark.parametrize("shape", [(0, 4, 2), (3, 0, 2), (3, 4, 2), (3, 4, 40), (3, 4, 0), (0, 0, 2)])
@pytest.mark.parametrize("name", KINDS)
def test_the_largest_of_nothing_is_zero(name: str, shape: tuple[int, int, int]) -> None:
    rows, columns, width = shape
    x = rows_of(columns, width)
    tensor = neighbour_max(made(matrix_kind(name), np.zeros((rows, columns))), x)
    assert tensor.shape == (rows, width)
    assert not tensor.any()
    (gradient,) = torch.autograd.grad(tensor.sum(), x)
    assert gradient.shape == (columns, width)
    assert not gradient.any()


@pytest.mark.parametrize("name", KINDS)
def test_rows_without_columns_have_no_largest_value(name: str) -> None:
    x = rows_of(23, 0)
    tensor = neighbour_max(made(matrix_kind(name), pattern(17, 23)), x)
    assert tensor.shape == (17, 0)
    assert torch.autograd.grad(tensor.sum(), x)[0].shape == (23, 0)


@pytest.mark.parametrize("width", [1, 16, 21, 64])
@pytest.mark.parametrize("name", KINDS)
def test_rows_that_are_no_numbers_stay_so(name: str, width: int) -> None:
    """Wherever among the entries they are; nobody learns of them."""
    dense = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    for place in (0, 1, 2):
        x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).unsqueeze(1).repeat(1, width)
        x[place] = torch.nan
        x.requires_grad_()
        tensor = neighbour_max(made(matrix_kind(name), dense), x)
        seen = [True, place != 1]
        assert tensor.isnan().tolist() == [[item] * width for item in seen]
        (gradient,) = torch.autograd.grad(tensor.sum(), x)
        assert gradient[:, 0].tolist() == [0.0, 0.0, 0.0 if place != 1 else 1.0]
        assert torch.equal(gradient, gradient[:, :1].expand_as(gradient))
