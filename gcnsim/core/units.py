"""Quantities with units, converted on input only; inside are seconds, bytes, bytes/s, flop/s.

A quantity is a number and a unit in one string (`15Gbps`, `12GiB/s`, `250us`, `30%`). A bare number is refused, because
a guessed unit is wrong by 8, 1000 or 1.07; only a share below one (0.3) can mean nothing else. Case matters where it
decides the meaning: `b` is a bit, `B` is a byte. Prefixes are decimal (k, M, G, T) or binary (Ki, Mi, Gi, Ti; IEC
80000-13). Other spellings (`15 GBit/s`, `16gb`) are read where they have one meaning (`gcnsim.core.spellings`).
Conversion is exact and rounded once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from gcnsim.core import spellings
from gcnsim.core.errors import UnitError

_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(.*?)\s*", re.ASCII | re.DOTALL)
_ENOUGH_DIGITS: Final = 18
"""17 significant digits name a double; the scaling to another unit may cost one more."""
_DECIMAL: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}

_MOST_DIGITS: Final = 400
"""Characters of a number: what a double holds, written out, has fewer."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One dimension: the units it is written in, each as a multiple of the unit used inside.

    noun: with its article, for messages. examples: what a reader may type. other: reads other spellings of the units.
    shown: the units results are printed in, largest first. written: the units files are written in, preferred first.
    """

    noun: str
    units: Mapping[str, Fraction]
    examples: tuple[str, ...]
    shown: tuple[str, ...]
    written: tuple[str, ...]
    other: spellings.Reader
    shares: bool = False
    """Whether a number below one without a unit is read too, as a share of one: 0.3 is 30%."""

    def parse(self, text: object) -> float:
        """`text` in the unit used inside, finite and not negative.

        Raises UnitError when it is not a string, has no unit, an unknown or an ambiguous one, or is negative or too
        large.
        """
        if isinstance(text, int | float) and not isinstance(text, bool):
            return self._bare(text, str(text))
        if not isinstance(text, str):
            raise UnitError(f"{_brief(text)}: not {self.noun}; {self._allowed()}")
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise UnitError(f"{_brief(text)}: not {self.noun} (a number, then its unit); {self._allowed()}")
        number, unit = match.groups()
        if unit == "" and len(number) <= _MOST_DIGITS:
            return self._bare(text, number)
        if len(number) > _MOST_DIGITS:
            raise UnitError(
                f"{_brief(text)}: a number of {len(number)} characters; at most {_MOST_DIGITS} are allowed; "
                f"{self._allowed()}"
            )
        value = Fraction(number) * self.units[self._unit(text, number, unit)]
        if value < 0:
            raise UnitError(f"{_brief(text)}: {self.noun} cannot be negative; {self._allowed()}")
        try:
            return float(value)
        except OverflowError:
            raise UnitError(f"{_brief(text)}: too large; {self._allowed()}") from None

    def exact(self, value: float) -> str:
        """The plainest text of `value` that `parse` turns back into the very same number (for files)."""
        for digits in range(1, _ENOUGH_DIGITS + 1):
            texts = {f"{_decimal(Fraction(value) / self.units[unit], digits)}{unit}": unit for unit in self.written}
            same = [text for text in texts if self.parse(text) == value]
            if same:
                return min(same, key=lambda text: (not 1 <= value / self.units[texts[text]] < 1000, len(text)))
        raise ValueError(f"{value!r} is not {self.noun}")

    def shown_as(self, value: float) -> str:
        """`value` for people: three significant digits in the largest unit that keeps it at or above one."""
        magnitude = abs(value)
        if magnitude == 0:
            return f"0 {self.base}"
        factors = [(unit, float(self.units[unit])) for unit in self.shown]
        # 0.9995 of a unit already rounds to 1.00 of it
        unit, factor = next((pair for pair in factors if magnitude >= 0.9995 * pair[1]), factors[-1])
        return f"{_digits(value / factor)} {unit}"

    @property
    def base(self) -> str:
        """The unit used inside, or the only one there is."""
        return next((unit for unit in self.shown if self.units[unit] == 1), self.shown[0])

    def _bare(self, text: object, number: str) -> float:
        """A number without a unit. Raises UnitError, of one that may be a percentage or a share with both."""
        if self.shares and _NUMBER.fullmatch(number) and 0 <= Fraction(number) < 1:
            return float(Fraction(number))
        either = " or ".join(share_readings(number)) if self.shares else ""
        allowed = either or f"{self.noun} with its unit, e.g. {', '.join(self.examples)}"
        raise UnitError(f"{_brief(text)} has no unit; write {allowed}")

    def _allowed(self) -> str:
        return f"write e.g. {', '.join(self.examples)}"

    def _unit(self, text: str, number: str, unit: str) -> str:
        """The unit that `unit` stands for. Raises UnitError, with what to write where it may stand for several."""
        if unit in self.units:
            return unit
        found = self.other(spellings.plain(unit))
        if isinstance(found, spellings.AmbiguousUnit):
            choices = " or ".join(f"{number}{choice}" for choice in found.choices)
            raise UnitError(f"{_brief(text)}: {found.question} write {choices}")
        if found is None:
            raise UnitError(f"{_brief(text)}: unknown unit {_brief(unit)}; {self._allowed()}")
        return found


def share_readings(number: object) -> tuple[str, ...]:
    """What to write instead of a bare number that may be a percentage or a share of one; none where it is neither.

    >>> share_readings("30"), share_readings(1), share_readings(150)
    (('30%', '0.3'), ('1%', '100%'), ())
    """
    match = _NUMBER.fullmatch(str(number))
    if match is None or match[2] or not 1 <= Fraction(match[1]) <= 100:
        return ()
    value = f"{float(match[1]):.12g}"
    return f"{value}%", "100%" if value == "1" else f"{float(value) / 100:.12g}"


def _brief(value: object) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:56]}...'"


def _decimal(number: Fraction, digits: int) -> str:
    """`number` to `digits` significant digits, without trailing zeros, with an exponent only if far from one."""
    context = Context(prec=digits)
    value = context.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize(context)
    return f"{value:f}" if -7 <= value.adjusted() < 15 else f"{value:e}".replace("+", "")


def format_number(number: float, digits: int = 3) -> str:
    """`number` for people, every text's rule: significant digits, no exponent, thousands (0.000024, 2.5, 12,300)."""
    shown = f"{number:,.0f}" if abs(number) >= 10**digits - 0.5 else f"{number:.{digits}g}"
    return f"{Decimal(shown):f}" if "e-" in shown else shown


