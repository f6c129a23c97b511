"""Pages with a few fields and one long job: Compare, Plan, Sweep, Timeline, Validation."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from dash import ALL, Dash, Input, Output, State, html, no_update

from gcnsim.capacity import MINIMISED
from gcnsim.dashboard import parts
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.pages import sweep, timeline
from gcnsim.dashboard.state import MOST_TEXT
from gcnsim.errors import GcnsimError, ScenarioError, nearest
from gcnsim.hardware import devices, is_file
from gcnsim.methods import methods
from gcnsim.questions import Recommend, field_value, words
from gcnsim.workload import datasets

Values = Mapping[str, str]


IF_REQUESTED: Final = "asked"
"""The job starts if the address contains a question."""

ALWAYS: Final = "always"
NEVER: Final = "never"

CHANCE: Final = "90%"
"""The initial chance of meeting a target."""

NEEDED: Final = ("dataset", "minimise")
"""Required fields of Plan."""

MEASURED: Final = "measured_compute"
OPTION: Final = "--measured-compute"

MOST_LIST: Final = 4000
"""The most characters of a list of folders."""


class Field(NamedTuple):
    """One text field. usual: its initial text; words: its possible values, if they can be listed; most: the most
    characters.
    """

    name: str
    label: str
    usual: str = ""
    words: tuple[str, ...] = ()
    most: int = MOST_TEXT


@dataclass(frozen=True, slots=True)
class Form:
    """A page. options: the options of its job, from the fields' values; command: the command line of the same question;
    view: the content that needs no long job, in a theme; begins: when the job starts without a click.
    """

    path: str
    title: str
    says: str
    button: str
    kind: str
    fields: tuple[Field, ...]
    options: Callable[[Values, Files], dict[str, Any]]
    command: Callable[[Values], Sequence[str]]
    note: str = "Runs in the background; you can cancel it."
    view: Callable[[Values, Files, str], Any] | None = None
    begins: str = IF_REQUESTED


def _plan(values: Values, files: Files) -> dict[str, Any]:
    options = {name: field_value(Recommend, name, text) for name, text in values.items() if text or name in NEEDED}
    if options.get("confidence") == CHANCE and "target_iteration" not in options:
        del options["confidence"]
    if "host" in options:
        options["host"] = [_existing("host", item, files) if is_file(item) else item for item in options["host"]]
    if "measured_compute" in options:
        # Its graph and partition are fixed.
        options |= {"dataset": None, "measured_compute": files.path(options["measured_compute"])}
    return options


def _plan_line(values: Values) -> list[str]:
    usual = {field.name: field.usual for field in FORMS[1].fields if field.name in (*NEEDED, "confidence")}
    options = {name: text for name, text in values.items() if text and usual.get(name) != text}
    if "measured_compute" in options:
        options.pop("dataset", None)
    return ["gcnsim", "recommend", *words(options)]


def _existing(name: str, text: str, files: Files) -> str:
    found = files.path(text)
    if found is None:
        raise ScenarioError(f"{name}: is empty; allowed: a path below the folder of the dashboard (--files)")
    return found


def _compare(values: Values, files: Files) -> dict[str, Any]:
    paths = {name: _existing(name, values[name], files) for name in ("a", "b")}
    return paths | {"names": {name: values[name] for name in ("a", "b")}}


def _validation(values: Values, files: Files) -> dict[str, Any]:
    runs = [_existing("runs", word.strip(), files) for word in values["runs"].split(",")]
    measured = [_existing(MEASURED, word.strip(), files) for word in values[MEASURED].split(",") if word.strip()]
    return {"runs": runs, "calibration": files.path(values["calibration"]), MEASURED: measured}


FORMS: Final = (
    Form(
        "/compare",
        "Compare",
        "Compare two iterations: where the difference comes from. Each is a scenario, a result, or a recorded run.",
        "Compare",
        "compare",
        (Field("a", "A: a path below --files"), Field("b", "B: a path below --files")),
        _compare,
        lambda values: ["gcnsim", "compare", values["a"] or "A", values["b"] or "B"],
    ),
    Form(
        "/plan",
        "Plan",
        "Enter a target and a budget. The answer names the machine and setting to use, and the alternatives.",
        "Recommend",
        "recommend",
        (
            Field("dataset", "Data set", "reddit"),
            Field("minimise", "Minimise", MINIMISED[0], MINIMISED),
            Field("target_iteration", "An iteration takes at most", "0.5s"),
            Field("confidence", "Chance of meeting it, at least", CHANCE),
            Field("budget", "The machine costs at most (500USD/month, 10USD/hour)", ""),
            Field("hours_per_day", "Hours of use a day (empty: all)", ""),
            Field("host", "Instances, separated by commas (empty: all with a price)"),
            Field("gpus", "GPUs, separated by commas (empty: 1 up to four instances)"),
            Field("method", "Methods, separated by commas (empty: the usual four)"),
            Field(MEASURED, "Measured compute below --files (may be empty)"),
        ),
        _plan,
        _plan_line,
    ),
    Form(
        "/sweep",
        "Sweep",
        "The points of a sweep, the best by a column first; a filter selects some of them"
        " (cluster.bandwidth >= 10Gbps; method.tau <= 1).",
        "Download",
        "sweep",
        (
            Field("folder", "Sweep folder (of gcnsim sweep, below --files)"),
            Field("where", "Filters, separated by semicolons (iteration_s < 0.5)"),
            Field("by", "Best by column", "iteration_s", sweep.COLUMNS),
            Field("descending", "Largest first", "no", sweep.YES),
        ),
        sweep.options,
        sweep.command,
        "The selected points as CSV and JSON, and one offline page.",
        sweep.view,
        NEVER,
    ),
    Form(
        "/timeline",
        "Timeline",
        "One steady iteration of a setting, or of a recorded run with its prediction: what each worker and link does,"
        " when, and what it waits for.",
        "Draw the timeline",
        "timeline",
        (
            Field("method", "Method", timeline.METHOD, tuple(methods())),
            Field("gpus", "GPUs, two to a server", timeline.usual("gpus")),
            Field("bandwidth", "Bandwidth (Gbps)", timeline.usual("bandwidth")),
            Field("tau", "tau", timeline.usual("tau")),
            Field("epsilon", "epsilon", timeline.usual("epsilon")),
            Field("cache", "Cache (%)", timeline.usual("cache")),
            Field("dataset", "Data set", timeline.usual("dataset"), tuple(datasets())),
            Field("device", "GPU", timeline.usual("device"), tuple(devices())),
            Field("graph", "Own graph or profile below --files"),
            Field("run", "Or a recorded run below --files"),
            Field("calibration", "Its calibration record (may be empty)"),
        ),
        timeline.options,
        timeline.command,
        begins=ALWAYS,
    ),
    Form(
        "/validation",
        "Validation",
        "Recorded runs predicted and compared, phase by phase.",
        "Validate",
        "validate",
        (
            Field("runs", "Folders of runs below --files, separated by commas", most=MOST_LIST),
            Field("calibration", "Calibration record below --files (may be empty)"),
            Field(MEASURED, "Measured compute below --files, separated by commas (may be empty)", most=MOST_LIST),
        ),
        _validation,
        lambda values: [
            *("gcnsim", "validate", *(values["runs"].split(",") if values["runs"] else ["RUN"])),
            *(["--calibration", values["calibration"]] if values["calibration"] else []),
            *(word for part in values[MEASURED].split(",") if part.strip() for word in (OPTION, part.strip())),
        ],
    ),
)


def of_path(path: str) -> Form | None:
    """The page at an address's path; None if there is none."""
    return next((form for form in FORMS if form.path == path), None)


