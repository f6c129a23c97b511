"""What jobs of the pages find: a sentence, figures in both themes, and files to take home."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

Say = Callable[[str], None]
Options = Mapping[str, Any]
Legend = Sequence[tuple[str, str, bool]]


@dataclass(frozen=True, slots=True)
class Told:
    """What a page shows of its job. heading: the answer in a sentence; text: as the command line prints it."""

    heading: str
    figures: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""

    @property
    def texts(self) -> dict[str, str]:
        """The words as plain data."""
        return {"heading": self.heading, "text": self.text}


def drawn(title: str, caption: str, draw: Callable[[Any], Any], legend: Legend = ()) -> dict[str, Any]:
    """A figure in both themes as plain data. legend: names, colours of a theme, whether hatched."""
    from gcnsim.report.palette import THEMES

    themes = {name: json.loads(draw(theme).to_json()) for name, theme in THEMES.items()}
    return {"title": title, "caption": caption, "legend": list(legend), **themes}


def sweep(options: Options, folder: Path, say: Say) -> Told:
    """Points of a sweep that a filter leaves, the first first: CSV, JSON and a page. Raises GcnsimError."""
    import pyarrow as pa

    from gcnsim import api
    from gcnsim.report import write_points

    say("reading the points")
    found = api.open_sweep(options["folder"])
    order = {"by": options["by"], "descending": options["descending"], "where": options["where"]}
    table = pa.Table.from_pylist(found.best(None, **order), found.folder.schema)
    for suffix in ("csv", "json"):
        write_points(folder / f"points.{suffix}", table)
    say("drawing the page")
    found.to_html(folder / "points.html", **order)
    return Told("")


def timeline(options: Options, folder: Path, say: Say) -> Told:
    """One steady iteration of a setting, or of a recorded run beside its prediction. Raises GcnsimError."""
    from gcnsim import api
    from gcnsim.report import timeline_figure, timeline_of_result
    from gcnsim.report.page.timelines import Drawn, caption_of, write_timelines, write_timelines_csv
    from gcnsim.scenario import setting_text
    from gcnsim.units import format_seconds

    if "run" in options:
        found = api.run_timeline(options["run"], options["calibration"], say)
        say("drawing")
        measured, predicted = found.data()
        shown = [Drawn("measured", measured), Drawn("predicted", predicted)]
        times = found.run.iteration_s, found.predicted.metrics.iteration_s
        heading = (
            f"{options['name']}: {format_seconds(times[0])} an iteration measured, {format_seconds(times[1])}"
            f" predicted ({100 * (times[1] / times[0] - 1):+.1f} %)."
        )
        found.write_measured(folder / "measured.json")
        api.write_timeline(found.predicted, folder / "predicted.json")
    else:
        result = api.setting_run(say, **options["setting"])
        say("drawing")
        shown = [Drawn("predicted", timeline_of_result(result))]
        cluster = result.scenario.cluster
        heading = (
            f"{setting_text(result.scenario.method)} on {cluster.gpus} x {cluster.device}: "
            f"{format_seconds(result.metrics.iteration_s)} an iteration."
        )
        api.write_timeline(result, folder / "timeline.json")
    write_timelines(folder / "timeline.html", heading, shown)
    write_timelines_csv(folder / "timeline.csv", shown)
    until = max(each.data.length_s for each in shown)
    figures = [
        drawn(
            each.name.capitalize(),
            caption_of(each.data),
            partial(timeline_figure, each.data, until_s=until),
            each.data.legend,
        )
        for each in shown
    ]
    return Told(heading, figures)


JOBS: Final[Mapping[str, Callable[[Options, Path, Say], Told]]] = {"sweep": sweep, "timeline": timeline}
