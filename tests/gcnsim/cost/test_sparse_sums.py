"""Sums and products on a device whose multiprocessors are known, against values worked out by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gcnsim.cost import gemm_seconds, spmm_seconds
from gcnsim.cost.device import ENTRY_S, LOCALITY, LONGEST, ROW_S, SPREAD_LOCALITY, STEP_S, TAIL
from gcnsim.hardware import DeviceProfile, Figure, device

LAUNCH = 1e-5


def figure(value: float) -> Figure:
    return Figure(value, "given", "chosen for a test", "")


@pytest.fixture
def known(gpu: DeviceProfile) -> DeviceProfile:
    """100 GB/s at 50 %, ten multiprocessors of 10 GB/s through a cache of 1 MB; arithmetic takes no time."""
    return replace(
        gpu, multiprocessors=figure(10), cache_bandwidth=figure(10e9), l2_cache=figure(1e6), degree_spread=1.0,
        flops_fp32=figure(1e18),
    )  # fmt: skip


def test_a_sum_that_the_cache_holds_reads_memory_for_its_entries_and_output_alone(known: DeviceProfile) -> None:
    entries, rows, width = 1_000_000, 1000, 64
    memory = (entries * 8 + rows * 256) / 50e9
    cache = (entries + rows) * 256 / 100e9
    expected = LAUNCH + memory + cache + rows * 2 * ROW_S / 10
    assert float(spmm_seconds(known, entries, rows, width, 1000)) == pytest.approx(expected, rel=1e-12)


def test_of_a_sum_that_the_cache_does_not_hold_a_part_misses_it(known: DeviceProfile) -> None:
    entries, rows, width, columns = 1_000_000, 1000, 64, 40_000
    hits = (1e6 / (columns * 256)) ** (LOCALITY * math.exp(-SPREAD_LOCALITY))
    reads = max(entries * 256 * (1 - hits), columns * 256)
    memory = (reads + entries * 8 + rows * 256) / 50e9
    expected = LAUNCH + memory + (entries + rows) * 256 / 100e9 + rows * 2 * ROW_S / 10
    assert float(spmm_seconds(known, entries, rows, width, columns)) == pytest.approx(expected, rel=1e-12)


def test_a_small_sum_takes_as_long_as_its_longest_row_which_is_split_beyond_a_limit(known: DeviceProfile) -> None:
    wide = replace(known, multiprocessors=figure(1e6), memory_bandwidth=figure(1e15))
    found = float(spmm_seconds(wide, 2_000_000, 2000, 32, 1000)) - LAUNCH
    assert found == pytest.approx(LONGEST * STEP_S, rel=1e-9)


def test_narrow_rows_are_limited_by_their_entries(known: DeviceProfile) -> None:
    quick = replace(known, cache_bandwidth=figure(1e12), memory_bandwidth=figure(1e15))
    assert float(spmm_seconds(quick, 10_000_000, 1e6, 1)) == pytest.approx(LAUNCH + 1e7 * ENTRY_S / 10, rel=1e-12)


def test_an_empty_sum_takes_no_time_and_arrays_give_what_numbers_do(known: DeviceProfile) -> None:
    assert float(spmm_seconds(known, 0, 0, 64)) == 0.0
    entries = np.array([0.0, 1e6, 1e7])
    each = [float(spmm_seconds(known, one, 1000, 64, 5000)) for one in entries]
    assert spmm_seconds(known, entries, 1000, 64, 5000).tolist() == each


def test_a_larger_matrix_or_a_smaller_cache_is_never_quicker(known: DeviceProfile) -> None:
    times = [float(spmm_seconds(known, 1e6, 1e4, 64, columns)) for columns in (1e2, 1e4, 1e5, 1e6)]
    assert times == sorted(times)
    small = replace(known, l2_cache=figure(1e5))
    assert float(spmm_seconds(small, 1e6, 1e4, 64, 1e5)) > float(spmm_seconds(known, 1e6, 1e4, 64, 1e5))


def test_a_product_takes_part_of_a_wave_more_and_ragged_sides_count_as_whole_multiples(known: DeviceProfile) -> None:
    bound = replace(known, flops_fp32=figure(1e12))
    whole = 2 * 1280 * 128 * 512 / 0.8e12 * (1 + TAIL * 10 / 10)
    assert float(gemm_seconds(bound, 1280, 512, 128)) == pytest.approx(LAUNCH + whole, rel=1e-12)
    assert float(gemm_seconds(bound, 1280, 512, 97)) == pytest.approx(LAUNCH + whole, rel=1e-12)
    split = 2 * 128 * 128 * 1e6 / 0.8e12 * (1 + TAIL * 10 / (1e6 / 2048))
    assert float(gemm_seconds(bound, 128, 1e6, 128)) == pytest.approx(LAUNCH + split, rel=1e-12)


def test_an_l4_is_not_faster_than_an_a10g() -> None:
    """Half the memory bandwidth and a third of the power, without a measurement that says otherwise."""
    small, large = device("l4"), device("a10g")
    assert float(spmm_seconds(small, 1e7, 1e6, 128)) > float(spmm_seconds(large, 1e7, 1e6, 128))
    assert float(gemm_seconds(small, 1e5, 256, 256)) > float(gemm_seconds(large, 1e5, 256, 256))
