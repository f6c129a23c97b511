"""The Dash application: the page of each address, and the callbacks of its controls.

The panel of long jobs starts the page's job, shows its progress, and shows its result.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote

import flask
from dash import Input, Output, State, dcc, html, no_update
from dash.dependencies import ClientsideFunction
from dash.exceptions import PreventUpdate

from gcnsim.core.errors import GcnsimError, plural
from gcnsim.dashboard import api, parts
from gcnsim.dashboard.answers import Answers, SupersededError
from gcnsim.dashboard.context import of_question
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.guard import Guard
from gcnsim.dashboard.jobs import Job, Jobs
from gcnsim.dashboard.pages import form_callbacks, forms, what_if
from gcnsim.dashboard.prefix import PrefixedDash, inside, outside
from gcnsim.dashboard.state import MORE, PageQuestion, read_address
from gcnsim.dashboard.work import FIGURES, TEXTS
from gcnsim.report.palette import THEMES


def attach_jobs(app: PrefixedDash, jobs: Jobs, files: Files) -> None:
    """Attach the callbacks of the panel."""

    @app.callback(
        Output("job", "data"),
        Output("job-tick", "disabled"),
        Output("job-result", "children"),
        Output("job-query", "data"),
        Output("job-status", "hidden", allow_duplicate=True),
        Output("job-said", "children", allow_duplicate=True),
        Input("job-start", "n_clicks"),
        State("url", "pathname"),
        State("query", "data"),
        prevent_initial_call=True,
    )
    def start(_: int, path: str, query: str | None) -> Any:
        try:
            job = jobs.start(*_asked(path, query, files))
        except GcnsimError as error:
            return None, True, parts.alert(files.shown(str(error))), query or "", True, ""
        return job.key, False, None, query or "", False, f"{job.status} ..."

    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("gcnsim", "old"),
        Output("job-result", "className"),
        Input("query", "data"),
        Input("job-query", "data"),
    )

    @app.callback(
        Output("job-status", "hidden"),
        Output("job-said", "children"),
        Output("job-bar", "value"),
        Output("job-tick", "disabled", allow_duplicate=True),
        Output("job-result", "children", allow_duplicate=True),
        Input("job-tick", "n_intervals"),
        State("job", "data"),
        State("theme", "data"),
        prevent_initial_call=True,
    )
    def tick(_: int, key: str | None, theme: str) -> Any:
        job = jobs.get(key)
        if job is None:
            return True, "", None, True, no_update
        if job.under_way:
            return False, f"{job.status} ...", None if job.share is None else str(job.share), False, no_update
        if job.error is not None:
            return True, "", None, True, parts.alert(files.shown(job.error))
        return True, "", None, True, found(job, "dark" if theme == "dark" else "light", files.shown)

    @app.callback(Input("job-cancel", "n_clicks"), State("job", "data"), prevent_initial_call=True)
    def cancel(_: int, key: str | None) -> None:
        job = jobs.get(key)
        if job is not None:
            job.cancel()


def _asked(path: str, query: str | None, files: Files) -> tuple[str, dict[str, Any]]:
    """The kind of the page's job and its options. Raises GcnsimError."""
    form = forms.of_path(inside(path))
    if form is not None:
        return form.kind, form.options(forms.read(form, query), files)
    question = read_address(query)
    return "what-if", question.options(*(files.path(getattr(question, name)) for name in what_if.PATHS))


