"""What two figures of a what-if answer show, as plain data: `..._info(answer)` here, its drawing in `drawing`."""

from __future__ import annotations

import math
from typing import NamedTuple

from gcnsim.report.answer.columns import TIME_UNITS
from gcnsim.report.answer.provenance import plain
from gcnsim.report.answer.rows import labels_of
from gcnsim.results import WhatIf

_BITS_PER_BYTE = 8
_LOG_FROM = 6.0
"""A time axis becomes logarithmic once its largest value is this many times its smallest."""


MOST_BARS = 12
"""Bars that a figure shows at once; the page has the others behind a switch."""


class Bar(NamedTuple):
    """One row of the breakdown, seconds."""

    method: str
    setting: str
    compute_s: float
    exposed_comm_s: float
    exposed_other_s: float
    hidden_comm_s: float
    iteration_s: float
    low_s: float
    high_s: float
    recommended: bool = False


class Breakdown(NamedTuple):
    """Where each row's iteration goes, and the unit its axis is in (`unit_s` seconds)."""

    bars: tuple[Bar, ...]
    unit: str
    unit_s: float


class Series(NamedTuple):
    """One setting's iteration time and interval at each bandwidth of a curve, seconds."""

    name: str
    seconds: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    recommended: bool = False


class BandwidthCurve(NamedTuple):
    """Iteration time against the bandwidth of a server's NIC (bytes/s, ascending)."""

    bandwidths: tuple[float, ...]
    series: tuple[Series, ...]


class Ticks(NamedTuple):
    """Where an axis has its marks, and what they say."""

    at: tuple[float, ...]
    text: tuple[str, ...]


class BandwidthInfo(NamedTuple):
    """What the bandwidth figure shows: the curve, the bandwidths asked for (bytes/s), and its axes."""

    curve: BandwidthCurve
    current: tuple[float, ...]
    unit: str
    unit_s: float
    log_time: bool
    x_ticks: Ticks
    y_ticks: Ticks


def breakdown_info(answer: WhatIf, most: int | None = None) -> Breakdown:
    """The breakdown of the rows of `answer`, the fastest first; most: so many of them, the recommended among them."""
    rows = answer.fastest_first
    labels = labels_of(rows)
    bars = [
        Bar(
            plain(method),
            plain(setting or ", ".join(row.knobs)),
            row.compute_s,
            row.exposed_comm_s,
            row.exposed_other_s,
            row.hidden_comm_s,
            row.iteration_s,
            row.iteration_s_low,
            row.iteration_s_high,
            row.recommended,
        )
        for row, (method, setting) in zip(rows, labels, strict=True)
    ]
    if most is not None and len(bars) > most:
        spare = most - sum(bar.recommended for bar in bars)
        first = [bar for bar in bars if not bar.recommended][:spare]
        bars = [bar for bar in bars if bar.recommended or bar in first]
    return Breakdown(tuple(bars), *_unit(max(bar.iteration_s for bar in bars)))


def bandwidth_info(curve: BandwidthCurve, answer: WhatIf) -> BandwidthInfo:
    """The figure of `curve` with the bandwidths that were asked for marked."""
    asked = sorted({row.bandwidth_bytes_per_s for row in answer.results})
    times = [value for series in curve.series for value in (*series.low, *series.high)]
    unit, unit_s = _unit(max(times))
    low, high = min(times), max(times)
    widths = [*curve.bandwidths, *asked]
    return BandwidthInfo(
        curve=curve,
        current=tuple(asked),
        unit=unit,
        unit_s=unit_s,
        log_time=low > 0 and high / low > _LOG_FROM,
        x_ticks=Ticks(*_log_ticks(min(widths), max(widths), 1e9 / _BITS_PER_BYTE)),
        y_ticks=Ticks(*_log_ticks(low, high, unit_s)) if low > 0 else Ticks((), ()),
    )


def _unit(longest: float) -> tuple[str, float]:
    return next((pair for pair in TIME_UNITS if longest >= pair[1]), TIME_UNITS[-1])


def _log_ticks(low: float, high: float, unit: float) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Marks at 1, 2 and 5 times the powers of ten of `unit` that cover [low, high], at most one beyond each end."""
    first, last = math.floor(math.log10(low / unit)), math.ceil(math.log10(high / unit))
    steps = [mantissa * 10.0**power for power in range(first, last + 1) for mantissa in (1, 2, 5)]
    inside = [step for step in steps if low / unit / 1.01 <= step <= high / unit * 1.01]
    return tuple(step * unit for step in inside), tuple(f"{step:g}" for step in inside)


def gbps_text(value: float) -> str:
    """A bandwidth (bytes/s) the way networks are sold: `15 Gbps`."""
    return f"{value * _BITS_PER_BYTE / 1e9:g} Gbps"