def read(form: Form, query: str | None) -> dict[str, str]:
    """The field values in an address. Raises ScenarioError."""
    values = {field.name: field.usual for field in form.fields}
    most = {field.name: field.most for field in form.fields}
    for name, text in parse_qsl((query or "").lstrip("?"), keep_blank_values=True):
        if name not in values:
            raise ScenarioError(f"address: unknown {name!r}; {nearest(name, values)}")
        if len(text) > most[name] or not text.isprintable():
            raise ScenarioError(f"{name}: {text[:40]!r} is not allowed; at most {most[name]} printable characters")
        values[name] = text
    return values


def layout(form: Form, query: str | None) -> html.Div:
    """The page with the values of an address; invalid ones are replaced."""
    wrong: list[Any] = []
    try:
        values = read(form, query)
    except ScenarioError as error:
        values, wrong = read(form, ""), [parts.alert(str(error))]
    usual = {field.name: field.usual for field in form.fields}
    begins = form.begins == ALWAYS or (form.begins == IF_REQUESTED and values != usual)
    fields = [
        parts.text_field({"field": field.name}, field.label, values[field.name], field.words, field.most)
        for field in form.fields
    ]
    return html.Div(
        [
            *wrong,
            html.H1(form.title),
            html.P(form.says),
            html.Section([*fields], className="controls wide"),
            html.Div(id="view"),
            parts.command_line(),
            parts.job_panel(form.button, form.note, begins=begins and not wrong),
        ]
    )


def attach(app: Dash, files: Files) -> None:
    """Attach the callbacks of the fields: they update address, command line and content."""

    @app.callback(
        Output("query", "data", allow_duplicate=True),
        Output("command", "children", allow_duplicate=True),
        Input({"field": ALL}, "value"),
        State({"field": ALL}, "id"),
        State("url", "pathname"),
        prevent_initial_call="initial_duplicate",
    )
    def follow(values: list[str | None], names: list[dict[str, str]], path: str) -> Any:
        form = of_path(path)
        if form is None:
            return no_update, no_update
        found = _found(values, names)
        usual = {field.name: field.usual for field in form.fields}
        options = {name: text for name, text in found.items() if text != usual[name]}
        return (f"?{urlencode(options)}" if options else ""), shlex.join(form.command(found))

    @app.callback(
        Output("view", "children"),
        Input({"field": ALL}, "value"),
        State({"field": ALL}, "id"),
        State("url", "pathname"),
        State("theme", "data"),
    )
    def view(values: list[str | None], names: list[dict[str, str]], path: str, theme: str | None) -> Any:
        form = of_path(path)
        if form is None or form.view is None:
            return no_update
        try:
            found = read(form, f"?{urlencode(_found(values, names))}")
            return form.view(found, files, "dark" if theme == "dark" else "light")
        except GcnsimError as error:
            return parts.alert(files.shown(str(error)))


def _found(values: Sequence[str | None], names: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {name["field"]: (value or "").strip() for name, value in zip(names, values, strict=True)}