def found(job: Job, theme: str, text: Callable[[str], str] = str) -> html.Div:
    """The result of a job: its sentence, figures, text, and files to download; text: the format of its text."""
    texts = json.loads((job.folder / TEXTS).read_text(encoding="utf-8"))
    shown: list[Any] = [html.H2(text(texts["heading"]))] if texts["heading"] else []
    if texts.get("context"):
        shown.append(parts.context(*map(text, texts["context"])))
    names = sorted(item.name for item in job.folder.iterdir() if item.name not in (TEXTS, FIGURES))
    links = [html.A(name, href=outside(f"/made/{job.key}/{name}"), download=name) for name in names]
    shown.append(html.P(["Download: ", *links], className="files"))
    for title, lines in texts.get("lists", []):
        if lines:
            shown += [html.H3(title), html.Ul([html.Li(line) for line in lines])]
    path = job.folder / FIGURES
    figures = path.read_text(encoding="utf-8") if path.exists() else "[]"
    links = iter(texts.get("links", ()))
    for index, entry in enumerate(parts.themed(json.loads(figures), theme)):
        marks = [(name, THEMES[theme].color(color), hatched) for name, color, hatched in entry["legend"]]
        marks += [(name, color, False) for name, color, _ in entry["lines"]]
        shown += [html.H3(entry["title"]), *([parts.legend(marks)] if marks else [])]
        if entry["drawn"]:
            shown += [parts.graph(f"figure-{index}", entry["drawn"]), html.P(entry["caption"], className="note")]
        shown += [_sheet(entry["sheet"], links)] if entry["sheet"] else []
    if texts.get("text"):
        words = html.Pre(text(texts["text"]), tabIndex="0", role="region", **parts.aria(label="the answer as text"))
        shown.append(html.Details([html.Summary("The same as text"), words]))
    return html.Div(shown)


def _sheet(sheet: Mapping[str, Any], links: Iterator[str | None]) -> html.Div:
    """A table; the first cell of a row leads to the page that answers it, where there is one."""
    rows = [[html.A(first, href=outside(link)) if (link := next(links, None)) else first, *cells]
            for first, *cells in sheet["rows"]]  # fmt: skip
    return parts.sheet(sheet["caption"], [head for head, _ in sheet["heads"]], rows, sheet["marked"])


INDEX: Final = """<!DOCTYPE html>
<html lang="en">
<head>{%metas%}<title>{%title%}</title>{%favicon%}{%css%}</head>
<body>{%app_entry%}{%config%}{%scripts%}{%renderer%}</body>
</html>"""

KEPT: Final = ("stops", "theme", "tab")
"""Stored values of a page besides its fields; its tab has a unique key."""

MOST_TAB: Final = 32
"""Characters of a tab's key."""


@dataclass(frozen=True, slots=True)
class AppState:
    """The state behind the pages."""

    answers: Answers
    jobs: Jobs
    files: Files
    datasets: tuple[str, ...]
    devices: tuple[str, ...]


def application(behind: AppState, guard: Guard) -> flask.Flask:
    """The pages as a WSGI application."""
    app = PrefixedDash(
        "gcnsim.dashboard",
        title="gcnsim dashboard",
        update_title="",
        index_string=INDEX,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
        suppress_callback_exceptions=True,
        serve_locally=True,
        add_log_handler=False,
        enable_mcp=False,
    )
    app.layout = _frame
    _pages(app, behind)
    _slider_callbacks(app, behind)
    _attach_waiting(app, behind.answers)
    form_callbacks.attach(app, behind.files)
    attach_jobs(app, behind.jobs, behind.files)
    server = app.server
    assert isinstance(server, flask.Flask)
    server.logger.setLevel(logging.ERROR)
    guard.attach(server, app.csp_hashes())  # first: who may not see the pages is told nothing else
    _refuse_malformed(server, app)
    _routes(server, behind)
    api.attach(server, behind.jobs, behind.files)
    return server


def _frame() -> html.Div:
    """The frame of every page."""
    links = [
        html.A("What-if", href=outside("/")),
        *(html.A(form.title, href=outside(form.path)) for form in forms.FORMS),
    ]
    return html.Div(
        [
            dcc.Location(id="url", refresh=False),
            dcc.Store(id="theme"),
            dcc.Store(id="query"),
            html.A("Skip to the page", href="#page", className="skip"),
            html.Header(
                [
                    html.Strong("gcnsim"),
                    html.Nav(links, **parts.aria(label="Pages")),
                    html.Button("Light or dark", id="theme-button"),
                ]
            ),
            html.Main(html.P("Loading", className="note"), id="page", tabIndex="-1"),
        ]
    )


