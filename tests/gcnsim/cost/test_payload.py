"""Rows in fewer bits: their bytes, and kernels that are no dearer than the bytes they touch."""

from __future__ import annotations

import pytest

from gcnsim.cost import pack_seconds, payload_bytes, payload_width, rows_seconds, unpack_seconds
from gcnsim.hardware import DeviceProfile
from gcnsim.workload import PAYLOADS


@pytest.mark.parametrize(
    ("payload", "nbytes"), [("fp32", 404), ("fp16", 202), ("bf16", 202), ("int8", 109), ("int4", 59), ("int2", 34)]
)
def test_a_row_of_101_values(payload: str, nbytes: int) -> None:
    assert payload_width(101, payload) == nbytes
    assert payload_bytes(3, 101, payload) == 3 * nbytes


def test_fp32_is_as_before(gpu: DeviceProfile) -> None:
    for seconds in (pack_seconds, unpack_seconds):
        assert seconds(gpu, 1000, 64, "fp32") == rows_seconds(gpu, 1000, 64)


def test_kernels_touch_what_they_read_and_write(gpu: DeviceProfile) -> None:
    rate = gpu.memory_bandwidth.value * gpu.gather_efficiency.value
    launch = gpu.launch_s.value
    assert pack_seconds(gpu, 10, 64, "int8") == pytest.approx(10 * (2 * 256 + 72 + 4) / rate + launch)
    assert unpack_seconds(gpu, 10, 64, "int8") == pytest.approx(10 * (256 + 72 + 4) / rate + launch)
    assert pack_seconds(gpu, 10, 64, "fp16") == pytest.approx(10 * (256 + 128 + 4) / rate + launch)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_costs_nothing(gpu: DeviceProfile, payload: str) -> None:
    assert pack_seconds(gpu, 0, 64, payload) == unpack_seconds(gpu, 0, 64, payload) == 0
