"""The What-if page, the start page: sliders, the figure, the table, and the complete answer as a job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose
from typing import Any, Final, NamedTuple

from dash import dcc, html

from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.core.units import format_seconds, range_text
from gcnsim.dashboard import parts
from gcnsim.dashboard.answers import Answers, RequestTicket
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.prefix import outside
from gcnsim.dashboard.state import FIGURES, MORE, MOST_OF, STOPS, PageQuestion, moved, names_of, rates_of_nvlink, stops
from gcnsim.dashboard.work import RECOMMENDED
from gcnsim.methods import has_knob, methods
from gcnsim.records.compute_facts import MeasuredCompute
from gcnsim.records.compute_reading import measured_compute
from gcnsim.report.answer.rows import plain
from gcnsim.report.figures.breakdown import breakdown_drawing, rows_data
from gcnsim.report.figures.curves import AXES, curve_data, curve_drawing, curve_of_rows, styled
from gcnsim.report.palette import THEMES
from gcnsim.results import Row

LABELS: Final = {
    "bandwidth": "Bandwidth of a server's network card",
    "gpus": "GPUs",
    "tau": "tau: iterations of staleness",
    "epsilon": "epsilon: share of edges drawn",
    "cache": "Cache: share of boundary features kept",
}
SLIDERS: Final = tuple(LABELS)
ABOUT: Final = "How long training takes, and why. Also: "
PRESETS: Final = (
    ("Is 25 Gbps worth it?", "/?beside=25", "Both networks side by side."),
    ("What to rent?", "/plan?target_iteration=0.75s", "Rent a machine as fast as six T4s."),
    (
        "Train for 200 USD on spot?",
        "/plan?dataset=ogbn-products&target_iteration=&target_accuracy=78%25&iterations_needed=pipegcn%3D20000&method=pipegcn&max_cost=200USD"
        "&pricing=spot&interruptions=0.05&checkpoint=30s&restart=5min",
        "ogbn-products to 78 %: 20,000 iterations.",
    ),
    (
        "Is InfiniBand worth it?",
        "/?host=dgx-a100&device=a100-40&gpus=16&bandwidth=200&link=infiniband-hdr-200g"
        "&pin=%3Fhost%3Ddgx-a100%26device%3Da100-40%26gpus%3D16%26bandwidth%3D200%26link%3Dethernet-200g",
        "Two DGX A100, against Ethernet as fast.",
    ),
    ("My own graph", "/?graph=", "In place of a dataset."),
)
PAGES: Final = (
    ("/compare", "compare two iterations"),
    ("/plan", "what to rent"),
    ("/sweep", "a sweep"),
    ("/timeline", "each operation"),
    ("/validation", "predictions of recorded runs"),
)
CAPTIONS: Final = {
    False: "Bars: compute, exposed communication and other; hatched below: work that overlaps them and adds no time.",
    True: "Lines: iteration time; bands: its 90 % interval; the dotted line marks the slider's value.",
}


class Lists(NamedTuple):
    """What fields propose: names, and paths below the folder of the server."""

    datasets: Sequence[str]
    devices: Sequence[str]
    graphs: Sequence[str]
    measured: Sequence[str]
    calibrations: Sequence[str]


MORE_LABELS: Final = {
    "gpus_per_server": "GPUs in a server (empty: 2, or the host's)",
    "host": "Host: CPU and links of a server",
    "link": "Kind of network between servers",
    "pcie": "Link from a GPU to its host",
    "nvlink": "NVLink between the GPUs of a server (300GB/s, or none)",
    "transport": "How rows move between GPUs",
    "model": "Model",
    "layers": f"Layers, at most {MOST_OF['layers']} (empty: the dataset's)",
    "hidden": f"Width of the hidden layers, at most {MOST_OF['hidden']} (empty: the dataset's)",
    "rate": "rate: share of boundary nodes drawn (bns-gcn; 0.1 or 10%)",
    "inject": "A fault (slow-gpu:worker=0,factor=2)",
}
PATHS: Final = ("graph", "measured", "calibration")
MARKED: Final = ("beside", *PATHS, *MORE, "methods")
"""Fields whose value may be wrong, each with a place for what is wrong."""

OTHERWISE: Final = {"name": "methods", "method": "methods", "measured_compute": "measured", "profile": "graph"}
"""Fields that the rest of gcnsim calls otherwise."""

TEXTS: Final = ("dataset", "device", *PATHS, *MORE, "figure", "beside", "pin")
"""The fields that are lines of text or a choice, the methods aside."""

FIELDS: Final = (*SLIDERS, *TEXTS, "methods")

MOST_BARS: Final = 12
MOST_POINTS: Final = 7
"""The most values of an axis that are simulated for a line."""


def _source(question: PageQuestion, lists: Lists, own: bool) -> html.Details:
    """The fields that are no sliders and not always seen; own: whether these are."""
    second = "" if question.beside is None else f"{question.beside:g}"
    more = [_more(name, label, getattr(question, name)) for name, label in MORE_LABELS.items()]
    fields = html.Div(
        [
            parts.text_field("beside", "A second bandwidth (Gbps)", second),
            parts.text_field(
                "graph",
                "Your own graph or profile: a path in the --files folder, or upload it",
                question.graph,
                lists.graphs,
            ),
            html.Label([html.Span("Upload"), html.Div(id="upload")], className="field"),
            *more,
            parts.text_field(
                "measured",
                "Measured compute (runtime.measure) in the --files folder",
                question.measured,
                lists.measured,
            ),
            parts.text_field(
                "calibration", "Calibration record in the --files folder", question.calibration, lists.calibrations
            ),
        ],
        className="wide",
    )
    return html.Details([html.Summary("More: own graph, model, servers, links, calibration, faults"), fields], open=own)


def _more(name: str, label: str, value: str) -> html.Div:
    names = names_of(name)
    if names:
        return parts.choice(name, label, value, names, none="usual")
    return parts.text_field(name, label, value, rates_of_nvlink() if name == "nvlink" else ())


def layout(question: PageQuestion, lists: Lists, own: bool) -> html.Div:
    """The page of a question; own: show the fields for your own graph."""
    stops_of = {name: stops(name, getattr(question, name)) for name in SLIDERS}
    presets = [
        html.A([html.Strong(name), html.Span(says)], href=outside(address), className="preset")
        for name, address, says in PRESETS
    ]
    others = [part for path, says in PAGES for part in (html.A(says, href=outside(path)), ", ")]
    chosen = [
        parts.choice("dataset", "Dataset", question.dataset, lists.datasets),
        parts.choice("device", "GPU", question.device, lists.devices),
        parts.choice(
            "methods", "Methods", ",".join(question.methods), tuple(methods()), many=True, none="the usual four"
        ),
    ]
    sliders = [parts.slider(name, LABELS[name], stops_of[name], getattr(question, name)) for name in SLIDERS]
    pin = dcc.Input(id="pin", type="hidden", value=question.pin)
    figures = dcc.RadioItems(
        id="figure",
        options=[{"label": text, "value": name} for name, text in FIGURES.items()],
        value=question.figure,
        className="choices",
    )
    return html.Div(
        [
            html.P([ABOUT, *others[:-1], "."]),
            html.Nav(presets, className="presets", **parts.aria(label="Questions to begin with")),
            dcc.Store(id="stops", data=stops_of),
            dcc.Store(id="tab", data=os.urandom(8).hex()),
            html.Div(
                [
                    html.Section([html.H2("Setting"), *chosen, *sliders], className="controls"),
                    html.Section(
                        [
                            html.Div(id="alert", **parts.aria(live="polite")),
                            *_waiting(),
                            html.H1(id="headline"),
                            html.P(id="machine", className="note"),
                            html.Div(id="against"),
                            figures,
                            html.Div(id="legend"),
                            parts.graph("picture"),
                            html.P(id="caption", className="note"),
                            html.Div([html.Button(id="pin-button"), pin]),
                        ],
                        className="result",
                    ),
                ],
                className="columns",
            ),
            _source(question, lists, own),
            html.Section([html.H2("Results"), html.Div(id="rows")], className="result"),
            parts.command_line(),
            parts.job_panel(
                "The whole answer", "Reasons, next steps, and files; answer.html has it all without a server."
            ),
        ],
        id="asked",
    )


def _waiting() -> list[Any]:
    """How far an answer is that takes longer, with a button that cancels it."""
    said = [html.Span(id="waited"), html.Button("Cancel", id="wait-cancel")]
    return [html.Div(said, id="waiting", role="status"), dcc.Interval(id="wait-tick", interval=2000, disabled=True)]


def question_of(
    values: Mapping[str, Any], stops_of: Mapping[str, Sequence[float]], question: PageQuestion
) -> PageQuestion:
    """The question in the page's fields. Raises ScenarioError."""
    found: dict[str, Any] = {}
    for name in SLIDERS:
        place = int(float(values[name]))
        if not 0 <= place < len(stops_of[name]):
            place = 0
        found[name] = stops_of[name][place]
    found |= {name: int(found[name]) for name in ("gpus", "tau")}
    texts = {name: str(values.get(name) or "").strip() for name in TEXTS}
    return moved(question, **(found | texts | {"methods": values["methods"] or []}))


