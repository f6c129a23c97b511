"""The panel of long work: begins the page's job, says how far it is, shows what it found."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dash import Dash, Input, Output, State, html, no_update

from gcnsim.dashboard import parts
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.jobs import Job, Jobs
from gcnsim.dashboard.pages import forms
from gcnsim.dashboard.state import read_address
from gcnsim.dashboard.work import FIGURES, TEXTS
from gcnsim.errors import GcnsimError
from gcnsim.report.palette import THEMES


def attach_jobs(app: Dash, jobs: Jobs, files: Files) -> None:
    """The callbacks of the panel."""

    @app.callback(
        Output("job", "data"),
        Output("job-tick", "disabled"),
        Output("job-result", "children"),
        Input("job-start", "n_clicks"),
        State("url", "pathname"),
        State("query", "data"),
        prevent_initial_call=True,
    )
    def start(_: int, path: str, query: str | None) -> Any:
        try:
            job = jobs.start(*_asked(path, query, files))
        except GcnsimError as error:
            return None, True, parts.alert(files.shown(str(error)))
        return job.key, False, None

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
            return False, f"{job.said} ...", None if job.share is None else str(job.share), False, no_update
        if job.error is not None:
            return True, "", None, True, parts.alert(files.shown(job.error))
        return True, "", None, True, found(job, "dark" if theme == "dark" else "light", files.shown)

    @app.callback(
        Output("job-cancel", "n_clicks"),
        Input("job-cancel", "n_clicks"),
        State("job", "data"),
        prevent_initial_call=True,
    )
    def cancel(_: int, key: str | None) -> Any:
        job = jobs.get(key)
        if job is not None:
            job.cancel()
        return no_update


def _asked(path: str, query: str | None, files: Files) -> tuple[str, dict[str, Any]]:
    """The kind of the page's job and its options. Raises GcnsimError."""
    form = forms.of_path(path)
    if form is not None:
        return form.kind, form.options(forms.read(form, query), files)
    question = read_address(query)
    return "what-if", question.options(files.path(question.graph), files.path(question.measured))


def found(job: Job, theme: str, said: Callable[[str], str] = str) -> html.Div:
    """What a job wrote: its sentence, figures, text, and its files to take home; said: how its text is told."""
    texts = json.loads((job.folder / TEXTS).read_text(encoding="utf-8"))
    shown: list[Any] = [html.H2(texts["heading"])] if texts["heading"] else []
    names = sorted(each.name for each in job.folder.iterdir() if each.name not in (TEXTS, FIGURES))
    links = [html.A(name, href=f"/made/{job.key}/{name}", download=name) for name in names]
    shown.append(html.P(["Download: ", *links], className="files"))
    for title, lines in texts.get("lists", []):
        if lines:
            shown += [html.H3(title), html.Ul([html.Li(line) for line in lines])]
    path = job.folder / FIGURES
    for place, each in enumerate(json.loads(path.read_text(encoding="utf-8")) if path.exists() else []):
        marks = [(name, THEMES[theme].color(color), hatched) for name, color, hatched in each["legend"]]
        shown += [html.H3(each["title"]), *([parts.legend(marks)] if marks else [])]
        shown.append(parts.graph(f"figure-{place}", each[theme]))
        shown.append(html.P(each["caption"], className="note"))
    if texts.get("text"):
        shown.append(
            html.Pre(said(texts["text"]), tabIndex="0", role="region", **parts.aria(label="the answer as text"))
        )
    return html.Div(shown)
