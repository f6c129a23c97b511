from __future__ import annotations

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.workload.caching import CacheSize, capacity


@pytest.mark.parametrize(
    ("cache", "rows"),
    [
        (CacheSize.none(), 0),
        (CacheSize(fraction=0.0), 0),
        (CacheSize(fraction=0.29), 29),
        (CacheSize(fraction=0.295), 29),
        (CacheSize(fraction=1.0), 100),
        (CacheSize(nbytes=0.0), 0),
        (CacheSize(nbytes=799.0), 19),
        (CacheSize(nbytes=800.0), 20),
        (CacheSize(nbytes=1e12), 100),
    ],
)
def test_capacity_in_whole_rows(cache: CacheSize, rows: int) -> None:
    assert capacity(cache, boundary_nodes=100, feature_width=10) == rows


def test_no_boundary_needs_no_rows() -> None:
    assert capacity(CacheSize(fraction=0.5), 0, 10) == 0
    assert capacity(CacheSize(nbytes=1e9), 0, 10) == 0


@pytest.mark.parametrize("fraction", [-0.1, 1.01, float("nan")])
def test_shares_outside_the_range_are_refused(fraction: float) -> None:
    with pytest.raises(ScenarioError, match=r"cache: .*% is outside 0%..100%"):
        CacheSize(fraction=fraction)


@pytest.mark.parametrize("nbytes", [-1.0, float("inf"), float("nan")])
def test_bad_bytes_are_refused(nbytes: float) -> None:
    with pytest.raises(ScenarioError, match="allowed: 0 B or more"):
        CacheSize(nbytes=nbytes)


def test_both_sizes_at_once_are_refused() -> None:
    with pytest.raises(ScenarioError, match="give one"):
        CacheSize(fraction=0.1, nbytes=100.0)


def test_auto_is_a_size_of_its_own() -> None:
    assert CacheSize(auto=True).describe() == "auto"
    assert not CacheSize(auto=True).empty
    for given in ({"fraction": 0.1}, {"nbytes": 100.0}):
        with pytest.raises(ScenarioError, match="both auto and a size; give one"):
            CacheSize(auto=True, **given)
    with pytest.raises(ScenarioError, match="auto is not allowed"):
        capacity(CacheSize(auto=True), 100, 10)
