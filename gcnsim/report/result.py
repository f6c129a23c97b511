"""Results as text: one simulated scenario, its parts and its links; and the rows of a sweep, also as files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError
from gcnsim.core.terminal import aligned
from gcnsim.core.units import format_bytes, format_fraction, format_seconds
from gcnsim.report.answer import rows as provenance
from gcnsim.report.answer.columns import columns_of, shown_keys
from gcnsim.report.answer.sentences import label_of, limit_text
from gcnsim.results import KEYS, RESULTS, Row, RunLength, SimulationReport

if TYPE_CHECKING:
    import pyarrow as pa

MOST_LINKS: Final = 64
"""The most links listed individually, about those of 16 GPUs; of more, the busiest are listed."""

BUSIEST: Final = 8
"""The number of links listed if there are more."""

_TIMES = {
    "compute_s": "compute",
    "exposed_comm_s": "exposed communication",
    "exposed_other_s": "the rest",
    "hidden_comm_s": "hidden communication (overlaps the above)",
    "sampling_s": "sampling (may overlap)",
}


def _memory(report: SimulationReport) -> list[str]:
    """The memory of the worker nearest its GPU's limit, by component; empty without a memory law."""
    memory = report.memory
    if memory is None:
        return []
    held = memory.workers[memory.tightest]
    parts = [f"{name} {format_bytes(size)}" for name, size in asdict(held).items() if size]
    of = "" if memory.device_bytes is None else f" of {format_bytes(memory.device_bytes)}"
    fits = "; DOES NOT FIT" if memory.fits is False else ""
    return [f"  memory of worker {memory.tightest}: {format_bytes(held.total)}{of}{fits}", f"    {', '.join(parts)}"]


def render_short_result(report: SimulationReport) -> str:
    """Two lines: the simulated setting, its iteration time and its bottleneck."""
    return "\n".join([*_first(report), f"  limited by {limit_text(report.result)}"])


def _first(report: SimulationReport) -> list[str]:
    """The simulated setting and its iteration time."""
    row = report.result
    interval = "no 90 % interval"
    if row.iteration_s_low is not None and row.iteration_s_high is not None:
        interval = f"90 % interval {format_seconds(row.iteration_s_low)} to {format_seconds(row.iteration_s_high)}"
    title = provenance.plain(f"{report.scenario['name']}: {row.method}, {provenance.knobs_of(row)}")
    return [
        f"{title}  {label_of(report)}".rstrip(),
        f"  iteration  {format_seconds(row.iteration_s)}  ({interval})",
    ]


def render_result(report: SimulationReport) -> str:
    """A simulated scenario as text."""
    row, run = report.result, report.run
    lines = _first(report)
    if row.iterations_per_epoch > 1:
        lines.append(f"  epoch      {format_seconds(row.epoch_s)}, {row.iterations_per_epoch} iterations")
    parts = [
        (format_seconds(getattr(row, key)), _share(getattr(row, key) / row.iteration_s), name)
        for key, name in _TIMES.items()
    ]
    lines += aligned(parts, left=(False, False, True), indent=2)
    lines += [
        f"  speed-up over full-graph {_times(row.speedup_vs_full_graph)}, limited by {limit_text(row)}",
        f"  GPU busy {format_fraction(row.gpu_utilization)}, busiest NIC {format_fraction(row.nic_utilization)}, "
        f"{format_bytes(row.nic_bytes)} sent per iteration, cache hits {format_fraction(row.cache_hit_rate)}",
        f"  {run.iterations - run.by_period} iterations simulated{_closely(run)}, {_repeated(run)}"
        f"the last {run.measured} measured" + ("" if run.settled else "; NOT steady: see warnings"),
        *_memory(report),
        "",
        "Links per iteration",
        *_links(report),
    ]
    lines += ["", "Provenance"] + [f"  {name}: {value}" for name, value in provenance.provenance_of(report)]
    lines += [f"  warning: {text}" for text in provenance.warnings_of(report)]
    return "\n".join(lines) + "\n"


def _links(report: SimulationReport) -> list[str]:
    """The load of each link; above `MOST_LINKS`, of the busiest ones and the median."""
    link_rows = [(name, link.bytes, link.utilization) for name, link in report.links.items()]
    count = len(link_rows)
    if count > MOST_LINKS:
        busiest = sorted(link_rows, key=lambda link: -link[2])[:BUSIEST]
        middle = median(size for _, size, _ in link_rows), median(busy for _, _, busy in link_rows)
        link_rows = [*busiest, (f"median of {count:,}", *middle)]
    rows = [(name, format_bytes(size), _share(busy)) for name, size, busy in link_rows]
    more = [f"  {count - BUSIEST:,} more links, all of them with --json"] if count > MOST_LINKS else []
    return aligned(rows, ("", "bytes", "busy"), indent=2) + more


def _closely(run: RunLength) -> str:
    """The fidelity of a coarse run."""
    if run.grain_s is None or run.error is None:
        return ""
    error = f"{format_fraction(run.error)} either way"
    return f" {run.fidelity}ly (busy links shared every {format_seconds(run.grain_s)}; {error})"


def _repeated(run: RunLength) -> str:
    """The number of iterations that were not simulated, if any."""
    return f"{run.by_period} more by their period, " if run.by_period else ""


def _share(value: float) -> str:
    """A percentage; below a thousandth only `< 0.1 %`."""
    return "< 0.1 %" if 0 < value < 1e-3 else format_fraction(value)


def _times(speedup: float | None) -> str:
    return "not known" if speedup is None else f"{speedup:.2f}x"


SUFFIXES: Final = (".csv", ".json", ".parquet")


def row_of_record(record: Mapping[str, Any]) -> Row:
    """The row of an answered point."""
    return Row(**{key: value for key, value in record.items() if key in KEYS})


def render_points(records: Sequence[Mapping[str, Any]], axes: Sequence[str], keys: Sequence[str] | None = None) -> str:
    """One line per answered point: its index, its values of the axes, its results.

    keys: columns to show instead of the default ones, by the names of what-if's table.
    """
    if not records:
        return "no point"
    rows = [row_of_record(record) for record in records]
    # What varies stands in the columns of the axes.
    keys = [key for key in shown_keys(rows) if key in RESULTS] if keys is None else keys
    columns = columns_of(rows, keys)
    cells = [[str(record["point"]), *(_text(record[path]) for path in axes)] for record in records]
    lines = [
        [*lead, *own] for lead, own in zip(cells, zip(*(column.cells for column in columns), strict=True), strict=True)
    ]
    heads = ["point", *(path.replace(".", ".\n") for path in axes), *(column.head for column in columns)]
    left = [
        False,
        *(isinstance(records[0][path], str | None) for path in axes),
        *(shown.column.form.left for shown in columns),
    ]
    return "\n".join(aligned(lines, heads, left=left))


def _text(value: Any) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def write_points(path: str | Path, table: pa.Table) -> None:
    """Write the table as CSV, JSON (a list of objects) or Parquet, by the file's suffix. Raises FileError."""
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise FileError(f"{path}: its suffix says no format; allowed: {', '.join(SUFFIXES)}")
    if suffix == ".json":
        with atomic_write(path, text=True) as file:
            json.dump(table.to_pylist(), file, indent=1, allow_nan=False)
            file.write("\n")
        return
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    with atomic_write(path) as file:
        if suffix == ".csv":
            pc.write_csv(table, file)
        else:
            pq.write_table(table, file, compression="zstd", write_page_checksum=True)
