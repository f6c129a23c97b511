"""Fill templates (`gcnsim/report/templates`) with plain data; all text of a payload is escaped.

A missing name in a template is an error, not a blank.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gcnsim.core.atomic import atomic_write
from gcnsim.report import palette

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from plotly.graph_objects import Figure

PLOTLY: Final = Path(__file__).parents[1] / "templates" / "plotly-cartesian.min.js.gz"
"""The bundle of plotly.js that draws bars, lines and heat maps: a tenth of the whole library."""


class Bundle(NamedTuple):
    """A library that is part of gcnsim's files. origin: the file of a release; sha256: of the file here."""

    name: str
    version: str
    licence: str
    origin: str
    sha256: str


BUNDLE: Final = Bundle(
    name="plotly.js (cartesian)",
    version="4.1.1",
    licence="MIT AND BSD-3-Clause AND ISC",
    origin="dist/plotly-cartesian.min.js of plotly.js (https://plotly.com/javascript), compressed with gzip",
    sha256="d7eb3e363b08c539569af55384352fa83cb47801e04a79aa819d5c40570ce38d",
)
"""Where `PLOTLY` is from; its licences are in `plotly-LICENSE.txt`."""


class Sheet(NamedTuple):
    """A table. heads: heading and kind of each column: t (text), k (a key, never wrapped), n (a number).

    marked: the places of the recommended rows.
    """

    caption: str
    heads: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[str]]
    marked: Sequence[int] = ()


def write_page(path: str | Path, template: str, **facts: Any) -> None:
    """Write the page that `template` renders from `facts`. Raises FileError if the file cannot be written."""
    text = rendered(template, plotly=base64.b64encode(PLOTLY.read_bytes()).decode(), **facts)
    with atomic_write(path, text=True) as file:
        file.write(text)


def rendered(template: str, **facts: Any) -> str:
    """Render `template` with `facts`."""
    return _environment().get_template(template).render(facts)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("gcnsim.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals["palette"] = palette
    filters: dict[str, Callable[..., str]] = {
        "anchor": _anchor,
        "breakable": _breakable,
        "plotly_json": _plotly_json,
        "variable": palette.variable,
        "variables": palette.variables,
    }
    made.filters |= filters
    return made


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _breakable(text: str) -> Markup:
    """`text` with possible line breaks after every underscore, for narrow pages."""
    from markupsafe import Markup, escape

    return escape(text).replace("_", Markup("_<wbr>"))


def _plotly_json(figure: Figure) -> Markup:
    """A figure as JSON that cannot end its script element."""
    from jinja2.utils import htmlsafe_json_dumps
    from plotly.io import to_json

    return htmlsafe_json_dumps(figure, dumps=lambda figure, **_: to_json(figure, validate=False))
