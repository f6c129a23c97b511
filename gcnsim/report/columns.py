"""The columns of the result table: what each is called, what it means, and its cells as text.

One column has one unit, written in its heading, so that its numbers can be compared by eye. Terminal table and page
show the same columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gcnsim.report.rows import Row, varies
from gcnsim.report.words import plain
from gcnsim.units import NBYTES, SECONDS


class Meaning(NamedTuple):
    """A column's heading (lines split by a newline, `{unit}` filled in) and its definition in a sentence."""

    head: str
    says: str


MEANINGS: dict[str, Meaning] = {
    "gpus": Meaning("GPUs", "Number of GPUs, one partition of the graph each."),
    "bandwidth": Meaning("band-\nwidth", "Bandwidth of each server's network card."),
    "method": Meaning("method", "The training method that is simulated."),
    "tau": Meaning("tau", "Staleness: the age, in iterations, of the boundary values an iteration reads; 0 waits."),
    "epsilon": Meaning(
        "eps",
        "Sampling rate: the requested share of the boundary edges that an iteration keeps; p: of boundary nodes.",
    ),
    "cache_fraction": Meaning("cache", "Share of a worker's boundary nodes whose input features its GPU keeps."),
    "setting": Meaning("knobs", "Knobs that have no column of their own, where they are not at their default."),
    "iteration_s": Meaning(
        "{unit} per\niteration",
        "Time of one iteration on the slowest worker, mean over the measured iterations. "
        "It is the sum of compute, exposed communication and other.",
    ),
    "interval": Meaning("[low, high]", "The 90 % interval of the iteration time; what it covers is in the provenance."),
    "iterations_per_epoch": Meaning(
        "iter.\nan epoch",
        "Iterations in which every training node is trained once: 1 where an iteration trains them all.",
    ),
    "epoch_s": Meaning("{unit} per\nepoch", "Time of so many iterations."),
    "compute_s": Meaning("compute\n{unit}", "Time the GPU spends on aggregation, layer updates and loss, both ways."),
    "exposed_comm_s": Meaning(
        "exposed\ncomm {unit}",
        "Communication that nothing hides: the iteration waits for it. Overlap removes this part.",
    ),
    "hidden_comm_s": Meaning(
        "hidden\ncomm {unit}", "Communication that runs beneath other work. It costs bandwidth but no time."
    ),
    "exposed_other_s": Meaning("other\n{unit}", "Sampling, optimizer and all else that is neither of the two."),
    "sampling_s": Meaning(
        "sample\n{unit}", "Time spent on drawing the sample and looking up the cache, hidden or not."
    ),
    "cache_hit_rate": Meaning(
        "cache\nhits", "Share of the boundary rows needed at the input layer that the cache holds."
    ),
    "gpu_utilization": Meaning("GPU\nbusy", "Busy compute time over iteration time, mean over the GPUs."),
    "nic_utilization": Meaning("NIC\nbusy", "Used share of the busiest direction of the busiest network card."),
    "nic_bytes": Meaning("NIC\n{unit}", "Bytes sent per iteration by the busiest server's network card."),
    "memory_bytes": Meaning(
        "memory\n{unit}",
        "Peak of the worker nearest its GPU's limit; ! where that lacks it. Shown where one does not fit.",
    ),
    "speedup_vs_full_graph": Meaning(
        "speed-\nup", "Full-graph iteration time over this epoch's, on the same cluster; - where there is none."
    ),
}

LEAD = ("gpus", "bandwidth", "method", "tau", "epsilon", "cache_fraction", "setting")
"""The columns that say which row this is; the rest say how it fares."""

TIME_UNITS: tuple[tuple[str, float], ...] = tuple((unit, float(SECONDS.units[unit])) for unit in SECONDS.shown)
BYTE_UNITS: tuple[tuple[str, float], ...] = tuple((unit, float(NBYTES.units[unit])) for unit in NBYTES.shown)


@dataclass(frozen=True, slots=True)
class Column:
    """One column as text: its key, heading with unit, and a cell per row."""

    key: str
    head: str
    cells: tuple[str, ...]

    @property
    def width(self) -> int:
        """Characters of its longest line."""
        return max(len(line) for text in (self.head, *self.cells) for line in text.split("\n"))


