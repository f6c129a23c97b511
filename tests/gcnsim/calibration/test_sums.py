"""The law of sums over neighbours comes back from times that it made."""

from __future__ import annotations

from itertools import product as combined
from pathlib import Path

import numpy as np
import pytest

from gcnsim.calibration.fitting import Laws
from gcnsim.calibration.sums import fit_sums, product_of
from gcnsim.calibration_record.measurements import Measurement, Measurements
from gcnsim.cost.sums import product_seconds
from gcnsim.hardware.profiles import TERMS, SumFigures
from gcnsim.partition import reuse_of
from gcnsim.partition.facts import REUSE_NAMES, TURNED_NAMES

SECONDS = (2e-6, 2e-9, 4e-11, 7e-11, 1e-9, 4e-10, 5e-12, 3e-10, 4e-12, 3e-9, 3e-11, 2e-9, 5e-11)
KNOWN = SumFigures((32e3, 1e6, 24e6), dict(zip(TERMS, SECONDS, strict=True)))


def points(figures: SumFigures) -> list[Measurement]:
    """Products of matrices near the diagonal and anywhere, dense and sparse, their rows near and far."""
    generator = np.random.default_rng(3)
    found = []
    for nodes, degree, reach in combined((500, 4_000, 40_000), (0.2, 3, 12), (0.01, 0.2, 1.0)):
        row = np.sort(generator.integers(nodes, size=int(nodes * degree)))
        away = (generator.random(row.size) - 0.5) * reach * nodes
        column = (row + away).astype(np.int64) % nodes
        shares = np.concatenate(list(reuse_of(np.searchsorted(row, np.arange(nodes + 1)), column, nodes))).tolist()
        facts = {"entries": float(row.size), "rows": float(nodes), "columns": float(nodes)}
        facts |= dict(zip((*REUSE_NAMES, *TURNED_NAMES), shares, strict=True))
        for kernel, width, apart in combined(("spmm", "spmm_t"), (16, 64, 256), (4e6, 3e8)):
            params = facts | {"width": float(width), "apart": apart, "hot": 0.0}
            each = Measurement(kernel, params, 1, 1, 1.0, 1.0, 1.0)
            seconds = float(product_seconds(figures, product_of(each)))
            found.append(Measurement(kernel, params, 1, 1, seconds, seconds, seconds))
    return found


def measured(found: list[Measurement]) -> Measurements:
    return Measurements(Path("profile.json"), {}, {}, "cpu", 1.0, tuple(found), "ab")


def test_sizes_and_seconds_come_back() -> None:
    laws = Laws()
    measurements = points(KNOWN)
    fit_sums(laws, measured(measurements))
    assert laws.sums is not None
    assert laws.sums.caches == KNOWN.caches
    assert laws.residuals[0].mape < 1e-6
    for measurement in measurements[::7]:
        assert float(product_seconds(laws.sums, product_of(measurement))) == pytest.approx(
            measurement.seconds, rel=1e-6
        )
    assert laws.sums.seconds == pytest.approx(dict(KNOWN.seconds), rel=1e-3)


def test_a_profile_of_before_has_no_such_law() -> None:
    laws = Laws()
    older = [
        Measurement(point.kernel, {name: point.params[name] for name in ("entries", "rows", "columns", "width")}, *rest)
        for point in points(KNOWN)
        for rest in [(point.threads, point.processes, point.seconds, point.low, point.high)]
    ]
    fit_sums(laws, measured(older))
    assert laws.sums is None
    assert not laws.residuals
