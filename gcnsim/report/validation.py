"""A validation as text, Markdown, CSV and figures."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from itertools import groupby
from math import floor, log10
from pathlib import Path
from typing import Any

from gcnsim.io.atomic import atomic_write
from gcnsim.report.answer.provenance import plain
from gcnsim.report.answer.sentences import UNCALIBRATED
from gcnsim.report.figures.validation import validation_data, validation_figure
from gcnsim.report.page.templates import Sheet, write_figure
from gcnsim.terminal.tables import UNLIMITED, aligned

NO_INTERVAL = "-, no interval on CPU cores without a calibration"

Payload = Mapping[str, Any]
TIMES = ("measured_s", "predicted_s", "low_s", "high_s")
TITLE = "Predicted against measured iterations"
RUN = ("run", "setting", "configuration", "measured (ms)", "predicted (ms)", "90 % interval (ms)", "error")
PHASES = {"compute": "compute", "exposed_comm": "exposed communication", "exposed_other": "the rest"}


def validation_lines(payload: Payload) -> list[tuple[str, str]]:
    """What a reader looks for first: (name, value) pairs in words."""
    spread, regret, kendall = payload["spread"], payload["regret"], payload["kendall"]
    lines = [
        ("runs", f"{payload['runs']} of {payload['configurations']} configurations"),
        ("mean absolute error", _percent(payload["mape"])),
        ("median absolute error", _percent(payload["median_ape"])),
        ("90th percentile", _percent(payload["p90_ape"])),
        ("largest", _percent(payload["max_ape"])),
        ("bias", _signed(payload["bias"])),
    ]
    for phase, name in PHASES.items():
        found = payload["phases"][phase]
        lines.append(
            (name, f"bias {_signed(found['bias'])}, 90th percentile {_percent(found['p90'])} of the iteration")
        )
    lines += [
        ("rank agreement (Kendall)", "-" if kendall is None else f"{kendall:.2f}"),
        ("regret", _pair(regret, "max", "largest")),
        ("interval coverage", NO_INTERVAL if payload["coverage"] is None else _percent(payload["coverage"])),
        (
            "repeats differ by",
            "-" if spread is None else f"mean {_percent(spread['mean'])}, p90 {_percent(spread['p90'])}",
        ),
    ]
    return lines


def render_validation(payload: Payload) -> str:
    """The text of the command line; ends with a newline."""
    text = aligned(validation_lines(payload), left=2, indent=2)
    label = _label(payload)
    title = TITLE + (f", {label}" if label else "")
    head = [title, "", *text, "", *_rows(payload)]
    return "\n".join([*head, *_warned(payload), ""])


def validation_markdown(payload: Payload) -> str:
    """The figures, and a table with a line for each run."""
    text = ["| figure | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in validation_lines(payload))]
    text += ["", *(f"| {' | '.join(cells)} |" for cells in (RUN, *_runs(payload)))]
    text.insert(-len(payload["rows"]), "|" + "---|" * len(RUN))
    return "\n".join([*text, *_warned(payload), ""])


def validation_csv(payload: Payload) -> str:
    """A row for each run."""
    rows: Sequence[dict[str, Any]] = payload["rows"]
    buffer = StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def write_validation(folder: str | Path, payload: Payload) -> None:
    """Write validation.md, validation.csv and validation.html into an existing `folder`. Raises FileError."""
    target = Path(folder)
    texts = {"validation.md": validation_markdown(payload), "validation.csv": validation_csv(payload)}
    for name, text in texts.items():
        with atomic_write(target / name, text=True) as file:
            file.write(text)
    heads = [(head, "t") for head in RUN[:3]] + [(head, "n") for head in RUN[3:]]
    write_figure(
        target / "validation.html",
        "validation",
        validation_figure(validation_data(payload)),
        Sheet("Milliseconds per iteration of each run", heads, _runs(payload)),
        title=f"{payload['runs']} recorded runs",
        label=_label(payload).partition(":")[0],
        heading=TITLE,
        caption="A run on the dotted line is predicted exactly; the whisker is the prediction's 90 %"
        " interval, the bar across it the spread of its configuration's repeats.",
        warned=_notes(payload),
        said=validation_lines(payload),
    )


def _label(payload: Payload) -> str:
    """What predictions rest on, where it is no calibration: intervals of the catalogue know no error of the figures."""
    measured = "MEASURED compute" if payload["measured_compute"] else ""
    if payload["calibration"]:
        return measured
    return f"{measured}, links assumed" if measured else f"{UNCALIBRATED}: figures of the catalogue"


def _rows(payload: Payload) -> list[str]:
    """A line for each run, under its setting: milliseconds per iteration, measured, predicted and the interval."""
    heads = ("run", "measured", "predicted", "low", "high", "error", "configuration")
    # Runs of one setting follow one another: it is said once, above them.
    settings = list(dict.fromkeys(row["setting"] for row in payload["rows"]))
    rows = sorted(payload["rows"], key=lambda row: settings.index(row["setting"]))
    cells = [
        (
            plain(row["run"]),
            *(_milliseconds(row[name]) for name in TIMES),
            _signed(row["error"]),
            plain(row["configuration"]) + ("  (outside)" if row["covered"] is False else ""),
        )
        for row in rows
    ]
    head, *lines = aligned(cells, heads, left=(True, *[False] * 5, True), indent=2, width=UNLIMITED)
    text = ["Milliseconds per iteration; low to high is the prediction's 90 % interval", head]
    for setting, found in groupby(zip(rows, lines, strict=True), lambda pair: plain(pair[0]["setting"])):
        text += [setting, *(line for _, line in found)]
    return text


def _milliseconds(seconds: float | None) -> str:
    """Three digits at least, without an exponent: 0.0420, 1.24, 184, 12,345; a dash where there is none."""
    if seconds is None:
        return "-"
    value = 1e3 * seconds
    return f"{value:,.{max(0, 2 - floor(log10(value)))}f}" if value > 0 else "0"


def _runs(payload: Payload) -> list[tuple[str, ...]]:
    """The cells of each run beneath `RUN`."""
    found: list[tuple[str, ...]] = []
    for row in payload["rows"]:
        measured, predicted, low, high = (_milliseconds(row[name]) for name in TIMES)
        place = (row["run"], row["setting"], row["configuration"])
        interval = "-" if row["low_s"] is None else f"{low} to {high}"
        found.append((*place, measured, predicted, interval, _signed(row["error"])))
    return found


def _notes(payload: Payload) -> list[str]:
    outside = sum(bool(row["outside"]) for row in payload["rows"])
    more = f"{outside} of {payload['runs']} runs lie outside the calibrated settings"
    return [*payload["warnings"], *([more] if outside else [])]


def _warned(payload: Payload) -> list[str]:
    lines = [f"note: {text}" for text in _notes(payload)]
    return ["", *lines] if lines else []


def _pair(found: Mapping[str, float] | None, key: str, name: str) -> str:
    return "-" if found is None else f"mean {_percent(found['mean'])}, {name} {_percent(found[key])}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f} %"