def marks(line: str, values: Mapping[str, Any], files: Files) -> list[str]:
    """What to write at each field of `MARKED`: what is wrong with a path, or the message `line` at the field that it
    begins with. values: the page's fields."""
    found = {}
    for name in PATHS:
        text = str(values.get(name) or "").strip()
        try:
            files.path(text)
        except GcnsimError as error:
            found[name] = files.shown(str(error))
        else:
            if text and line.startswith((f"{text}:", f"{text},")):
                found[name] = line
    head = line.partition(":")[0].partition(" ")[0].removeprefix("--").replace("-", "_").rpartition(".")[2]
    found.setdefault(OTHERWISE.get(head, head), line)
    return [found.get(name, "") for name in MARKED]


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
    """The rows of a question, the recommended one of each network first, then the fastest first.

    A recommended setting that is not asked for is a further row. Above 24 GPUs the fastest row shown is marked.
    """
    if question.gpus > 24:  # a slider does not wait for the search
        rows = sorted(answers.rows(_requests(question, files), turn), key=_time)
        first = {row.bandwidth_bytes_per_s: row for row in reversed(rows)}.values()
        return [replace(row, recommended=row in first) for row in rows]
    graph, paths = files.path(question.graph), _paths(question, files)
    machines = [replace(question, bandwidth=bandwidth, beside=None) for bandwidth in question.bandwidths]
    searches = [{**machine.options(graph, **paths), RECOMMENDED: True} for machine in machines]
    found = answers.rows([*searches, *_requests(question, files)], turn)
    best = sorted(found[: len(searches)], key=_time)
    shown = {_setting(row) for row in best}
    return [*best, *sorted((row for row in found[len(searches) :] if _setting(row) not in shown), key=_time)]