def _pages(app: PrefixedDash, behind: AppState) -> None:
    """The page of an address, once the theme (light or dark) is known, and what pages do in the browser."""
    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("gcnsim", "theme"), Output("theme", "data"), Input("theme-button", "n_clicks")
    )
    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("gcnsim", "pin"),
        Output("pin", "value"),
        Output("pin-button", "children"),
        Input("pin-button", "n_clicks"),
        State("query", "data"),
        State("pin", "value"),
    )
    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("gcnsim", "remember"),
        Output("theme-button", "title"),
        Output("here", "content"),
        Input("query", "data"),
        prevent_initial_call=True,
    )

    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("gcnsim", "follow"), Input("figure-0", "clickData"), prevent_initial_call=True
    )

    @app.callback(Output("page", "children"), Input("theme", "data"), State("url", "pathname"), State("url", "search"))
    def page(theme: str | None, path: str, search: str | None) -> Any:
        if theme is None:
            return no_update
        path = inside(path)
        form = forms.of_path(path)
        if form is not None:
            return forms.layout(form, search, behind.files)
        if path not in ("", "/"):
            return parts.alert(f"{path[:80]}: there is no such page")
        try:
            question, wrong = read_address(search), []
        except GcnsimError as error:
            question, wrong = PageQuestion(), [parts.alert(f"{error}. Shown instead: the first question.")]
        own = any(getattr(question, name) for name in (*what_if.PATHS, *MORE)) or "graph=" in (search or "")
        paths = (behind.files.listed(ends) for ends in (forms.GRAPHS, forms.PARQUET, forms.JSON))
        return [*wrong, what_if.layout(question, what_if.Lists(behind.datasets, behind.devices, *paths), own)]


def _slider_callbacks(app: PrefixedDash, behind: AppState) -> None:
    """The callbacks of the controls of the What-if page."""
    fields = what_if.FIELDS
    outputs = [Output("picture", "figure"), Output("rows", "children"), Output("headline", "children")]
    outputs += [Output("machine", "children"), Output("against", "children")]
    outputs += [Output("command", "children"), Output("query", "data"), Output("alert", "children")]
    outputs += [Output("caption", "children"), Output("legend", "children"), Output("picture", "style")]
    outputs += [Output("asked", "className", allow_duplicate=True)]
    outputs += [Output(parts.wrong_of(name), "children") for name in what_if.MARKED]
    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("gcnsim", "busy"), Output("asked", "className"), [Input(name, "value") for name in fields]
    )

    def refused(line: str, values: Mapping[str, Any]) -> list[Any]:
        """An alert in place of an answer, with what is wrong at its field; the old answer stays dimmed."""
        marks = what_if.marks(line, values, behind.files)
        kept = [no_update] * (len(outputs) - 9 - len(marks))
        return [*[no_update] * 7, parts.alert(line), *kept, "old", *marks]

    given = [Input(name, "value") for name in fields], [State(name, "data") for name in KEPT]

    @app.callback(outputs, *given, prevent_initial_call="initial_duplicate")
    def moves(*given: Any) -> Any:
        values: Mapping[str, Any] = dict(zip(fields, given, strict=False))
        stops, theme, tab = given[len(fields) :]
        try:
            question, measured = what_if.of_measured(what_if.question_of(values, stops, PageQuestion()), behind.files)
            context = (question, behind.answers, behind.files, behind.answers.turn(str(tab)[:MOST_TAB]))
            rows = what_if.rows_of(*context)
            pinned = what_if.pinned_rows(*context)
            along = [] if question.figure == "breakdown" else what_if.curve_rows(*context)
        except SupersededError:
            raise PreventUpdate from None
        except GcnsimError as error:
            return refused(behind.files.shown(str(error)), values)
        except Exception as error:
            return refused(parts.internal(error), values)
        read = what_if.read_of(question, behind.answers, behind.files)
        named = replace(question, graph=behind.files.name(question.graph))
        figure, legend = what_if.picture(question, rows, along, "dark" if theme == "dark" else "light")
        return [
            figure,
            what_if.tables(rows, pinned),
            what_if.headline(question, rows),
            of_question(rows, measured, named, read),
            what_if.against(question, rows, pinned, behind.files),
            named.command(),
            question.address(),
            None,
            what_if.CAPTIONS[question.figure != "breakdown"],
            legend,
            {"height": f"{figure['layout']['height']}px"},
            "",
            *[""] * len(what_if.MARKED),
        ]