class Scale(NamedTuple):
    """A unit, how much of the base unit it is, and the decimals that its numbers are written with."""

    unit: str
    size: float
    decimals: int

    def text(self, value: float) -> str:
        """`value` (base unit) in this unit; a bare 0 for an exact zero, so that it differs from a rounded one."""
        return f"{value / self.size:.{self.decimals}f}" if value else "0"


WIDE = 1000
"""Byte counts from here on take the next larger unit where that says nearly as much."""


def scale_of(values: Sequence[float], units: Sequence[tuple[str, float]]) -> Scale:
    """The scale in which the smallest positive value has three digits, four if all are within a factor of two.

    `units` go from the largest to the smallest.

    >>> scale_of([0.4, 0.7], TIME_UNITS).text(0.41234)
    '412.3'
    >>> scale_of([0.4, 1.5], TIME_UNITS).text(0.41234)
    '412'
    """
    positive = [value for value in values if value > 0]
    if not positive:
        return Scale(*units[-1], 0)
    low, high = min(positive), max(positive)
    place = next((place for place, (_, size) in enumerate(units) if low >= size), len(units) - 1)
    digits = 3 if high / low < 2 else 2
    if units is BYTE_UNITS and place and high / units[place][1] >= WIDE and high >= units[place - 1][1] * 0.9:
        # 1010.7 MiB is read better, and in less room, as 0.987 GiB.
        unit, size = units[place - 1]
        return Scale(unit, size, digits)
    unit, size = units[place]
    return Scale(unit, size, min(6, max(0, digits - math.floor(math.log10(low / size)))))


def share_text(value: float) -> str:
    """A fraction as per cent, with a decimal below 10 %.

    >>> share_text(0.125), share_text(0.04), share_text(0.0)
    ('12%', '4.0%', '0%')
    """
    percent = 100 * value
    return f"{percent:.1f}%" if 0 < percent < 9.95 else f"{percent:.0f}%"


def columns_of(rows: Sequence[Row]) -> list[Column]:
    """The columns of `rows`: GPUs and bandwidth where they vary, epochs and other knobs where there are any."""
    time = scale_of([row.iteration_s for row in rows], TIME_UNITS)
    size = scale_of([row.nic_bytes for row in rows], BYTE_UNITS)
    hidden = {key for key in ("gpus", "bandwidth") if not varies(rows, key)}
    if all(row.iterations_per_epoch == 1 for row in rows):
        hidden |= {"iterations_per_epoch", "epoch_s"}
    if not any(row.setting for row in rows):
        hidden.add("setting")
    if all(row.fits is not False for row in rows):
        hidden.add("memory_bytes")
    held = scale_of([row.memory_bytes or 0.0 for row in rows], BYTE_UNITS)
    scales = {"nic_bytes": size, "memory_bytes": held}
    keys = [key for key in MEANINGS if key not in hidden]
    units = dict.fromkeys(keys, time.unit) | {"nic_bytes": size.unit, "memory_bytes": held.unit}
    return [
        Column(key, MEANINGS[key].head.format(unit=units[key]), tuple(_cell(row, key, time, scales) for row in rows))
        for key in keys
    ]


def _cell(row: Row, key: str, time: Scale, scales: Mapping[str, Scale]) -> str:
    if key == "interval":
        return f"[{time.text(row.iteration_s_low)}, {time.text(row.iteration_s_high)}]"
    value = getattr(row, key)
    if key == "epsilon" and row.rate < 1.0:
        return f"p{row.rate:g}"
    if key.endswith("_s"):
        return time.text(value)
    if key == "memory_bytes":
        return "-" if value is None else scales[key].text(value) + ("!" if row.fits is False else "")
    if key in scales:
        return scales[key].text(value)
    if key == "speedup_vs_full_graph":
        return "-" if value is None else f"{value:.2f}x"
    if key == "cache_fraction":
        return f"{100 * value:.4g}%"
    if key in ("cache_hit_rate", "gpu_utilization", "nic_utilization"):
        return share_text(value)
    return f"{value:g}" if isinstance(value, float) else plain(value)