def _digits(number: float) -> str:
    """`number` with three significant digits and no exponent, zeros kept (1.50, 12.3, 250, 12,300)."""
    magnitude = abs(number)
    if magnitude >= 99.95:
        return f"{number:,.0f}"
    if magnitude >= 9.995:
        return f"{number:.1f}"
    if magnitude >= 0.9995:
        return f"{number:.2f}"
    return f"{number:.3g}"


def _scaled(bases: Mapping[str, Fraction], *, binary: bool = False) -> dict[str, Fraction]:
    prefixes = _DECIMAL | _BINARY if binary else _DECIMAL
    return {f"{prefix}{base}": scale * unit for base, unit in bases.items() for prefix, scale in prefixes.items()}


_BIT: Final = Fraction(1, 8)
_LOWER_BITS: Final = {"gbps": 10**9 * _BIT, "mbps": 10**6 * _BIT, "tbps": 10**12 * _BIT}

BANDWIDTH: Final = Quantity(
    noun="a bandwidth",
    units=_scaled({"bps": _BIT, "bit/s": _BIT, "B/s": Fraction(1)}, binary=True) | _LOWER_BITS,
    examples=("15Gbps", "1.9GB/s", "12GiB/s"),
    shown=("TB/s", "GB/s", "MB/s", "kB/s", "B/s"),
    written=("Gbps", "Mbps", "kbps", "GB/s", "MB/s", "GiB/s", "B/s"),
    other=spellings.data_rate,
)
NBYTES: Final = Quantity(
    noun="a size in bytes",
    units=_scaled({"B": Fraction(1)}, binary=True),
    examples=("2GiB", "512MB", "64KiB"),
    shown=("TiB", "GiB", "MiB", "KiB", "B"),
    written=("GiB", "MiB", "KiB", "GB", "MB", "B"),
    other=spellings.size,
)
SECONDS: Final = Quantity(
    noun="a time",
    units={
        "ps": Fraction(1, 10**12),
        "ns": Fraction(1, 10**9),
        "us": Fraction(1, 10**6),
        "µs": Fraction(1, 10**6),
        "μs": Fraction(1, 10**6),
        "ms": Fraction(1, 10**3),
        "s": Fraction(1),
        "min": Fraction(60),
        "h": Fraction(3600),
        "d": Fraction(86400),
    },
    examples=("250us", "1.5ms", "2s"),
    shown=("s", "ms", "us", "ns", "ps"),
    written=("s", "ms", "us", "ns", "ps"),
    other=spellings.duration,
)
FRACTION: Final = Quantity(
    noun="a percentage",
    units={"%": Fraction(1, 100)},
    examples=("30%", "0%", "12.5%"),
    shown=("%",),
    written=("%",),
    other=spellings.share,
    shares=True,
)
FLOPS: Final = Quantity(
    noun="a rate of arithmetic",
    units=_scaled({"FLOP/s": Fraction(1), "FLOPS": Fraction(1), "flop/s": Fraction(1)}),
    examples=("8.1TFLOP/s", "120GFLOP/s"),
    shown=("PFLOP/s", "TFLOP/s", "GFLOP/s", "MFLOP/s", "FLOP/s"),
    written=("TFLOP/s", "GFLOP/s", "FLOP/s"),
    other=spellings.arithmetic,
)
MONEY: Final = Quantity(
    noun="a price per hour",
    units={"USD/h": Fraction(1), "USD/hour": Fraction(1)},
    examples=("0.526USD/h",),
    shown=("USD/h",),
    written=("USD/h",),
    other=spellings.price,
)
RATE: Final = Quantity(
    noun="a rate of edges",
    units=_scaled({"edges/s": Fraction(1), "edge/s": Fraction(1)}),
    examples=("120Medges/s",),
    shown=("Gedges/s", "Medges/s", "kedges/s", "edges/s"),
    written=("Medges/s", "edges/s"),
    other=spellings.edge_rate,
)
POWER: Final = Quantity(
    noun="a power",
    units={"W": Fraction(1), "kW": Fraction(1000)},
    examples=("250W", "1.2kW"),
    shown=("kW", "W"),
    written=("W", "kW"),
    other=spellings.power,
)
ENERGY: Final = Quantity(
    noun="an energy",
    units={"J": Fraction(1), "kJ": Fraction(10**3), "MJ": Fraction(10**6)},
    examples=("2kJ", "1.5MJ"),
    shown=("MJ", "kJ", "J"),
    written=("kJ", "J"),
    other=spellings.unknown,
)
ELECTRICITY: Final = Quantity(
    noun="an amount of electricity",
    units={"kWh": Fraction(1), "Wh": Fraction(1, 1000), "MWh": Fraction(1000), "GWh": Fraction(10**6)},
    examples=("1.5kWh", "2MWh"),
    shown=("GWh", "MWh", "kWh", "Wh"),
    written=("kWh", "MWh"),
    other=spellings.unknown,
)
DOLLARS: Final = Quantity(
    noun="an amount in US dollars",
    units={"USD": Fraction(1)},
    examples=("100USD",),
    shown=("USD",),
    written=("USD",),
    other=spellings.any_case("USD"),
)
PER_KWH: Final = Quantity(
    noun="a price of electricity in US dollars",
    units={"USD/kWh": Fraction(1), "ct/kWh": Fraction(1, 100), "USD/MWh": Fraction(1, 1000)},
    examples=("0.12USD/kWh", "12ct/kWh", "120USD/MWh"),
    shown=("USD/kWh",),
    written=("USD/kWh",),
    other=spellings.any_case("USD/kWh", "ct/kWh", "USD/MWh"),
)


