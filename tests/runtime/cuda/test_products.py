"""Sums over neighbours on a GPU against dense products, and attention against that of a CPU."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from gcnsim.core.ids import FloatArray
from gcnsim.core.streams import stream
from runtime.aggregate import Matrix, PlainMatrix, attention_sum
from tests.runtime.aggregate.matrices import rows_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SHAPES = [(5, 7), (40, 30), (1, 6), (6, 1), (3, 0), (300, 500)]
WIDTHS = [1, 3, 64]


def sparse(shape: tuple[int, int]) -> FloatArray:
    """A tenth of the values are not zero, and the first row is empty."""
    generator = stream(1, "products", *shape)
    dense: FloatArray = generator.standard_normal(shape) * (generator.random(shape) < 0.1)
    dense[:1] = 0.0
    return dense


def test_products_are_those_of_dense_matrices() -> None:
    for shape, width, dtype in product(SHAPES, WIDTHS, (torch.float32, torch.float64)):
        check_products(shape, width, dtype)


def check_products(shape: tuple[int, int], width: int, dtype: torch.dtype) -> None:
    dense = sparse(shape)
    matrix = PlainMatrix(rows_of(dense), dtype, torch.device("cuda", 0))
    whole = torch.from_numpy(dense).to("cuda", dtype)
    generator = torch.Generator("cuda").manual_seed(3)
    x, g = (torch.randn(count, width, dtype=dtype, device="cuda", generator=generator) for count in shape[::-1])
    bound = 1e-5 if dtype is torch.float32 else 1e-12
    for add in (False, True):
        out, back = (
            torch.full((count, width), torch.nan if not add else 2.0, device="cuda").to(dtype) for count in shape
        )
        matrix.multiply(x, out, add=add)
        matrix.multiply_transposed(g, back, add=add)
        start = 2.0 if add else 0.0
        assert torch.allclose(out, whole @ x + start, rtol=bound, atol=bound)
        assert torch.allclose(back, whole.T @ g + start, rtol=bound, atol=bound)
    values = torch.full((int(np.count_nonzero(dense)),), 0.5, dtype=dtype, device="cuda")
    out = torch.empty(shape[0], width, dtype=dtype, device="cuda")
    matrix.multiply(x, out, values=values)
    assert torch.allclose(out, 0.5 * (whole != 0).to(dtype) @ x, rtol=bound, atol=bound)


def attending(matrix: Matrix, x: Tensor) -> Tensor:
    h = x.view(x.shape[0], 2, -1)
    return attention_sum(matrix, h, h[: matrix.rows.indptr.size - 1].sum(2), h.mean(2))


@pytest.mark.parametrize("chunk", [40, 1 << 25])
def test_attention_is_that_of_a_cpu(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.aggregate.attention._CHUNK", {"cpu": chunk, "cuda": chunk})
    dense = sparse((60, 90))
    found = []
    for device in (torch.device("cpu"), torch.device("cuda", 0)):
        matrix = PlainMatrix(rows_of(dense), torch.float64, device)
        x = torch.from_numpy(stream(2, "rows").standard_normal((90, 8))).to(device).requires_grad_()
        out = attending(matrix, x)
        out.square().sum().backward()  # type: ignore[no-untyped-call]
        assert x.grad is not None
        found.append((out.detach().cpu(), x.grad.cpu()))
    for plain, on_gpu in zip(*found, strict=True):
        assert torch.allclose(on_gpu, plain, rtol=1e-12, atol=1e-12)
