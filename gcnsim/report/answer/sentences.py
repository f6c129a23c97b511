"""What a payload answers, as plain text: its title, the verdict and what it rests on, the next steps.

Terminal, page and notebook print the same words. Whatever an answer does not say is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gcnsim.errors import GcnsimError, UnitError, plural
from gcnsim.hardware import device
from gcnsim.report.answer.columns import MACHINE
from gcnsim.report.answer.provenance import knobs_of, number, plain
from gcnsim.report.answer.rows import all_rows, labels_of, row_of, rows_of, shared_knobs, varies
from gcnsim.results import Row
from gcnsim.scenario import ClusterSpec
from gcnsim.units import bandwidth, format_seconds

UNCALIBRATED = "UNCALIBRATED"
PRECISION = 0.01
"""Changes smaller than this share are below what a simulation of a few iterations can tell."""
MOST_EXCLUDED = 4
"""Excluded settings that are named; more are counted."""
APART = "cannot be told apart"


class Step(NamedTuple):
    """One knob turned one step further: its values, the iteration time that gives, and the change in words."""

    knob: str
    before: str
    after: str
    iteration: str
    change: str


class Source(NamedTuple):
    """One line of provenance: what it is of, and its clauses, the most important first."""

    name: str
    clauses: tuple[str, ...]


def title_of(payload: Mapping[str, Any]) -> str:
    """What was asked, as far as all rows share it: `reddit, 6 x T4 in 3 servers, 15 Gbit/s`."""
    rows = all_rows(payload)
    first = rows[0]
    shown = {key for key in MACHINE if not varies(rows, key)}
    parts = [first.dataset] if "dataset" in shown and first.dataset else []
    if {"gpus", "device"} <= shown:
        parts.append(f"{first.gpus} x {_device(first, payload)}{_servers(first.gpus, payload)}")
    elif "gpus" in shown:
        parts.append(f"{plural(first.gpus, 'GPU')}{_servers(first.gpus, payload)}")
    elif "device" in shown:
        parts.append(_device(first, payload))
    if "bandwidth" in shown:
        parts.append(in_bits(first.bandwidth))
    return plain(", ".join([*parts, *shared_knobs(rows).values()]) or "what-if")


def in_bits(text: str) -> str:
    """A bandwidth as it is written in titles: `15 Gbit/s`."""
    try:
        return f"{bandwidth(text) * 8 / 1e9:g} Gbit/s"
    except UnitError:
        return text


def _device(row: Row, payload: Mapping[str, Any]) -> str:
    if payload["scenario"].get("cluster", {}).get("devices"):
        return "unequal GPUs"
    try:
        found = device(row.device)
        return "CPU core" if found.kind == "cpu" else found.title.removeprefix("NVIDIA ")
    except GcnsimError:
        return row.device or "GPU"


def _servers(gpus: int, payload: Mapping[str, Any]) -> str:
    """How many servers hold them. A scenario does not write the GPUs of one server that nobody chose."""
    each = payload["scenario"].get("cluster", {}).get("gpus_per_server") or ClusterSpec().gpus_per_server
    return f" in {plural(-(-gpus // each) if isinstance(each, int) else 1, 'server')}"


def label_of(payload: Mapping[str, Any]) -> str:
    """How far the answer is to be trusted, in capitals."""
    told = (payload.get("certainty") or {}).get("label")
    if told:
        return plain(told)
    return UNCALIBRATED if str(payload["provenance"].get("calibration", "")).startswith("none:") else ""


def verdict_of(payload: Mapping[str, Any]) -> str:
    """What to use, in a sentence."""
    best = payload["recommendation"]
    if best.get("verdict"):
        return plain(best["verdict"])
    return plain(f"Use {best['method']}, {knobs_of(best)}: {format_seconds(best['iteration_s'])} per iteration")


def reasons_of(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the verdict rests on: why, how sure, what limits it, which settings could be recommended at all."""
    best = payload["recommendation"]
    told = [("why", best.get("why")), ("how sure", (best.get("confidence") or {}).get("text"))]
    told += [("limited by", limit_text(best.get("limited_by"))), ("so", best.get("note"))]
    told += [("straggler", straggler_of(payload)), ("faults", fault_free_of(payload))]
    told += [("rule", (best.get("rule") or {}).get("text"))]
    excluded = best.get("excluded") or []
    out = [f"{each['what']}: {each['why']}" for each in excluded[:MOST_EXCLUDED]]
    if len(excluded) > MOST_EXCLUDED:
        out.append(f"{len(excluded) - MOST_EXCLUDED} more (--json names them)")
    told += [("" if place else "excluded", text) for place, text in enumerate(out)]
    return [(name, plain(text)) for name, text in told if text]


def limit_text(limit: Mapping[str, Any] | None) -> str:
    """What limits, and the share of the iteration that it is busy."""
    if not limit:
        return ""
    share = limit.get("share")
    return plain(limit["text"] if share is None else f"{limit['text']}, {_percent(share)} of the iteration")


def straggler_of(payload: Mapping[str, Any]) -> str:
    """The worker that the others wait for, and what an even partition would give."""
    told = payload.get("straggler")
    if not told:
        return ""
    even = told.get("even_s")
    more = "" if even is None or "even" in told["text"] else f"; an even partition: {format_seconds(even)}"
    return plain(told["text"] + more)


def fault_free_of(payload: Mapping[str, Any]) -> str:
    """Where faults were injected, the recommended setting without them."""
    calm = payload.get("fault_free")
    if not calm:
        return ""
    time = format_seconds(calm["iteration_s"])
    return f"fault-free for comparison: {time}; the faults make it {calm['times']:.2f} times as long"


