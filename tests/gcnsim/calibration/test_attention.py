"""The law of graph attention comes back from times that it made."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as combined
from pathlib import Path

import pytest

from gcnsim.calibration.attention import PASSES, fit_attention
from gcnsim.calibration.fitting import Laws
from gcnsim.calibration.sums import product_of
from gcnsim.calibration_record.measurements import Measurement, Measurements
from gcnsim.cost import attention_terms
from gcnsim.cost.sums import product_seconds
from gcnsim.hardware import ATTENTION_TERMS, AttentionFigures, CoreKernels
from tests.gcnsim.calibration.test_sums import KNOWN, points

FORWARD = dict(zip(ATTENTION_TERMS, (2e-5, 3e-9, 2e-8, 1e-10, 4e-10), strict=True))
BACKWARD = dict(zip(ATTENTION_TERMS, (4e-5, 5e-9, 4e-8, 2e-9, 8e-10), strict=True))


def made() -> tuple[Measurement, ...]:
    """Attention over the matrices of the law of sums."""
    found = []
    matrices = {tuple(sorted(point.params.items())): point for point in points(KNOWN) if point.params["width"] == 16}
    for item, (heads, width), kernel in combined(matrices.values(), ((1, 16), (2, 128), (4, 64)), PASSES):
        params = {name: value for name, value in item.params.items() if name not in ("apart", "hot")}
        params |= {"heads": float(heads), "width": float(width)}
        within = {"width": width / heads, "apart": 4 * width * (params["rows"] + params["columns"])}
        product = product_of(replace(item, kernel=PASSES[kernel], params=params | within))
        terms = attention_terms(params["entries"], params["columns"], heads, width)
        figures = FORWARD if kernel == "attention" else BACKWARD
        seconds = heads * float(product_seconds(KNOWN, product))
        seconds += sum(figures[name] * float(term) for name, term in zip(ATTENTION_TERMS, terms, strict=True))
        found.append(Measurement(kernel, params, 1, 1, seconds, seconds, seconds))
    return tuple(found)


def measured(found: tuple[Measurement, ...]) -> Measurements:
    return Measurements(Path("profile.json"), {}, {}, "cpu", 1.0, found, "ab")


def test_seconds_come_back() -> None:
    laws = Laws(sums=KNOWN)
    fit_attention(laws, measured(made()))
    assert isinstance(laws.attention, AttentionFigures)
    assert [residual.term for residual in laws.residuals] == ["attention", "attention backward"]
    assert all(residual.mape < 0.05 for residual in laws.residuals)
    assert laws.attention.forward["entry_head"] == pytest.approx(FORWARD["entry_head"], rel=0.2)
    assert laws.attention.backward["entry_value"] == pytest.approx(BACKWARD["entry_value"], rel=0.2)


def test_a_kernel_that_sums_itself_leaves_nothing_to_products() -> None:
    """All of its time is in the terms, where products by another kernel's law would have taken up to nine tenths."""
    measurements = [measurement for measurement in made() if measurement.kernel == "attention"]
    own = []
    for point in measurements:
        terms = attention_terms(point.params["entries"], point.params["columns"], int(point.params["heads"]),
                                int(point.params["width"]))  # fmt: skip
        seconds = sum(FORWARD[name] * float(term) for name, term in zip(ATTENTION_TERMS, terms, strict=True))
        own += [replace(point, kernel=kernel, seconds=seconds) for kernel in PASSES]
    laws = Laws(sums=KNOWN)
    fit_attention(laws, replace(measured(tuple(own)), kernels=CoreKernels("numba")))
    assert laws.attention is not None
    assert all(residual.mape < 1e-3 for residual in laws.residuals)
    assert laws.attention.forward["entry_value"] == pytest.approx(FORWARD["entry_value"], rel=0.05)


@pytest.mark.parametrize("laws", [Laws(sums=KNOWN), Laws()])
def test_a_profile_of_before_has_no_such_law(laws: Laws) -> None:
    fit_attention(laws, measured(made()[:2] if laws.sums else made()))
    assert laws.attention is None
    assert not laws.residuals
