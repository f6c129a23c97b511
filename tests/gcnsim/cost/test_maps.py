"""Learnt maps and the loss on a core, by terms that were measured and by rates where none were."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.cost import logits_seconds
from gcnsim.cost.maps import map_seconds, weight_seconds
from gcnsim.hardware import MAP_TERMS, DeviceProfile, HostProfile, MapFigures

LAUNCH = 1e-5
SECONDS = dict(zip(MAP_TERMS, (1e-5, 1e-11, 1e-10, 2e-10, 3e-5, 2e-11, 3e-10, 4e-10), strict=True))
MAPS = MapFigures(SECONDS, ((4.0, 1e-7), (16.0, 4e-7)))


@pytest.fixture
def core(gpu: DeviceProfile) -> DeviceProfile:
    return replace(gpu, maps=MAPS)


def test_a_map_is_its_call_its_arithmetic_and_its_rows(core: DeviceProfile) -> None:
    found = map_seconds(core, 100, 8, 2)
    assert found == pytest.approx(1e-5 + 3_200 * 1e-11 + 3_200 * 1e-10 + 800 * 2e-10)


def test_the_gradient_of_weights_has_terms_of_its_own(core: DeviceProfile) -> None:
    found = weight_seconds(core, 100, 8, 2)
    assert found == pytest.approx(3e-5 + 3_200 * 2e-11 + 3_200 * 3e-10 + 800 * 4e-10)


def test_nothing_takes_no_time_and_rows_may_differ_by_iteration(core: DeviceProfile) -> None:
    for seconds in (map_seconds, weight_seconds):
        found = seconds(core, np.array([0, 100]), 8, 2)
        assert found.tolist() == [0.0, float(seconds(core, 100, 8, 2))]


def test_without_measured_terms_both_follow_the_rates(gpu: DeviceProfile) -> None:
    assert gpu.maps is None
    assert weight_seconds(gpu, 100, 8, 2) == pytest.approx(map_seconds(gpu, 100, 8, 2))
    assert map_seconds(gpu, 100, 8, 2) > LAUNCH


@pytest.mark.parametrize(("classes", "each"), [(2, 1e-7), (4, 1e-7), (8, 2e-7), (16, 4e-7), (48, 12e-7)])
def test_a_row_of_the_loss_takes_what_its_number_of_classes_does(
    core: DeviceProfile, server: HostProfile, classes: int, each: float
) -> None:
    """As between the measured numbers, in logarithms; as the smallest of fewer, in proportion of more."""
    assert logits_seconds(core, server, 1_000, classes) == pytest.approx(LAUNCH + 1_000 * each)
