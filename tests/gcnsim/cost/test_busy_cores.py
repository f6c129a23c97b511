"""What kernels lose beside busy cores, by kind and by what they touch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.cost import lost_beside, with_busy_sums
from gcnsim.hardware import (
    ATTENTION_TERMS,
    MAP_TERMS,
    POOLING_TERMS,
    AttentionFigures,
    CoreKernels,
    Curve,
    DeviceProfile,
    MapFigures,
    PoolingFigures,
    SumFigures,
)
from gcnsim.hardware.profiles import TERMS

MAPS = MapFigures(dict.fromkeys(MAP_TERMS, 1e-9), ((5.0, 1e-7),))
SUMS = SumFigures((48e3, 2e6, 4e7), dict.fromkeys(TERMS, 1e-9))


@pytest.mark.parametrize("aggregator", ["plain", "numba"])
def test_other_kernels_that_bring_rows_of_neighbours_slow_down_as_sums_do(gpu: DeviceProfile, aggregator: str) -> None:
    pooling = PoolingFigures(*(dict.fromkeys(POOLING_TERMS, 1e-9) for _ in range(2)))
    attention = AttentionFigures(*(dict.fromkeys(ATTENTION_TERMS, 1e-9) for _ in range(2)))
    alone = replace(gpu, pooling=pooling, attention=attention, kernels=CoreKernels(aggregator))
    beside = with_busy_sums(alone, 1.44)
    assert beside.pooling is not None
    assert beside.attention is not None
    for found in (beside.pooling.forward, beside.pooling.backward):
        assert dict(found) == pytest.approx({name: 1.2e-9 if "value" in name else 1e-9 for name in POOLING_TERMS})
    if aggregator == "plain":
        assert beside.attention == attention, "its sums are products of their own"
    else:
        slower = {name: 1.2e-9 if "value" in name else 1e-9 for name in ATTENTION_TERMS}
        assert dict(beside.attention.forward) == pytest.approx(slower)
        assert dict(beside.attention.backward) == pytest.approx(slower)


def test_sums_take_the_root_longer_and_arithmetic_the_root_less(gpu: DeviceProfile) -> None:
    curve = Curve((1e4, 1e8), (0.5, 0.3), "fitted", "a test", "2026")
    alone = replace(gpu, sums=SUMS, spmm_curve=curve, maps=MAPS)
    beside = with_busy_sums(alone, 1.44)
    assert beside.sums is not None
    assert beside.sums.caches == SUMS.caches
    assert dict(beside.sums.seconds) == pytest.approx(dict.fromkeys(TERMS, 1.2e-9))
    assert beside.spmm_curve is not None
    assert beside.spmm_curve.values == pytest.approx((0.5 / 1.2, 0.3 / 1.2))
    assert beside.spmm_efficiency.value == pytest.approx(alone.spmm_efficiency.value / 1.2)
    assert beside.gemm_efficiency.value == pytest.approx(alone.gemm_efficiency.value * 1.2)
    assert beside.maps is not None
    slower = {name: 1e-9 / (1.2 if name in ("flop", "weight_flop") else 1.0) for name in MAP_TERMS}
    assert dict(beside.maps.seconds) == pytest.approx(slower)
    assert beside.maps.loss == MAPS.loss
    unchanged = replace(
        beside,
        maps=MAPS,
        sums=SUMS,
        spmm_curve=curve,
        spmm_efficiency=gpu.spmm_efficiency,
        gemm_efficiency=gpu.gemm_efficiency,
    )
    assert unchanged == alone


def test_what_is_lost_grows_from_half_of_the_bytes_to_twice_as_many() -> None:
    touched = np.array([0.0, 1e6, 2e6, 4e6, 1e9])
    assert lost_beside(touched, 2e6) == pytest.approx([0.0, 0.0, 0.5, 1.0, 1.0])
