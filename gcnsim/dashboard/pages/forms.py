"""Pages with a few fields and one long job: Compare, Plan, Sweep, Timeline, Validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from dash import dcc, html

from gcnsim.core.errors import GcnsimError, ScenarioError, nearest
from gcnsim.dashboard import parts
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.pages import plan, sweep, timeline
from gcnsim.dashboard.state import MOST_TEXT, names_of, rates_of_nvlink
from gcnsim.hardware import PRICINGS, devices, is_file
from gcnsim.methods import methods
from gcnsim.planning.capacity_goal import MINIMISED
from gcnsim.workload import datasets

Values = Mapping[str, str]


IF_REQUESTED: Final = "asked"
"""The job starts if the address contains a question."""

ALWAYS: Final = "always"
NEVER: Final = "never"

MEASURED, OPTION = "measured_compute", "--measured-compute"

MOST_LIST: Final = 4000
"""The most characters of a list of folders."""


RUNS: Final = ("run.json/",)
SWEEPS: Final = ("sweep.json/",)
GRAPHS: Final = (".profile", ".npz", ".mtx", ".el", ".csv", ".tsv")
YAML: Final = (".yaml", ".yml")
HOST: Final = "cores:"
"""What a line of a host file begins with, and none of a device file or a scenario."""

JSON: Final = (".json",)
PARQUET: Final = (".parquet",)
SIDES: Final = (*RUNS, *YAML, *JSON)
"""What lists of paths have, as `Files.listed` takes it."""


class Field(NamedTuple):
    """One field. usual: what it says at first; words: what it may say, where these can be listed; many: several of
    them, between commas; paths: it takes paths, and which are listed, of those with a line that begins with `holds`;
    open: also what is not listed. none: what an
    empty list says; most: letters that it takes; more: it is in the page's group.
    """

    name: str
    label: str
    usual: str = ""
    words: tuple[str, ...] = ()
    many: bool = False
    paths: tuple[str, ...] = ()
    holds: str = ""
    open: bool = False
    none: str = ""
    most: int = MOST_TEXT
    more: bool = False

    def control(self, value: str, files: Files) -> html.Div:
        """The field on its page: a list where there is one, else a line of text with what was found as suggestions.

        A list of paths has a line of text below it, for paths that are not listed.
        """
        name, listed = (
            {"field": self.name},
            [*self.words, *(files.listed(self.paths, self.holds) if self.paths else ())],
        )
        if listed and not self.open and (self.many or not self.paths):
            entry = {"field": self.name, "of": "more"} if self.paths else None
            return parts.choice(name, self.label, value, listed, many=self.many, none=self.none, entry=entry)
        return parts.text_field(name, self.label, value, listed, self.most)


@dataclass(frozen=True, slots=True)
class Form:
    """A page. options: of its job, from the fields' values; command: the command line that asks the same; check: of
    one field's value, raising GcnsimError; view: what it shows at once, in a theme, where that takes no long work;
    begins: when the job begins by itself; group: the name of the fields that are not always seen.
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
    check: Callable[[str, str], object] = lambda name, text: None
    view: Callable[[Values, Files, str], Any] | None = None
    begins: str = IF_REQUESTED
    group: str = ""

    def wrong(self, name: str, text: str, files: Files) -> str:
        """What is wrong with the value of a field, in a line; empty where nothing is."""
        found = next((field for field in self.fields if field.name == name), None)
        try:
            if found is None:
                raise ScenarioError(
                    f"address: unknown {name[:40]!r}; {nearest(name, [item.name for item in self.fields])}"
                )
            _limit(found, text)
            if found.paths:
                for word in text.split(",") if found.many else [text]:
                    if is_file(word.strip()) or not found.words:
                        files.path(word.strip())
                    elif word.strip():
                        self.check(name, word.strip())
            elif text:
                self.check(name, text)
        except GcnsimError as error:
            return files.shown(str(error))
        return ""


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


TRAINING: Final = (
    Field("iterations_needed", "Iterations needed (20000, or pipegcn=20000,psc-gcn=25000)", more=True),
    Field("target_accuracy", "Validation accuracy to reach (78%)", more=True),
    Field("runs", "Recorded runs that reach it", many=True, paths=RUNS, none="choose runs", most=MOST_LIST, more=True),
    Field("max_cost", "Training costs at most (200USD)", more=True),
    Field("target_hours", "Training takes at most (10h)", more=True),
    Field("pricing", "Prices", PRICINGS[0], PRICINGS, more=True),
    Field("price", "Own price of a GPU or an instance (t4=0.35USD/h)", more=True),
    Field("mtbf", "Mean time between failures of a server (2000h)", more=True),
    Field("interruptions", "Interruptions of a spot server per hour (0.05)", more=True),
    Field("interruption_notice", "Notice before an interruption (2min)", more=True),
    Field("checkpoint", "Time to write a checkpoint (30s)", more=True),
    Field("restart", "Time from a failure until training resumes (5min)", more=True),
    Field("electricity", "Price of electricity (0.12USD/kWh)", more=True),
    Field("gpu_power", "Power of a computing GPU, measured or capped (250W)", more=True),
)
"""Fields of Plan about a whole training."""

LINKS: Final = (
    Field("link", "Kind of network", words=names_of("link"), none="the instance's", more=True),
    Field("pcie", "Link from a GPU to its host", words=names_of("pcie"), none="the instance's", more=True),
    Field(
        "nvlink",
        "NVLink between the GPUs of a server (300GB/s, or none)",
        words=rates_of_nvlink(),
        open=True,
        more=True,
    ),
)
"""Fields of Plan about the links of a machine."""

