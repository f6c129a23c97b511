"""One simulated scenario as text: the parts of an iteration, and the load of each link."""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from typing import Final

from gcnsim.core.terminal import aligned
from gcnsim.core.units import format_bytes, format_fraction, format_seconds
from gcnsim.report.answer import rows as provenance
from gcnsim.report.answer.sentences import label_of, limit_text
from gcnsim.results import RunLength, SimulationReport

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
