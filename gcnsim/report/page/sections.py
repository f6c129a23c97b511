"""Pages of several figures: a simulated scenario, a comparison, a recommendation. Each starts with its answer.

Timelines of one steady iteration also form a page, with a table of the spans of each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gcnsim.core.atomic import write_csv
from gcnsim.core.errors import plural
from gcnsim.core.units import format_bytes, format_fraction, format_seconds, range_text
from gcnsim.evidence.difference import PARTS
from gcnsim.planning.capacity_goal import money, percent
from gcnsim.report.answer import rows as provenance
from gcnsim.report.answer.rows import plain
from gcnsim.report.answer.sentences import label_of, limit_text
from gcnsim.report.comparison import times
from gcnsim.report.figures.breakdown import (
    MOST_BARS,
    BreakdownData,
    breakdown_figure,
    difference_data,
    difference_figure,
    parts_data,
    rows_data,
    sides_data,
)
from gcnsim.report.figures.convergence import convergence_figure, convergence_of_runs
from gcnsim.report.figures.curves import Curve, curve_data, curve_figure
from gcnsim.report.figures.front import OF, front_data, front_figure
from gcnsim.report.figures.links import links_data, links_figure, pairs_figure
from gcnsim.report.figures.memory import memory_data, memory_figure
from gcnsim.report.figures.style import line_legend
from gcnsim.report.figures.timeline import TimelineData, pairs_of_result, timeline_figure, timeline_of_result
from gcnsim.report.figures.tornado import tornado_figure, tornado_of_advice
from gcnsim.report.page.templates import Sheet, write_page
from gcnsim.report.recommended import reasons, shown_points, uncertain
from gcnsim.results import Advice, PointReport, Row, SimulationReport, to_plain

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from gcnsim.simulation import Result

Legend = Sequence[tuple[str, str, bool]]

MOST_OPTIONS: Final = 6
"""Options of a recommendation whose time is drawn by part."""


class Section(NamedTuple):
    """A section of a page. legend: names, colours of a theme, whether hatched; lines: names, colours and dashes;
    folded: shown on request.
    """

    title: str
    drawn: Figure | None
    caption: str
    legend: Legend = ()
    sheet: Sheet | None = None
    lines: Sequence[tuple[str, str, str]] = ()
    folded: bool = False


def write_simulation(path: str | Path, report: SimulationReport, result: Result) -> None:
    """Write a simulated scenario as a page. Raises FileError."""
    row = report.result
    time = f"{format_seconds(row.iteration_s)}{range_text(row.iteration_s_low, row.iteration_s_high)}"
    title = plain(f"{report.scenario['name']}: {row.method}, {provenance.knobs_of(row)}")
    write_report(
        path,
        title=title,
        label=label_of(report),
        heading=f"One iteration takes {time}; what limits it: {limit_text(row)}.",
        warned=provenance.warnings_of(report),
        said=_run_pairs(report),
        parts=[*_where_time_goes(report), _timeline(row, result), *_carried(report, result), *_memory(report)],
        provenance=provenance.provenance_of(report),
    )


def _run_pairs(report: SimulationReport) -> list[tuple[str, str]]:
    row = report.result
    speed = "not known" if row.speedup_vs_full_graph is None else f"{row.speedup_vs_full_graph:.2f} times"
    return [
        ("machine", plain(f"{row.gpus} x {row.device}")),
        ("epoch", f"{format_seconds(row.epoch_s)}, {row.iterations_per_epoch} iterations"),
        ("computes", f"{format_fraction(row.compute_s / row.iteration_s)} of the iteration"),
        ("speed-up over full-graph", speed),
        ("cache hits", format_fraction(row.cache_hit_rate)),
    ]


def _where_time_goes(report: SimulationReport) -> list[Section]:
    if not report.workers:
        return []
    named = [
        (f"worker {worker.worker}" + (" (sets the pace)" if worker.worker == report.slowest else ""), worker)
        for worker in sorted(report.workers, key=lambda worker: worker.worker != report.slowest)[:MOST_BARS]
    ]
    data = parts_data(named)
    caption = (
        "One iteration of each worker: how long it computes, and how long it waits for each cause. The hatched bar is"
        " communication that overlaps and adds no time."
    )
    return [Section("Where the time goes", breakdown_figure(data), caption, data.legend)]


def _timeline(row: Row, result: Result) -> Section:
    data = timeline_of_result(result, row.limited_by)
    return Section("Timeline", timeline_figure(data), caption_of(data), data.legend, folded=True)


def _carried(report: SimulationReport, result: Result) -> list[Section]:
    carried = []
    if report.links:
        data = links_data(report.links)
        left = f" {data.left_out} less busy ones are left out." if data.left_out else ""
        caption = f"The share of an iteration in which each link is busy, and its bytes.{left}"
        rows = [(bar.name, format_bytes(bar.nbytes), format_fraction(bar.share)) for bar in data.bars]
        sheet = Sheet("Links per iteration", [("link", "k"), ("bytes", "n"), ("busy", "n")], rows)
        carried.append(Section("Links", links_figure(data), caption, (), sheet))
    pairs = pairs_of_result(result)
    if pairs.nbytes.any():
        caption = "Bytes that each worker sends to each other worker in an iteration."
        carried.append(Section("Bytes per pair of workers", pairs_figure(pairs), caption, folded=True))
    return carried


def _memory(report: SimulationReport) -> list[Section]:
    if report.memory is None:
        return []
    data = memory_data(report.memory)
    caption = "Memory use of each worker's GPU at the peak of an iteration; the vertical mark is the GPU's memory."
    return [Section("Memory", memory_figure(data), caption, data.legend)]


def write_comparison_page(path: str | Path, payload: Mapping[str, Any]) -> None:
    """Write the payload of `gcnsim.compare/1` as a page. Raises FileError."""
    heads = [("part", "t"), ("A", "n"), ("B", "n"), ("difference", "n")]
    whole = payload["iteration_s"]
    rows = [(payload["per"], *times(whole))]
    rows += [("· " * bool(part["within"]) + PARTS[part["part"]], *times(part)) for part in payload["parts"]]
    sides = [(key.upper(), plain(f"{payload[key]['label']}: {payload[key]['setting']}")) for key in "ab"]
    differs = [
        (difference["field"], plain(f"{difference['a']} | {difference['b']}")) for difference in payload["differs"]
    ]
    write_report(
        path,
        title=plain(f"{payload['a']['label']} compared with {payload['b']['label']}"),
        heading=plain(payload["says"][0]),
        warned=[plain(note) for note in payload["notes"]],
        said=[*sides, *differs, *(("also", plain(text)) for text in payload["says"][1:])],
        parts=[
            *comparison_sections(payload),
            Section("Numbers", None, "", (), Sheet(f"Seconds per {payload['per']}", heads, rows)),
        ],
    )


def comparison_sections(payload: Mapping[str, Any]) -> list[Section]:
    """The figures of a comparison: the difference by part, the time of each side, and what runs learned."""
    change, data = difference_data(payload), sides_data(payload)
    still = f" Less than 0.1 % of the {change.per} each: {', '.join(change.still)}." if change.still else ""
    caption = f"One {payload['per']} of the slowest worker of each side; hatched work adds no time."
    sections = [
        Section(
            "Where the difference goes", difference_figure(change), f"Bars to the right: B takes longer than A.{still}"
        ),
        Section("Where the time goes", breakdown_figure(data), caption, data.legend),
    ]
    learned = convergence_of_runs(payload)
    if learned is not None:
        caption = "Validation accuracy of the recorded runs by the seconds of their iterations, without evaluation."
        lines = line_legend(learned.styled())
        sections.append(Section("Accuracy against time", convergence_figure(learned), caption, lines=lines))
    return sections


def write_advice(path: str | Path, advice: Advice, curve: Curve, result: Result) -> None:
    """Write a recommendation as a page, with the time of the choice by bandwidth (`curve`) and its timeline.

    result: the simulated run of the choice. Raises FileError.
    """
    sources = to_plain(advice.provenance)
    apart = ("assumptions", "measured", "bounds", "warnings", "graph", "like_questions")
    caption = (
        "The recommended setting if only the bandwidth of the network cards changed; the band is the 90 % interval, the"
        " dotted line the bandwidth of the machine. Where the line is flat, more bandwidth does not help."
    )
    write_report(
        path,
        title=plain(f"{advice.choice.row.dataset}: {advice.goal.text}"),
        label=advice.label,
        heading=plain(advice.verdict),
        warned=[plain(text) for text in advice.provenance.warnings],
        said=[(name, plain(text)) for name, text in reasons(advice)],
        parts=[
            *advice_sections(advice),
            Section("Iteration time against bandwidth", curve_figure(curve_data(curve)), caption),
            _timeline(advice.choice.row, result),
        ],
        provenance=[
            ("graph", plain(sources["graph"]["text"])),
            *((name.replace("_", " "), plain(text)) for name, text in sources.items() if name not in apart),
        ],
    )


def advice_sections(advice: Advice) -> list[Section]:
    """The figures of a recommendation: its options, where their time goes, what moves the time."""
    data, tornado = front_data(advice), tornado_of_advice(advice)
    left = f" {data.unpriced} without a price are left out." if data.unpriced else ""
    caption = (
        "Options that nothing clearly beats, with their 90 % intervals and their numbers in the table; the star is the"
        f" recommended one, diamonds show no clear difference from a better one.{left}"
    )
    drawn = front_figure(data) if data.options else None
    sections = [Section("Time against cost", drawn, caption, data.legend, options_sheet(advice))]
    bars = _options_data(advice)
    caption = "One iteration of the recommended option and of the fastest others; hatched work adds no time."
    sections.append(Section("Where the time goes", breakdown_figure(bars), caption, bars.legend))
    if tornado.swings:
        caption = "The time if one thing alone were at either end of its range; the line is the time of the answer."
        kinds = [("knob", "compute", False), ("assumption", "assumption", False)]
        sections.append(Section("What moves the time", tornado_figure(tornado), caption, kinds))
    return sections


def _options_data(advice: Advice) -> BreakdownData:
    """The breakdown of the choice and of the first options in the table, by their numbers there."""
    numbered = list(enumerate(shown_points(advice)[0], 1))
    numbered.sort(key=lambda item: item[1].name != advice.choice.name)
    shown = numbered[:MOST_OPTIONS]
    data = rows_data([point.row for _, point in shown])
    bars = [
        replace(
            bar,
            method=str(number),
            setting=plain(f"{' '.join((point.row.method, *point.row.knobs))} on {point.machine}"),
            recommended=point.name == advice.choice.name,
        )
        for bar, (number, point) in zip(data.bars, shown, strict=True)
    ]
    return replace(data, bars=tuple(bars))


def options_sheet(advice: Advice) -> Sheet:
    """The first options of a recommendation as a table, the fastest first, numbered as its figure numbers them."""
    times, of = OF[advice.compared]
    chances = uncertain(advice)
    heads = [("number", "n"), ("machine and setting", "t"), ("time", "n"), ("90 % interval", "n")]
    heads += [(f"cost of {of} ({advice.goal.currency})", "n")]
    heads += [("chance of meeting the target", "n")] if chances else []
    points, more = shown_points(advice)
    rows = [
        (str(number), *_option(point, times), *([percent(point.chance)] if chances else []))
        for number, point in enumerate(points, 1)
    ]
    marked = [index for index, point in enumerate(points) if point.name == advice.choice.name]
    others = f"; {more} more options are in CSV and JSON" if more else ""
    return Sheet(f"Time of {advice.compared}, and cost{others}", heads, rows, marked)


def _option(point: PointReport, times: float) -> tuple[str, ...]:
    name = plain(f"{point.machine}, {' '.join((point.row.method, *point.row.knobs))}")
    cost = "not known" if point.cost is None else money(times * point.cost)
    ends = range_text(point.seconds_low, point.seconds_high).strip(" ()") or "not known"
    return name, format_seconds(point.seconds), ends, cost


def write_report(path: str | Path, **facts: Any) -> None:
    """Write a page of sections. facts: title, heading and parts; label, warned, said and provenance where there are.

    Raises FileError.
    """
    write_page(path, "report.html.j2", **({"label": "", "warned": (), "said": (), "provenance": ()} | facts))


CSV_HEAD = ("timeline", "iteration", "row", "kind", "start_s", "end_s", "what")


class DrawnTimeline(NamedTuple):
    """A timeline and its label: `measured` or `predicted`."""

    name: str
    data: TimelineData


def caption_of(data: TimelineData) -> str:
    """A description of what a timeline shows."""
    left = f" {plural(data.workers_left_out, 'more worker')} left out." if data.workers_left_out else ""
    links = " then a row per link, the stronger its colour the busier;" if data.links else ""
    bold = [f"the slowest worker, {data.slowest}"] if data.shows_slowest else []
    bold += [f"what limits the iteration: {data.limits_text}"] if data.limits else []
    marked = f" Bold: {', and '.join(bold)}." if bold else ""
    hidden = "" if data.slowest is None or data.shows_slowest else f" The slowest worker, {data.slowest}, is hidden."
    return (
        f"Iteration {data.iteration}, {format_seconds(data.length_s)}: a row per worker and kind of work;{links}"
        f" point at a block to read what it is and what it waited for, drag to zoom in.{marked}{hidden}{left}"
    )


def timeline_sections(timelines: Sequence[DrawnTimeline]) -> list[Section]:
    """Timelines as figures with equal time axes."""
    until = max(timeline.data.length_s for timeline in timelines)
    return [
        Section(
            timeline.name.capitalize(),
            timeline_figure(timeline.data, until_s=until),
            caption_of(timeline.data),
            timeline.data.legend,
        )
        for timeline in timelines
    ]


def write_timelines(path: str | Path, heading: str, timelines: Sequence[DrawnTimeline]) -> None:
    """Write timelines as one offline page with equal time axes. Raises FileError."""
    write_report(path, title=plain(heading), heading=plain(heading), parts=timeline_sections(timelines))


def write_timelines_csv(path: str | Path, timelines: Sequence[DrawnTimeline]) -> None:
    """Write one line per block of the timelines: seconds from the start of the iteration. Raises FileError."""
    rows = []
    for name, data in timelines:
        for block in data.blocks:
            what = "; ".join(line.strip() for line in block.hover_text.splitlines())
            rows.append(
                (name, data.iteration, data.rows[block.row], str(block.phase), block.start_s, block.end_s, what)
            )
    write_csv(path, CSV_HEAD, rows)
