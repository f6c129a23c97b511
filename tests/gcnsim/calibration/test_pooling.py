"""The law of pooling comes back from times that it made; profiles of before have none."""

from __future__ import annotations

from itertools import product as combined

import pytest

from gcnsim.calibration.fitting import Laws
from gcnsim.calibration.pooling import PASSES, fit_pooling
from gcnsim.calibration_record.measurements import Measurement
from gcnsim.cost import pooling_terms
from gcnsim.hardware import MAP_TERMS, POOLING_TERMS, MapFigures, PoolingFigures
from tests.gcnsim.calibration.test_attention import measured

FORWARD = dict(zip(POOLING_TERMS, (2e-5, 3e-9, 2e-9, 1e-10, 4e-10), strict=True))
BACKWARD = dict(zip(POOLING_TERMS, (4e-5, 5e-9, 4e-10, 2e-9, 8e-9), strict=True))
MAPS = MapFigures(dict.fromkeys(MAP_TERMS, 1e-9), ((5.0, 1e-7),))
SIZES = ((20_000, 2_000, 3_000), (200_000, 10_000, 14_000), (100_000, 40_000, 50_000))


def made(processes: int = 1) -> tuple[Measurement, ...]:
    found = []
    for (entries, rows, columns), width, kernel in combined(SIZES, (16, 64, 128), PASSES):
        figures = FORWARD if kernel == "pool" else BACKWARD
        terms = zip(POOLING_TERMS, pooling_terms(entries, columns, rows, width), strict=True)
        seconds = sum(figures[name] * float(term) for name, term in terms)
        params = {"entries": float(entries), "rows": float(rows), "columns": float(columns), "width": float(width)}
        found.append(Measurement(kernel, params, 1, processes, seconds, seconds, seconds))
    return tuple(found)


def test_seconds_come_back() -> None:
    laws = Laws(maps=MAPS)
    fit_pooling(laws, measured(made()))
    assert isinstance(laws.pooling, PoolingFigures)
    assert [residual.term for residual in laws.residuals] == ["pool", "pool backward"]
    assert all(residual.mape < 1e-3 for residual in laws.residuals)
    assert laws.pooling.forward["entry_value"] == pytest.approx(FORWARD["entry_value"], rel=0.05)
    assert laws.pooling.backward["made_value"] == pytest.approx(BACKWARD["made_value"], rel=0.05)


@pytest.mark.parametrize("laws", [Laws(maps=MAPS), Laws()])
def test_a_profile_of_before_has_no_such_law(laws: Laws) -> None:
    fit_pooling(laws, measured(made()[:4] if laws.maps else made()))
    assert laws.pooling is None
    assert not laws.residuals


def test_what_several_processes_take_is_not_a_kernels_time() -> None:
    laws = Laws(maps=MAPS)
    fit_pooling(laws, measured(made(processes=2)))
    assert laws.pooling is None
