"""The law of learnt maps comes back from times that it made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from gcnsim.calibration.fitting import Laws
from gcnsim.calibration.maps import CACHES, FEWEST, fit_maps
from gcnsim.calibration_record.measurements import Measurement, Measurements
from gcnsim.cost.far import far_share
from gcnsim.cost.maps import map_seconds, weight_seconds
from gcnsim.hardware import ATTENTION_TERMS, MAP_TERMS, AttentionFigures, DeviceProfile, FarFigures, MapFigures

ATTENTION = AttentionFigures(dict.fromkeys(ATTENTION_TERMS, 1e-9), dict.fromkeys(ATTENTION_TERMS, 2e-9))
LOSS = ((2.0, 5e-8), (10.0, 2e-7), (16.0, 8e-8))
KNOWN = MapFigures(dict(zip(MAP_TERMS, (1e-5, 1e-11, 1e-10, 2e-11, 3e-5, 1.1e-11, 9e-11, 1e-10), strict=True)), LOSS)


KNOWN_SECONDS = KNOWN.seconds


def maps(core: DeviceProfile) -> Iterator[Measurement]:
    for rows, (d_in, d_out) in product((256, 2_048, 8_192), ((16, 16), (128, 16), (16, 128), (256, 256))):
        facts: dict[str, float] = {"rows": rows, "d_in": d_in, "d_out": d_out}
        ahead, weight = float(map_seconds(core, rows, d_in, d_out)), float(weight_seconds(core, rows, d_in, d_out))
        yield measured("gemm", ahead, facts)
        yield measured("gemm_backward", weight, facts | {"input_grad": 0})
        back = float(map_seconds(core, rows, d_out, d_in))
        yield measured("gemm_backward", weight + back, facts | {"input_grad": 1})


def losses() -> Iterator[Measurement]:
    for (classes, item), (name, share) in product(LOSS, (("loss", 0.5), ("loss_backward", 0.3), ("correct", 0.2))):
        yield measured(name, 16_384 * item * share, {"rows": 16_384, "classes": classes})
    # Of few rows, most of it calls.
    yield measured("loss", 1e-3, {"rows": 64, "classes": 8})


def measured(kernel: str, seconds: float, facts: dict[str, float]) -> Measurement:
    return Measurement(kernel, facts, 1, 1, seconds, seconds, seconds)


def profile(found: tuple[Measurement, ...]) -> Measurements:
    return Measurements(Path("profile.json"), {}, {}, "cpu", 1.0, found, "ab")


def test_known_terms_come_back(gpu: DeviceProfile) -> None:
    every = (*maps(replace(gpu, maps=KNOWN)), *losses())
    laws = Laws(attention=ATTENTION)
    fit_maps(laws, profile(every))
    assert laws.maps is not None
    assert dict(laws.maps.seconds) == pytest.approx(dict(KNOWN.seconds), rel=1e-6)
    assert np.array(laws.maps.loss) == pytest.approx(np.array(LOSS))
    assert [(residual.term, residual.points) for residual in laws.residuals] == [("learnt maps", 36)]
    assert laws.residuals[0].mape < 1e-6


@pytest.mark.parametrize("cache", [CACHES[0], CACHES[-2]])
def test_what_bytes_cost_from_memory_comes_back_with_the_cache(gpu: DeviceProfile, cache: float) -> None:
    known = FarFigures(cache, 4e-11, 1.4, 1.0, 2.5, {})
    core = replace(gpu, maps=KNOWN)
    every = []
    for apart in (8e6, 32e6, 128e6):
        byte = far_share(cache, apart) * known.byte
        seconds = {
            name: value + (byte if name in ("read_byte", "written_byte") else 0)
            for name, value in KNOWN_SECONDS.items()
        }
        slower = replace(core, maps=replace(KNOWN, seconds=seconds))
        ahead = [measurement for measurement in maps(slower) if measurement.kernel == "gemm"]
        every += [replace(measurement, params={**measurement.params, "apart": apart}) for measurement in ahead]
    every += [
        replace(measurement, params={**measurement.params, "apart": 128e6})
        for measurement in maps(core)
        if measurement.kernel == "gemm_backward"
    ]
    laws = Laws(attention=ATTENTION, far_passes=1.4, far_launch=2.5)
    fit_maps(laws, profile((*every, *losses())))
    assert laws.maps is not None
    assert dict(laws.maps.seconds) == pytest.approx(dict(KNOWN.seconds), rel=1e-6)
    assert laws.far is not None
    assert laws.far.byte == pytest.approx(known.byte, rel=1e-6)
    assert replace(laws.far, byte=known.byte) == known
    assert [(residual.term, residual.points) for residual in laws.residuals] == [("learnt maps", 3 * 12 + 24)]


def test_without_passes_from_memory_a_byte_is_a_byte(gpu: DeviceProfile) -> None:
    every = [
        replace(measurement, params={**measurement.params, "apart": 8e6})
        for measurement in maps(replace(gpu, maps=KNOWN))
    ]
    laws = Laws(attention=ATTENTION)
    fit_maps(laws, profile((*every, *losses())))
    assert laws.maps is not None
    assert laws.far is None


def test_too_few_shapes_too_few_classes_or_no_attention_tell_nothing(gpu: DeviceProfile) -> None:
    shapes, classes = list(maps(replace(gpu, maps=KNOWN))), list(losses())
    for every, attention in (
        ([*shapes[: FEWEST - 1], *classes], ATTENTION),
        ([*shapes, *(measurement for measurement in classes if measurement.params["classes"] != 2.0)], ATTENTION),
        ([*shapes, *classes], None),
    ):
        laws = Laws(attention=attention)
        fit_maps(laws, profile(tuple(every)))
        assert laws.maps is None
        assert laws.residuals == []
