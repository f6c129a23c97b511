"""Layers' kernels by hand, with and without attention."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.cost import (
    attention_cost,
    gemm_seconds,
    gradient_bytes,
    layer_cost,
    loss_seconds,
    spmm_seconds,
    step_seconds,
)
from gcnsim.cost.layers import (
    REDUCTIONS,
    SOFTMAX_OPERANDS,
    dots_seconds,
    entries_seconds,
    longest_row,
    parameters,
    reduction_seconds,
)
from gcnsim.hardware import Curve, DeviceProfile, device
from gcnsim.workload import LayerShape, layer_shapes

ENTRIES, BOUNDARY = np.array([5000, 8000]), np.array([300, 400])
HIDDEN = LayerShape(64, 32, 64 * 32 + 32)
LAUNCH = 1e-5


def passes(values: int, count: int) -> float:
    """An elementwise kernel at 100 GB/s."""
    return LAUNCH + values * 4 * count / 100e9


AFTER, AFTER_BACK = passes(32_000, 2) + passes(32_000, 2), passes(32_000, 3) + passes(32_000, 5)
"""Activation and LayerNorm of 1,000 rows of width 32."""

DROPPED = [passes((1000 + boundary) * 64, 2) for boundary in (300, 400)]
"""Dropout of the rows that are summed."""


def test_forward_aggregates_then_multiplies(gpu: DeviceProfile) -> None:
    cost = layer_cost(gpu, HIDDEN, first=False, inner=1000, entries=ENTRIES, boundary_rows=BOUNDARY)
    assert cost.aggregate == pytest.approx([float(spmm_seconds(gpu, n, 1000, 64)) for n in (5000, 8000)])
    dense = float(gemm_seconds(gpu, 1000, 64, 32)) + AFTER
    assert cost.update == pytest.approx([dense + dropped for dropped in DROPPED])


def test_backward_makes_weight_and_input_gradients(gpu: DeviceProfile) -> None:
    cost = layer_cost(gpu, HIDDEN, first=False, inner=1000, entries=ENTRIES, boundary_rows=BOUNDARY)
    products = float(gemm_seconds(gpu, 64, 1000, 32)) + float(gemm_seconds(gpu, 1000, 32, 64))
    assert cost.update_backward == pytest.approx([AFTER_BACK + products + dropped for dropped in DROPPED])
    # The transposed aggregation writes a row for every inner and every boundary node.
    rows = [float(spmm_seconds(gpu, n, 1000 + b, 64)) for n, b in zip(ENTRIES, BOUNDARY, strict=True)]
    assert cost.aggregate_backward == pytest.approx(rows)


def test_a_calibrated_device_sums_at_the_efficiency_of_the_rows_it_gathers(gpu: DeviceProfile) -> None:
    curved = replace(gpu, spmm_curve=Curve((1e5, 1e6), (0.9, 0.3), "fitted", "", ""))
    cost = layer_cost(curved, HIDDEN, first=False, inner=1000, entries=ENTRIES, boundary_rows=BOUNDARY)
    for n, b, forward, backward in zip(ENTRIES, BOUNDARY, cost.aggregate, cost.aggregate_backward, strict=True):
        # Forward rows of inner and boundary nodes are gathered, backward those of inner nodes.
        assert forward == float(spmm_seconds(curved, n, 1000, 64, 1000 + b))
        assert backward == float(spmm_seconds(curved, n, 1000 + b, 64, 1000))


def test_the_first_layer_needs_no_input_gradient(gpu: DeviceProfile) -> None:
    cost = layer_cost(gpu, HIDDEN, first=True, inner=1000, entries=ENTRIES, boundary_rows=BOUNDARY)
    only = AFTER_BACK + float(gemm_seconds(gpu, 64, 1000, 32))
    assert cost.update_backward == pytest.approx([only] * 2)
    assert cost.aggregate_backward.tolist() == [0.0, 0.0]


def test_the_last_layer_has_neither_norm_nor_activation(gpu: DeviceProfile) -> None:
    given = {"first": False, "inner": 1000, "entries": ENTRIES, "boundary_rows": BOUNDARY}
    hidden, last = (layer_cost(gpu, HIDDEN, last=ends, **given) for ends in (False, True))  # type: ignore[arg-type]
    assert hidden.update - last.update == pytest.approx([AFTER] * 2)
    assert hidden.update_backward - last.update_backward == pytest.approx([AFTER_BACK] * 2)
    plain = layer_cost(gpu, HIDDEN, last=True, norm=False, **given)  # type: ignore[arg-type]
    assert plain.update == pytest.approx(last.update), "no norm to leave out"


def test_graphsage_maps_a_row_and_its_neighbours_mean_and_adds_both(gpu: DeviceProfile) -> None:
    (shape,) = layer_shapes("graphsage", 64, 64, 1, 32)
    cost = layer_cost(gpu, shape, first=False, inner=1000, entries=ENTRIES, boundary_rows=BOUNDARY)
    dense = 2 * float(gemm_seconds(gpu, 1000, 64, 32)) + passes(32_000, 3) + AFTER
    assert cost.update == pytest.approx([dense + dropped for dropped in DROPPED])
    products = 2 * float(gemm_seconds(gpu, 64, 1000, 32)) + 2 * float(gemm_seconds(gpu, 1000, 32, 64))
    back = products + passes(64_000, 3) + AFTER_BACK
    assert cost.update_backward == pytest.approx([back + dropped for dropped in DROPPED])
    assert cost.aggregate == pytest.approx([float(spmm_seconds(gpu, n, 1000, 64)) for n in (5000, 8000)])


def test_an_input_summed_before_meets_one_map_of_double_width(gpu: DeviceProfile) -> None:
    (shape, _) = layer_shapes("graphsage", 64, 32, 2, 32, preaggregate=True)
    cost = layer_cost(gpu, shape, first=True, inner=1000, entries=ENTRIES, boundary_rows=BOUNDARY, released=True)
    assert cost.update == pytest.approx([passes(128_000, 2) + float(gemm_seconds(gpu, 1000, 128, 32)) + AFTER] * 2)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("model", ["gcn", "graphsage"])
def test_released_code_concatenates_divides_and_cuts(gpu: DeviceProfile, model: str, first: bool) -> None:
    """Both put rows side by side and divide sums; GCN divides rows before too; GraphSAGE cuts its own rows out."""
    (shape,) = layer_shapes(model, 64, 64, 1, 32)
    given = {"first": first, "inner": 1000, "entries": ENTRIES[:1], "boundary_rows": BOUNDARY[:1]}
    lean, released = (layer_cost(gpu, shape, released=own, **given) for own in (False, True))  # type: ignore[arg-type]
    every, inner = 1300 * 64, 1000 * 64
    divided = passes(inner, 2) + (passes(every, 2) if model == "gcn" else 0)
    assert released.update - lean.update == pytest.approx(passes(every, 2) + divided)
    cut = passes(every, 1) + passes(inner, 2) if model == "graphsage" else 0
    assert released.update_backward - lean.update_backward == pytest.approx(0 if first else divided + cut, abs=1e-18)


def test_parameters_and_gradient_bytes() -> None:
    shapes = layer_shapes("gcn", 602, 256, 4, 41)
    count = (602 * 256 + 256) + 2 * (256 * 256 + 256) + (256 * 41 + 41)
    assert parameters(shapes) == count
    assert gradient_bytes(shapes) == 4 * count


def test_loss_and_step_are_elementwise(gpu: DeviceProfile) -> None:
    assert loss_seconds(gpu, 1000, 16) == pytest.approx(1e-5 + 16_000 * 20 / 100e9)
    assert step_seconds(gpu, (HIDDEN,)) == pytest.approx(1e-5 + 2080 * 28 / 100e9)


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
    ("given", "message"),
    [
        ({"heads": 3}, "workload.heads: 3 does not divide the hidden width 64"),
        ({"preaggregate": True}, "not allowed with gat"),
    ],
)
def test_what_attention_cannot_be(given: dict[str, int], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        layer_shapes("gat", 100, 64, 2, 10, **given)  # type: ignore[arg-type]


REDDIT = (114.6e6, 21_657)
"""Stored entries of Reddit, and of its longest row."""


@pytest.mark.parametrize(("heads", "measured_s"), [(1, 0.0586), (4, 0.0582), (8, 0.0922)])
def test_the_edge_softmax_of_reddit_is_as_measured(heads: int, measured_s: float) -> None:
    """DGL, pull request 3826, V100, the kernels before those it adds; within 20 % at each number of heads."""
    entries, longest = REDDIT
    gpu = device("v100-16")
    reductions = REDUCTIONS * reduction_seconds(gpu, entries, heads, longest)
    softmax = entries_seconds(gpu, entries, heads, SOFTMAX_OPERANDS) + reductions
    assert float(softmax) == pytest.approx(measured_s, rel=0.2)


@pytest.mark.parametrize(("heads", "bytes_of_entry"), [(1, 64), (8, 64), (16, 96)])
def test_a_reduction_reads_a_sector_for_the_place_and_as_many_as_the_values_fill(
    gpu: DeviceProfile, heads: int, bytes_of_entry: int
) -> None:
    found = float(reduction_seconds(gpu, 1e6, heads))
    assert found == pytest.approx(1e-5 + 1e6 * bytes_of_entry / 46e9, rel=1e-12)
    assert reduction_seconds(gpu, 0.0, heads) == 0.0


def test_kernels_by_entry_read_both_ends_and_their_operands(gpu: DeviceProfile) -> None:
    found = float(entries_seconds(gpu, 1e6, 4, (2, 3)))
    assert found == pytest.approx(2e-5 + 1e6 * (8 + 4 * 4 * 2 + 8 + 4 * 4 * 3) / 46e9, rel=1e-12)
    assert entries_seconds(gpu, 0.0, 4, (2, 3)) == 0.0


def test_single_threads_read_both_rows_of_a_dot_product(gpu: DeviceProfile) -> None:
    """8 bytes of an entry, two rows of 32 values and 2 results, at 0.4 of 100 GB/s; 10 us a launch."""
    assert float(dots_seconds(gpu, 1e6, 32, 2)) == pytest.approx(1e-5 + 1e6 * (8 + 2 * 128 + 8) / 40e9, rel=1e-12)


def test_a_warp_gathers_the_far_row_alone(gpu: DeviceProfile) -> None:
    """One row of 64 values, as quickly as a sparse sum gathers it."""
    rate = 100e9 * gpu.spmm_efficiency.value
    assert float(dots_seconds(gpu, 1e6, 64, 2)) == pytest.approx(1e-5 + 1e6 * (8 + 256 + 8) / rate, rel=1e-12)


def test_weights_that_are_dropped_are_three_operands_each_way(gpu: DeviceProfile) -> None:
    (shape, _) = layer_shapes("gat", 64, 64, 2, 10, heads=2)
    same = {"first": False, "inner": 20_000, "entries": np.array([1_000_000]), "boundary_rows": np.array([5000])}
    kept, dropped = (attention_cost(gpu, shape, weight_dropout=drops, **same) for drops in (False, True))  # type: ignore[arg-type]
    more = 1e-5 + 1e6 * (8 + 4 * 2 * 3) / 46e9
    assert dropped.aggregate - kept.aggregate == pytest.approx(more)
    assert dropped.aggregate_backward - kept.aggregate_backward == pytest.approx(more)
    assert dropped.update == pytest.approx(kept.update)


def test_own_rows_are_multiplied_twice_where_they_are_given_apart(gpu: DeviceProfile) -> None:
    (shape, _) = layer_shapes("gat", 64, 64, 2, 10, heads=2)
    same = {"inner": 20_000, "entries": np.array([1_000_000]), "boundary_rows": np.array([5000])}
    for first in (True, False):
        once, again = (attention_cost(gpu, shape, first=first, own_again=own, **same) for own in (False, True))  # type: ignore[arg-type]
        assert again.update - once.update == pytest.approx(float(gemm_seconds(gpu, 20_000, 64, 64)))
        back = float(gemm_seconds(gpu, 64, 20_000, 64))
        if not first:
            back += float(gemm_seconds(gpu, 20_000, 64, 64)) + 1e-5 + 20_000 * 64 * 12 / 100e9
        assert again.update_backward - once.update_backward == pytest.approx(back)
        assert again.aggregate == pytest.approx(once.aggregate)


def test_heads_that_are_averaged_have_the_whole_width_each() -> None:
    hidden, last = layer_shapes("gat", 100, 64, 2, 10, heads=3, heads_joined="averaged")
    assert (hidden.projected, last.projected) == (3 * 64, 3 * 10), "and need not divide the width"
    assert (hidden.d_out, last.d_in) == (64, 64), "rows that travel are as wide as before"


def test_inputs_that_stay_are_summed_but_not_exchanged() -> None:
    first, second = layer_shapes("gat", 100, 64, 2, 10, keep_inputs=True)
    assert (first.gathers, first.exchanges, second.exchanges) == (True, False, True)


def test_a_reduction_is_no_shorter_than_its_longest_row(gpu: DeviceProfile) -> None:
    """0.4 us a step: 10,000 entries in a row take 4 ms, 1,000 less than the bytes of a million."""
    assert float(reduction_seconds(gpu, 1e6, 1, 10_000)) == pytest.approx(1e-5 + 4e-3, rel=1e-12)
    assert float(reduction_seconds(gpu, 1e6, 1, 1_000)) == pytest.approx(1e-5 + 64e6 / 46e9, rel=1e-12)


def test_the_longest_row_of_lognormal_ones() -> None:
    """1,000 rows of mean 10 and spread 1: z = 3.0902, 10 exp(3.0902 - 0.5); equal rows are all the mean."""
    assert float(longest_row(10_000, 1000, 1.0, 1e9)) == pytest.approx(10 * np.exp(3.090232 - 0.5), rel=1e-6)
    assert float(longest_row(10_000, 1000, 0.0, 1e9)) == pytest.approx(10.0)
    assert float(longest_row(10_000, 1000, 1.0, 50)) == 50.0
