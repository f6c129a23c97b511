"""Parts of pages: sliders, tables, figures, the panel of long jobs."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any, Final

from dash import dcc, html

from gcnsim.dashboard.state import MOST_TEXT
from gcnsim.report.answer.columns import columns_of
from gcnsim.report.page.html import columns_sheet
from gcnsim.report.palette import DARK, darkened
from gcnsim.results import Row

LOG: Final = logging.getLogger("gcnsim.dashboard")

CONFIG: Any = {
    "displaylogo": False,
    "modeBarButtons": [["toImage"]],
    "responsive": True,
    "toImageButtonOptions": {"filename": "gcnsim", "scale": 2},
}
"""Of figures: the one button downloads a PNG."""


def aria(**attributes: str) -> dict[str, Any]:
    """Accessibility attributes: `label`, `live`."""
    return {f"aria-{name}": text for name, text in attributes.items()}


def slider(name: str, label: str, stops: Sequence[float], value: float) -> html.Div:
    """A slider over the indices of `stops`; a key press moves it by one stop."""
    return html.Div(
        [
            html.Label([f"{label} ", html.Output("", id=f"{name}-shown")], htmlFor=name),
            dcc.Input(
                id=name, type="range", min=0, max=len(stops) - 1, step=1, value=list(stops).index(value), debounce=False
            ),
        ],
        className="slider",
    )


def field(name: Any, label: str, control: Any) -> html.Div:
    """A control beneath its label; what is wrong with its value stands below it (`wrong_of`)."""
    return html.Div(
        [
            html.Label(label, htmlFor=name if isinstance(name, str) else json.dumps(name, separators=(",", ":"))),
            control,
            html.Span(id=wrong_of(name), className="wrong", role="status"),
        ],
        className="field",
    )


def wrong_of(name: Any) -> Any:
    """The id of what is said of a field's value, by the field's."""
    return f"{name}-wrong" if isinstance(name, str) else {"field": name["field"], "of": "wrong"}


def text_field(name: Any, label: str, value: str, options: Sequence[str] = (), most: int = MOST_TEXT) -> html.Div:
    """A text field with suggestions; its text takes effect when the field loses focus, or at Enter."""
    listed = f"{name if isinstance(name, str) else name['field']}-names"
    more: dict[str, Any] = {"list": listed} if options else {}
    control = dcc.Input(id=name, type="text", value=value, debounce=True, maxLength=most, autoComplete="off", **more)
    names = [html.Datalist([html.Option(value=option) for option in options], id=listed)] if options else []
    return field(name, label, html.Div([control, *names]))


def choice(
    name: Any,
    label: str,
    value: str,
    options: Sequence[str],
    *,
    many: bool = False,
    none: str = "",
    entry: Any = None,
) -> html.Div:
    """A list to choose from, which can be searched: of `many` several, between commas in `value`; none: what it says
    where nothing is chosen, empty where something always is. entry: the id of a line of text for what is not listed.
    """
    chosen = [word.strip() for word in value.split(",") if word.strip()]
    control = dcc.Dropdown(
        id=name,
        options=list(dict.fromkeys([*options, *chosen])),
        value=chosen if many else next(iter(chosen), None),
        multi=many,
        clearable=many or bool(none),
        placeholder=none,
        maxHeight=340,
    )
    if entry is None:
        return field(name, label, control)
    line = dcc.Input(id=entry, type="text", value="", debounce=True, maxLength=MOST_TEXT, autoComplete="off")
    return field(name, label, html.Div([control, html.Label(["or a path: ", line], className="note")]))


def _headed(head: str) -> dict[str, Any]:
    """The name of a cell if the table has no heading."""
    return {"data-head": head}


def table(rows: Sequence[Row], caption: str) -> html.Div:
    """Rows of an answer as a table; recommended ones stand out and begin with a star."""
    found = columns_sheet(columns_of(rows), caption)
    best = [place for place, row in enumerate(rows) if row.recommended]
    lines = [(f"* {cells[0]}", *cells[1:]) if place in best else cells for place, cells in enumerate(found.rows)]
    return sheet(caption, [head for head, _ in found.heads], lines, best)


def sheet(caption: str, heads: Sequence[str], lines: Sequence[Sequence[Any]], marked: Sequence[int] = ()) -> html.Div:
    """Lines of cells as a table; on a phone each is a block. marked: places of lines that stand out."""
    body = [
        html.Tr(
            [html.Td(cell, **_headed(head)) for head, cell in zip(heads, cells, strict=True)],
            className="chosen" if index in marked else None,
        )
        for index, cells in enumerate(lines)
    ]
    element = html.Table(
        [html.Caption(caption), html.Thead(html.Tr([html.Th(head, scope="col") for head in heads])), html.Tbody(body)],
        className="rows",
    )
    return html.Div(element, className="scroll", tabIndex="0", role="region", **aria(label=caption))


def graph(name: str, figure: Any = None) -> dcc.Graph:
    """A figure, as plain data, that is as wide as its place and as tall as it says; without data nothing is seen."""
    if figure is None:
        return dcc.Graph(id=name, config=CONFIG, responsive=True, style={"visibility": "hidden"})
    height = {"height": f"{figure['layout']['height']}px"}
    return dcc.Graph(id=name, config=CONFIG, responsive=True, figure=figure, style=height)


def themed(drawing: Any, theme: str) -> Any:
    """Plain data with colours of the light theme, in those of `theme`."""
    return json.loads(darkened(json.dumps(drawing))) if theme == DARK.name else drawing


def legend(marks: Sequence[tuple[str, str, bool]]) -> html.Ul:
    """Names with their colours; hatched: overlapping work."""
    return html.Ul(
        [
            html.Li([html.Span(className="hatched" if hatched else "swatch", style={"--of": color}), f" {name}"])
            for name, color, hatched in marks
        ],
        className="legend",
    )


def context(badge: str, of: str) -> html.P:
    """What an answer is of, after how far it is to be trusted."""
    return html.P([html.Strong(badge, className="badge"), of], className="note")


def alert(text: str) -> html.P:
    """An error in one line."""
    return html.P(text, className="alert", role="alert")


def internal(error: Exception) -> str:
    """The line of an error that is no user's; it is logged in full."""
    LOG.error("internal error: %s", type(error).__name__, exc_info=error)
    return "internal error; the server's terminal has its name"


def job_panel(label: str, note: str, *, begins: bool = False) -> html.Section:
    """A button that starts the page's long job, and the place of its result. begins: start it with the page."""
    own: dict[str, Any] = {"data-begins": "yes"} if begins else {}
    return html.Section(
        [
            html.Button(label, id="job-start", className="main", **own),
            html.Span(note, className="note"),
            dcc.Store(id="job"),
            dcc.Interval(id="job-tick", interval=500, disabled=True),
            html.Div(
                [
                    html.Span(id="job-said"),
                    html.Progress(id="job-bar", max="1", **aria(label="how far it is")),
                    html.Button("Cancel", id="job-cancel"),
                ],
                id="job-status",
                hidden=True,
                role="status",
            ),
            dcc.Store(id="job-query"),
            html.Div(id="job-result"),
        ],
        className="job",
        **aria(label=label),
    )


def command_line() -> html.Div:
    """The command line of the same question, and the link to this page, to copy."""
    copied = dcc.Clipboard(target_id="command", title="Copy the command")
    link = dcc.Clipboard(id="here", title="Copy the link")
    return html.Div(
        [
            html.Span("The same on the command line", className="note"),
            html.Div([html.Code("", id="command"), copied]),
            html.Div([html.Span("Link to this page", className="note"), link]),
        ],
        className="command",
    )
