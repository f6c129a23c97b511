"""The Sweep page: the points of a folder as parallel coordinates, filtered, and the best of them."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

from dash import html

from gcnsim.core.errors import FileError, ScenarioError, plural
from gcnsim.dashboard import parts
from gcnsim.dashboard.context import of_sweep
from gcnsim.dashboard.files import Files
from gcnsim.report.figures.parallel import parallel_data, parallel_figure
from gcnsim.report.page.html import one_line
from gcnsim.report.palette import THEMES
from gcnsim.results import COLUMNS, OF_SETTING, RESULTS, Form

SHOWN: Final = 10
"""The most points in the table."""

MOST_POINTS: Final = 100_000
"""The most points that a page opens; use the command line for larger sweeps."""

MOST_KEPT: Final = 4
FASTEST: Final = "iteration_s"
YES: Final = ("yes", "no")
SORTED_BY: Final = tuple(key for key in RESULTS if key in OF_SETTING and COLUMNS[key].form is not Form.WORDS)
"""Columns suggested for ordering; every other one works too."""


class Tables:
    """Opened sweeps, cached until their folder changes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._lock = Lock()

    def open(self, path: str) -> Any:
        """The sweep in a folder. Raises FileError."""
        from gcnsim import api

        sweep = api.open_sweep(path)
        if sweep.folder.points > MOST_POINTS:
            raise FileError(
                f"{path}: has {sweep.folder.points:,} points; allowed here: {MOST_POINTS:,}; "
                "gcnsim sweep best handles any number"
            )
        return sweep

    def records(self, path: str) -> tuple[Any, list[dict[str, Any]]]:
        """The sweep in a folder and its finished points. Raises FileError."""
        results = self.open(path)
        key = (path, *_stamps(Path(path)))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return results, self._kept[key]
        records = results.to_arrow().to_pylist()
        with self._lock:
            self._kept[key] = records
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return results, records


def _stamps(folder: Path) -> list[tuple[str, int, int]]:
    """File stamps that change while a sweep runs."""
    files = [path for path in (*folder.glob("*.parquet"), *folder.glob("parts/*.parquet")) if path.is_file()]
    return [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in sorted(files)]


TABLES: Final = Tables()


def conditions(values: Mapping[str, str]) -> list[str]:
    """The filters in the page's field, separated by semicolons."""
    return [word.strip() for word in values["where"].split(";") if word.strip()]


def options(values: Mapping[str, str], files: Files) -> dict[str, Any]:
    """The options of the page's job. Raises GcnsimError."""
    path = files.path(values["folder"])
    if path is None:
        raise ScenarioError("folder: is empty; allowed: a folder of gcnsim sweep in the --files folder")
    return {
        "folder": path,
        "name": values["folder"],
        "by": values["by"] or FASTEST,
        "descending": _descending(values),
        "where": conditions(values),
    }


def _descending(values: Mapping[str, str]) -> bool:
    if values["descending"] not in YES:
        raise ScenarioError(f"largest first: {values['descending'][:40]!r} is not allowed; {' or '.join(YES)}")
    return values["descending"] == "yes"


def command(values: Mapping[str, str]) -> list[str]:
    """The command line of the same question."""
    words = ["gcnsim", "sweep", "best", values["folder"] or "FOLDER"]
    words += ["--by", values["by"]] if values["by"] not in ("", FASTEST) else []
    words += ["--descending"] if values["descending"] == "yes" else []
    words += [word for condition in conditions(values) for word in ("--where", condition)]
    return words


def view(values: Mapping[str, str], files: Files, theme: str) -> html.Div:
    """The page's content for these values. Raises GcnsimError."""
    from gcnsim.report.page.html import PointOrder, first_sentence
    from gcnsim.report.result import row_of_record

    if not values["folder"]:
        return html.Div(html.P("Give a folder that gcnsim sweep wrote.", className="note"))
    chosen = options(values, files)
    sweep, records = TABLES.records(chosen["folder"])
    best = sweep.best(None, chosen["by"], records=records, descending=chosen["descending"], where=chosen["where"])
    children = [html.P(_status(sweep, records, best), className="note")]
    if not best:
        none = "No point is done." if not chosen["where"] else "No finished point passes the filter."
        return html.Div([html.H2(none), *children])
    axes = [axis.path for axis in sweep.question.axes]
    data = parallel_data(best, axes, chosen["by"])
    first = row_of_record(best[0])
    order = PointOrder(chosen["by"], best[0][chosen["by"]], chosen["descending"])
    left = f" {plural(data.left_out, 'point')} between them are not drawn." if data.left_out else ""
    return html.Div(
        [
            html.H2(first_sentence(first, len(best), order)),
            parts.context(*of_sweep(sweep.question, best[0], first)),
            *children,
            parts.legend([(name, getattr(THEMES[theme], color), hatched) for name, color, hatched in data.legend]),
            parts.graph("parallel", parts.themed(json.loads(parallel_figure(data).to_json()), theme)),
            html.P(f"Each line is a point, each row a varying field; the lowest row is the chosen column.{left}",
                   className="note"),
            _table(best, axes, chosen["by"]),
        ]
    )  # fmt: skip


def _status(sweep: Any, records: Sequence[Mapping[str, Any]], best: Sequence[Any]) -> str:
    done = sum(record["state"] == "done" for record in records)
    others = len(records) - done
    text = f"{len(best):,} of {plural(done, 'finished point')} shown"
    text += f"; {others:,} refused or too large" if others else ""
    left = sweep.folder.points - len(records)
    return text + (f"; {left:,} not yet done; run the sweep again to continue." if left else ".")


def _table(best: Sequence[Mapping[str, Any]], axes: Sequence[str], by: str) -> html.Div:
    from gcnsim.report.answer.columns import columns_of
    from gcnsim.report.result import row_of_record

    first = best[:SHOWN]
    keys = ["time"]
    keys += [by] if by in COLUMNS and by != FASTEST else []
    more = columns_of(list(map(row_of_record, first)), [*keys, "speedup_vs_full_graph", "limited_by", "memory_bytes"])
    raw = [] if by in (FASTEST, *axes, *keys) else [by]
    # A path may be wrapped after its dot.
    heads = ["point", *(axis.replace(".", ". ") for axis in axes)]
    heads += [*(one_line(item.head) for item in more), *raw]
    lines = [
        [str(entry["point"]), *(_cell(entry[path]) for path in axes), *own, *(_cell(entry[name]) for name in raw)]
        for entry, own in zip(first, zip(*(column.cells for column in more), strict=True), strict=True)
    ]
    return parts.sheet(f"The first {plural(len(lines), 'point')} by {by}", heads, lines)


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
