"""The roofline laws with numbers worked by hand (100 GB/s, 1 Tflop/s, 10 us a launch; see conftest)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.core.ids import FloatArray
from gcnsim.cost import elementwise_seconds, gemm_seconds, rows_seconds, spmm_seconds
from gcnsim.hardware import DeviceProfile

LAUNCH = 1e-5


def test_spmm_bound_by_memory(gpu: DeviceProfile) -> None:
    # 1,000 entries: 8 B of index and value and a row of 16 values each; 100 rows of 16 values out; half of 100 GB/s.
    nbytes = 1000 * (8 + 64) + 100 * 64
    assert float(spmm_seconds(gpu, 1000, 100, 16)) == pytest.approx(LAUNCH + nbytes / 50e9, rel=1e-12)


def test_gemm_bound_by_arithmetic(gpu: DeviceProfile) -> None:
    # 2 * 1000^3 flop at 80 % of 1 Tflop/s; its 12 MB would take 0.12 ms.
    assert float(gemm_seconds(gpu, 1000, 1000, 1000)) == pytest.approx(LAUNCH + 2e9 / 0.8e12, rel=1e-12)


def test_gemm_bound_by_memory(gpu: DeviceProfile) -> None:
    nbytes = 4 * (1e6 * 4 + 4 * 2 + 1e6 * 2)
    assert float(gemm_seconds(gpu, 1e6, 4, 2)) == pytest.approx(LAUNCH + nbytes / 100e9, rel=1e-12)


def test_gemm_crosses_the_roofline_where_both_times_are_equal(gpu: DeviceProfile) -> None:
    # k x k times k x k: 12 k^2 B at 100 GB/s = 2 k^3 flop at 0.8 Tflop/s  <=>  k = 48.
    below, above = 12 * 47**2 / 100e9, 2 * 49**3 / 0.8e12
    assert float(gemm_seconds(gpu, 47, 47, 47)) == pytest.approx(LAUNCH + below, rel=1e-9)
    assert float(gemm_seconds(gpu, 49, 49, 49)) == pytest.approx(LAUNCH + above, rel=1e-9)


def test_rows_are_read_and_written_once_with_their_index(gpu: DeviceProfile) -> None:
    assert float(rows_seconds(gpu, 1000, 64)) == pytest.approx(LAUNCH + 1000 * (512 + 4) / 25e9, rel=1e-12)


def test_elementwise_counts_its_passes(gpu: DeviceProfile) -> None:
    assert float(elementwise_seconds(gpu, 1e6, 6)) == pytest.approx(LAUNCH + 24e6 / 100e9, rel=1e-12)


def test_empty_kernels_are_not_launched(gpu: DeviceProfile) -> None:
    assert float(spmm_seconds(gpu, 0, 0, 64)) == 0.0
    assert float(gemm_seconds(gpu, 0.0, 0.0, 0.0)) == 0.0
    assert float(rows_seconds(gpu, 0, 64)) == 0.0
    assert float(elementwise_seconds(gpu, 0.0, 6)) == 0.0


def test_sizes_may_be_one_number_per_iteration(gpu: DeviceProfile) -> None:
    sizes = np.array([0, 1000, 2000])
    each = [float(rows_seconds(gpu, int(size), 64)) for size in sizes]
    assert rows_seconds(gpu, sizes, 64).tolist() == each
    assert each[0] == 0.0 < each[1] < each[2]


LAWS: dict[str, Callable[[DeviceProfile, int], FloatArray]] = {
    "entries": lambda gpu, n: spmm_seconds(gpu, 100 * n, 10, 16),
    "rows": lambda gpu, n: spmm_seconds(gpu, 100, 10 * n, 16),
    "width": lambda gpu, n: spmm_seconds(gpu, 100, 10, 16 * n),
    "m": lambda gpu, n: gemm_seconds(gpu, 10 * n, 64, 64),
    "k": lambda gpu, n: gemm_seconds(gpu, 1000, 8 * n, 64),
    "gathered rows": lambda gpu, n: rows_seconds(gpu, n, 7),
}


@pytest.mark.parametrize("name", LAWS)
def test_more_of_anything_never_takes_less(gpu: DeviceProfile, name: str) -> None:
    times = [float(LAWS[name](gpu, n)) for n in range(1, 20)]
    assert times == sorted(times)
