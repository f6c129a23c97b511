"""Shared tools of the fits: measured points, least-squares coefficients, and the error of a law.

Points are what micro-benchmarks measured (schema `gcnsim.measurements/1`): seconds of kernels, by the sizes they depend
on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray
from gcnsim.core.json_files import read_json
from gcnsim.hardware import PLAIN, PLAIN_KERNELS, CoreKernels
from gcnsim.records.calibration import Fitted, Residual, content_hash


@dataclass(frozen=True, slots=True)
class Measurement:
    """One kernel at one size. seconds: of a call, and its 10th and 90th percentile. processes: that ran it at once."""

    kernel: str
    params: Mapping[str, float]
    threads: int
    processes: int
    seconds: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measurements:
    """A file of them. kernels: that were measured. seconds: that measuring took. links_only: no kernel of one process
    alone was measured, only what processes cost one another."""

    path: Path
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    device: str
    seconds: float
    found: tuple[Measurement, ...]
    sha256: str
    kernels: CoreKernels = PLAIN_KERNELS
    links_only: bool = False

    def of(self, kernel: str, **wanted: float) -> list[Measurement]:
        """Those of one kernel whose params hold `wanted`."""
        return [
            measurement
            for measurement in self.found
            if measurement.kernel == kernel
            and all(measurement.params.get(name) == value for name, value in wanted.items())
        ]


def read_measurements(path: str | Path) -> Measurements:
    """The measurements in the file at `path`. Raises FileError, naming the file and what is wrong with it."""
    digest = content_hash(path)
    raw = read_json(
        path,
        "measurements",
        "; python -m runtime.profile (GPUs) or python -m runtime.measure --links writes such a file",
    )
    names = Measurement.__slots__
    return Measurements(
        path=Path(path),
        machine=raw["machine"],
        versions=raw["versions"],
        device=raw["options"]["device"],
        kernels=CoreKernels(raw["options"].get("aggregator", PLAIN), raw["options"]["threads"]),
        seconds=raw["seconds"],
        found=tuple(Measurement(**{name: measurement[name] for name in names}) for measurement in raw["measurements"]),
        sha256=digest,
        links_only=not raw["options"].get("kernels", True),
    )


Values: TypeAlias = Sequence[float] | NDArray[Any]

Shares: TypeAlias = tuple[tuple[float, float], ...]
"""Efficiency by size, as (bytes, share) pairs in ascending order of size."""

STEP = 4.0
"""Sizes of the SpMM curve lie within this factor of its points."""


@dataclass
class Laws:
    """Figures found so far, by part of the record, and how well each law fits. copies: of GPUs alone."""

    device: dict[str, Fitted] = field(default_factory=dict)
    host: dict[str, Fitted] = field(default_factory=dict)
    network: dict[str, Fitted] = field(default_factory=dict)
    copies: dict[str, Fitted] = field(default_factory=dict)
    curve: Shares = ()
    residuals: list[Residual] = field(default_factory=list)


def residual(term: str, predicted: Values, seconds: Values) -> Residual:
    """How well `predicted` fits `seconds`."""
    error = np.asarray(predicted) / np.asarray(seconds) - 1.0
    size = np.abs(error)
    return Residual(term, error.size, float(size.mean()), float(np.percentile(size, 90)), float(error.mean()))


def coefficients(seconds: FloatArray, *terms: FloatArray) -> list[float]:
    """Non-negative coefficients of seconds as a sum of terms, with equal weight on every point's relative error."""
    from scipy.optimize import nnls

    found, _ = nnls(np.stack(terms, axis=1) / seconds[:, None], np.ones(seconds.shape))
    # A rate must be finite: a coefficient indistinguishable from zero becomes a thousandth of the smallest point.
    least = 1e-3 * float(seconds.min())
    return [max(float(value), least / float(term.max())) for value, term in zip(found, terms, strict=True)]


def mean(values: Values) -> float:
    """The geometric mean, which weights a factor of two up or down equally."""
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=np.float64)))))


def curve_of(sizes: Values, shares: Values) -> Shares:
    """The mean share near each of several sizes, which are a factor of STEP apart."""
    where, share = np.log(np.array(sizes)), np.array(shares)
    points = np.arange(where.min(), where.max() + 1e-9, np.log(STEP))
    return tuple(
        (float(np.exp(point)), mean(share[near]))
        for point in points
        if (near := np.abs(where - point) <= np.log(STEP) / 1.5).any()
    )


def every(measured: Measurements, kernel: str) -> list[Measurement]:
    """The measurements of a kernel. Raises ScenarioError if there is none."""
    return _there(measured, kernel, measured.of(kernel))


def single(measured: Measurements, kernel: str) -> list[Measurement]:
    """The single-process measurements of a kernel. Raises ScenarioError if there is none."""
    return _there(measured, kernel, [item for item in measured.of(kernel) if item.processes == 1])


def _there(measured: Measurements, kernel: str, found: list[Measurement]) -> list[Measurement]:
    if not found:
        again = "runtime.measure --links" if measured.links_only else "runtime.profile"
        raise ScenarioError(f"{measured.path}: has no kernel {kernel!r}; python -m {again} measures it")
    return found
