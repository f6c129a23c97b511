"""studies/cross_edges.py: what published volumes of edge sampling say of cross edges."""

from __future__ import annotations

import numpy as np
import pytest

from studies.cross_edges import CLASSES, TABLE_9, lognormal, ratio, shares


@pytest.mark.parametrize(("mean", "spread"), [(3.0, 1.0), (30.0, 1.6)])
def test_the_lognormal_keeps_its_mean(mean: float, spread: float) -> None:
    chance = lognormal(mean, spread)
    assert chance.sum() == pytest.approx(1.0)
    assert float(chance @ CLASSES) == pytest.approx(mean, rel=1e-6)


def test_the_ratio_with_hardly_any_spread_is_that_of_one_number_of_cross_edges() -> None:
    m, crossing = 5, 0.2
    by_hand = (1.0 - 0.9**m) / (1.0 - (0.9 * crossing) ** m)
    assert ratio(5.0, 0.01, crossing / m) == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize("name", list(TABLE_9))
def test_more_spread_needs_more_cross_edges(name: str) -> None:
    found = shares(name, TABLE_9[name])
    assert np.all(np.diff(list(found.values())) > 0.0)