def _setting(row: Row) -> tuple[Any, ...]:
    """What tells a row of a question from its others."""
    return row.bandwidth_bytes_per_s, row.method, row.knobs


def read_of(question: PageQuestion, answers: Answers, files: Files) -> str:
    """What was read of the question's own graph, once its rows are answered; empty without one."""
    if not question.graph:
        return ""
    return f"Read from {files.name(question.graph)}: {answers.read(_requests(question, files)[0])}."


def _requests(question: PageQuestion, files: Files) -> list[dict[str, Any]]:
    """The options of each row."""
    graph, paths = files.path(question.graph), _paths(question, files)
    return [
        question.row_options(graph, method, **paths, bandwidth=bandwidth)
        for method in question.named
        for bandwidth in question.bandwidths
    ]


def _paths(question: PageQuestion, files: Files) -> dict[str, str | None]:
    return {name: files.path(getattr(question, name)) for name in ("measured", "calibration")}


def curve_rows(question: PageQuestion, answers: Answers, files: Files, turn: RequestTicket | None = None) -> list[Row]:
    """Rows along the axis of the chosen figure, for the methods that it affects."""
    axis = question.figure
    graph, paths = files.path(question.graph), _paths(question, files)
    every = STOPS[axis]
    step = -(-len(every) // MOST_POINTS)
    now = getattr(question, axis)
    values = sorted({*every[::step], now})
    if axis == "gpus":
        values = [value for value in values if value <= max(24, now)]
    named = [item for item in question.named if axis in ("bandwidth", "gpus") or has_knob(item, axis)]
    requests = [question.row_options(graph, method, **paths, **{axis: value}) for method in named for value in values]
    return answers.rows(requests, turn)


def picture(
    question: PageQuestion, rows: Sequence[Row], along: Sequence[Row], theme: str
) -> tuple[dict[str, Any], html.Ul]:
    """The chosen figure as plain data, and its legend as text, which wraps on a phone."""
    if not along:
        data = rows_data(rows, MOST_BARS)
        marks = [(name, getattr(THEMES[theme], color), hatched) for name, color, hatched in data.legend]
        return parts.themed(breakdown_drawing(data), theme), parts.legend(marks)
    curve = curve_of_rows(along, question.figure)
    size = AXES[question.figure].size
    found = curve_data(curve._replace(requested=(getattr(question, question.figure) * size,)))
    lines = [(series.name, color, False) for series, (color, _, _) in styled(found.series)]
    return parts.themed(curve_drawing(found), theme), parts.legend(parts.themed(lines, theme))


def headline(question: PageQuestion, rows: Sequence[Row]) -> str:
    """The answer in a sentence."""
    bandwidth = question.bandwidth * 1e9 / 8
    best = _recommended([row for row in rows if isclose(row.bandwidth_bytes_per_s, bandwidth)])
    time = f"{format_seconds(best.iteration_s)} per iteration{range_text(best.iteration_s_low, best.iteration_s_high)}"
    use = "None of the settings tried fits. The fastest is" if best.fits is False else "Use"
    sentence = f"{use} {_named(best)} at {question.bandwidth:g} Gbps: {time}"
    if best.speedup_vs_full_graph is not None and best.speedup_vs_full_graph > 1.005:
        sentence += f", {best.speedup_vs_full_graph:.3g} times as fast as full-graph training"
    if question.beside is None or question.beside == question.bandwidth:
        return sentence + "."
    others = [row for row in rows if row.bandwidth_bytes_per_s != best.bandwidth_bytes_per_s]
    other = _recommended(others)
    took = format_seconds(other.iteration_s)
    return f"{sentence}. At {question.beside:g} Gbps {_named(other)} takes {took}: {_gain(best, other)}."


def tables(rows: Sequence[Row], pinned: Sequence[Row]) -> list[html.Div]:
    """The rows of the question, and those of the pinned one, if there is one."""
    says = "Rows of the setting, the recommended one (*) first; the range covers 90 % of the draws"
    shown = [parts.table(rows, says)]
    return [*shown, parts.table(pinned, "Rows of A")] if pinned else shown


def pinned_rows(question: PageQuestion, answers: Answers, files: Files, turn: RequestTicket | None = None) -> list[Row]:
    """The rows of the pinned question, A; empty without one. Raises GcnsimError that names A."""
    first = question.pinned
    if first is None:
        return []
    try:
        return rows_of(first, answers, files, turn)
    except GcnsimError as error:
        raise ScenarioError(f"A: {error}") from error


def against(question: PageQuestion, rows: Sequence[Row], pinned: Sequence[Row], files: Files) -> list[Any]:
    """How the question's recommended row compares with that of the pinned one, A; empty without one."""
    first = question.pinned
    if first is None:
        return []
    now, then = _recommended(rows), _recommended(pinned)
    graph = files.name(first.graph) or then.dataset
    machine = plain(", ".join((f"{graph}, {then.gpus} x {then.device} at {then.bandwidth}", *first.links)))
    return [
        html.A("A", href=outside(f"/{first.address()}")),
        f": {machine}, {_named(then)} {format_seconds(then.iteration_s)} per iteration. This is {_gain(then, now)}.",
    ]


def _gain(before: Row, after: Row) -> str:
    """How much faster one row is than another, by the epoch; said where their epochs differ."""
    gain = before.epoch_s / after.epoch_s
    per = "" if before.iterations_per_epoch == after.iterations_per_epoch else " per epoch"
    return (f"{gain:.3g} times as fast" if gain >= 1 else f"{1 / gain:.3g} times as long") + per


def _recommended(rows: Sequence[Row]) -> Row:
    """The recommended row, on the fastest network if there are two."""
    return min((row for row in rows if row.recommended), key=_time)


def _named(row: Row) -> str:
    """The setting of a row in words."""
    return f"{row.method} with {', '.join(row.knobs)}" if row.knobs else row.method


def _time(row: Row) -> float:
    return row.epoch_s
