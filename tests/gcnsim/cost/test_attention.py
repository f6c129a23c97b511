"""Attention: widths of its layers, and kernels that grow with entries, heads and rows."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.cost import attention_cost, layer_cost
from gcnsim.cost.attention import dots_seconds
from gcnsim.errors import ScenarioError
from gcnsim.hardware import DeviceProfile
from gcnsim.workload import LayerShape, layer_shapes


def cost(
    gpu: DeviceProfile, shape: LayerShape, *, entries: int = 1_000_000, boundary: int = 5000, first: bool = False
) -> float:
    found = attention_cost(
        gpu, shape, first=first, inner=20_000, entries=np.array([entries]), boundary_rows=np.array([boundary])
    )
    return float(found.seconds[0])


def test_heads_stand_side_by_side_and_are_averaged_in_the_last_layer() -> None:
    """Parameters as the training runtime has them: a map and two vectors a head, and a bias."""
    hidden, last = layer_shapes("gat", 100, 64, 2, 10, heads=4)
    assert (hidden.projected, last.projected) == (64, 40)
    assert (hidden.weights, last.weights) == (100 * 64 + 2 * 64 + 64, 64 * 40 + 2 * 40 + 10)
    assert (hidden.heads, last.heads) == (4, 4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"heads": 3}, "workload.heads: 3 does not divide the hidden width 64"),
        ({"preaggregate": True}, "not allowed with gat"),
    ],
)
def test_what_attention_cannot_be(given: dict[str, int], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        layer_shapes("gat", 100, 64, 2, 10, **given)  # type: ignore[arg-type]


def test_more_of_anything_costs_more(gpu: DeviceProfile) -> None:
    (shape, _), (wider, _), (more, _) = (
        layer_shapes("gat", 100, width, 2, 10, heads=heads) for width, heads in ((64, 1), (128, 1), (64, 8))
    )
    base = cost(gpu, shape)
    assert base < cost(gpu, more) < 10 * base
    assert base < cost(gpu, wider)
    assert base < cost(gpu, shape, entries=2_000_000)
    assert base < cost(gpu, shape, boundary=10_000), "rows of the boundary meet the weights here"
    assert cost(gpu, shape, first=True) < base


def test_attention_costs_more_than_a_plain_sum(gpu: DeviceProfile) -> None:
    plain, attending = (layer_shapes(model, 64, 64, 2, 10)[0] for model in ("gcn", "gat"))
    same = {"first": False, "inner": 20_000, "entries": np.array([1_000_000]), "boundary_rows": np.array([5000])}
    found = [law(gpu, shape, **same).seconds[0] for law, shape in ((layer_cost, plain), (attention_cost, attending))]  # type: ignore[arg-type]
    assert 1.5 * found[0] < found[1] < 6 * found[0]


def test_a_dot_product_gathers_both_rows(gpu: DeviceProfile) -> None:
    """8 bytes of an entry and 4 a value, twice, at half of 100 GB/s; 10 us a launch."""
    assert float(dots_seconds(gpu, np.array(1e6), 64)) == pytest.approx(1e-5 + 2e6 * (8 + 256) / 50e9)