def _attach_waiting(app: PrefixedDash, answers: Answers) -> None:
    """Attach the callbacks of what is seen while an answer is computed: the sliders' values, how far it is, Cancel."""
    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("gcnsim", "shown"),
        [Output(f"{name}-shown", "children") for name in what_if.SLIDERS],
        [Input(name, "value") for name in what_if.SLIDERS],
        State("stops", "data"),
    )
    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("gcnsim", "waits"),
        Output("wait-tick", "disabled"),
        Output("waited", "children"),
        Input("asked", "className"),
    )

    @app.callback(
        Output("waited", "children", allow_duplicate=True),
        Input("wait-tick", "n_intervals"),
        State("tab", "data"),
        prevent_initial_call=True,
    )
    def wait(_: int, tab: str) -> str:
        done, every = answers.progress(str(tab)[:MOST_TAB])
        return f"{done} of {plural(every, 'run')} simulated"

    @app.callback(
        Output("asked", "className", allow_duplicate=True),
        Output("alert", "children", allow_duplicate=True),
        Input("wait-cancel", "n_clicks"),
        State("tab", "data"),
        prevent_initial_call=True,
    )
    def cancel(_: int, tab: str) -> Any:
        answers.turn(str(tab)[:MOST_TAB])
        return "old", parts.alert("cancelled; what is dimmed is of earlier settings")


UPDATE: Final = "/_dash-update-component"
"""The address at which a page asks for an update."""


def _refuse_malformed(server: flask.Flask, app: PrefixedDash) -> None:
    """Answer 400 to an update that no page of this version asks for; Dash would fail at it, with 500."""

    def known(asked: Any) -> bool:
        callback = app.callback_map.get(asked["output"]) if isinstance(asked.get("output"), str) else None
        # Of a callback without outputs there are none.
        if callback is None or not isinstance(asked.get("outputs"), dict | list | None):
            return False
        for name in ("inputs", "state"):
            given = asked.get(name, [])
            if not isinstance(given, list) or len(given) != len(callback[name]):
                return False
            for entry in (one for item in given for one in (item if isinstance(item, list) else [item])):
                if not isinstance(entry, dict) or not {"id", "property"} <= entry.keys():
                    return False
        return True

    @server.before_request
    def refuse() -> None:
        if flask.request.path == UPDATE and flask.request.method == "POST":
            asked = flask.request.get_json()
            if not isinstance(asked, dict) or not known(asked):
                flask.abort(400)


def _routes(server: flask.Flask, behind: AppState) -> None:
    """The routes for uploads and for the files of jobs."""

    @server.post("/upload")
    def upload() -> Any:
        try:
            name = unquote(flask.request.headers.get("X-File-Name", ""))
            key = behind.files.take(name, flask.request.get_data(cache=False))
        except GcnsimError as error:
            return flask.jsonify(error=str(error)), 400
        return flask.jsonify(key=key)

    @server.get("/made/<key>/<name>")
    def made(key: str, name: str) -> Any:
        job = behind.jobs.get(key)
        if job is None or not job.done or name not in {path.name for path in job.folder.iterdir()}:
            flask.abort(404)
        return flask.send_file(job.folder / name, as_attachment=True, download_name=f"gcnsim-{job.kind}-{name}")
