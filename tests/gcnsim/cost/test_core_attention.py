"""Graph attention on a core: what each term counts, and what a device without it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.cost import Kept, attention_terms, core_attention_cost, core_cost
from gcnsim.errors import ScenarioError
from gcnsim.hardware import ATTENTION_TERMS, AttentionFigures, CoreKernels, DeviceProfile, device
from gcnsim.workload import layer_shapes

NONE = dict.fromkeys(ATTENTION_TERMS, 0.0)
KEPT = Kept(100, np.array([1_000, 1_100]), np.array([200, 300]), np.array([50, 60]))


def core(forward: dict[str, float], backward: dict[str, float]) -> DeviceProfile:
    return replace(device("cpu-core"), attention=AttentionFigures(NONE | forward, NONE | backward))


def test_each_term_counts_what_its_name_says() -> None:
    found = dict(zip(ATTENTION_TERMS, attention_terms(np.array([10, 20]), np.array([3, 4]), 2, 8), strict=True))
    assert found["call"].tolist() == [1, 1]
    assert found["entry"].tolist() == [10, 20]
    assert found["entry_head"].tolist() == [20, 40]
    assert found["entry_value"].tolist() == [80, 160]
    assert found["row_value"].tolist() == [24, 32]


def test_what_is_measured_is_added_to_the_products_of_all_heads() -> None:
    (_, shape, _) = layer_shapes("gat", 16, 32, 3, 5, heads=2)
    none, some = (
        core_attention_cost(profile, shape, KEPT, first=False, last=False, norm=False)
        for profile in (core({}, {}), core({"entry": 1.0}, {"entry_head": 0.5}))
    )
    assert (some.boundary - none.boundary).tolist() == pytest.approx([1_200, 1_400])
    assert (some.update_backward - none.update_backward).tolist() == pytest.approx([1_200, 1_400])
    plain = core_cost(core({}, {}), layer_shapes("gcn", 16, 16, 2, 5)[1], KEPT, first=False, last=False, norm=False)
    assert none.boundary.tolist() == pytest.approx((2 * (plain.inner + plain.boundary)).tolist())


def test_one_kernel_of_all_heads_has_its_sums_in_what_was_measured() -> None:
    (_, shape, _) = layer_shapes("gat", 16, 32, 3, 5, heads=2)
    own = replace(core({"entry": 1.0}, {}), kernels=CoreKernels("numba"))
    found = core_attention_cost(own, shape, KEPT, first=False, last=False, norm=False)
    assert found.boundary.tolist() == [1_200, 1_400]
    with_products = core_attention_cost(core({"entry": 1.0}, {}), shape, KEPT, first=False, last=False, norm=False)
    assert (with_products.boundary > found.boundary).all()


def test_nothing_is_summed_before_all_rows_are_there() -> None:
    (first, _) = layer_shapes("gat", 16, 32, 2, 5, heads=2)
    found = core_attention_cost(core({}, {}), first, KEPT, first=True, last=False, norm=False)
    assert not found.inner.any()
    assert not found.inner_backward.any()
    assert not found.boundary_backward.any(), "the input has no gradient"


def test_a_device_that_was_not_measured_says_so() -> None:
    (shape, _) = layer_shapes("gat", 16, 32, 2, 5)
    with pytest.raises(ScenarioError, match="gat on cpu-core needs a calibration that measured attention; write it"):
        core_attention_cost(device("cpu-core"), shape, KEPT, first=True, last=False, norm=False)
