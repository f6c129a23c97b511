"""The results of the pages' jobs: a sentence, figures in both themes, and files to download."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from gcnsim.errors import plural

Say = Callable[[str], None]
Options = Mapping[str, Any]
Legend = Sequence[tuple[str, str, bool]]


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a page's job. heading: the answer in a sentence; text: the output of the command line."""

    heading: str
    figures: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""

    @property
    def texts(self) -> dict[str, str]:
        """The texts as plain data."""
        return {"heading": self.heading, "text": self.text}


def themed_figure(title: str, caption: str, draw: Callable[[Any], Any], legend: Legend = ()) -> dict[str, Any]:
    """A figure in both themes as plain data. legend: names, colours of a theme, whether hatched."""
    from gcnsim.report.palette import THEMES

    themes = {name: json.loads(draw(theme).to_json()) for name, theme in THEMES.items()}
    return {"title": title, "caption": caption, "legend": list(legend), **themes}


def sweep(options: Options, folder: Path, say: Say) -> JobResult:
    """The points of a sweep that pass the filters, best first: CSV, JSON and a page. Raises GcnsimError."""
    import pyarrow as pa

    from gcnsim import api
    from gcnsim.report.sweep import write_points

    say("reading the points")
    results = api.open_sweep(options["folder"])
    order = {"by": options["by"], "descending": options["descending"], "where": options["where"]}
    table = pa.Table.from_pylist(results.best(None, **order), results.folder.schema)
    for suffix in ("csv", "json"):
        write_points(folder / f"points.{suffix}", table)
    say("drawing the page")
    results.to_html(folder / "points.html", **order)
    return JobResult("")


def timeline(options: Options, folder: Path, say: Say) -> JobResult:
    """One steady iteration of a setting, or of a recorded run with its prediction. Raises GcnsimError."""
    from gcnsim import api
    from gcnsim.report.figures.timeline import timeline_figure, timeline_of_result
    from gcnsim.report.page.sections import DrawnTimeline, caption_of, write_timelines, write_timelines_csv
    from gcnsim.scenario import setting_text
    from gcnsim.units import format_seconds

    if "run" in options:
        run_timeline = api.run_timeline(options["run"], options["calibration"], say)
        say("drawing")
        measured, predicted = run_timeline.data()
        shown = [DrawnTimeline("measured", measured), DrawnTimeline("predicted", predicted)]
        times = run_timeline.run.iteration_s, run_timeline.predicted.metrics.iteration_s
        heading = (
            f"{options['name']}: {format_seconds(times[0])} an iteration measured, {format_seconds(times[1])}"
            f" predicted ({100 * (times[1] / times[0] - 1):+.1f} %)."
        )
        run_timeline.write_measured(folder / "measured.json")
        api.write_timeline(run_timeline.predicted, folder / "predicted.json")
    else:
        result = api.setting_run(say, **options["setting"])
        say("drawing")
        shown = [DrawnTimeline("predicted", timeline_of_result(result))]
        cluster = result.scenario.cluster
        heading = (
            f"{setting_text(result.scenario.method)} on {cluster.gpus} x {cluster.device}: "
            f"{format_seconds(result.metrics.iteration_s)} an iteration."
        )
        api.write_timeline(result, folder / "timeline.json")
    write_timelines(folder / "timeline.html", heading, shown)
    write_timelines_csv(folder / "timeline.csv", shown)
    until = max(timeline.data.length_s for timeline in shown)
    figures = [
        themed_figure(
            timeline.name.capitalize(),
            caption_of(timeline.data),
            partial(timeline_figure, timeline.data, until_s=until),
            timeline.data.legend,
        )
        for timeline in shown
    ]
    return JobResult(heading, figures)


