"""The What-if page, the start page: sliders, the figure, the table, and the complete answer as a job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import isclose
from typing import Any, Final

from dash import dcc, html

from gcnsim.dashboard import parts
from gcnsim.dashboard.answers import Answers, RequestTicket
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.state import FIGURES, STOPS, PageQuestion, moved, stops
from gcnsim.errors import plural
from gcnsim.hardware import device, devices
from gcnsim.measured_compute import MeasuredCompute, measured_compute
from gcnsim.methods import has_knob, methods
from gcnsim.report.answer.sentences import UNCALIBRATED
from gcnsim.report.figures.breakdown import breakdown_drawing, rows_data
from gcnsim.report.figures.curves import AXES, curve_data, curve_drawing, curve_of_rows, styled
from gcnsim.report.palette import THEMES
from gcnsim.results import Row
from gcnsim.scenario import ClusterSpec
from gcnsim.units import format_seconds, range_text

LABELS: Final = {
    "bandwidth": "Bandwidth of a server's network card",
    "gpus": "GPUs, two to a server",
    "tau": "tau: iterations of staleness",
    "epsilon": "epsilon: share of edges drawn",
    "cache": "Cache: share of boundary features kept",
}
SLIDERS: Final = tuple(LABELS)
PRESETS: Final = (
    ("Six T4s at 15 Gbps", "/", "The first question of most users."),
    ("Is 25 Gbps worth it?", "/?beside=25", "Both networks side by side."),
    ("Buy or rent?", "/plan?target_iteration=0.75s", "What renting the speed of six T4s costs; compare with a quote."),
    ("My own graph", "/?graph=", "A graph or a profile instead of a data set."),
)
CAPTIONS: Final = {
    False: "Bars: compute, exposed communication and other; hatched below: work that overlaps them and adds no time.",
    True: "Lines: iteration time; bands: its 90 % interval; the dotted line is the slider's place.",
}
TEXTS: Final = ("dataset", "device", "graph", "measured", "figure", "beside")
"""The text fields, except methods."""

MOST_BARS: Final = 12
MOST_POINTS: Final = 7
"""The most values of an axis that are simulated for a line."""


def shown(name: str, value: float) -> str:
    """A slider's value as text."""
    return {"bandwidth": f"{value:g} Gbps", "cache": f"{value:g} %"}.get(name, f"{value:g}")


def layout(question: PageQuestion, datasets: Sequence[str], devices: Sequence[str], own: bool) -> html.Div:
    """The page of a question; own: show the fields for your own graph."""
    stops_of = {name: stops(name, getattr(question, name)) for name in SLIDERS}
    presets = [
        html.A([html.Strong(name), html.Span(says)], href=address, className="preset")
        for name, address, says in PRESETS
    ]
    second = "" if question.beside is None else f"{question.beside:g}"
    source = html.Details(
        [
            html.Summary("Data set, GPU, methods, own graph"),
            parts.text_field("dataset", "Data set", question.dataset, datasets),
            parts.text_field("device", "GPU", question.device, devices),
            parts.text_field(
                "methods", "Methods, separated by commas (empty: the usual four)", ",".join(question.methods), methods()
            ),
            parts.text_field("beside", "A second bandwidth (Gbps)", second),
            parts.text_field("graph", "Own graph or profile: a path below --files, or upload it", question.graph),
            parts.text_field("measured", "Measured compute (runtime.measure): a path below --files", question.measured),
            html.Label([html.Span("Upload"), html.Div(id="upload")], className="field"),
        ],
        open=own,
    )
    sliders = [parts.slider(name, LABELS[name], stops_of[name], getattr(question, name)) for name in SLIDERS]
    figures = dcc.RadioItems(
        id="figure",
        options=[{"label": text, "value": name} for name, text in FIGURES.items()],
        value=question.figure,
        className="choices",
    )
    return html.Div(
        [
            html.Nav(presets, className="presets", **parts.aria(label="Questions to begin with")),
            dcc.Store(id="stops", data=stops_of),
            dcc.Store(id="tab", data=os.urandom(8).hex()),
            html.Div(
                [
                    html.Section([html.H2("Setting"), *sliders, source], className="controls"),
                    html.Section(
                        [
                            html.Div(id="alert", **parts.aria(live="polite")),
                            html.H1(id="headline"),
                            html.P(id="machine", className="note"),
                            figures,
                            html.Div(id="legend"),
                            parts.graph("picture"),
                            html.P(id="caption", className="note"),
                        ],
                        className="result",
                    ),
                ],
                className="columns",
            ),
            html.Section([html.H2("Results"), html.Div(id="rows")]),
            parts.command_line(),
            parts.job_panel("The whole answer", "Why, the next step of each knob, and files to download."),
        ]
    )


