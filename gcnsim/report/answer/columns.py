"""The columns of the result table: heading, meaning, and cells as text.

One column has one unit, written in its heading, so that its numbers can be compared by eye. Terminal table and page
show the same columns, with the same keys as JSON, CSV and data frames; `time`, `shares` and `knobs` join several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.units import BANDWIDTH, NBYTES, SECONDS, format_number
from gcnsim.report.answer.rows import plain, shared_knobs, value_of, varies
from gcnsim.results import Row


class ColumnHelp(NamedTuple):
    """A column's heading (lines split by a newline, `{unit}` filled in) and its definition in a sentence.

    brief: the heading for narrow tables.
    """

    head: str
    says: str
    brief: str = ""


MEANINGS: dict[str, ColumnHelp] = {
    "dataset": ColumnHelp("dataset", "The dataset, or the file of the graph."),
    "gpus": ColumnHelp("GPUs", "Number of GPUs, one part of the graph each."),
    "device": ColumnHelp("device", "The GPU, by its name in the catalogue."),
    "host": ColumnHelp("host", "The server, by its name in the catalogue."),
    "gpus_per_server": ColumnHelp("GPUs per\nserver", "GPUs in one server; the last may hold fewer.", "GPUs/\nserver"),
    "bandwidth": ColumnHelp("bandwidth", "Bandwidth of each server's network card.", "band-\nwidth"),
    "method": ColumnHelp("method", "The training method that is simulated."),
    "knobs": ColumnHelp(
        "knobs", "The knobs of the method that identify the setting; those that all rows share are in the heading."
    ),
    "tau": ColumnHelp(
        "tau",
        "Staleness: age, in iterations, of the boundary rows that an iteration reads; 0: it waits for current rows.",
    ),
    "epsilon": ColumnHelp("eps", "Sampling rate: the expected share of each node's edges that an iteration draws."),
    "rate": ColumnHelp("rate", "Share of the boundary nodes that an iteration draws and sends (p of BNS-GCN)."),
    "cache_fraction": ColumnHelp("cache", "Share of a worker's boundary nodes whose input features its GPU keeps."),
    "setting": ColumnHelp("other\nknobs", "Knobs without a column of their own, if they differ from the default."),
    "time": ColumnHelp(
        "{unit} per iteration\n(range)",
        "Time of one iteration on the slowest worker, mean over the measured iterations, and its 90 % interval.",
        "{unit} per iter.\n(range)",
    ),
    "iteration_s": ColumnHelp(
        "{unit} per\niteration",
        "Time of one iteration on the slowest worker, mean over the measured iterations. "
        "It is the sum of compute, exposed communication and the rest.",
    ),
    "interval": ColumnHelp("low-high\n{unit}", "The 90 % interval of the iteration time."),
    "iterations_per_epoch": ColumnHelp(
        "iterations\nper epoch",
        "Iterations in which every training node is used once: 1 if each iteration uses all of them.",
    ),
    "epoch_s": ColumnHelp("{unit} per\nepoch", "Time of one epoch, which may have several iterations."),
    "speedup_vs_full_graph": ColumnHelp(
        "speed-up",
        "Time of a full-graph iteration divided by the time of this epoch, on the same cluster; -: unknown.",
        "speed\nup",
    ),
    "shares": ColumnHelp(
        "compute|\nwaiting %",
        "Percentage of the iteration in which the slowest worker's GPU computes, and in which it waits for "
        "communication; the rest is sampling, optimizer and all else.",
        "comp|\nwait %",
    ),
    "limited_by": ColumnHelp(
        "limited by", "The resource that would shorten the iteration most if it were infinitely fast."
    ),
    "memory_bytes": ColumnHelp(
        "{unit}\nper GPU",
        "Peak memory of the worker that is nearest to its GPU's limit; !: it does not fit.",
        "{unit}/\nGPU",
    ),
    "usd_per_1000_iterations": ColumnHelp(
        "USD per\n1,000 iter.",
        "Price of 1,000 iterations on the cheapest rented machines of the catalogue, in US dollars.",
        "$ per\n1k it",
    ),
    "cost_per_1000_iterations": ColumnHelp(
        "{unit} per\n1,000 iter.",
        "Price of 1,000 iterations, in US dollars.",
        "{unit}/\n1k it",
    ),
    "cost_per_hour": ColumnHelp("{unit} per\nhour", "Price of the machine per hour, in US dollars."),
    "cost_per_iteration": ColumnHelp("{unit} per\niteration", "Price of one iteration."),
    "cost_per_epoch": ColumnHelp("{unit} per\nepoch", "Price of an epoch, in which every training node is used once."),
    "vs_recommended": ColumnHelp(
        "against\nrecommended",
        "How much longer (+) or shorter (-) than the recommended setting: the 90 % interval of the paired difference; "
        "`=`: no clear difference.",
    ),
    "compute_s": ColumnHelp(
        "compute\n{unit}", "Time the GPU spends on aggregation, layer updates and loss, forward and backward."
    ),
    "exposed_comm_s": ColumnHelp(
        "exposed\ncomm {unit}",
        "Communication that overlaps with no other work: the iteration waits for it.",
    ),
    "hidden_comm_s": ColumnHelp(
        "hidden\ncomm {unit}", "Communication that runs at the same time as other work. It costs bandwidth but no time."
    ),
    "exposed_other_s": ColumnHelp(
        "other\n{unit}",
        "Sampling, optimizer and everything else that is neither computation nor exposed communication.",
    ),
    "sampling_s": ColumnHelp(
        "sample\n{unit}", "Time spent on drawing the sample and looking rows up in the cache, hidden or not."
    ),
    "cache_hit_rate": ColumnHelp(
        "cache\nhits", "Share of the boundary rows needed at the input layer that the cache holds."
    ),
    "gpu_utilization": ColumnHelp("GPU\nbusy", "Busy compute time over iteration time, mean over the GPUs."),
    "nic_utilization": ColumnHelp(
        "NIC\nbusy", "Share of the time that the busiest direction of the busiest network card is in use."
    ),
    "nic_bytes": ColumnHelp("NIC\n{unit}", "Bytes sent per iteration by the busiest server's network card."),
    "nic_bytes_per_s": ColumnHelp(
        "NIC\n{unit}", "Bytes sent per second by the busiest server's network card, mean over an iteration."
    ),
}

MACHINE = ("dataset", "host", "gpus", "gpus_per_server", "device", "bandwidth")
"""The columns of the machine: shown if rows differ in them, otherwise in the title."""

LEAD = (*MACHINE, "method", "knobs", "tau", "epsilon", "rate", "cache_fraction", "setting")
"""The columns that identify a row; the others are results."""

SHOWN = (
    *MACHINE,
    "method",
    "knobs",
    "time",
    "epoch_s",
    "speedup_vs_full_graph",
    "shares",
    "limited_by",
    "memory_bytes",
    "usd_per_1000_iterations",
    "cost_per_1000_iterations",
)
"""The default columns of the table, if they are informative."""

COSTS = ("cost_per_hour", "cost_per_iteration", "cost_per_1000_iterations", "cost_per_epoch")
"""Columns in US dollars."""

TEXT = ("dataset", "host", "device", "bandwidth", "method", "knobs", "setting", "limited_by")
"""Columns of text, aligned to the left."""

TIME_UNITS: tuple[tuple[str, float], ...] = tuple((unit, float(SECONDS.units[unit])) for unit in SECONDS.shown)
RATE_UNITS: tuple[tuple[str, float], ...] = tuple((unit, float(BANDWIDTH.units[unit])) for unit in BANDWIDTH.shown)
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
    """A unit, its size in the base unit, and the decimals of its numbers."""

    unit: str
    size: float
    decimals: int

    def text(self, value: float) -> str:
        """`value` (base unit) in this unit; an exact zero is `0`, so that it differs from a rounded one."""
        return f"{value / self.size:.{self.decimals}f}" if value else "0"


WIDE = 1000
"""Byte counts from here on use the next larger unit if that is nearly as precise."""


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
    place = next((index for index, (_, size) in enumerate(units) if low >= size), len(units) - 1)
    digits = 3 if high / low < 2 else 2
    if units is BYTE_UNITS and place and high / units[place][1] >= WIDE and high >= units[place - 1][1] * 0.9:
        # 0.987 GiB is shorter and easier to read than 1010.7 MiB.
        unit, size = units[place - 1]
        return Scale(unit, size, digits)
    unit, size = units[place]
    return Scale(unit, size, min(6, max(0, digits - math.floor(math.log10(low / size)))))


def share_text(value: float) -> str:
    """A fraction as a percentage, with a decimal below 10 %.

    >>> share_text(0.125), share_text(0.04), share_text(0.0)
    ('12%', '4.0%', '0%')
    """
    percent = 100 * value
    return f"{percent:.1f}%" if 0 < percent < 9.95 else f"{percent:.0f}%"


def checked(names: Sequence[str]) -> tuple[str, ...]:
    """The requested columns, each once. Raises ScenarioError for an unknown name, with the nearest known one."""
    unique_names = tuple(dict.fromkeys(name.strip() for name in names))
    for name in unique_names:
        if name not in MEANINGS:
            raise ScenarioError(f"--columns: unknown column {name!r}; {nearest(name, MEANINGS)}")
    return unique_names


def columns_of(
    rows: Sequence[Row], keys: Sequence[str] | None = None, *, gap: str = "  ", brief: bool = False
) -> list[Column]:
    """The columns of `rows`: those of `keys`, otherwise the informative default columns.

    gap: between the knobs of a row. brief: the shorter headings.
    """
    times = [row.iteration_s for row in rows]
    # The default table shows a range next to each time, so a fourth digit would be false precision.
    time = scale_of([*times, 2.0 * max(times)] if keys is None else times, TIME_UNITS)
    scales = {
        "nic_bytes": scale_of([row.nic_bytes for row in rows], BYTE_UNITS),
        "nic_bytes_per_s": scale_of([row.nic_bytes_per_s for row in rows], RATE_UNITS),
        "memory_bytes": _two_digits([row.memory_bytes or 0.0 for row in rows]),
    }
    names = [key for key in SHOWN if key not in _silent(rows)] if keys is None else keys
    if keys is None and "epoch_s" in names:
        # Iterations of mini-batches differ in work: epochs are what compares, so they come first.
        names = [name for key in names if key != "epoch_s" for name in (("epoch_s", key) if key == "time" else (key,))]
    if all(row.iteration_s_low is None for row in rows):
        names = ["iteration_s" if key == "time" else key for key in names]
    units = dict.fromkeys(MEANINGS, time.unit) | {key: scale.unit for key, scale in scales.items()}
    units |= dict.fromkeys(COSTS, next((row.currency for row in rows if row.currency), "USD"))
    shared = set() if keys else set(shared_knobs(rows))
    columns = [
        Column(key, _head(key, brief).format(unit=units[key]), _column(rows, key, time, scales, gap, shared))
        for key in names
    ]
    return [_brief_limits(column) if brief and column.key == "limited_by" else column for column in columns]


def _brief_limits(column: Column) -> Column:
    """The bottlenecks in fewer words: `GPU compute, worker 4`; `GPU compute` for that of all workers."""
    short = [cell.removesuffix(" of all workers").replace(" of worker", ", worker") for cell in column.cells]
    return replace(column, cells=tuple(short))


def _head(key: str, brief: bool) -> str:
    return (MEANINGS[key].brief if brief else "") or MEANINGS[key].head


def _two_digits(values: Sequence[float]) -> Scale:
    """A scale of bytes with one decimal; GPU memory is not known more precisely."""
    scale = scale_of(values, BYTE_UNITS)
    return scale._replace(decimals=min(scale.decimals, 1))


def _silent(rows: Sequence[Row]) -> set[str]:
    """The default columns that are empty for `rows`, or equal in all of them."""
    silent = {key for key in MACHINE if not varies(rows, key)}
    shared = set(shared_knobs(rows))
    if all(not set(row.knob_words()) - shared for row in rows):
        silent.add("knobs")
    if all(row.iterations_per_epoch == 1 for row in rows):
        silent.add("epoch_s")
    for key in ("memory_bytes", "usd_per_1000_iterations", "speedup_vs_full_graph"):
        if all(getattr(row, key) is None for row in rows):
            silent.add(key)
    return silent | uninformative_costs(rows)


def uninformative_costs(rows: Sequence[Row]) -> set[str]:
    """Of the two columns with the cost of 1,000 iterations, the one in the currency that was not chosen."""
    other = any(row.currency not in (None, "USD") for row in rows)
    return {"usd_per_1000_iterations" if other else "cost_per_1000_iterations"}


def _column(
    rows: Sequence[Row], key: str, time: Scale, scales: Mapping[str, Scale], gap: str, shared: set[str]
) -> tuple[str, ...]:
    if key == "knobs":
        return tuple(
            plain(gap.join(text for name, text in row.knob_words().items() if name not in shared)) for row in rows
        )
    if key == "time":
        means = [time.text(row.iteration_s) for row in rows]
        spans = [f"({ends})" if (ends := _ends(row, time)) else "" for row in rows]
        widths = max(map(len, means)), max(map(len, spans))
        return tuple(f"{mean:>{widths[0]}} {span:<{widths[1]}}" for mean, span in zip(means, spans, strict=True))
    return tuple(_cell(row, key, time, scales) for row in rows)


def _cell(row: Row, key: str, time: Scale, scales: Mapping[str, Scale]) -> str:
    if key == "interval":
        return _ends(row, time) or "-"
    if key == "shares":
        parts = (row.compute_s, row.exposed_comm_s)
        return "|".join(f"{100 * part / row.iteration_s:2.0f}" for part in parts)
    if key == "vs_recommended":
        return _vs_recommended(row)
    value = value_of(row, key)
    if value is None:
        return "-"
    if key.endswith("_s") and key not in scales:
        return time.text(value)
    if key == "memory_bytes":
        return scales[key].text(value) + ("!" if row.fits is False else "")
    if key in scales:
        return scales[key].text(value)
    if key == "speedup_vs_full_graph":
        return f"{value:.1g}x" if value < 0.095 else f"{value:.2f}x" if value < 9.995 else f"{value:.1f}x"
    if key in ("usd_per_1000_iterations", *COSTS):
        return f"{value:.2f}" if value >= 0.0995 else format_number(value, 2)
    if key == "cache_fraction":
        return f"{100 * value:.4g}%"
    if key in ("cache_hit_rate", "gpu_utilization", "nic_utilization"):
        return share_text(value)
    return f"{value:g}" if isinstance(value, float) else plain(value)


def _ends(row: Row, time: Scale) -> str:
    """The 90 % interval of its time; empty without one."""
    if row.iteration_s_low is None or row.iteration_s_high is None:
        return ""
    return f"{time.text(row.iteration_s_low)}-{time.text(row.iteration_s_high)}"


def _vs_recommended(row: Row) -> str:
    if row.recommended or row.vs_recommended_low is None or row.vs_recommended_high is None:
        return "-"
    if not row.distinguishable:
        return "="
    ends = (100 * row.vs_recommended_low, 100 * row.vs_recommended_high)
    low, high = (f"{end:+.1f}" if abs(end) < 9.95 else f"{end:+.0f}" for end in ends)
    return f"{low} to {high}%"
