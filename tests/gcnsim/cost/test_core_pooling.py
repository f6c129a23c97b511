"""GraphSAGE's pooling on a core: what each term counts, where its kernels stand, what a device without it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcnsim.cost import (
    Kept,
    batch_core_cost,
    core_cost,
    core_pooling_cost,
    elementwise_seconds,
    pooling_terms,
)
from gcnsim.cost.maps import map_seconds, weight_seconds
from gcnsim.errors import ScenarioError
from gcnsim.hardware import POOLING_TERMS, DeviceProfile, PoolingFigures, device
from gcnsim.workload import LayerShape, layer_shapes

NONE = dict.fromkeys(POOLING_TERMS, 0.0)
KEPT = Kept(100, np.array([1_100, 1_200]), np.array([200, 300]), np.array([50, 60]))
FIRST, HIDDEN, _ = layer_shapes("graphsage", 16, 32, 3, 5, sage_aggregator="pool")


def core(forward: dict[str, float], backward: dict[str, float]) -> DeviceProfile:
    return replace(device("cpu-core"), pooling=PoolingFigures(NONE | forward, NONE | backward))


def test_a_layer_has_a_map_of_its_input_besides_and_joins_its_rows() -> None:
    mean = layer_shapes("graphsage", 16, 32, 3, 5)
    assert FIRST.weights == mean[0].weights + 16 * 16 + 16
    assert HIDDEN.weights == mean[1].weights + 32 * 32 + 32
    assert (HIDDEN.update_in, HIDDEN.projected) == (64, 32)
    assert HIDDEN.joins
    assert not mean[1].joins


def test_each_term_counts_what_its_name_says() -> None:
    found = dict(zip(POOLING_TERMS, pooling_terms(np.array([10, 20]), np.array([3, 4]), 2, 8), strict=True))
    assert found["call"].tolist() == [1, 1]
    assert found["entry"].tolist() == [10, 20]
    assert found["entry_value"].tolist() == [80, 160]
    assert found["row_value"].tolist() == [24, 32]
    assert found["made_value"].tolist() == [16, 16]


def test_what_is_measured_is_of_neighbours_alone() -> None:
    none, some = (
        core_pooling_cost(profile, HIDDEN, KEPT, first=False, last=False, norm=False)
        for profile in (core({}, {}), core({"entry": 1.0}, {"row_value": 0.5}))
    )
    assert (some.boundary - none.boundary).tolist() == pytest.approx([1_200, 1_400]), "no node is its own neighbour"
    rows = (some.update_backward - none.update_backward) / 32
    assert rows.tolist() == pytest.approx([75, 80]), "rows of others too"


def test_every_row_meets_the_map_before_pooling() -> None:
    plain = device("cpu-core")
    pooled = core_pooling_cost(core({}, {}), HIDDEN, KEPT, first=False, last=True, norm=False)
    mean = core_cost(plain, layer_shapes("graphsage", 16, 32, 3, 5)[1], KEPT, first=False, last=True, norm=False)
    every = np.array([150.0, 160.0])
    assert (pooled.boundary > map_seconds(plain, every, 32, 32)).all()
    assert (pooled.update_backward > mean.update_backward + weight_seconds(plain, every, 32, 32)).all()
    passes = ((100.0 * 32, 2), (every * 32, 4), (every * 32, 2))
    added = sum(elementwise_seconds(plain, values, count) for values, count in passes)
    assert pooled.boundary_backward.tolist() == pytest.approx((map_seconds(plain, every, 32, 32) + added).tolist())


def test_nothing_is_pooled_before_all_rows_are_there_and_the_input_has_no_gradient() -> None:
    found = core_pooling_cost(core({}, {}), FIRST, KEPT, first=True, last=False, norm=False)
    assert not found.inner.any()
    assert not found.inner_backward.any()
    assert not found.boundary_backward.any()
    assert found.boundary.all()
    mean = layer_shapes("graphsage", 16, 32, 3, 5)[0]
    plain = core_cost(device("cpu-core"), mean, KEPT, first=True, last=False, norm=False)
    # Beside the map before pooling, its ReLU and its weights: the gradient of the largest values.
    every = np.array([150.0, 160.0])
    more = weight_seconds(device("cpu-core"), every, 16, 16) + elementwise_seconds(device("cpu-core"), every * 16, 3)
    learnt = map_seconds(device("cpu-core"), 100.0, 32, 16)
    assert found.update_backward.tolist() == pytest.approx((plain.update_backward + more + learnt).tolist())


@pytest.mark.parametrize(("shape", "first"), [(FIRST, True), (HIDDEN, False)])
def test_a_mini_batch_pools_its_rows_and_the_map_before_learns_in_every_layer(shape: LayerShape, first: bool) -> None:
    sizes: dict[str, Any] = {"rows_in": np.array([90]), "rows_out": np.array([40]), "entries": np.array([200])}
    chosen = core({"entry": 1.0, "made_value": 1.0}, {"row_value": 1.0})
    found = batch_core_cost(chosen, shape, **sizes, first=first, last=False, norm=False)
    mean = replace(shape, pooled=0, weights=shape.weights - shape.pooled)
    plain = batch_core_cost(chosen, mean, **sizes, first=first, last=False, norm=False)
    width = shape.d_in
    assert found.aggregate[0] == pytest.approx(200 + 40 * width, rel=1e-3)
    assert found.aggregate_backward[0] == pytest.approx(90 * width, rel=1e-3)
    assert found.update.tolist() == plain.update.tolist()
    learnt = float(map_seconds(chosen, 40.0, shape.d_out, width)) if first else 0.0
    assert found.update_backward[0] == pytest.approx(plain.update_backward[0] + learnt), "the largest values learn"
    back = float(map_seconds(chosen, 90.0, width, width))
    # The own rows' gradient is put among all rows and added: two passes over these, four over all.
    back += float(elementwise_seconds(chosen, 40.0 * width, 2) + elementwise_seconds(chosen, 90.0 * width, 4))
    without = batch_core_cost(core({}, {}), shape, **sizes, first=True, last=False, norm=False).aggregate_backward[0]
    whole = batch_core_cost(core({}, {}), shape, **sizes, first=False, last=False, norm=False).aggregate_backward[0]
    assert whole - without == pytest.approx(back)


def test_a_device_that_was_not_measured_says_so() -> None:
    with pytest.raises(ScenarioError, match="pool on cpu-core needs a calibration that measured pooling; write it"):
        core_pooling_cost(device("cpu-core"), FIRST, KEPT, first=True, last=False, norm=False)
