"""A comparison as text: the differences in words, then by part, link and worker.

Two tables are written as CSV: the options of a recommendation, and the parts of a comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from gcnsim.core.atomic import write_csv
from gcnsim.core.terminal import aligned
from gcnsim.core.units import format_bytes, format_fraction, format_seconds
from gcnsim.evidence.difference import PARTS
from gcnsim.report.answer.rows import plain
from gcnsim.results import OF_SETTING, Advice, PointReport

OF_POINT: Final = ("machine", "host", "servers")
OF_COMPARED: Final = ("iterations", "seconds", "seconds_low", "seconds_high", "cost", "cost_low", "cost_high")
OF_CHOICE: Final = ("chance", "meets", "recommended", "runner_up", "on_front", "beaten_share")
OPTION: Final = (*OF_POINT, *OF_COMPARED, *OF_CHOICE, *OF_SETTING)
"""The columns of a recommendation; times and costs refer to the number of iterations that the answer states."""

PART: Final = ("part", "within", "a", "b", "difference", "share")


def write_options_csv(path: str | Path, advice: Advice) -> None:
    """Write the choice, the runner-up and the front of a recommendation, one line each. Raises FileError."""
    write_csv(path, OPTION, [[_of_option(row, advice, key) for key in OPTION] for row in advice.rows])


def columns_of_options(advice: Advice) -> dict[str, list[Any]]:
    """The same column by column, for data frames."""
    return {key: [_of_option(row, advice, key) for row in advice.rows] for key in OPTION}


def _of_option(point: PointReport, advice: Advice, key: str) -> Any:
    if key == "recommended":
        return point.name == advice.choice.name
    if key == "runner_up":
        return advice.runner_up is not None and point.name == advice.runner_up.point.name
    return getattr(point if hasattr(point, key) else point.row, key)


def write_parts_csv(path: str | Path, payload: Mapping[str, Any]) -> None:
    """Write the parts of a comparison (`gcnsim.compare/1`), one line each, in seconds. Raises FileError."""
    write_csv(path, PART, [[part[key] for key in PART] for part in payload["parts"]])


WIDTH = 100
ROUNDING = 1e-9
"""Differences below this share are rounding errors."""

BENEATH = {"hidden_comm_s": "hidden communication", "sampling_s": "all sampling"}


def render_comparison(payload: Mapping[str, Any]) -> str:
    """The payload of `gcnsim.compare/1` as text; ends with a newline."""
    lines = [f"{key.upper()}  {plain(side['label'])}: {plain(side['setting'])}" for key, side in _sides(payload)]
    differs = [f"{difference['field']} {difference['a']} | {difference['b']}" for difference in payload["differs"]]
    if differs:
        lines += wrap(plain(f"differ in: {'; '.join(differs)}"), WIDTH, subsequent_indent="  ")
    for sentence in payload["says"]:
        lines += ["", *wrap(plain(sentence), WIDTH)]
    lines += ["", *_parts(payload)]
    if payload["links"]:
        lines += ["", *_links(payload)]
    if all(payload["workers"].values()):
        lines += ["", *_workers(payload)]
    if payload["notes"]:
        lines += ["", *(f"note: {plain(note)}" for note in payload["notes"])]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _sides(payload: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from (("a", payload["a"]), ("b", payload["b"]))


def _parts(payload: Mapping[str, Any]) -> list[str]:
    whole = payload["iteration_s"]
    slowest = [side["slowest"] for _, side in _sides(payload)]
    of = f", slowest worker ({slowest[0]} and {slowest[1]})" if None not in slowest else ", slowest worker"
    per = payload["per"]
    heads = ("", "A", "B", "difference", "share")
    rows = [(per, *times(whole), "100.0 %")]
    for part in payload["parts"]:
        inset = "    " if part["within"] else "  "
        share = "" if part["share"] is None else f"{round(100 * part['share'], 1) + 0.0:.1f} %"
        rows.append((inset + PARTS[part["part"]], *times(part), share))
    rows += [(f"at the same time: {BENEATH[entry['name']]}", *times(entry), "") for entry in payload["beneath"]]
    return [f"Seconds per {per}{of}", *aligned(rows, heads, indent=2)]


def _links(payload: Mapping[str, Any]) -> list[str]:
    heads, rows = ("", "A", "busy", "seconds", "B", "busy", "seconds"), []
    for link in payload["links"]:
        cells = []
        for key in ("a", "b"):
            pair = link[key]
            busy = "-" if pair["busy"] is None else format_fraction(pair["busy"])
            seconds = "-" if pair["seconds"] is None else format_seconds(pair["seconds"])
            cells += ["-" if pair["bytes"] is None else format_bytes(pair["bytes"]), busy, seconds]
        rows.append((link["link"], *cells))
    heading = f"Links per {payload['per']}: bytes, share of the time and seconds that they need"
    return [heading, *aligned(rows, heads, indent=2)]


def _workers(payload: Mapping[str, Any]) -> list[str]:
    heads = {"compute_s": "compute", "comm": "comm", "waiting_s": "waits", "exposed_sampling_s": "samples"}
    rows = []
    workers = payload["workers"]
    for rank in range(max(len(workers["a"]), len(workers["b"]))):
        cells: list[str] = []
        for key in ("a", "b"):
            if rank >= len(workers[key]):
                cells += ["-"] * len(heads)
                continue
            each = workers[key][rank]
            names = ("handling_s", "network_s", "copies_s", "reduce_s", "waiting_s")
            comm = sum(each[name] for name in names)
            cells += [format_seconds(comm if name == "comm" else each[name]) for name in heads]
        rows.append((f"worker {rank}", *cells))
    head = f"Workers, seconds per {payload['per']}: computing, exposed communication, waits in it, sampling"
    return [head, *aligned(rows, ("", *(f"{key} {name}" for key in "AB" for name in heads.values())), indent=2)]


def times(pair: Mapping[str, float]) -> tuple[str, str, str]:
    """Seconds of A and B and their difference as text; differences from rounding are shown as zero."""
    difference = pair["difference"]
    if abs(difference) < ROUNDING * max(pair["a"], pair["b"]):
        difference = 0.0
    sign = "-" if difference < 0 else "+"
    return _time(pair["a"]), _time(pair["b"]), sign + format_seconds(abs(difference))


def _time(value: float) -> str:
    return format_seconds(value) if value >= 0 else f"-{format_seconds(-value)}"
