"""The callbacks of pages with a few fields: they update address, command line and content."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from dash import ALL, MATCH, Dash, Input, Output, State, no_update

from gcnsim.core.errors import GcnsimError
from gcnsim.dashboard import parts
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.pages import forms
from gcnsim.dashboard.prefix import inside


def attach(app: Dash, files: Files) -> None:
    """Attach the callbacks of the fields: they update address, command line and content."""
    _attach_entries(app)

    @app.callback(
        Output("query", "data", allow_duplicate=True),
        Output("command", "children", allow_duplicate=True),
        Input({"field": ALL}, "value"),
        State({"field": ALL}, "id"),
        State("url", "pathname"),
        prevent_initial_call="initial_duplicate",
    )
    def follow(values: list[Any], names: list[dict[str, str]], path: str) -> Any:
        form = forms.of_path(inside(path))
        if form is None:
            return no_update, no_update
        found = _found(values, names)
        usual = {field.name: field.usual for field in form.fields}
        options = {name: text for name, text in found.items() if text != usual[name]}
        return (f"?{urlencode(options)}" if options else ""), shlex.join(form.command(found))

    @app.callback(
        Output({"field": MATCH, "of": "wrong"}, "children"),
        Input({"field": MATCH}, "value"),
        State({"field": MATCH}, "id"),
        State("url", "pathname"),
    )
    def check(value: Any, name: dict[str, str], path: str) -> Any:
        form = forms.of_path(inside(path))
        try:
            return "" if form is None else form.wrong(str(name["field"]), _text(value), files)
        except Exception as error:
            return parts.internal(error)

    @app.callback(
        Output("view", "children"),
        Input({"field": ALL}, "value"),
        State({"field": ALL}, "id"),
        State("url", "pathname"),
        State("theme", "data"),
    )
    def view(values: list[Any], names: list[dict[str, str]], path: str, theme: str | None) -> Any:
        form = forms.of_path(inside(path))
        if form is None or form.view is None:
            return no_update
        try:
            found = forms.read(form, f"?{urlencode(_found(values, names))}")
            return form.view(found, files, "dark" if theme == "dark" else "light")
        except GcnsimError as error:
            return parts.alert(files.shown(str(error)))


def _attach_entries(app: Dash) -> None:
    """Attach the callback of the lines of text below lists of paths."""

    @app.callback(
        Output({"field": MATCH}, "options"),
        Output({"field": MATCH}, "value"),
        Output({"field": MATCH, "of": "more"}, "value"),
        Input({"field": MATCH, "of": "more"}, "value"),
        State({"field": MATCH}, "options"),
        State({"field": MATCH}, "value"),
        prevent_initial_call=True,
    )
    def add(text: Any, listed: Any, chosen: Any) -> Any:
        return added(_text(text), listed, chosen) or [no_update] * 3


def added(text: str, listed: Any, chosen: Any) -> tuple[list[Any], list[Any], str] | None:
    """A list, and what is chosen of it, with the paths in `text` too, and the emptied text; None for no path."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        return None
    return list(dict.fromkeys([*(listed or []), *words])), list(dict.fromkeys([*(chosen or []), *words])), ""


def _found(values: Sequence[Any], names: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {name["field"]: _text(value) for name, value in zip(names, values, strict=True)}


def _text(value: Any) -> str:
    """What a field says: of a list what is chosen, between commas."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value or "").strip()