def alternatives_of(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Of several machines, the other settings worth a look: their role, and what they are."""
    best, found = payload["recommendation"], []
    for each in best.get("alternatives") or []:
        row = each["row"]
        same = _same(row, best.get("row") or {})
        said = "the recommended one" if same else _setting(row_of(row, payload), priced=each["role"] != "cheapest")
        found.append((plain(each["role"]), plain(f"{said}; {each['why']}")))
    return found


def _same(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two rows are one setting on one machine."""
    named = (*MACHINE, "method", "tau", "epsilon", "rate", "cache_fraction", "setting")
    return all(row.get(key) == other.get(key) for key in named)


def _setting(row: Row, *, priced: bool) -> str:
    """A row in a clause: method, knobs, machine, time and, where nothing else says it, price."""
    machine = f"{row.gpus} x {row.device} at {row.bandwidth}"
    price = row.usd_per_1000_iterations
    cost = "" if price is None or not priced else f", {price:.2g} USD per 1,000 iterations"
    return f"{', '.join((row.method, *row.knobs))} on {machine}: {format_seconds(row.iteration_s)}{cost}"


def steps_of(payload: Mapping[str, Any]) -> list[Step]:
    """The next steps in the payload's order."""
    return [
        Step(
            plain(step["knob"]),
            number(step["from"]),
            number(step["to"]),
            format_seconds(step["iteration_s"]),
            change_of(step)
            + (", does not fit" if step.get("fits") is False else "")
            + (", below the least rate" if step.get("below_min_rate") else ""),
        )
        for step in payload["next_steps"]
    ]


def change_of(step: Mapping[str, Any]) -> str:
    """What a step brings, with the interval of its paired difference: `42 % shorter (38 to 47 %)`."""
    gain, low, high = step["gain"], step.get("gain_low"), step.get("gain_high")
    if low is None or high is None:
        return "about the same" if abs(gain) < PRECISION else f"{_percent(abs(gain))} {_way(gain)}"
    if not step.get("distinguishable", True):
        sure = max(abs(low), abs(high)) < PRECISION
        return APART if sure else f"{APART} ({_end(low)} to {_end(high)})"
    ends = sorted((abs(low), abs(high)))
    return f"{_percent(abs(gain))} {_way(gain)} ({_percent(ends[0]).removesuffix(' %')} to {_percent(ends[1])})"


def _end(gain: float) -> str:
    """One end of what a step may bring: `9.2 % longer`, `24 % shorter`, `the same`."""
    return "the same" if abs(gain) < 0.0005 else f"{_percent(abs(gain))} {_way(gain)}"


def _way(gain: float) -> str:
    return "shorter" if gain > 0 else "longer"


def _percent(share: float) -> str:
    """A share in at most three digits: 4.2 %, 42 %, 99.7 %."""
    value = 100 * share
    return f"{value:.1f} %" if value < 9.95 or 99 <= value < 99.95 else f"{value:.0f} %"


def no_effect_of(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The knobs that cannot matter here, and why."""
    return [(plain(each["knob"]), plain(each["why"])) for each in payload.get("no_effect") or []]


def sources_of(payload: Mapping[str, Any]) -> list[Source]:
    """Three lines: which graph, which figures of the machine, how certain and how to get the same again."""
    told = payload["provenance"]
    certainty = payload.get("certainty") or {}
    rows = all_rows(payload)
    figures = told["device"].split("; ") if isinstance(told["device"], str) else ["--provenance tells its figures"]
    if any(varies(rows, key) for key in MACHINE):
        # The machine that provenance names is one of several: what all have in common is where figures are from.
        figures = figures[1:] or figures
    draws, method = certainty.get("draws"), certainty.get("method")
    same = f"gcnsim {told['version']}, seed {told['seed']}, scenario {told['scenario_hash'][:8]}"
    ranges = f"ranges: 90 % of {draws} draws" if draws else ""
    sure = "; ".join(filter(None, (label_of(payload), ranges, same)))
    more = [method] * bool(method)
    return [
        Source("graph", tuple(map(plain, str(told["graph"]["text"]).split("; ")))),
        Source("machine", tuple(map(plain, (*figures, *str(told["calibration"]).split("; "))))),
        Source("certainty", tuple(map(plain, (sure, *more)))),
    ]


def clauses_within(clauses: Sequence[str], width: int) -> str:
    """As many of the clauses as a line holds, at least the first."""
    text = clauses[0]
    for clause in clauses[1:]:
        if len(text) + len(clause) + 2 > width:
            break
        text = f"{text}; {clause}"
    return text


def measured_of(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Measured times beside their predictions, and what they make of the rows where the assumptions allow them."""
    labels = [label if setting == "" else f"{label} ({setting})" for label, setting in labels_of(rows_of(payload))]
    found = []
    for each in payload.get("measured") or []:
        found.append(("measured", plain(each["text"])))
        found += [
            (plain(label), f"{_interval(row)} by this measurement")
            for label, row in zip(labels, each["rows"] or (), strict=False)
        ]
    return found


def _interval(row: Mapping[str, Any]) -> str:
    time, low, high = (format_seconds(row[key]) for key in ("iteration_s", "iteration_s_low", "iteration_s_high"))
    return f"{time} ({low} to {high})"


def partitions_of(payload: Mapping[str, Any]) -> list[str]:
    """What other seeds of the partitioner give, where they were asked for."""
    told = payload.get("partition_seeds")
    if not told:
        return []
    mean, low, high = (format_seconds(told[name]) for name in ("mean_s", "low_s", "high_s"))
    seeds = plural(len(told["seeds"]), "seed")
    return [f"{seeds}: {mean} on average ({low} to {high}), the fastest with seed {told['best']}"]
