"""One simulated scenario for people: where an iteration's time goes, and what each link carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gcnsim.report.answer import provenance
from gcnsim.report.answer.sentences import label_of, limit_text
from gcnsim.terminal.tables import aligned
from gcnsim.units import format_bytes, format_fraction, format_seconds

_TIMES = {
    "compute_s": "compute",
    "exposed_comm_s": "exposed communication",
    "exposed_other_s": "exposed other",
    "hidden_comm_s": "hidden communication (overlaps the above)",
    "sampling_s": "sampling (may overlap)",
}


def _memory(payload: Mapping[str, Any]) -> list[str]:
    """What the worker nearest its GPU's limit holds, by component; nothing where there is no law for it."""
    memory = payload.get("memory")
    if not memory:
        return []
    workers = memory["workers"]
    rank = memory["tightest"]
    parts = [f"{name} {format_bytes(size)}" for name, size in workers[rank].items() if size and name != "total"]
    of = "" if memory["device_bytes"] is None else f" of {format_bytes(memory['device_bytes'])}"
    fits = "; DOES NOT FIT" if memory["fits"] is False else ""
    return [f"  memory of worker {rank}: {format_bytes(workers[rank]['total'])}{of}{fits}", f"    {', '.join(parts)}"]


def render_short_result(payload: Mapping[str, Any]) -> str:
    """The payload of `gcnsim.result/1` in two lines: what was simulated, its iteration time and what limits it."""
    row = payload["result"]
    label, limit = label_of(payload), limit_text(row.get("limited_by")) or provenance.plain(row["bottleneck"])
    lines = _first(payload)
    lines[0] += f"  {label}".rstrip()
    return "\n".join([*lines, f"  limited by {limit}"])


def _first(payload: Mapping[str, Any]) -> list[str]:
    """What was simulated, and how long an iteration takes."""
    row = payload["result"]
    interval = [format_seconds(row[key]) for key in ("iteration_s_low", "iteration_s_high")]
    return [
        provenance.plain(f"{payload['scenario']['name']}: {row['method']}, {provenance.knobs_of(row)}"),
        f"  iteration  {format_seconds(row['iteration_s'])}  (90 % interval {' to '.join(interval)})",
    ]


def render_result(payload: Mapping[str, Any]) -> str:
    """The payload of `gcnsim.result/1` as text."""
    row, run = payload["result"], payload["run"]
    label = label_of(payload)
    lines = _first(payload)
    lines[0] += f"  {label}".rstrip()
    if row["iterations_per_epoch"] > 1:
        lines.append(f"  epoch      {format_seconds(row['epoch_s'])}, {row['iterations_per_epoch']} iterations")
    parts = [(format_seconds(row[key]), _share(row[key] / row["iteration_s"]), name) for key, name in _TIMES.items()]
    lines += aligned(parts, left=(False, False, True), indent=2)
    lines += [
        f"  speed-up over full-graph {_times(row['speedup_vs_full_graph'])}, limited by "
        f"{limit_text(row.get('limited_by')) or row['bottleneck']}",
        f"  GPU busy {format_fraction(row['gpu_utilization'])}, busiest NIC {format_fraction(row['nic_utilization'])}, "
        f"{format_bytes(row['nic_bytes'])} sent per iteration, cache hits {format_fraction(row['cache_hit_rate'])}",
        f"  {run['iterations']} iterations simulated, the last {run['measured']} measured"
        + ("" if run["settled"] else "; NOT steady: see warnings"),
        *_memory(payload),
        "",
        "Links per iteration",
    ]
    links = [
        (name, format_bytes(each["bytes"]), _share(each["utilization"])) for name, each in payload["links"].items()
    ]
    lines += aligned(links, ("", "bytes", "busy"), indent=2)
    lines += ["", "Provenance"] + [f"  {name}: {said}" for name, said in provenance.provenance_of(payload)]
    lines += [f"  warning: {text}" for text in provenance.warnings_of(payload)]
    return "\n".join(lines) + "\n"


def _share(value: float) -> str:
    """Per cent; what is less than a thousandth is only said to be that."""
    return "< 0.1 %" if 0 < value < 1e-3 else format_fraction(value)


def _times(speedup: float | None) -> str:
    return "not known" if speedup is None else f"{speedup:.2f}x"
