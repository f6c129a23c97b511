"""The figures of a device, a link and a host, the quantity of each, and their parser.

A figure is a number with its source: every prediction is only as good as the worst figure it uses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias

import numpy as np

from gcnsim.core import units
from gcnsim.core.errors import FileError, GcnsimError, nearest
from gcnsim.core.fields import Number, QuantityRange, shown
from gcnsim.core.ids import FloatArray

SOURCES: Final = ("assumed", "datasheet", "given", "fitted", "measured")
"""Kinds of source, the weakest first; only `assumed` figures have a range. `given`: by the question."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number in SI units with its source.

    value: seconds, bytes, bytes/s, flop/s, edges/s or a share of one. source: one of `SOURCES`. reference: the
    document, or the way it was measured. date: of the reference (ISO, or the year). low, high: the range if assumed.
    """

    value: float
    source: str
    reference: str
    date: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A true or false fact with its source; source, reference and date as in a `Figure`."""

    value: bool
    source: str
    reference: str
    date: str


def figures_of(profile: Any) -> dict[str, Figure]:
    """The figures of `profile` by field name, in the order of its fields."""
    pairs = ((field.name, getattr(profile, field.name)) for field in fields(profile))
    return {name: value for name, value in pairs if isinstance(value, Figure)}


def origins(profile: Any) -> tuple[str, ...]:
    """The kinds of source among the figures of `profile`, the weakest first."""
    kinds = {figure.source for figure in figures_of(profile).values()}
    return tuple(source for source in SOURCES if source in kinds)


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure that depends on a size: `values[i]` at `sizes[i]` (ascending), straight in log(size), flat beyond."""

    sizes: tuple[float, ...]
    values: tuple[float, ...]
    source: str
    reference: str
    date: str

    def at(self, size: FloatArray) -> FloatArray:
        """The value at each size, float64 of the same shape."""
        interpolated: FloatArray = np.interp(np.log(np.maximum(size, 1.0)), np.log(self.sizes), self.values)
        return interpolated


Table: TypeAlias = Mapping[str, units.Quantity | None]
DEVICE: Final[Table] = {
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
LINK: Final[Table] = {
    "bandwidth": units.BANDWIDTH,
    "efficiency": units.FRACTION,
    "latency_s": units.SECONDS,
    "queue": units.NBYTES,
}
HOST: Final[Table] = {
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
    "gather_bandwidth": units.BANDWIDTH,
    "work_spread": units.FRACTION,
    "operation_s": units.SECONDS,
    "call_s": units.SECONDS,
    "rebuild_bytes": units.NBYTES,
    "staging_bandwidth": units.BANDWIDTH,
    "neighbour_draws_per_s": units.RATE,
    "uva_efficiency": units.FRACTION,
}
NVLINKS: Final[Table] = {"nvlink": units.BANDWIDTH, "nvlink_generation": None}
"""Figures of devices and instance-type hosts whose GPUs have links to each other."""
CACHE: Final[Table] = {"l2_cache": units.NBYTES, "cache_rate": None}
"""Figures of a GPU's last-level cache."""
POWER: Final[Table] = {"power": units.POWER, "busy_power": units.FRACTION, "waiting_power": units.FRACTION}
"""Power of a GPU: its board's, and the shares of it that a computing and a waiting GPU draw."""
DEVICE_OPTIONAL: Final[Table] = {**NVLINKS, **CACHE, **POWER}
"""Figures that a device may have."""
SITE: Final[Table] = {"host_power": None, "pue": None}
"""Power of the rest of a server over its GPUs' board power, and of its building over the server's."""
INSTANCE: Final[Table] = {"gpus": None, "nic": units.BANDWIDTH, "nics": None, **NVLINKS, **SITE}
"""Figures of hosts that are an instance type or a server of a known make, and of their power."""
CALIBRATED: Final[Table] = {"wake_s": units.SECONDS}
"""Host figures that only calibrations contain."""
QUANTITIES: Final[Table] = {**DEVICE, **DEVICE_OPTIONAL, **LINK, **HOST, **INSTANCE, **CALIBRATED}
"""The quantity of each figure of a profile (None: a plain number)."""

HOST_NAMES: Final = ("device", "network", "pcie")
"""The catalogue names in a host: its GPUs, the kind of its network, the link between GPUs and processors."""

INSIDE: Final = ("pcie", "nvlink", "host-memory")
"""The names of links within a server."""

ZERO_ALLOWED: Final = (
    "latency_s",
    "queue",
    "message_s",
    "launch_s",
    "work_spread",
    "operation_s",
    "call_s",
    "rebuild_bytes",
)
"""Figures that may be zero; a rate or a share of one may not."""

DEVICE_FACTS: Final = ("peer_to_peer",)
HOST_FACTS: Final = ("peer_to_peer", "gpudirect")
"""Facts about a device or a host; unknown ones are omitted."""


def read_figure(raw: object, quantity: units.Quantity | None, path: str) -> Figure:
    """Parse a figure `{value, source, reference, date, low, high}`. Raises FileError that starts with `path`."""
    if not isinstance(raw, dict) or not {"value", "source", "reference", "date"} <= set(raw):
        raise FileError(f"{path}: a figure is {{value, source, reference, date}} and, if assumed, low and high")
    unknown = sorted(set(raw) - {"value", "source", "reference", "date", "low", "high"})
    if unknown:
        raise FileError(f"{path}: unknown key {shown(unknown[0])}; {nearest(unknown[0], Figure.__slots__)}")
    source = str(raw["source"])
    if source not in SOURCES:
        raise FileError(f"{path}: unknown source {shown(raw['source'])}; {nearest(source, SOURCES)}")
    low, value, high = (_number(raw[key], quantity, path) if key in raw else None for key in ("low", "value", "high"))
    assert value is not None
    if source == "assumed" and (low is None or high is None or not low <= value <= high):
        raise FileError(f"{path}: an assumed figure needs low and high around its value")
    return Figure(value, source, str(raw["reference"]), str(raw["date"]), low, high)


def read_fact(raw: object, path: str) -> Fact:
    """Parse a fact `{value, source, reference, date}`, value true or false.

    Raises FileError that starts with `path`.
    """
    if not isinstance(raw, dict) or set(raw) != {"value", "source", "reference", "date"}:
        raise FileError(f"{path}: is not {{value: true or false, source, reference, date}}")
    if not isinstance(raw["value"], bool):
        raise FileError(f"{path}: {shown(raw['value'])} is not true or false")
    if raw["source"] not in SOURCES:
        raise FileError(f"{path}: unknown source {shown(raw['source'])}; {nearest(str(raw['source']), SOURCES)}")
    return Fact(raw["value"], raw["source"], str(raw["reference"]), str(raw["date"]))


def _number(raw: object, quantity: units.Quantity | None, path: str) -> float:
    try:
        return (
            Number(False, 0).read(raw, path)
            if quantity is None
            else QuantityRange(quantity, 0, math.inf).read(raw, path)
        )
    except GcnsimError as error:
        raise FileError(str(error)) from None
