"""The free coefficients of published runs, and their fit: `studies/fit_published.py` asks and writes.

A coefficient feeds figures of platforms. A device has one share of its memory bandwidth for a family of kernels, in
whatever paper it is; the host side of a worker is one of its code and server. Tables count alike, whatever the number
of their cells: of each, the mean over its cells of log(1 + (error / DAMPED)^2), error being the logarithm of predicted
over published, is added up. Where rows say little a coefficient stays near what would be assumed without them: being
SPREAD times as much costs HELD. One that ends at its bound is not determined: it takes what is assumed, and is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import yaml
from scipy.optimize import least_squares

from gcnsim.core.ids import FloatArray
from gcnsim.evidence.published_facts import FactRow
from gcnsim.evidence.published_systems import RowScenario, scenario_of_row
from gcnsim.evidence.table_cells import Cell, reproduce
from gcnsim.hardware import Figure, platform, platforms
from gcnsim.hardware.catalogue import FOLDER

DAMPED: Final = 0.15
SPREAD: Final = 2.0
HELD: Final = 0.1
AT_BOUND: Final = 0.01
"""How near a bound a logarithm is at it."""

GRID: Final = 9
"""Values between a coefficient's bounds that a first search looks at."""

MOST_STEPS: Final = 12
"""Steps of a least-squares search."""

GATHERED: Final = "share of DRAM bandwidth for gathered rows that the second-level cache does not hold"
STREAMED: Final = "share of DRAM bandwidth at which sparse products read entries, column after column"
HOST: Final = "host side of one worker, sent and received together"

CALL: Final = "host time of one call of the framework that the published code is written in"


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One free number. figures: of which platforms it is which. assumed: what it is without any row, and the bounds."""

    name: str
    figures: tuple[tuple[str, str], ...]
    assumed: float
    low: float
    high: float
    reference: str


def _gathering(device: str, *names: str) -> Coefficient:
    return Coefficient(
        f"gathering, {device}", tuple((name, "spmm_efficiency") for name in names), 0.5, 0.1, 1.0, GATHERED
    )


def _host_side(name: str, assumed: float) -> Coefficient:
    return Coefficient(f"host side, {name}", ((name, "staging_bandwidth"),), assumed, 2e7, 5e10, HOST)


COEFFICIENTS: Final = (
    _gathering("rtx-2080-ti", "rtx-2080-ti-server", "sancus-2080-ti"),
    _gathering("t4", "psc-gcn-t4"),
    _gathering("mi60", "pipegcn-mi60"),
    Coefficient(
        "column by column",
        tuple((name, "stream_efficiency") for name in ("rtx-2080-ti-server", "sancus-2080-ti", "sancus-a100")),
        0.75, 0.1, 1.0, STREAMED,
    ),
    _host_side("rtx-2080-ti-server", 4e9),
    _host_side("bns-gcn-v100", 4e9),
    _host_side("sancus-2080-ti", 1e10),
    _host_side("sancus-a100", 1e10),
    Coefficient(
        "host call",
        tuple((name, "operation_s") for name in ("rtx-2080-ti-server", "psc-gcn-t4", "pipegcn-mi60", "bns-gcn-v100")),
        1e-4, 3e-5, 1e-3, CALL,
    ),
)  # fmt: skip
"""Assumed: half of the bandwidth for gathered rows, three quarters for entries in order; 2 GB/s each way through the
sockets of one core (`socket_bandwidth` of a host), 5 GB/s each way through memory that GPUs of a server share; a call
as any host's (`operation_s`)."""

Values = Mapping[str, float]
"""By the name of a coefficient."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What a fit found. values: of all coefficients. determined: those that rows decide; all others are as assumed."""

    values: Values
    determined: frozenset[str]
    at_bound: Mapping[str, float]


@dataclass(slots=True)
class Trials:
    """Judged cells of platforms under trial figures, each simulated once. folder: of the trials' files."""

    rows: Sequence[FactRow]
    folder: Path
    known: dict[tuple[str, tuple[float, ...]], tuple[Cell, ...]] = field(default_factory=dict)

    def cells(self, name: str, values: Values) -> tuple[Cell, ...]:
        """Those of a platform's rows that may be fitted or judged."""
        own = [one for one in COEFFICIENTS if any(fed == name for fed, _ in one.figures)]
        key = name, tuple(float(f"{values[one.name]:.7g}") for one in own)
        if key not in self.known:
            path = self.folder / f"{len(self.known)}.yaml"
            path.write_text(document(name, values), encoding="utf-8")
            found = reproduce(
                self.rows, platforms={name: str(path)}, spread=False, wanted=lambda row: self._of(row, name)
            )
            self.known[key] = tuple(cell for cell in found if cell.error is not None)
        return self.known[key]

    def _of(self, row: FactRow, name: str) -> bool:
        if row.use != "calibrate":
            return False
        found = scenario_of_row(row, self.rows, {})
        return isinstance(found, RowScenario) and found.scenario.cluster.platform == name


def assumed() -> dict[str, float]:
    """Every coefficient as it is without any row."""
    return {one.name: one.assumed for one in COEFFICIENTS}


def fit(trials: Trials, without: tuple[str, str] | None = None, start: Values | None = None) -> Fit:
    """The coefficients that rows decide, those of the table `without` (paper, table) not looked at.

    start: where each search begins; without it, at the best of a grid.
    """
    values, determined, at_bound = assumed(), set[str](), dict[str, float]()
    for together in groups():
        free = [one for one in together if _decided(trials, one, without)]
        while free:
            if start is not None:
                values |= {one.name: start[one.name] for one in free}
            found = _search(trials, free, values, without, look=start is None)
            ends = [one for one in free if _at_bound(one, found[one.name])]
            at_bound |= {one.name: found[one.name] for one in ends}
            values |= {one.name: one.assumed if one in ends else found[one.name] for one in free}
            free = [one for one in free if one not in ends]
            if not ends:
                determined |= {one.name for one in free}
                break
    return Fit(values, frozenset(determined), at_bound)


