"""The compiled attention: every width of a head, both types, any number of threads, and what no graph should hold."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from gcnsim.core.ids import FloatArray
from gcnsim.core.streams import stream
from runtime.aggregate import (
    NumbaMatrix,
    PlainMatrix,
    Rows,
    attention_sum,
    compiled,
    vectors,
)
from tests.runtime.aggregate.matrices import made
from tests.runtime.aggregate.test_attention import dense_sum

BOUND = {torch.float32: 1e-5, torch.float64: 1e-11}
CPU = torch.device("cpu")

HEADS_AND_WIDTHS = [
    *((1, width) for width in (1, 16, 40, 128, 301)),
    *((4, width) for width in (1, 7, 32, 64, 136)),
    *((9, width) for width in (8, 16, 32)),
    (3, 64),
]
"""Every way of a row through vectors: heads that share none, that fill 1, 2, 4 and 8, more heads than are done at once,
and rests."""


def pattern(rows: int, columns: int, density: float) -> FloatArray:
    """Ones at random; rows at both ends and in the middle have no entry, nor has column 5."""
    dense: FloatArray = (stream(rows, "pattern", columns).random((rows, columns)) < density).astype(np.float64)
    dense[[0, rows // 2, rows - 1]] = 0.0
    dense[:, 5] = 0.0
    return dense


def inputs(rows: int, columns: int, heads: int, width: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(17)
    shapes = ((columns, heads, width), (rows, heads), (columns, heads))
    h, target, source = (torch.randn(shape, dtype=torch.float64, generator=draw).to(dtype) for shape in shapes)
    return h.requires_grad_(), target.requires_grad_(), source.requires_grad_()


def weighing(out: Tensor) -> Tensor:
    """Gradients of `out`: numbers at random."""
    return torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).to(out.dtype)


def near(found: Tensor, wanted: Tensor) -> None:
    """Within BOUND of the largest value, or of 1."""
    assert found.shape == wanted.shape
    error, size = (float(tensor.detach().abs().max()) for tensor in (found - wanted, wanted))
    assert error <= BOUND[found.dtype] * max(1.0, size)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("heads", "width"), HEADS_AND_WIDTHS)
@pytest.mark.parametrize("columns", [31, 45], ids=["no boundary", "boundary"])
def test_values_and_gradients_are_the_dense_ones(columns: int, heads: int, width: int, dtype: torch.dtype) -> None:
    """The dense computation is in double precision always."""
    dense = pattern(31, columns, 0.3)
    tensors = inputs(31, columns, heads, width, dtype)
    exact = [tensor.detach().double().requires_grad_() for tensor in tensors]
    tensor, wanted = attention_sum(made(NumbaMatrix, dense, dtype), *tensors), dense_sum(dense, *exact)
    near(tensor, wanted)
    assert not tensor[[0, 15, 30]].any()
    back = weighing(tensor)
    gradients = torch.autograd.grad(tensor, tensors, back), torch.autograd.grad(wanted, exact, back.double())
    for mine, theirs in zip(*gradients, strict=True):
        near(mine, theirs)
    grad_h, grad_target, grad_source = gradients[0]
    assert not grad_h[5].any()
    assert not grad_source[5].any()
    assert not grad_target[[0, 15, 30]].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("heads", "width"), [(1, 32), (2, 7), (4, 32)])
def test_bytes_are_the_same_for_any_number_of_threads(heads: int, width: int, dtype: torch.dtype) -> None:
    """Enough entries that each of the passes is shared among three."""
    matrix = made(NumbaMatrix, pattern(500, 400, 0.6), dtype)
    assert matrix.rows.columns.size > 3 * 2**15
    tensors = inputs(500, 400, heads, width, dtype)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            out = attention_sum(matrix, *tensors)
            found.append([out, *torch.autograd.grad(out, tensors, weighing(out))])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


@pytest.mark.parametrize(("dtype", "top", "steps"), [(torch.float32, 128.0, 2.0**16), (torch.float64, 1024.0, 2.0**40)])
def test_weights_are_right_to_the_last_digits_however_small(dtype: torch.dtype, top: float, steps: float) -> None:
    """Row i has the scores `top` and top + x_i, exact and positive: the second weighs e^x / (1 + e^x)."""
    least = float(np.log(torch.finfo(dtype).tiny))
    x = np.round(np.linspace(1.01 * least, 0.0, 3001) * steps) / steps
    count = x.size
    columns = np.stack([np.zeros(count), 1 + np.arange(count)], 1).astype(np.int32).ravel()
    matrix = NumbaMatrix(Rows(np.arange(0, 2 * count + 1, 2), columns, np.ones(2 * count), count + 1), dtype, CPU)
    h = torch.ones(count + 1, 1, 1, dtype=dtype)
    h[0] = 0.0
    scores = torch.from_numpy(np.concatenate([[top], top + x])).to(dtype).unsqueeze(1)
    assert torch.equal(scores[1:, 0].double() - top, torch.from_numpy(x))
    found = attention_sum(matrix, h, torch.zeros(count, 1, dtype=dtype), scores).flatten().numpy()
    exact = np.exp(x.astype(np.longdouble))
    wanted, full = exact / (1 + exact), x >= least
    assert not found[~full].any()
    assert 0 < int((~full).sum()) < 40
    assert float((np.abs(found - wanted) / wanted)[full].max()) <= 3 * torch.finfo(dtype).eps


def test_one_neighbour_weighs_one_and_teaches_its_score_nothing() -> None:
    rows = Rows(np.arange(6), np.array([4, 2, 2, 0, 1], np.int32), np.ones(5), 5)
    tensors = inputs(5, 5, 2, 40, torch.float32)
    out = attention_sum(NumbaMatrix(rows, torch.float32, CPU), *tensors)
    assert torch.equal(out, tensors[0][[4, 2, 2, 0, 1]])
    _, target, source = torch.autograd.grad(out, tensors, weighing(out))
    assert not target.any()
    assert not source.any()


@pytest.mark.parametrize(("count", "columns", "width"), [(3, 0, 5), (3, 4, 5), (0, 4, 5), (0, 0, 5), (3, 4, 0)])
def test_a_matrix_without_entries_gives_zeros(count: int, columns: int, width: int) -> None:
    rows = Rows(np.zeros(count + 1, np.int64), np.empty(0, np.int32), np.empty(0), columns)
    tensors = inputs(count, columns, 2, width, torch.float64)
    out = attention_sum(NumbaMatrix(rows, torch.float64, CPU), *tensors)
    assert out.shape == (count, 2, width)
    assert not out.any()
    for gradient, tensor in zip(torch.autograd.grad(out.sum(), tensors), tensors, strict=True):
        assert gradient.shape == tensor.shape
        assert not gradient.any()


def test_numbers_that_are_none_spoil_the_rows_that_see_them() -> None:
    """A training that diverges must show."""
    dense = pattern(31, 31, 0.3)
    h, target, source = (tensor.detach() for tensor in inputs(31, 31, 2, 3, torch.float32))
    source[7, 1] = torch.nan
    found, wanted = (
        attention_sum(made(kind, dense, torch.float32), h, target, source) for kind in (NumbaMatrix, PlainMatrix)
    )
    assert found.isnan().any()
    assert torch.equal(found.isnan(), wanted.isnan())


def test_inputs_and_gradients_may_lie_apart() -> None:
    dense = pattern(31, 45, 0.3)
    matrix = made(NumbaMatrix, dense)
    tensors = inputs(31, 45, 2, 5, torch.float64)
    apart = [tensor.detach().permute(*reversed(range(tensor.dim()))).contiguous() for tensor in tensors]
    apart = [item.permute(*reversed(range(item.dim()))).requires_grad_() for item in apart]
    assert not any(item.is_contiguous() for item in apart)
    out, other = attention_sum(matrix, *tensors), attention_sum(matrix, *apart)
    assert torch.equal(out, other)
    back = weighing(out.mT).mT
    assert not back.is_contiguous()
    for one, two in zip(torch.autograd.grad(out, tensors, back), torch.autograd.grad(other, apart, back), strict=True):
        assert torch.equal(one, two)


def test_kept_kernels_are_thrown_away_when_their_vectors_change() -> None:
    """Numba looks at the file of the function alone: who changes `vectors.py` notes its digest in all others."""
    digest = hashlib.sha256(Path(vectors.__file__).read_bytes()).hexdigest()[:16]
    assert digest == compiled.VECTORS
