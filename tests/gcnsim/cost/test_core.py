"""Kernels of a CPU worker with numbers worked by hand (100 GB/s, 1 Tflop/s, 10 us a launch; see conftest)."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from gcnsim.cost import (
    CoreCost,
    Kept,
    adding_seconds,
    build_core_seconds,
    bytes_between,
    core_cost,
    logits_seconds,
    norms_seconds,
    socket_core_seconds,
    spmm_seconds,
)
from gcnsim.cost.core import sum_seconds
from gcnsim.cost.maps import map_seconds
from gcnsim.cost.sums import Product, product_seconds
from gcnsim.hardware import Curve, DeviceProfile, HostProfile, SumFigures
from gcnsim.hardware.profiles import TERMS
from gcnsim.partition import PRODUCTS, WINDOWS
from gcnsim.workload import layer_shapes

LAUNCH = 1e-5
SUMS = SumFigures((48e3, 2e6, 4e7), dict.fromkeys(TERMS, 1e-9))
SHAPES = layer_shapes("gcn", 16, 8, 3, 4)


def kept(*cross: int) -> Kept:
    """100 inner nodes with 500 entries between them; 20 boundary rows where any entry crosses."""
    crossing = np.array(cross)
    return Kept(100, np.full(crossing.shape, 500), crossing, np.where(crossing > 0, 20, 0))


def cost(gpu: DeviceProfile, layer: int, *cross: int, norm: bool = True) -> CoreCost:
    last = len(SHAPES) - 1
    return core_cost(gpu, SHAPES[layer], kept(*cross), first=layer == 0, last=layer == last, norm=norm)


def product(m: int, k: int, n: int) -> float:
    """Launch, 2 m k n flop at 80 % of 1 Tflop/s, and every operand once at 100 GB/s: one after the other."""
    return LAUNCH + 2 * m * k * n / 0.8e12 + 4 * (m * k + k * n + m * n) / 100e9


def test_sums_over_inner_and_boundary_columns_are_products_of_their_own(gpu: DeviceProfile) -> None:
    found = cost(gpu, 1, 60)
    # An entry: 8 B of index and value and a row of 8 values, at half of 100 GB/s; rows of 8 values twice at all of it.
    # Of the inner ones 100 are self-loops, whose rows are read in order.
    assert found.inner == pytest.approx(LAUNCH + 400 * 40 / 50e9 + 3 * 100 * 32 / 100e9, rel=1e-12)
    assert found.boundary == pytest.approx(LAUNCH + 60 * 40 / 50e9 + 2 * 100 * 32 / 100e9, rel=1e-12)
    assert found.inner_backward.tolist() == found.inner.tolist()
    # The transpose gives the boundary's 20 rows.
    assert found.boundary_backward == pytest.approx(LAUNCH + 60 * 40 / 50e9 + 2 * 20 * 32 / 100e9, rel=1e-12)


def test_a_hidden_update_is_a_product_and_an_activation(gpu: DeviceProfile) -> None:
    found, bare = cost(gpu, 1, 60), cost(gpu, 1, 60, norm=False)
    once = product(100, 8, 8)
    # 800 values: ReLU in 2 passes (3 backward), LayerNorm in 4 more.
    assert bare.update == pytest.approx(once + LAUNCH + 4 * 800 * 2 / 100e9, rel=1e-12)
    assert found.update == pytest.approx(once + LAUNCH + 4 * 800 * 6 / 100e9, rel=1e-12)
    # The gradients of weights and of inputs are products of the same three sizes.
    assert bare.update_backward == pytest.approx(2 * once + LAUNCH + 4 * 800 * 3 / 100e9, rel=1e-12)
    assert found.update_backward == pytest.approx(2 * once + LAUNCH + 4 * 800 * 7 / 100e9, rel=1e-12)


def test_the_first_layer_has_no_backward_sum_and_no_input_gradient(gpu: DeviceProfile) -> None:
    found = cost(gpu, 0, 60)
    assert found.inner_backward.tolist() == found.boundary_backward.tolist() == [0.0]
    weight = product(16, 100, 8)
    assert found.update_backward == pytest.approx(weight + LAUNCH + 4 * 800 * 7 / 100e9, rel=1e-12)


def test_the_last_layer_has_no_activation(gpu: DeviceProfile) -> None:
    found = cost(gpu, 2, 60)
    assert found.update == pytest.approx(product(100, 8, 4), rel=1e-12)
    assert found.update.tolist() == cost(gpu, 2, 60, norm=False).update.tolist()


def test_graphsage_multiplies_rows_twice_as_wide(gpu: DeviceProfile) -> None:
    shape = layer_shapes("graphsage", 16, 8, 1, 4)[0]
    found = core_cost(gpu, shape, kept(60), first=True, last=True, norm=False)
    assert found.update == pytest.approx(product(100, 32, 4), rel=1e-12)


def test_an_empty_boundary_costs_nothing(gpu: DeviceProfile) -> None:
    found = cost(gpu, 1, 0, 60)
    assert found.boundary.tolist()[0] == found.boundary_backward.tolist()[0] == 0.0
    assert min(found.boundary[1], found.boundary_backward[1]) > LAUNCH
    assert found.inner[0] == found.inner[1]


def test_every_figure_is_one_number_per_graph(gpu: DeviceProfile) -> None:
    for layer in range(3):
        found = cost(gpu, layer, 60, 0, 80)
        assert {getattr(found, field.name).shape for field in fields(CoreCost)} == {(3,)}


def test_an_empty_product_is_not_launched(gpu: DeviceProfile) -> None:
    assert float(map_seconds(gpu, 0, 8, 0)) == float(sum_seconds(gpu, 0, 5, 8, 5)) == 0.0


def test_bytes_of_a_message_take_a_core_at_either_end(server: HostProfile) -> None:
    found = socket_core_seconds(server, np.array([0.0, 1.0, 3e6]))
    assert found.tolist() == pytest.approx([0.0, 1e-9, 3e-3], rel=1e-12)


def test_losses_and_norms_and_sums_of_chunks(gpu: DeviceProfile, server: HostProfile) -> None:
    assert logits_seconds(gpu, server, 500_000, 4) == pytest.approx(LAUNCH + 2e-3, rel=1e-12)
    assert adding_seconds(gpu, 4e6) == pytest.approx(LAUNCH + 3 * 4e6 / 100e9, rel=1e-12)
    # Norms of what 100 nodes send: one map per layer and four passes over its result.
    each = [
        product(100, d_in, d_out) + LAUNCH + 4 * 4 * 100 * d_out / 100e9 for d_in, d_out in ((16, 8), (8, 8), (8, 4))
    ]
    assert norms_seconds(gpu, 100, SHAPES) == pytest.approx(sum(each), rel=1e-12)
    # Of attention all heads' rows, those of the last layer too, whose result is their mean.
    attending = [product(100, d_in, wide) + LAUNCH + 4 * 4 * 100 * wide / 100e9 for d_in, wide in ((16, 8), (8, 2 * 4))]
    assert norms_seconds(gpu, 100, layer_shapes("gat", 16, 8, 2, 4, heads=2)) == pytest.approx(
        sum(attending), rel=1e-12
    )


def test_a_drawn_graph_is_built_entry_by_entry(server: HostProfile) -> None:
    assert build_core_seconds(server, np.array([0, 4_000_000])).tolist() == pytest.approx([0.0, 0.2], rel=1e-12)


def test_a_calibrated_product_goes_by_the_bytes_it_gathers_from(gpu: DeviceProfile) -> None:
    curve = Curve((1e6, 1e8), (0.8, 0.2), "fitted", "chosen for a test", "2026")
    device = replace(gpu, spmm_curve=curve)
    small, large = (float(spmm_seconds(device, 1000, 100, 16, rows)) for rows in (1e6 / 64, 1e8 / 64))
    assert (large - LAUNCH) / (small - LAUNCH) == pytest.approx(4.0, rel=1e-9)
    # Where the gathered rows are not known, the plain efficiency holds.
    assert float(spmm_seconds(device, 1000, 100, 16)) == float(spmm_seconds(gpu, 1000, 100, 16))


def test_both_sums_of_a_layer_use_the_curve(gpu: DeviceProfile) -> None:
    curve = Curve((20 * 8 * 4.0, 100 * 8 * 4.0), (0.5, 0.25), "fitted", "chosen for a test", "2026")
    plain, curved = cost(gpu, 1, 60), cost(replace(gpu, spmm_curve=curve), 1, 60)
    # The boundary's 20 rows are gathered forward, the inner 100 in the three other products.
    assert curved.boundary.tolist() == pytest.approx(plain.boundary.tolist(), rel=1e-12)
    for name in ("inner", "inner_backward", "boundary_backward"):
        before, after = getattr(plain, name)[0], getattr(curved, name)[0]
        entries = 400 if name.startswith("inner") else 60
        assert after - before == pytest.approx(entries * 40 / 50e9, rel=1e-9)


def test_sums_go_by_the_order_of_their_matrices_where_it_is_known(gpu: DeviceProfile) -> None:
    core, shape = replace(gpu, sums=SUMS), SHAPES[1]
    reuse = np.linspace(0.1, 0.8, len(PRODUCTS) * len(WINDOWS), dtype=np.float32).reshape(len(PRODUCTS), -1)
    ordered = replace(kept(60, 0), reuse=reuse, between=1e12, beside=2)
    found = core_cost(core, shape, ordered, first=False, last=False, norm=True)
    width, fresh = shape.d_in, 3 * 2 * 4.0 * shape.d_in
    inner, cross, back = np.array([500, 500]), np.array([60, 0]), np.array([20, 0])
    wanted = {
        "inner": Product(inner, 100, width, reuse[0], reuse[1], 100 * fresh, 1e12),
        "inner_backward": Product(inner, 100, width, reuse[1], reuse[0], 100 * fresh, 1e12),
        "boundary": Product(cross, 100, width, reuse[2], reuse[3], 10 * fresh, 1e12),
        "boundary_backward": Product(cross, back, width, reuse[3], reuse[2], 100 * fresh, 1e12),
    }
    for name, product in wanted.items():
        assert getattr(found, name) == pytest.approx(product_seconds(SUMS, product), rel=1e-12), name
    assert found.boundary[1] == 0
    first = core_cost(core, shape, ordered, first=True, last=False, norm=True)
    assert (first.inner_backward.tolist(), first.boundary_backward.tolist()) == ([0, 0], [0, 0])
    assert (first.inner > found.inner).all(), "features were read an iteration ago"


@pytest.mark.parametrize("missing", ["sums", "reuse"])
def test_else_they_go_by_their_sizes(gpu: DeviceProfile, missing: str) -> None:
    reuse = None if missing == "reuse" else np.zeros((len(PRODUCTS), len(WINDOWS)), np.float32)
    core = gpu if missing == "sums" else replace(gpu, sums=SUMS)
    found = core_cost(core, SHAPES[1], replace(kept(60), reuse=reuse), first=False, last=False, norm=True)
    plain = cost(gpu, 1, 60)
    for field in fields(CoreCost):
        assert getattr(found, field.name).tolist() == getattr(plain, field.name).tolist()


def test_what_an_iteration_touches_grows_with_rows_and_widths() -> None:
    # Two layers, 16 to 8 and 8 to 4: per node 4 x 24 values before the maps and 4 x 12 after; per boundary row 2 x 24.
    two = layer_shapes("gcn", 16, 8, 2, 4)
    assert bytes_between(100, 0, two, norm=False) == 4 * 100 * (4 * 24 + 4 * 12)
    assert bytes_between(100, 10, two, norm=True) == 4 * (100 * (4 * 24 + 6 * 12) + 10 * 2 * 24)