def groups() -> list[list[Coefficient]]:
    """The coefficients, those that share a platform together."""
    found: list[list[Coefficient]] = []
    for one in COEFFICIENTS:
        near = [group for group in found if _fed(group) & _fed([one])]
        found = [group for group in found if group not in near] + [
            [coefficient for group in near for coefficient in group] + [one]
        ]
    return found


def _fed(group: Iterable[Coefficient]) -> set[str]:
    return {name for one in group for name, _ in one.figures}


def _decided(trials: Trials, one: Coefficient, without: tuple[str, str] | None) -> bool:
    """Whether a row that is looked at is of a platform that the coefficient feeds."""
    return any(_fitted(trials.cells(name, assumed()), without) for name in _fed([one]))


def _fitted(cells: Iterable[Cell], without: tuple[str, str] | None) -> list[Cell]:
    return [cell for cell in cells if cell.fitted and (cell.paper, cell.table) != without]


def _at_bound(one: Coefficient, value: float) -> bool:
    return bool(min(abs(np.log(value / one.low)), abs(np.log(value / one.high))) < AT_BOUND)


def _search(
    trials: Trials, free: Sequence[Coefficient], held: Values, without: tuple[str, str] | None, *, look: bool
) -> dict[str, float]:
    """The values of least cost of `free`, all others as `held`. look: at a grid of each in turn, first."""
    names = [one.name for one in free]
    low, high = (np.log([getattr(one, end) for one in free]) for end in ("low", "high"))

    def residuals(point: FloatArray) -> FloatArray:
        return _residuals(trials, free, dict(held) | dict(zip(names, np.exp(point).tolist(), strict=True)), without)

    starts = [np.log([held[name] for name in names])]
    if look:
        starts.append(_best_of_grid(residuals, starts[0], low, high))
    tried = [
        least_squares(
            residuals,
            np.clip(start, low + 2 * AT_BOUND, high - 2 * AT_BOUND),
            bounds=(low, high),
            diff_step=[0.02] * len(free),
            max_nfev=MOST_STEPS,
            xtol=1e-3,
        )
        for start in starts
    ]
    best = min(tried, key=lambda one: float(one.cost))
    return dict(zip(names, np.exp(best.x).tolist(), strict=True))


def _best_of_grid(
    residuals: Callable[[FloatArray], FloatArray], start: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """From `start`, each number in turn at the best of GRID values between its bounds."""
    point = start
    for number in range(point.size):
        tried = [point]
        for value in np.linspace(low[number], high[number], GRID + 2)[1:-1]:
            tried.append(point.copy())
            tried[-1][number] = value
        point = min(tried, key=lambda one: float((residuals(one) ** 2).sum()))
    return point


def _residuals(
    trials: Trials, free: Sequence[Coefficient], values: Values, without: tuple[str, str] | None
) -> FloatArray:
    """Damped, and weighted so that the sum of their squares is the cost."""
    cells = _fitted((cell for name in sorted(_fed(free)) for cell in trials.cells(name, values)), without)
    tables = [(cell.paper, cell.table) for cell in cells]
    off = np.log1p(np.clip(errors(cells), -0.999, 3.0)) / DAMPED
    weights = 1.0 / np.sqrt([tables.count(table) for table in tables])
    held = np.array([np.log(values[one.name] / one.assumed) / np.log(SPREAD) for one in free])
    return np.concatenate([weights * _damped(off), np.sqrt(HELD) * _damped(held)])


def _damped(sizes: FloatArray) -> FloatArray:
    return np.sign(sizes) * np.sqrt(np.log1p(sizes**2))


def errors(cells: Sequence[Cell]) -> FloatArray:
    """Signed relative errors of the judged cells."""
    return np.array([error for cell in cells if (error := cell.error) is not None])


def all_cells(trials: Trials, values: Values) -> list[Cell]:
    """Every judged cell on a platform with these figures."""
    return [cell for name in platforms() for cell in trials.cells(name, values)]


def document(name: str, values: Values, found: Fit | None = None) -> str:
    """The platform's file with these figures; of a fit, they are told as fitted or assumed."""
    path = FOLDER / f"{name}.yaml"
    raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    for one in COEFFICIENTS:
        for fed, key in one.figures:
            if fed == name:
                raw[key] = _figure(one, values[one.name], found, key, platform(name).rate_beside_copies)
    return yaml.safe_dump(raw, sort_keys=False, width=120)


def _figure(one: Coefficient, value: float, found: Fit | None, key: str, dated: Figure) -> dict[str, str]:
    known = found is None or one.name in found.determined
    low, high = max(one.low, one.assumed / SPREAD**2), min(one.high, one.assumed * SPREAD**2)
    source = "fitted" if known else "assumed"
    content = {"value": _text(key, value), "source": source, "reference": one.reference, "date": dated.date}
    return content if known else content | {"low": _text(key, low), "high": _text(key, high)}


def _text(key: str, value: float) -> str:
    """A figure's value with its unit."""
    if key.endswith("efficiency"):
        return f"{100 * min(value, 1.0):.6g}%"
    return f"{1e3 * value:.6g}ms" if key.endswith("_s") else f"{value / 1e9:.6g}GB/s"
