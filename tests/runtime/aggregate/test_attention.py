"""The attention's sum against a dense softmax, and its gradients."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch import Tensor

from gcnsim.core.ids import FloatArray
from gcnsim.core.streams import stream
from runtime.aggregate import Matrix, attention, attention_sum, matrix_kind
from tests.runtime.aggregate.matrices import made

KINDS = [
    "plain",
    "numba",
    pytest.param("dgl", marks=pytest.mark.skipif(find_spec("dgl") is None, reason="DGL is not installed")),
]


def pattern(rows: int, columns: int) -> FloatArray:
    """Ones at random; rows 2 and the last have no entry, column 1 neither; row 0 has one alone."""
    dense: FloatArray = (stream(rows, "pattern", columns).random((rows, columns)) < 0.5).astype(np.float64)
    dense[[2, rows - 1]] = 0.0
    dense[0] = 0.0
    dense[0, 3] = 1.0
    dense[:, 1] = 0.0
    return dense


def dense_sum(dense: FloatArray, h: Tensor, target: Tensor, source: Tensor) -> Tensor:
    """Softmax over the whole row, with minus infinity where there is no entry."""
    mask = torch.from_numpy(dense != 0).unsqueeze(2)
    scores = torch.nn.functional.leaky_relu(target.unsqueeze(1) + source.unsqueeze(0), 0.2)
    alpha = torch.where(mask, scores, -torch.inf).softmax(1)
    alpha = torch.where(mask.any(1, keepdim=True), alpha, 0.0)
    return torch.einsum("ijk,jkd->ikd", alpha, h)


def inputs(rows: int, columns: int, heads: int, width: int, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(17)
    shapes = ((columns, heads, width), (rows, heads), (columns, heads))
    h, target, source = (torch.randn(shape, dtype=torch.float64, generator=draw) for shape in shapes)
    return h.requires_grad_(), (target * scale).requires_grad_(), (source * scale).requires_grad_()


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("name", KINDS)
def test_values_and_gradients_are_the_dense_softmax_s(name: str, heads: int) -> None:
    dense = pattern(7, 9)
    matrix = made(matrix_kind(name), dense)
    tensors = inputs(7, 9, heads, 4)
    tensor, wanted = attention_sum(matrix, *tensors), dense_sum(dense, *tensors)
    assert tensor.shape == (7, heads, 4)
    assert torch.allclose(tensor, wanted, rtol=0, atol=1e-12)
    assert not tensor[[2, 6]].any()
    weight = torch.randn(tensor.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    for mine, theirs in zip(
        torch.autograd.grad((tensor * weight).sum(), tensors),
        torch.autograd.grad((wanted * weight).sum(), tensors),
        strict=True,
    ):
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["plain", "numba"])
def test_numerical_gradients(name: str) -> None:
    matrix = made(matrix_kind(name), pattern(5, 6))
    assert torch.autograd.gradcheck(lambda *given: attention_sum(matrix, *given), inputs(5, 6, 2, 3))


def test_gradients_are_the_same_in_several_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = pattern(7, 9)
    matrix = made(matrix_kind("plain"), dense)
    tensors = inputs(7, 9, 2, 3)
    whole = torch.autograd.grad(attention_sum(matrix, *tensors).square().sum(), tensors)
    entries = int(np.count_nonzero(dense))
    for chunk in (1, 4, entries, entries + 1):
        monkeypatch.setattr(attention, "_CHUNK", {"cpu": 2 * 3 * chunk})
        pieces = torch.autograd.grad(attention_sum(matrix, *tensors).square().sum(), tensors)
        assert all(torch.equal(one, other) for one, other in zip(whole, pieces, strict=True))


@pytest.mark.parametrize("name", ["plain", "numba"])
def test_large_scores_do_not_overflow(name: str) -> None:
    dense = pattern(7, 9)
    tensors = inputs(7, 9, 1, 2, scale=1e4)
    tensor = attention_sum(made(matrix_kind(name), dense), *tensors)
    assert torch.allclose(tensor, dense_sum(dense, *tensors), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["plain", "numba"])
def test_the_weights_of_a_row_sum_to_one_whatever_the_matrix_holds(name: str) -> None:
    """Only the pattern counts."""
    dense = pattern(7, 9) * 123.0
    matrix: Matrix = made(matrix_kind(name), dense, torch.float32)
    h = torch.ones(9, 2, 1)
    _, target, source = inputs(7, 9, 2, 1)
    tensor = attention_sum(matrix, h, target.detach().float(), source.detach().float())
    filled = torch.from_numpy((dense != 0).any(1))
    assert torch.allclose(tensor[filled], torch.ones(int(filled.sum()), 2, 1), rtol=0, atol=1e-6)
    assert not tensor[~filled].any()
