"""Calibrations, validations and reproductions as text, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import floor, log10
from pathlib import Path
from typing import Any, Final

from gcnsim.core.atomic import atomic_write, write_csv
from gcnsim.core.terminal import UNLIMITED, aligned
from gcnsim.core.units import format_bandwidth
from gcnsim.hardware import QUANTITIES
from gcnsim.records.calibration import Calibration
from gcnsim.report.answer.rows import plain
from gcnsim.report.answer.sentences import UNCALIBRATED
from gcnsim.report.figures.validation import errors_data, errors_figure, validation_data, validation_figure
from gcnsim.report.page.sections import Section, write_report
from gcnsim.report.page.templates import Sheet


def render_calibration(record: Calibration, path: str) -> str:
    """The figures with their measurements, then the error of each law; ends with a newline."""
    lines = [
        f"{path}: {record.device} on {record.machine.get('cpu')}, measured in {record.seconds / 60:.1f} minutes",
        "",
    ]
    rows = [
        (f"{part}.{name}", _written(name, figure.value), figure.reference)
        for part, figures in record.figures.items()
        for name, figure in figures.items()
    ]
    rows += [
        (f"graph {graph[:12]}", f"{factor:.2f} x", "sums over neighbours") for graph, factor in record.graphs.items()
    ]
    lines += aligned(rows, left=(True, False, True), indent=2)
    lines += ["", "Errors of the cost formulas (mean, 90th percentile, bias):"]
    for residual in record.residuals:
        errors = f"{100 * residual.mape:.1f} %, {100 * residual.p90:.1f} %, {100 * residual.bias:+.1f} %"
        lines.append(f"  {residual.term}: {errors} of {residual.points} points")
    if record.spread is not None:
        lines += ["", f"Repeated runs differ by {100 * record.spread:.1f} % (standard deviation)"]
    if record.error is not None:
        lines += ["", f"90 % interval of a prediction: +-{100 * record.error:.1f} %"]
    return "\n".join([*lines, ""])


def _written(name: str, value: float) -> str:
    quantity = QUANTITIES[name]
    return f"{value:.4g}" if quantity is None else quantity.exact(float(f"{value:.4g}"))


Payload = Mapping[str, Any]
TIMES = ("measured_s", "predicted_s", "low_s", "high_s")
TITLE = "Predicted against measured iterations"
RUN = ("run", "setting", "configuration", "measured (ms)", "predicted (ms)", "90 % interval (ms)", "error")
PHASES = {"compute": "compute", "exposed_comm": "exposed communication", "exposed_other": "the rest"}


def validation_lines(payload: Payload) -> list[tuple[str, str]]:
    """The main results as (name, value) pairs in words."""
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
        errors = payload["phases"][phase]
        lines.append(
            (name, f"bias {_signed(errors['bias'])}, 90th percentile {_percent(errors['p90'])} of the iteration")
        )
    lines += [
        ("rank agreement (Kendall)", "-" if kendall is None else f"{kendall:.2f}"),
        ("regret", _pair(regret, "max", "largest")),
        ("interval coverage", _percent(payload["coverage"])),
        (
            "repeats differ by",
            "-" if spread is None else f"mean {_percent(spread['mean'])}, p90 {_percent(spread['p90'])}",
        ),
    ]
    return lines


def render_validation(payload: Payload) -> str:
    """The text of the command line; ends with a newline."""
    text = aligned(validation_lines(payload), left=2, indent=2)
    label = validation_label(payload)
    title = TITLE + (f", {label}" if label else "")
    head = [title, "", *text, "", *_rows(payload)]
    return "\n".join([*head, *_warned(payload), ""])


def validation_markdown(payload: Payload) -> str:
    """The figures, and a table with one line per run."""
    text = ["| figure | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in validation_lines(payload))]
    text += ["", *(f"| {' | '.join(cells)} |" for cells in (RUN, *_runs(payload)))]
    text.insert(-len(payload["rows"]), "|" + "---|" * len(RUN))
    return "\n".join([*text, *_warned(payload), ""])


def write_validation(folder: str | Path, payload: Payload) -> None:
    """Write validation.md, validation.csv and validation.html into an existing `folder`. Raises FileError."""
    target = Path(folder)
    with atomic_write(target / "validation.md", text=True) as file:
        file.write(validation_markdown(payload))
    rows: Sequence[Mapping[str, Any]] = payload["rows"]
    write_csv(target / "validation.csv", list(rows[0]), [list(row.values()) for row in rows])
    write_report(
        target / "validation.html",
        title=f"{payload['runs']} recorded runs",
        label=validation_label(payload).partition(":")[0],
        heading=TITLE,
        warned=_notes(payload),
        said=validation_lines(payload),
        parts=validation_sections(payload),
    )


def validation_sections(payload: Payload) -> list[Section]:
    """The figures of a validation: runs against their predictions, errors by configuration, and a table."""
    data, errors = validation_data(payload), errors_data(payload)
    heads = [(head, "t") for head in RUN[:3]] + [(head, "n") for head in RUN[3:]]
    left = f" {errors.left_out} configurations with smaller errors are left out." if errors.left_out else ""
    return [
        Section(
            "Predicted against measured",
            validation_figure(data),
            "A run on the dotted line is predicted exactly; the whisker is the prediction's 90 % interval, the bar"
            " across it the spread of its configuration's repeats.",
            data.legend,
        ),
        Section(
            "Error by configuration",
            errors_figure(errors),
            f"The bar is the mean of a configuration's runs, the marks are its runs.{left}",
            errors.legend,
        ),
        Section("Numbers", None, "", (), Sheet("Milliseconds per iteration of each run", heads, _runs(payload))),
    ]


def validation_label(payload: Payload) -> str:
    """What predictions rest on, where it is no calibration: intervals of the catalogue know no error of the figures."""
    measured = "MEASURED compute" if payload["measured_compute"] else ""
    if payload["calibration"]:
        return measured
    return f"{measured}, links assumed" if measured else f"{UNCALIBRATED}: figures of the catalogue"


def _rows(payload: Payload) -> list[str]:
    """One line per run, below its setting: milliseconds per iteration, measured, predicted and the interval."""
    heads = ("run", "measured", "predicted", "low", "high", "error", "configuration")
    # Runs of one setting are consecutive; the setting is printed once above them.
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
    """At least three digits without an exponent: 0.0420, 1.24, 184, 12,345; a dash for None."""
    if seconds is None:
        return "-"
    value = 1e3 * seconds
    return f"{value:,.{max(0, 2 - floor(log10(value)))}f}" if value > 0 else "0"


def _runs(payload: Payload) -> list[tuple[str, ...]]:
    """The cells of each run below `RUN`."""
    cells: list[tuple[str, ...]] = []
    for row in payload["rows"]:
        measured, predicted, low, high = (_milliseconds(row[name]) for name in TIMES)
        place = (row["run"], row["setting"], row["configuration"])
        interval = "-" if row["low_s"] is None else f"{low} to {high}"
        cells.append((*place, measured, predicted, interval, _signed(row["error"])))
    return cells


def _notes(payload: Payload) -> list[str]:
    outside = sum(bool(row["outside"]) for row in payload["rows"])
    more = f"{outside} of {payload['runs']} runs lie outside the calibrated settings"
    return [*payload["warnings"], *([more] if outside else [])]


def _warned(payload: Payload) -> list[str]:
    lines = [f"note: {text}" for text in _notes(payload)]
    return ["", *lines] if lines else []


def _pair(errors: Mapping[str, float] | None, key: str, name: str) -> str:
    return "-" if errors is None else f"mean {_percent(errors['mean'])}, {name} {_percent(errors[key])}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f} %"


COLUMNS: Final = ("paper", "table", "row", "metric", "predicted", "low", "high", "published")
HEADINGS: Final = ("table", "row", "metric", "predicted", "low", "high", "published", "error")


def write_reproduction(path: str | Path, payload: Payload) -> None:
    """Write the cells of `payload` to `path`, one line each below a heading. Raises FileError."""
    write_csv(path, COLUMNS, [[cell[name] for name in COLUMNS] for cell in payload["cells"]])


def render_reproduction(payload: Payload) -> str:
    """Every cell, then the figures per paper, the null models, and the fitted figures."""
    lines = []
    for paper in payload["papers"]:
        cells = [cell for cell in payload["cells"] if cell["paper"] == paper and cell["predicted"] is not None]
        if cells:
            lines += [paper, *aligned([_cells(cell) for cell in cells], HEADINGS, left=3), ""]
    lines += [*error_lines(payload), expressed_line(payload), "", *null_lines(payload), "", *platform_lines(payload)]
    return "\n".join([*lines, ""])


def expressed_line(payload: Payload) -> str:
    """How many cells of the tables are predicted at all."""
    predicted, cells = payload["all"]["predicted"], payload["all"]["cells"]
    return f"{predicted} of {cells} cells are predicted ({_whole_percent(predicted / cells if cells else None)})"


def left_out_lines(payload: Payload) -> list[str]:
    """Why cells have no prediction, or one without an error: one line per paper, table and reason."""
    counts: dict[tuple[str, str, str], int] = {}
    for cell in payload["cells"]:
        if cell["reason"]:
            place = (cell["paper"], cell["table"], cell["reason"])
            counts[place] = counts.get(place, 0) + 1
    return [f"{paper} {table}: {count} cells: {reason}" for (paper, table, reason), count in counts.items()]


def error_lines(payload: Payload) -> list[str]:
    """The errors of rows with given values, per paper."""
    headings = ("paper", "cells", "predicted", "judged", "median error", "largest", "within 25 %", "in interval")
    groups = {**payload["papers"], "all": payload["all"]}
    groups["all, not fitted"] = {**payload["all"], **payload["all"]["held"], "cells": "", "predicted": ""}
    names = ("median", "largest", "within", "covered")
    rows = [
        (
            paper,
            *(str(value[name]) for name in ("cells", "predicted", "judged")),
            *(_whole_percent(value[name]) for name in names),
        )
        for paper, value in groups.items()
    ]
    return aligned(rows, headings)


def null_lines(payload: Payload) -> list[str]:
    """Median errors of the null models next to the simulator's, on the cells that both predict."""
    rows = [
        (paper, name, str(pair["cells"]), _whole_percent(pair["null"]), _whole_percent(pair["ours"]))
        for paper, found in {**payload["papers"], "all": payload["all"]}.items()
        for name, pair in found["nulls"].items()
        if pair is not None
    ]
    return aligned(rows, ("paper", "null model", "cells", "its median error", "ours"), left=2)


def platform_lines(payload: Payload) -> list[str]:
    """The fitted figures."""
    rows = [
        (
            name,
            _whole_percent(found["spmm_efficiency"]),
            _whole_percent(found["stream_efficiency"]),
            "-" if found["staging_bandwidth"] is None else format_bandwidth(found["staging_bandwidth"]),
            _whole_percent(found["rate_beside_copies"]),
        )
        for name, found in payload["platforms"].items()
    ]
    return aligned(
        rows, ("platform", "SpMM efficiency", "column by column", "host side of a worker", "rate beside transfers")
    )


def _cells(cell: Mapping[str, Any]) -> tuple[str, ...]:
    error = "" if cell["error"] is None else f"{100 * cell['error']:+.1f} %"
    numbers = (cell[name] for name in ("predicted", "low", "high", "published"))
    return (
        cell["table"],
        cell["row"],
        cell["metric"],
        *("" if number is None else f"{number:.4g}" for number in numbers),
        error,
    )


def _whole_percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
