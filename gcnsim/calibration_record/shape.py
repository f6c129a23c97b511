"""What a calibration record must look like to be read: the types of its values, and ranges that predictions rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

from gcnsim.hardware import DeviceProfile, HostProfile, LinkProfile

PROFILES: Final[Mapping[str, type[Any]]] = {
    "device": DeviceProfile,
    "host": HostProfile,
    "network": LinkProfile,
    "copies": LinkProfile,
}
MAY_BE_NOTHING: Final = (
    "latency_s",
    "queue",
    "message_s",
    "reduce_step_s",
    "draw_s",
    "launch_s",
    "iteration_s",
    "work_spread",
)
"""Costs that a machine may not have; everything else divides."""

HALF_SIZE: Final = "half_size"
"""A figure of links of older records: bytes that a message occupied the link for besides its own."""

LINKS: Final = ("network", "copies")
"""Parts that are links."""

RATE: Final = ("bandwidth", "efficiency")
"""Whose product is the rate of a link."""

LEAST: Final = 1e-12
"""Of what divides: no rate or share that was measured is smaller."""

SHARES: Final = ("efficiency", "busy_core_rate")
"""Figures that are shares of a whole."""

_FIGURE: Final = {"value", "reference", "error"}
_RESIDUAL: Final = ("mape", "p90", "bias")
_CONTAINERS: Final[Mapping[str, type]] = {
    "device": str,
    "machine": dict,
    "versions": dict,
    "inputs": list,
    "figures": dict,
    "curve": list,
    "graphs": dict,
    "residuals": list,
    "ranges": dict,
}
_KINDS: Final[Mapping[type, str]] = {str: "text", dict: "an object", list: "a list"}


def wrong_with(raw: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a record that has every key, starting with the key: take the first, others follow from it."""
    for name, kind in _CONTAINERS.items():
        if not isinstance(raw[name], kind):
            yield f"{name}: not {_KINDS[kind]}"
    for name, version in raw["versions"].items():
        if not isinstance(version, str):
            yield f"versions.{name}: not text"
    yield from _inputs(raw["inputs"])
    yield from _figures(raw["figures"])
    yield from _curve(raw["curve"])
    for name, factor in raw["graphs"].items():
        yield from _size(f"graphs.{name}", factor, above=True)
    yield from _residuals(raw["residuals"])
    for name in ("error", "spread", "seconds"):
        if raw[name] is not None or name == "seconds":
            yield from _size(name, raw[name], above=False)
    yield from _ranges(raw["ranges"])


def wrong_figure(part: str, name: str, value: Any) -> Iterator[str]:
    """What is wrong with the value of one figure, one line each: take the first."""
    place = f"figures.{part}.{name}"
    if name == HALF_SIZE and part in LINKS:
        yield from _size(place, value, above=False)
        return
    if name not in {field.name for field in fields(PROFILES[part]) if str(field.type).startswith("Figure")}:
        yield f"{place}: unknown figure"
    yield from _size(place, value, above=name not in MAY_BE_NOTHING)
    if name in SHARES and value > 1:
        yield f"{place}: {value} is not allowed; a number of at most 1"
    if name == "cores" and value < 1:
        yield f"{place}: {value} is not allowed; a number of at least 1"


def _figures(parts: Mapping[str, Any]) -> Iterator[str]:
    for part, given in parts.items():
        if part not in PROFILES:
            yield f"figures.{part}: unknown part; allowed: {', '.join(PROFILES)}"
        if not isinstance(given, dict):
            yield f"figures.{part}: not an object"
        for name, figure in given.items():
            place = f"figures.{part}.{name}"
            if not isinstance(figure, dict) or not {"value", "reference"} <= figure.keys() <= _FIGURE:
                yield f"{place}: not an object with value, reference and error"
            yield from wrong_figure(part, name, figure["value"])
            if not isinstance(figure["reference"], str):
                yield f"{place}.reference: not text"
            if figure.get("error") is not None:
                yield from _size(f"{place}.error", figure["error"], above=False)
        size = given.get(HALF_SIZE)
        if size is not None and size["value"] > 0 and not {*RATE, "latency_s"} <= given.keys():
            yield (
                f"figures.{part}.{HALF_SIZE}: no longer a figure, and without {', '.join(RATE)} and latency_s it "
                "cannot be read as seconds; write the record again with gcnsim calibrate"
            )


def _inputs(inputs: list[Any]) -> Iterator[str]:
    for index, each in enumerate(inputs):
        keys = {"kind", "name", "sha256"}
        if not isinstance(each, dict) or each.keys() != keys or not all(isinstance(each[key], str) for key in keys):
            yield f"inputs[{index}]: not an object with kind, name and sha256, each text"


def _curve(curve: list[Any]) -> Iterator[str]:
    for index, pair in enumerate(curve):
        if not _pair(pair):
            yield f"curve[{index}]: not a pair of numbers"
    sizes = [size for size, _ in curve]
    if sizes != sorted(set(sizes)) or any(not (size > 0 and share > 0) for size, share in curve):
        yield "curve: sizes must ascend, and sizes and shares be above 0"


def _residuals(residuals: list[Any]) -> Iterator[str]:
    for index, each in enumerate(residuals):
        place = f"residuals[{index}]"
        if not isinstance(each, dict) or each.keys() != {"term", "points", *_RESIDUAL}:
            yield f"{place}: not an object with term, points, {', '.join(_RESIDUAL)}"
        if not isinstance(each["term"], str):
            yield f"{place}.term: not text"
        yield from _size(f"{place}.points", each["points"], above=False)
        yield from (f"{place}.{name}: not a number" for name in _RESIDUAL if not _number(each[name]))


def _ranges(ranges: Mapping[str, Any]) -> Iterator[str]:
    for name, pair in ranges.items():
        if not _pair(pair):
            yield f"ranges.{name}: not a pair of numbers"
        elif pair[0] > pair[1]:
            yield f"ranges.{name}: {pair[0]} is above {pair[1]}"


def _size(place: str, value: object, *, above: bool) -> Iterator[str]:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < float("inf"):
        yield f"{place}: {value!r} is not allowed; a number of at least 0"
    elif above and value == 0:
        yield f"{place}: 0 is not allowed; a number above 0"
    elif above and value < LEAST:
        yield f"{place}: {value} is not allowed; a number of at least {LEAST:g}"


def _pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_number(each) for each in value)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