FORMS: Final = (
    Form(
        "/compare",
        "Compare",
        "Compare two iterations: where the difference comes from. Each is a scenario, a result, or a recorded run.",
        "Compare",
        "compare",
        (
            Field("a", "A: a path in the --files folder", paths=SIDES),
            Field("b", "B: a path in the --files folder", paths=SIDES),
        ),
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
            Field("dataset", "Dataset", "reddit", tuple(datasets())),
            Field("minimise", "Minimise", MINIMISED[0], MINIMISED),
            Field("target_iteration", "An iteration takes at most (0.5s; may be empty)", "0.5s"),
            Field("confidence", "Chance of meeting the targets, at least (%)", plan.CHANCE),
            Field("budget", "The machine costs at most (500USD/month, 10USD/hour)"),
            Field("hours_per_day", "Hours of use a day (empty: all)", more=True),
            Field("host", "Instances", words=plan.rented(), many=True, paths=YAML, holds=HOST, none="all with a price"),
            Field("device", "GPUs in place of instances", words=tuple(devices()), many=True, none="none", more=True),
            *LINKS,
            Field("gpus", "Numbers of GPUs, separated by commas (empty: the usual ones)"),
            Field("method", "Methods", words=tuple(methods()), many=True, none="the usual four"),
            Field("graph", "Your own graph or profile (in the --files folder)", paths=GRAPHS, more=True),
            Field(MEASURED, "Measured compute in the --files folder (optional)", paths=PARQUET, more=True),
            *TRAINING,
        ),
        plan.options,
        plan.command,
        check=plan.check,
        group="A whole training run, failures, spot, energy; prices, hours of use, GPUs, links, own graph",
    ),
    Form(
        "/sweep",
        "Sweep",
        "The points of a sweep, sorted by a column; a filter selects some of them"
        " (cluster.bandwidth >= 10Gbps; method.tau <= 1).",
        "Download",
        "sweep",
        (
            Field("folder", "Folder of gcnsim sweep (in the --files folder)", paths=SWEEPS),
            Field("where", "Filters, separated by semicolons (iteration_s < 0.5)"),
            Field("by", "Best by column", "iteration_s", sweep.SORTED_BY, open=True),
            Field("descending", "Largest first", "no", sweep.YES),
        ),
        sweep.options,
        sweep.command,
        "The selected points as CSV and JSON, and one offline page.",
        view=sweep.view,
        begins=NEVER,
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
            Field("dataset", "Dataset", timeline.usual("dataset"), tuple(datasets())),
            Field("device", "GPU", timeline.usual("device"), tuple(devices())),
            Field("worker", "Only this worker (empty: the slowest, and up to five more)", more=True),
            Field("graph", "Your own graph or profile (in the --files folder)", paths=GRAPHS, more=True),
            Field("run", "Or a recorded run in the --files folder", paths=RUNS, more=True),
            Field("calibration", "Its calibration record (may be empty)", paths=JSON, more=True),
            Field(MEASURED, "Its measured compute in the --files folder (optional)", paths=PARQUET, more=True),
        ),
        timeline.options,
        timeline.command,
        check=timeline.check,
        begins=ALWAYS,
        group="One worker, your own graph, a recorded run",
    ),
    Form(
        "/validation",
        "Validation",
        "Recorded runs predicted and compared, phase by phase.",
        "Validate",
        "validate",
        (
            Field(
                "runs", "Recorded runs in the --files folder", many=True, paths=RUNS, none="choose runs", most=MOST_LIST
            ),
            Field("calibration", "Calibration record in the --files folder (optional)", paths=JSON),
            Field(
                MEASURED,
                "Measured compute in the --files folder",
                many=True,
                paths=PARQUET,
                none="none",
                most=MOST_LIST,
            ),
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
    fields = {field.name: field for field in form.fields}
    for name, text in parse_qsl((query or "").lstrip("?"), keep_blank_values=True):
        if name not in values:
            raise ScenarioError(f"address: unknown {name!r}; {nearest(name, values)}")
        _limit(fields[name], text)
        values[name] = text
    return values


def _limit(field: Field, text: str) -> None:
    """Raises ScenarioError for a text that no field may have."""
    if len(text) > field.most or not text.isprintable():
        raise ScenarioError(f"{field.name}: {text[:40]!r} is not allowed; at most {field.most} printable characters")


def layout(form: Form, query: str | None, files: Files) -> html.Div:
    """The page with the values of an address; invalid ones are replaced."""
    wrong: list[Any] = []
    try:
        values = read(form, query)
    except ScenarioError as error:
        values, wrong = read(form, ""), [parts.alert(str(error))]
    usual = {field.name: field.usual for field in form.fields}
    begins = form.begins == ALWAYS or (form.begins == IF_REQUESTED and values != usual)
    fields, group = ([field for field in form.fields if field.more == more] for more in (False, True))
    controls: list[Any] = [field.control(values[field.name], files) for field in fields]
    if group:
        inside = html.Div([field.control(values[field.name], files) for field in group], className="wide")
        asked = any(values[field.name] != field.usual for field in group)
        controls.append(html.Details([html.Summary(form.group), inside], open=asked, className="whole"))
    return html.Div(
        [
            *wrong,
            html.H1(form.title),
            html.P(form.says),
            html.Section(controls, className="controls wide"),
            dcc.Loading(html.Div(id="view"), delay_show=150) if form.view else None,
            parts.command_line(),
            parts.job_panel(form.button, form.note, begins=begins and not wrong),
        ]
    )
