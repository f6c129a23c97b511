from __future__ import annotations

import math

import numpy as np
import pytest

from gcnsim.hardware import Curve

CURVE = Curve((1e3, 1e5, 1e6), (0.9, 0.5, 0.1), "fitted", "chosen for a test", "2026")


def test_a_curve_is_straight_between_its_points_in_the_logarithm_of_the_size() -> None:
    found = CURVE.at(np.array([1e3, 1e4, 1e5, math.sqrt(1e11), 1e6]))
    assert found.tolist() == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1], rel=1e-12)


def test_a_curve_is_flat_beyond_its_ends() -> None:
    assert CURVE.at(np.array([0.0, 0.5, 10.0, 1e7, 1e12])).tolist() == [0.9, 0.9, 0.9, 0.1, 0.1]


def test_a_curve_of_one_point_is_a_number() -> None:
    assert Curve((1e5,), (0.4,), "fitted", "", "").at(np.array([1.0, 1e5, 1e9])).tolist() == [0.4, 0.4, 0.4]


def test_a_curve_keeps_the_shape_of_the_sizes() -> None:
    assert CURVE.at(np.full((2, 3), 1e4)).shape == (2, 3)
    assert CURVE.at(np.asarray(1e4)).shape == ()
