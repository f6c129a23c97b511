"""Units are read at the door and written for readers: spellings, prefixes, a number for each layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core import spellings, units
from gcnsim.core.errors import ScenarioError, UnitError
from gcnsim.workload.knobs import PerLayerValues

QUANTITIES = [
    units.BANDWIDTH,
    units.NBYTES,
    units.SECONDS,
    units.FRACTION,
    units.FLOPS,
    units.MONEY,
    units.RATE,
]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("15Gbps", 15e9 / 8),
        ("15 Gbps", 15e9 / 8),
        ("100mbps", 100e6 / 8),
        ("1Gbit/s", 125e6),
        ("10GbE", 1.25e9),
        ("2.5GbE", 312.5e6),
        ("25G Ethernet", 3.125e9),
        ("40GigE", 5e9),
        ("12GiB/s", 12 * 2**30),
        ("2e3kB/s", 2e6),
    ],
)
def test_bandwidth_is_bytes_per_second(text: str, value: float) -> None:
    assert units.bandwidth(text) == value


def test_the_other_quantities() -> None:
    assert units.nbytes("2GiB") == 2**31
    assert units.nbytes("2GB") == 2e9
    assert units.SECONDS.parse("250us") == units.SECONDS.parse("250µs") == units.SECONDS.parse("250μs") == 250e-6
    assert [units.SECONDS.parse(text) for text in ("1ps", "1ns", "1ms", "1s", "1min", "1h")] == [
        1e-12,
        1e-9,
        1e-3,
        1,
        60,
        3600,
    ]
    assert units.fraction("30%") == 0.3
    assert units.FLOPS.parse("8.1TFLOP/s") == 8.1e12
    assert units.money("0.526USD/h") == 0.526


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15", "has no unit"),
        (15, "15 has no unit"),
        (True, "True: not a bandwidth"),
        (None, "None: not a bandwidth"),
        ("fast", "not a bandwidth"),
        ("nanGbps", "not a bandwidth"),
        ("١٥Gbps", "not a bandwidth"),
        ("-1Gbps", "cannot be negative"),
        ("1e999Gbps", "too large"),
        pytest.param(f"{'9' * 5000}Gbps", "a number of 5000 characters; at most 400 are allowed", id="endless"),
        ("15 parsec", "unknown unit 'parsec'"),
    ],
)
def test_a_bad_bandwidth_is_refused_with_the_text_and_examples(text: object, expected: str) -> None:
    with pytest.raises(UnitError) as caught:
        units.bandwidth(text)
    message = str(caught.value)
    assert expected in message
    assert "15Gbps" in message
    assert "\n" not in message


def test_bits_and_bytes_are_not_confused() -> None:
    assert units.bandwidth("1GB/s") == 8 * units.bandwidth("1Gbps")
    with pytest.raises(UnitError, match="milliseconds or megaseconds"):
        units.SECONDS.parse("5MS")


def test_a_share_below_one_needs_no_unit() -> None:
    assert units.fraction(0.3) == units.fraction("0.3") == units.fraction("30%") == 0.3
    with pytest.raises(UnitError, match=r"30 has no unit; write 30% or 0\.3"):
        units.fraction(30)
    with pytest.raises(UnitError, match="write 1% or 100%"):
        units.fraction("1")


def test_a_unit_is_read_as_people_write_it() -> None:
    gigabits = ("15 GBit/s", "15gbit/s", "15 Gbit per second", "15Gb/s", "15 Gbits/sec", "15 gigabits/s", "15 GBIT/S")
    assert {units.bandwidth(text) for text in gigabits} == {15e9 / 8}
    assert {units.bandwidth(text) for text in ("12GiBps", "12 gibibytes/s", "12GIB/s", "12 GiB / s")} == {12 * 2**30}
    assert {units.bandwidth(text) for text in ("3Gib/s", "3Gibit/s", "3 gibit/s", "3Gibps")} == {3 * 2**30 / 8}
    assert {units.bandwidth(text) for text in ("8Kbps", "8kb/s", "8kbit/s", "8Kbit/s", "1kB/s")} == {1000.0}
    assert {units.nbytes(text) for text in ("16gb", "16 GB", "16Gbytes", "16 gigabytes")} == {16e9}
    assert {units.nbytes(text) for text in ("64kib", "64KIB", "64 kibibytes")} == {65536.0}
    assert {units.SECONDS.parse(text) for text in ("10 msec", "10 milliseconds", "10 mS", "10000 usec")} == {0.01}
    assert {units.SECONDS.parse(text) for text in ("2 Min", "120 S", "120 seconds", "2 minutes")} == {120.0}
    assert {units.SECONDS.parse(text) for text in ("90d", "90 days", "90 Day", "2160h")} == {90 * 86400.0}
    assert {units.FLOPS.parse(text) for text in ("8 TFLOPs", "8tflops", "8 TFlop/s")} == {8e12}
    assert units.money("1.5 $/hour") == units.money("1.5usd/h") == 1.5
    assert units.RATE.parse("120 Medge/s") == units.RATE.parse("120medges/s") == 120e6
    assert units.fraction("30 percent") == 0.3


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (units.bandwidth, "12GBPS", "gigabits or gigabytes per second? write 12Gbps or 12GB/s"),
        (units.bandwidth, "15Gb", "gigabits or gigabytes per second? write 15Gbps or 15GB/s"),
        (units.bandwidth, "15mb/s", "megabits or megabytes per second? write 15Mbps or 15MB/s"),
        (units.bandwidth, "12gib/s", "gibibits or gibibytes per second? write 12Gibps or 12GiB/s"),
        (units.bandwidth, "64KB/s", "1000 or 1024 bytes? write 64kB/s or 64KiB/s"),
        (units.nbytes, "64KB", "1000 or 1024 bytes? write 64kB or 64KiB"),
        (units.nbytes, "16Gb", "gigabits or gigabytes? a size is in bytes: write 16GB"),
        (units.SECONDS.parse, "10MS", "milliseconds or megaseconds? write 10ms"),
        (units.SECONDS.parse, "10m", "minutes or milliseconds? write 10min or 10ms"),
    ],
)
def test_an_ambiguous_unit_is_refused_with_its_readings(
    read: Callable[[object], float], text: str, message: str
) -> None:
    with pytest.raises(UnitError) as caught:
        read(text)
    assert str(caught.value) == f"{text!r}: {message}"


@settings(deadline=None, max_examples=100)
@given(
    quantity=st.sampled_from(QUANTITIES), unit=st.text("kKmMgGtTpPiIbBytespSu/ flopdgh%$ μµ", min_size=1, max_size=9)
)
def test_whatever_is_written_is_read_or_refused_in_one_line(quantity: units.Quantity, unit: str) -> None:
    text = ""
    try:
        assert quantity.parse(f"3{unit}") > 0
    except UnitError as error:
        text = str(error)
    assert "\n" not in text


@settings(deadline=None, max_examples=60)
@given(
    quantity=st.sampled_from(QUANTITIES),
    value=st.floats(min_value=0, max_value=1e18, allow_subnormal=False),
)
def test_exact_text_reads_back_as_the_same_number(quantity: units.Quantity, value: float) -> None:
    assert quantity.parse(quantity.exact(value)) == value


def test_shown_for_people() -> None:
    assert units.format_seconds(0.00151) == "1.51 ms"
    assert units.format_seconds(0.0) == "0 s"
    assert units.format_seconds(12.34) == "12.3 s"
    assert units.format_seconds(0.9999) == "1.00 s"
    long = {90.0: "90.0 s", 120.0: "2 min", 9000.0: "2.5 h", 172_000.0: "47.8 h", 276_480.0: "3.2 days"}
    long |= {86_400.0 * 700: "700 days", 86_400.0 * 1461: "4 years", 86_400.0 * 365.25e6: "1,000,000 years"}
    assert {seconds: units.format_seconds(seconds) for seconds in long} == long
    assert units.format_number(1234.4) == "1,234"
    assert [units.format_number(value, 2) for value in (2.4e-5, 0.0034, 99.4, 1e5)] == [
        "0.000024",
        "0.0034",
        "99",
        "100,000",
    ]
    assert units.ELECTRICITY.shown_as(123_456.0) == "123 MWh"
    assert units.format_bytes(2**31) == "2.00 GiB"
    assert units.format_bytes(0) == "0 B"
    assert units.format_bandwidth(1.875e9) == "1.88 GB/s"
    assert units.format_fraction(0.3) == "30.0 %"
    assert units.format_fraction(0.0012) == "0.12 %"
    assert units.format_fraction(0.0000587) == "0.01 %"
    assert units.format_fraction(0.00001) == "<0.01 %"
    assert units.format_fraction(0.0) == "0 %"


def test_three_digits_on_both_sides_of_every_step() -> None:
    """What rounds up to the next power of ten has one decimal less: 100, not 100.0."""
    shown = {99.95: "100", 99.94: "99.9", 9.995: "10.0", 9.994: "9.99", 0.9995: "1.00", 0.9994: "0.999", 0.25: "0.25"}
    assert {value: units._digits(value) for value in shown} == shown


@pytest.mark.parametrize(
    "quantity",
    [units.BANDWIDTH, units.NBYTES, units.SECONDS, units.FRACTION, units.FLOPS, units.MONEY, units.RATE],
)
def test_other_spellings_never_change_a_proper_symbol(quantity: units.Quantity) -> None:
    """What is read of a symbol as if it were a spelling is that symbol's own factor, or a doubt."""
    for symbol, factor in quantity.units.items():
        found = quantity.other(spellings.plain(symbol))
        assert not isinstance(found, str) or quantity.units[found] == factor, symbol