def question_of(
    values: Mapping[str, Any], stops_of: Mapping[str, Sequence[float]], question: PageQuestion
) -> PageQuestion:
    """The question in the page's fields. Raises ScenarioError."""
    fields: dict[str, Any] = {}
    for name in SLIDERS:
        place = int(float(values[name]))
        if not 0 <= place < len(stops_of[name]):
            place = 0
        fields[name] = stops_of[name][place]
    fields |= {name: int(fields[name]) for name in ("gpus", "tau")}
    texts = {name: str(values[name] or "").strip() for name in TEXTS}
    named = [word.strip() for word in str(values["methods"] or "").split(",")]
    return moved(question, **(fields | texts | {"methods": [item for item in named if item]}))


def of_measured(question: PageQuestion, files: Files) -> tuple[PageQuestion, MeasuredCompute | None]:
    """The question with the methods of its measured file if it names none, and the contents of that file."""
    path = files.path(question.measured)
    if path is None:
        return question, None
    measured = measured_compute(path)
    usual = [name for name in question.named if name in measured.methods]
    chosen = question.methods or tuple(usual or measured.methods)
    return moved(question, methods=list(chosen)), measured


def rows_of(question: PageQuestion, answers: Answers, files: Files, turn: RequestTicket | None = None) -> list[Row]:
    """The rows of a question, slowest first as in the table of the command line."""
    graph, measured = files.path(question.graph), files.path(question.measured)
    return answers.rows(
        [
            question.row_options(graph, method, measured=measured, bandwidth=bandwidth)
            for method in question.named
            for bandwidth in question.bandwidths
        ],
        turn,
    )


def curve_rows(question: PageQuestion, answers: Answers, files: Files, turn: RequestTicket | None = None) -> list[Row]:
    """Rows along the axis of the chosen figure, for the methods that it affects."""
    axis = question.figure
    graph, measured = files.path(question.graph), files.path(question.measured)
    every = STOPS[axis]
    step = -(-len(every) // MOST_POINTS)
    now = getattr(question, axis)
    values = sorted({*every[::step], now})
    if axis == "gpus":
        values = [value for value in values if value <= max(24, now)]
    named = [item for item in question.named if axis in ("bandwidth", "gpus") or has_knob(item, axis)]
    requests = [
        question.row_options(graph, method, measured=measured, **{axis: value}) for method in named for value in values
    ]
    return answers.rows(requests, turn)


def picture(
    question: PageQuestion, rows: Sequence[Row], along: Sequence[Row], theme: str
) -> tuple[dict[str, Any], html.Ul]:
    """The chosen figure as plain data, and its legend as text, which wraps on a phone."""
    chosen = THEMES[theme]
    if not along:
        data = rows_data(rows, MOST_BARS)
        marks = [(name, getattr(chosen, color), hatched) for name, color, hatched in data.legend]
        return breakdown_drawing(data, chosen), parts.legend(marks)
    curve = curve_of_rows(along, question.figure)
    size = AXES[question.figure].size
    curves = curve_data(curve._replace(requested=(getattr(question, question.figure) * size,)))
    lines = [(series.name, color, False) for series, (color, _, _) in styled(curves.series, chosen)]
    return curve_drawing(curves, chosen), parts.legend(lines)


def headline(question: PageQuestion, rows: Sequence[Row]) -> str:
    """The answer in a sentence."""
    bandwidth = question.bandwidth * 1e9 / 8
    best = min((row for row in rows if isclose(row.bandwidth_bytes_per_s, bandwidth)), key=_time)
    time = f"{format_seconds(best.iteration_s)}{range_text(best.iteration_s_low, best.iteration_s_high)} per iteration"
    sentence = f"{best.method} is the fastest at {question.bandwidth:g} Gbps: {time}"
    if best.speedup_vs_full_graph is not None and best.speedup_vs_full_graph > 1.005:
        sentence += f", {best.speedup_vs_full_graph:.2g} times as fast as full-graph training"
    if question.beside is None or question.beside == question.bandwidth:
        return sentence + "."
    others = [row for row in rows if row.bandwidth_bytes_per_s != best.bandwidth_bytes_per_s]
    other = min(others, key=_time)
    gain = best.iteration_s / other.iteration_s
    return f"{sentence}. At {question.beside:g} Gbps {other.method} takes {format_seconds(other.iteration_s)}: " + (
        f"{gain:.3g} times as fast." if gain >= 1 else f"{1 / gain:.3g} times as long."
    )


def machine(rows: Sequence[Row], measured: MeasuredCompute | None = None) -> list[Any]:
    """The machine of the rows, and how trustworthy they are: the page's questions use no calibration."""
    row = rows[0]
    each = row.gpus_per_server or ClusterSpec().gpus_per_server
    servers = plural(-(-row.gpus // each), "server") if isinstance(each, int) else "servers"
    if measured is not None:
        name = measured.device["name"]
        badge, basis = f"MEASURED on {name}", "compute measured, links assumed"
    else:
        name = device(row.device).title.removeprefix("NVIDIA ") if row.device in devices() else row.device
        badge, basis = UNCALIBRATED, "computed from data sheets and assumptions"
    text = f"{row.dataset}, {row.gpus} x {name} in {servers}: {basis}"
    return [html.Strong(badge, className="badge"), text]


def _time(row: Row) -> float:
    return row.epoch_s