def bandwidth(text: object) -> float:
    """`text` (15Gbps, 1.9GB/s, 12GiB/s) in bytes per second. Raises UnitError.

    >>> bandwidth("15Gbps")
    1875000000.0
    """
    return BANDWIDTH.parse(text)


def nbytes(text: object) -> float:
    """`text` (2GiB, 512MB) in bytes. Raises UnitError."""
    return NBYTES.parse(text)


def fraction(text: object) -> float:
    """`text` (30%, or 0.3) as a share of one (0.3); its range is the caller's to check. Raises UnitError."""
    return FRACTION.parse(text)


def money(text: object) -> float:
    """`text` (0.526USD/h) in US dollars per hour. Raises UnitError."""
    return MONEY.parse(text)


YEAR_S: Final = 365.25 * 86400.0
LONG_TIMES: Final = (
    ("years", YEAR_S, 2 * YEAR_S), ("days", 86400.0, 2 * 86400.0), ("h", 3600.0, 3600.0), ("min", 60.0, 120.0)
)  # fmt: skip
"""Units of long times, their seconds, and the seconds from which on a time is in them."""


def format_seconds(value: float) -> str:
    """`value` seconds for people, every text's rule: `1.50 ms`, `90.0 s`, `19.7 min`, `2.5 h`, `3.2 days`, `12 years`.

    Minutes, days and years are used from two on.
    """
    for unit, size, least in LONG_TIMES:
        if value >= 0.9995 * least:
            return f"{format_number(value / size)} {unit}"
    return SECONDS.shown_as(value)


def range_text(low: float | None, high: float | None, text: Callable[[float], str] = format_seconds) -> str:
    """A range as it stands behind its value: ` (1.20 ms to 2.00 ms)`; empty where there is none."""
    return "" if low is None or high is None else f" ({text(low)} to {text(high)})"


def format_bytes(value: float) -> str:
    """`value` bytes for people: `2.00 GiB`."""
    return NBYTES.shown_as(value)


def format_bandwidth(value: float) -> str:
    """`value` bytes per second for people: `1.88 GB/s`."""
    return BANDWIDTH.shown_as(value)


def format_gbps(value: float) -> str:
    """`value` bytes per second as networks are sold, whatever unit it was given in: `15Gbps`."""
    return f"{value * 8 / 1e9:.12g}Gbps"


def format_fraction(value: float) -> str:
    """`value` (a share of one) for people: `30.0 %`, of small ones two decimals, `0.01 %`."""
    percent = abs(100 * value)
    if 0 < percent < 0.005:
        return "<0.01 %"
    return f"{100 * value:.2f} %" if 0 < percent < 0.995 else FRACTION.shown_as(value)