def test_every_choice_offered_is_a_unit() -> None:
    letters = ("", "k", "K", "m", "M", "g", "G", "ki", "Ki", "KI")
    ends = ("", "b", "B", "bit", "byte", "b/s", "B/s", "bps", "Bps", "BPS", "bit/s", "Bytes/s", "s")
    for quantity in (units.BANDWIDTH, units.NBYTES, units.SECONDS):
        for text in (f"{letter}{end}" for letter in letters for end in ends):
            found = quantity.other(text)
            offered = found.choices if isinstance(found, spellings.AmbiguousUnit) else (found,) if found else ()
            assert set(offered) <= {*quantity.units}, text


PLAIN, SHARED = PerLayerValues(), PerLayerValues(shares=True)


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ("25,10", (25, 10)),
        (" 25 , 10 ", (25, 10)),
        (7, (7,)),
        ([25, "10"], (25, 10)),
        ("1", (1,)),
        ("1000000000", (1_000_000_000,)),
    ],
)
def test_numbers_of_every_layer(raw: Any, values: tuple[int, ...]) -> None:
    assert PLAIN.read(raw, "p") == SHARED.read(raw, "p") == values
    assert PLAIN.read(PLAIN.write(values), "p") == values


def test_shares_stand_where_they_may() -> None:
    assert SHARED.read("10%,5", "p") == (0.1, 5)
    assert SHARED.write((0.1, 5)) == "10%,5"
    assert SHARED.read("100%,0.5%", "p") == (1.0, 0.005)
    with pytest.raises(ScenarioError, match="p: '10%,5' is not allowed; whole numbers of at least 1 separated"):
        PLAIN.read("10%,5", "p")
    assert "or shares (10%)" in SHARED.allowed


@pytest.mark.parametrize("raw", ["0", "x", "1000000001", "101%", "0%", True, None, [True]])
def test_what_is_no_number_of_a_layer(raw: Any) -> None:
    with pytest.raises(ScenarioError, match=r"^p: .* is not allowed; whole numbers of at least 1 or shares"):
        SHARED.read(raw, "p")


def test_values_made_by_hand_are_checked_too() -> None:
    for wrong in ((), (0,), (True,), (0.0,), (1.5,), [5]):
        with pytest.raises(ScenarioError, match="is not allowed"):
            SHARED.check(wrong, "p")
    with pytest.raises(ScenarioError, match="is not allowed"):
        PLAIN.check((0.5,), "p")
