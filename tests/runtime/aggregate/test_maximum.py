"""The largest values over neighbours against dense ones, and where their gradients go."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from gcnsim.ids import FloatArray
from runtime.aggregate import matrix_kind, maximum, neighbour_max
from tests.runtime.aggregate.matrices import made
from tests.runtime.aggregate.test_attention import pattern


def dense_max(dense: FloatArray, x: Tensor) -> Tensor:
    """Row after row; 0 where there is no entry."""
    rows = [x[torch.from_numpy(np.flatnonzero(row))] for row in dense]
    return torch.stack([each.max(0).values if len(each) else x.new_zeros(x.shape[1]) for each in rows])


def rows_of(count: int, width: int) -> Tensor:
    return torch.randn(count, width, dtype=torch.float64, generator=torch.Generator().manual_seed(5)).requires_grad_()


@pytest.mark.parametrize("name", ["plain", "numba"])
@pytest.mark.parametrize("chunk", [1, 40, 1 << 19])
def test_values_and_gradients_are_the_dense_ones(name: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maximum, "_CHUNK", {"cpu": chunk})
    dense, x = pattern(17, 23), rows_of(23, 5)
    found, wanted = neighbour_max(made(matrix_kind(name), dense), x), dense_max(dense, x)
    assert torch.equal(found, wanted)
    assert not found[[2, 16]].any()
    weight = torch.randn(found.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    (mine,), (theirs,) = (torch.autograd.grad((each * weight).sum(), x) for each in (found, wanted))
    assert torch.allclose(mine, theirs, rtol=0, atol=1e-12)


def test_of_equal_values_the_first_entry_alone_gets_the_gradient() -> None:
    dense = np.array([[0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
    x = torch.zeros(4, 2, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(neighbour_max(made(matrix_kind("plain"), dense), x).sum(), x)
    assert gradient.tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("shape", [(0, 4, 2), (3, 0, 2), (3, 4, 2)])
def test_the_largest_of_nothing_is_zero(shape: tuple[int, int, int]) -> None:
    rows, columns, width = shape
    x = rows_of(columns, width)
    found = neighbour_max(made(matrix_kind("plain"), np.zeros((rows, columns))), x)
    assert found.shape == (rows, width)
    assert not found.any()
    assert not torch.autograd.grad(found.sum(), x)[0].any()


def test_rows_that_are_no_numbers_stay_so() -> None:
    dense = np.array([[1.0, 1.0], [0.0, 1.0]])
    x = torch.tensor([[torch.nan], [1.0]], dtype=torch.float64, requires_grad=True)
    found = neighbour_max(made(matrix_kind("plain"), dense), x)
    assert torch.isnan(found[0, 0])
    assert found[1, 0] == 1.0
    assert torch.autograd.grad(found.sum(), x)[0].tolist() == [[0.0], [1.0]]
