"""The results of the pages' jobs: a sentence, the sections of the same pages offline, and files to download."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import GcnsimError, plural
from gcnsim.core.units import format_seconds, range_text
from gcnsim.dashboard.context import Context, machine_text, of_comparison, of_run, of_validation, setting_text
from gcnsim.dashboard.state import PageQuestion, moved
from gcnsim.hardware import instance_of
from gcnsim.methods import has_knob
from gcnsim.report.answer.rows import plain
from gcnsim.results import PointReport, TargetRow
from gcnsim.scenario import Scenario, to_mapping
from gcnsim.scenario.train_command import train_script

if TYPE_CHECKING:
    from gcnsim.report.page.sections import Section

Say = Callable[[str], None]
Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a page shows of its job. heading: the answer in a sentence; context: what it is of; text: as the command
    line prints it; links: of each row of the first table the page that answers it; warnings: what to read before.
    """

    heading: str
    sections: Sequence[Section] = ()
    text: str = ""
    context: Context | None = None
    links: Sequence[str | None] = ()
    warnings: Sequence[str] = ()

    @property
    def shown(self) -> list[dict[str, Any]]:
        """The sections as plain data, their figures in the light theme."""
        return [
            section._asdict()
            | {
                "drawn": None if section.drawn is None else json.loads(section.drawn.to_json()),
                "sheet": None if section.sheet is None else section.sheet._asdict(),
            }
            for section in self.sections
        ]

    @property
    def texts(self) -> dict[str, Any]:
        """The texts as plain data."""
        lists = [("Warnings", list(map(plain, self.warnings)))]
        texts = {"heading": self.heading, "context": self.context, "text": self.text}
        return texts | {"links": list(self.links), "lists": lists}


def write_setting(folder: Path, scenario: Scenario, training: TargetRow | None = None) -> None:
    """Write a setting as the scenario file that `gcnsim simulate` and Compare take, where it names no path of here, and
    as the script that trains it, where it can be trained: for as many iterations and with as many checkpoints as
    `training` says, if that is known."""
    text = json.dumps(to_mapping(scenario), indent=1)
    script = train_script(scenario, None if training is None else training.iterations, _checkpoint_every(training))
    files = {"scenario.yaml": None if f'"{os.sep}' in text else text}
    files["train.sh"] = None if script is None or f" {os.sep}" in script else script
    for name, content in files.items():
        if content is not None:
            with atomic_write(folder / name, text=True) as file:
                file.write(content + "\n")


def _checkpoint_every(training: TargetRow | None) -> int | None:
    """Iterations between checkpoints; None where failures were not asked for or no checkpoint is best."""
    if training is None or training.failures is None or not training.seconds or training.iterations is None:
        return None
    every_s = training.failures.checkpoint_every_s
    return None if every_s is None else max(1, round(every_s * training.iterations / training.seconds))


def sweep(options: Options, folder: Path, say: Say) -> JobResult:
    """The points of a sweep that pass the filters, best first: CSV, JSON and a page. Raises GcnsimError."""
    import pyarrow as pa

    from gcnsim import api
    from gcnsim.report.result import write_points

    say("reading the points")
    found = api.open_sweep(options["folder"])
    order = {"by": options["by"], "descending": options["descending"], "where": options["where"]}
    table = pa.Table.from_pylist(found.best(None, **order), found.folder.schema)
    for suffix in ("csv", "json"):
        write_points(folder / f"points.{suffix}", table)
    say("drawing the page")
    found.to_html(folder / "points.html", **order)
    return JobResult("")


def timeline(options: Options, folder: Path, say: Say) -> JobResult:
    """One steady iteration of a setting, or of a recorded run with its prediction. Raises GcnsimError."""
    from gcnsim import api
    from gcnsim.planning.certainty import label_of
    from gcnsim.report.figures.timeline import timeline_of_result
    from gcnsim.report.page.sections import DrawnTimeline, timeline_sections, write_timelines, write_timelines_csv

    if "run" in options:
        run_timeline = api.run_timeline(options["run"], options["calibration"], say, options["measured_compute"])
        say("drawing")
        shown = [DrawnTimeline(name, data) for name, data in run_timeline.data(options["worker"]).items()]
        heading = run_timeline.reason
        if not heading:
            measured, predicted = run_timeline.times().values()
            heading = (
                f"{options['name']}: {format_seconds(measured)} an iteration measured, {format_seconds(predicted)}"
                f" predicted ({100 * (predicted / measured - 1):+.1f} %)."
            )
        context = of_run(run_timeline.title, options["calibration"])
        run_timeline.write(folder / "timeline.json")
    else:
        result, row = api.setting_run(say, **options["setting"])
        say("drawing")
        shown = [DrawnTimeline("predicted", timeline_of_result(result, row.limited_by, options["worker"]))]
        ends = range_text(row.iteration_s_low, row.iteration_s_high)
        time = f"{format_seconds(row.iteration_s)} an iteration{ends}"
        heading = f"{setting_text(row)}: {time}; limited by {row.limited_by}."
        machine = machine_text(row, result.scenario.cluster.servers, options["setting"].get("host", ""))
        context = Context(label_of(result.scenario), f"{machine} at {row.bandwidth}")
        write_setting(folder, result.scenario)
        api.write_timeline(result, folder / "timeline.json")
    write_timelines(folder / "timeline.html", heading, shown)
    write_timelines_csv(folder / "timeline.csv", shown)
    return JobResult(heading, timeline_sections(shown), context=context)


