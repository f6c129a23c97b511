"""The catalogue that ships with the package: one YAML file per device, link and host, read when it is first asked for.

A device's efficiencies and launch cost, and a host's rates, default to those of its kind in `assumed.yaml`, with their
ranges, until somebody measures or fits them; a file that gives one overrides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from gcnsim import units
from gcnsim.documents import read_yaml
from gcnsim.errors import FileError, GcnsimError, ScenarioError, nearest
from gcnsim.profile.figure import SOURCES, Figure
from gcnsim.profile.profiles import DeviceProfile, HostProfile, LinkProfile, Price

DATA: Final = Path(__file__).resolve().parent.parent / "data"
GENERIC_LINK: Final = "ethernet"
"""The link whose bandwidth a scenario sets."""

_Table = Mapping[str, units.Quantity | None]
_DEVICE: Final[_Table] = {
    "memory": units.NBYTES,
    "memory_bandwidth": units.BANDWIDTH,
    "flops_fp32": units.FLOPS,
    "flops_fp16": units.FLOPS,
    "spmm_efficiency": units.FRACTION,
    "gemm_efficiency": units.FRACTION,
    "gather_efficiency": units.FRACTION,
    "elementwise_efficiency": units.FRACTION,
    "launch_s": units.SECONDS,
}
_LINK: Final[_Table] = {
    "bandwidth": units.BANDWIDTH,
    "efficiency": units.FRACTION,
    "latency_s": units.SECONDS,
    "queue": units.NBYTES,
}
_HOST: Final[_Table] = {
    "cores": None,
    "memory_bandwidth": units.BANDWIDTH,
    "sample_edges_per_s": units.RATE,
    "sort_edges_per_s": units.RATE,
    "build_entries_per_s": units.RATE,
    "message_s": units.SECONDS,
    "socket_bandwidth": units.BANDWIDTH,
    "busy_core_rate": units.FRACTION,
    "slice_s": units.SECONDS,
    "reduce_step_s": units.SECONDS,
    "draw_s": units.SECONDS,
    "loss_values_per_s": units.RATE,
    "gather_bandwidth": units.BANDWIDTH,
    "iteration_s": units.SECONDS,
    "work_spread": units.FRACTION,
}
_INSTANCE: Final[_Table] = {"gpus": None, "nic": units.BANDWIDTH}
"""Figures of hosts that are an instance type, or a server of a known make."""
QUANTITIES: Final[_Table] = {**_DEVICE, **_LINK, **_HOST, **_INSTANCE}
"""The quantity each figure of a profile is (None: a plain number)."""


def devices() -> tuple[str, ...]:
    """Names of the devices in the catalogue, sorted."""
    return _names("devices")


def links() -> tuple[str, ...]:
    """Names of the links in the catalogue, sorted."""
    return _names("links")


def hosts() -> tuple[str, ...]:
    """Names of the hosts in the catalogue, sorted."""
    return _names("hosts")


def figure_names(kind: str) -> tuple[str, ...]:
    """Names of the figures of a `device`, `link` or `host`."""
    return tuple({"device": _DEVICE, "link": _LINK, "host": _HOST}[kind])


@cache
def device(name: str) -> DeviceProfile:
    """The device `name`. Raises ScenarioError with the nearest name when the catalogue has none."""
    raw = _document("device", name)
    raw = {**_assumed().get(raw["kind"], {}), **raw}
    figures = _figures(raw, _DEVICE, name)
    return DeviceProfile(name=name, title=raw["title"], kind=raw["kind"], link=raw["link"], **figures)


@cache
def link(name: str) -> LinkProfile:
    """The link `name`. Raises ScenarioError with the nearest name when the catalogue has none."""
    raw = _document("link", name)
    return LinkProfile(name=name, title=raw["title"], **_figures(raw, _LINK, name))


@cache
def host(name: str) -> HostProfile:
    """The host `name`. Raises ScenarioError with the nearest name when the catalogue has none."""
    raw = {**_assumed()["host"], **_document("host", name)}
    has = {field: quantity for field, quantity in _INSTANCE.items() if field in raw}
    figures = {**_figures(raw, _HOST, name), **_figures(raw, has, name)}
    return HostProfile(name=name, title=raw["title"], device=raw.get("device"), **figures)


def prices(device_name: str | None = None) -> tuple[Price, ...]:
    """On-demand prices of `device_name` (of all devices when None), cheapest first; empty where nobody rents it out.

    Raises ScenarioError with the nearest name when the catalogue has no such device.
    """
    if device_name is not None and device_name not in devices():
        raise ScenarioError(_unknown("device", device_name))
    return tuple(price for price in _prices() if device_name in (None, price.device))


def read_figure(raw: object, quantity: units.Quantity | None, path: str) -> Figure:
    """The figure written as `{value, source, reference, date, low, high}`. Raises FileError that starts with `path`."""
    if not isinstance(raw, dict) or not {"value", "source", "reference", "date"} <= set(raw):
        raise FileError(f"{path}: a figure is {{value, source, reference, date}} and, if assumed, low and high")
    unknown = sorted(set(raw) - {"value", "source", "reference", "date", "low", "high"})
    if unknown:
        raise FileError(f"{path}: unknown key {unknown[0]!r}; {nearest(unknown[0], Figure.__slots__)}")
    source = str(raw["source"])
    if source not in SOURCES:
        raise FileError(f"{path}: unknown source {source!r}; {nearest(source, SOURCES)}")
    low, value, high = (_number(raw[key], quantity, path) if key in raw else None for key in ("low", "value", "high"))
    assert value is not None
    if source == "assumed" and (low is None or high is None or not low <= value <= high):
        raise FileError(f"{path}: an assumed figure needs low and high around its value")
    return Figure(value, source, str(raw["reference"]), str(raw["date"]), low, high)


def _number(raw: object, quantity: units.Quantity | None, path: str) -> float:
    if quantity is None:
        if isinstance(raw, bool) or not isinstance(raw, int | float):
            raise FileError(f"{path}: {raw!r} is not a number")
        return float(raw)
    try:
        return quantity.parse(raw)
    except GcnsimError as error:
        raise FileError(f"{path}: {error}") from None


def _figures(raw: Mapping[str, Any], table: _Table, name: str) -> dict[str, Any]:
    """The figures of `table` in `raw`; one written as null is None (a device without that rate)."""
    found = {}
    for field, quantity in table.items():
        if field not in raw:
            raise FileError(f"catalogue, {name}: {field} is missing")
        value = raw[field]
        found[field] = None if value is None else read_figure(value, quantity, f"catalogue, {name}.{field}")
    return found


def _names(folder: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (DATA / folder).glob("*.yaml")))


def _unknown(kind: str, name: str) -> str:
    return f"unknown {kind} {name!r}; {nearest(name, _names(f'{kind}s'))}"


def _document(kind: str, name: str) -> dict[str, Any]:
    if name not in _names(f"{kind}s"):
        raise ScenarioError(_unknown(kind, name))
    raw: dict[str, Any] = read_yaml(DATA / f"{kind}s" / f"{name}.yaml")
    return raw


@cache
def _assumed() -> Mapping[str, Mapping[str, Any]]:
    raw: dict[str, Mapping[str, Any]] = read_yaml(DATA / "assumed.yaml")
    return raw


@cache
def _prices() -> tuple[Price, ...]:
    rows = [
        Price(
            device=row["device"],
            usd_per_gpu_hour=units.money(row["price"]) / row["gpus"],
            instance=row["instance"],
            gpus=row["gpus"],
            region=row["region"],
            source=row["source"],
            date=row["date"],
        )
        for row in read_yaml(DATA / "prices.yaml")
    ]
    return tuple(sorted(rows, key=lambda price: (price.device, price.usd_per_gpu_hour, price.instance)))