def recommend(options: Options, folder: Path, say: Say) -> JobResult:
    """A recommendation: time against cost, and the sensitivity of the time. Raises GcnsimError."""
    from gcnsim import api
    from gcnsim.report.figures.front import front_data, front_figure
    from gcnsim.report.figures.tornado import tornado_figure, tornado_of_advice

    recommended = api.recommend(**options, progress=say)
    say("drawing")
    api.write_json(folder / "answer.json", recommended.payload)
    recommended.to_csv(folder / "options.csv")
    recommended.to_html(folder / "answer.html")
    front, tornado = front_data(recommended.told), tornado_of_advice(recommended.told)
    figures = []
    if front.options:
        left = f" {front.unpriced} without a price are left out." if front.unpriced else ""
        caption = f"Options that nothing beats, with their 90 % intervals, and the recommended one.{left}"
        figures.append(themed_figure("Time against cost", caption, partial(front_figure, front), FRONT))
    if tornado.swings:
        caption = "The time if one thing alone were at either end of its range; the line is the time of the answer."
        figures.append(themed_figure("What moves the time", caption, partial(tornado_figure, tornado), TORNADO))
    return JobResult(recommended.told.verdict, figures, str(recommended))


def compare(options: Options, folder: Path, say: Say) -> JobResult:
    """Two iterations: the time of each by part, and the difference by part. Raises GcnsimError."""
    from gcnsim import api
    from gcnsim.report.comparison import write_parts_csv
    from gcnsim.report.figures.breakdown import breakdown_figure, sides_data
    from gcnsim.report.figures.difference import difference_data, difference_figure

    payload = api.compare(options["a"], options["b"], progress=say)
    # The sides have the names that the page's user gave them.
    for key in "ab":
        payload[key]["label"] = options["names"][key]
    say("drawing")
    api.write_json(folder / "answer.json", payload)
    api.write_comparison(folder / "answer.html", payload)
    write_parts_csv(folder / "parts.csv", payload)
    sides, change = sides_data(payload), difference_data(payload)
    still = f" Less than 0.1 % of the iteration each: {', '.join(change.still)}." if change.still else ""
    figures = [
        themed_figure(
            "Where the difference goes",
            f"Bars to the right: B takes longer than A.{still}",
            partial(difference_figure, change),
        ),
        themed_figure(
            "Where the time goes",
            f"One {payload['per']} of the slowest worker of each side; hatched work adds no time.",
            partial(breakdown_figure, sides),
            sides.legend,
        ),
    ]
    return JobResult(payload["says"][0], figures, api.render_comparison(payload))


def validate(options: Options, folder: Path, say: Say) -> JobResult:
    """Recorded runs and their predictions: against each other, and the error by configuration. Raises GcnsimError."""
    from gcnsim import api
    from gcnsim.report.figures.validation import errors_data, errors_figure, validation_data, validation_figure

    payload = api.validate(
        options["runs"], options.get("calibration"), measured_compute=options.get("measured_compute", ()), progress=say
    )
    say("drawing")
    api.write_json(folder / "answer.json", payload)
    api.write_validation(folder, payload)
    data, errors = validation_data(payload), errors_data(payload)
    left = f" {errors.left_out} configurations with smaller errors are left out." if errors.left_out else ""
    figures = [
        themed_figure(
            "Predicted against measured",
            "A run on the dotted line is predicted exactly; the whisker is the prediction's 90 % interval, the bar"
            " across it the spread of its configuration's repeats.",
            lambda theme: validation_figure(data, theme).update_layout(showlegend=False),
            JUDGED,
        ),
        themed_figure(
            "Error by configuration",
            f"The bar is the mean of a configuration's runs, the marks are its runs.{left}",
            partial(errors_figure, errors),
            JUDGED,
        ),
    ]
    heading = (
        f"{plural(payload['runs'], 'run')} predicted with a mean absolute error of {100 * payload['mape']:.1f} %,"
        f" bias {100 * payload['bias']:+.1f} %."
    )
    return JobResult(heading, figures, api.render_validation(payload))


FRONT: Final = (
    ("recommended", "recommended", False),
    ("on the front", "compute", False),
    ("no clear difference from it", "other", False),
)
TORNADO: Final = (("knob", "compute", False), ("assumption", "assumption", False))
JUDGED: Final = (("within its interval", "compute", False), ("outside its interval", "exposed", False))

JOBS: Final[Mapping[str, Callable[[Options, Path, Say], JobResult]]] = {
    "compare": compare,
    "recommend": recommend,
    "sweep": sweep,
    "timeline": timeline,
    "validate": validate,
}