def recommend(options: Options, folder: Path, say: Say) -> JobResult:
    """A recommendation: time against cost, and the sensitivity of the time. Raises GcnsimError."""
    from gcnsim import api
    from gcnsim.report.page.sections import advice_sections
    from gcnsim.report.recommended import shown_points

    prices = api.PriceBook.of(**options["prices"]) if "prices" in options else None
    found = api.recommend(**{**options, "prices": prices}, progress=say)
    say("drawing")
    api.write_json(folder / "answer.json", found.payload)
    write_setting(folder, found.chosen.scenario, found.told.training)
    found.to_csv(folder / "options.csv")
    found.to_html(folder / "answer.html", progress=say)
    choice = found.told.choice
    ends = range_text(choice.seconds_low, choice.seconds_high)
    context = Context(
        found.told.label,
        plain(f"{choice.row.dataset}: {found.told.goal.text}; {choice.name}: {format_seconds(choice.seconds)}{ends}"),
    )
    links = [
        None if options.get("dataset") is None else what_if_address(point, options)
        for point in shown_points(found.told)[0]
    ]
    first, *others = advice_sections(found.told)
    hint = " Click a numbered point, or its number, for its answer." if any(links) else ""
    sections = [first._replace(caption=first.caption + hint), *others]
    return JobResult(found.told.verdict, sections, str(found), context, links, found.told.provenance.warnings)


def what_if_address(point: PointReport, options: Options) -> str | None:
    """The What-if page of an option of a question; None where no page asks it."""
    row = point.row
    knobs = {
        "tau": row.tau,
        "epsilon": row.epsilon,
        "cache": round(100 * row.cache_fraction, 4),
        "rate": f"{row.rate:g}",
    }
    try:
        question = moved(
            PageQuestion(),
            dataset=row.dataset,
            device=row.device,
            gpus=row.gpus,
            bandwidth=row.bandwidth_bytes_per_s * 8 / 1e9,
            methods=[row.method],
            host=point.host or "",
            gpus_per_server=_per_server(point),
            **{name: value for name, value in knobs.items() if has_knob(row.method, name)},
            **{name: options[name] for name in ("link", "pcie", "nvlink") if name in options},
        )
    except GcnsimError:
        return None
    return f"/{question.address()}"


def _per_server(point: PointReport) -> str:
    """GPUs in each server of an instance type; empty for the usual number."""
    instance = None if point.host is None else instance_of(point.host)
    if instance is None:
        return ""
    return str(point.row.gpus if point.servers == 1 else instance.gpus)


def compare(options: Options, folder: Path, say: Say) -> JobResult:
    """Two iterations: the time of each by part, and the difference by part. Raises GcnsimError."""
    from gcnsim import api
    from gcnsim.report.comparison import write_parts_csv
    from gcnsim.report.page.sections import comparison_sections

    found = api.compare(options["a"], options["b"], progress=say)
    # The sides are called what the page's user called them.
    for key in "ab":
        found[key]["label"] = options["names"][key]
    say("drawing")
    api.write_json(folder / "answer.json", found)
    api.write_comparison(folder / "answer.html", found)
    write_parts_csv(folder / "parts.csv", found)
    return JobResult(found["says"][0], comparison_sections(found), api.render_comparison(found), of_comparison(found))


def validate(options: Options, folder: Path, say: Say) -> JobResult:
    """Recorded runs and their predictions: against each other, and the error by configuration. Raises GcnsimError."""
    from gcnsim import api
    from gcnsim.report.evidence import validation_sections

    found = api.validate(
        options["runs"], options.get("calibration"), measured_compute=options.get("measured_compute", ()), progress=say
    )
    say("drawing")
    api.write_json(folder / "answer.json", found)
    api.write_validation(folder, found)
    heading = (
        f"{plural(found['runs'], 'run')} predicted with a mean absolute error of {100 * found['mape']:.1f} %,"
        f" bias {100 * found['bias']:+.1f} %."
    )
    return JobResult(heading, validation_sections(found), api.render_validation(found), of_validation(found))


JOBS: Final[Mapping[str, Callable[[Options, Path, Say], JobResult]]] = {
    "compare": compare,
    "recommend": recommend,
    "sweep": sweep,
    "timeline": timeline,
    "validate": validate,
}
