"""`gcnsim what-if` and `gcnsim recommend`: parse, call the API, print."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from gcnsim.cli.outputs import check_outputs, notice, overwrite_option, progress, scenario_files, show_and_write
from gcnsim.cli.questions import GROUPS, RARE, GroupedWithFaults, columns_option, files_read, question_options
from gcnsim.core.errors import ScenarioError
from gcnsim.core.help_groups import GroupedCommand
from gcnsim.scenario.question import given_options
from gcnsim.scenario.recommend import Recommend
from gcnsim.scenario.what_if import WhatIf

if TYPE_CHECKING:
    from gcnsim import api
    from gcnsim.results import LeftOutRow
    from gcnsim.results import WhatIf as Told


class Shown:
    """How the answer is printed: the columns, and how much of the answer."""

    def __init__(
        self,
        wide: bool,
        columns: list[str] | None,
        explain: bool,
        sort: str | None,
        top: int | None,
    ) -> None:
        """Raises ScenarioError for an unknown column, before anything is simulated."""
        if columns is not None:
            from gcnsim.report.answer.columns import checked

            checked(columns)
        if sort is not None:
            from gcnsim.report.answer.rows import checked_order

            checked_order(sort)
        self.options: dict[str, Any] = {
            "wide": wide,
            "columns": columns,
            "explain": explain,
            "sort": sort,
            "top": top,
        }

    def text(self, answer: Told) -> str:
        """Return the answer as text for a terminal."""
        from gcnsim.report.answer.table import render_table

        return render_table(answer, **self.options)


@click.command("what-if", cls=GroupedWithFaults, groups=GROUPS, rare=RARE)
@click.argument("scenario", required=False, type=click.Path())
@question_options(WhatIf)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON (schema gcnsim.what-if/1).")
@click.option("--wide", is_flag=True, help="Print every column, even if lines get long.")
@columns_option("Print these columns (see docs/cli.md).")
@click.option("--sort", metavar="COLUMN", help="Sort rows by this column; -COLUMN: largest first.")
@click.option(
    "--top", type=click.IntRange(min=1), help="Print at most this many rows.  [default: all up to 12, else 10]"
)
@click.option(
    "--explain", is_flag=True, help="Print also reasons, all steps, sources, and the effect of each assumption."
)
@click.option("--csv", type=click.Path(), help="Write the rows to a CSV file.")
@click.option("--html", type=click.Path(), help="Write one page that needs no server: table, figures, timeline.")
@click.option(
    "--timeline", type=click.Path(), help="Write the recommended setting's run for Perfetto or chrome://tracing."
)
@click.option("--timeline-detail", is_flag=True, help="In --timeline: a track per stream, not per kind of work.")
@overwrite_option
def what_if(
    scenario: str | None,
    as_json: bool,
    wide: bool,
    columns: list[str] | None,
    explain: bool,
    sort: str | None,
    top: int | None,
    csv: str | None,
    html: str | None,
    timeline: str | None,
    timeline_detail: bool,
    **question: Any,
) -> None:
    """Predict an iteration, its bottleneck, and the gain from each knob.

    SCENARIO is a file to start from; options replace its fields. Options marked (list) take values separated by
    commas: a row for every combination.

    To find a recommendation, what-if also considers other values of each method's tau, sampling rate and cache. It
    simulates those with the best estimates ("7 settings tried"). The table shows your rows and the recommended setting.
    Starting from the recommended setting, Next steps (and No effect, with --explain) list one further step for each
    knob: the method's own knobs, bandwidth, servers, GPU, PCIe or NVLink, transport, host cores, sampler threads,
    partition.

    \b
    Examples:
      gcnsim what-if --bandwidth 15Gbps --gpus 6
      gcnsim what-if --graph amazon_cs.npz --gpus 4 --bandwidth 1Gbps --tau 0,1,2 --epsilon 0.1,1
    """
    if timeline_detail and timeline is None:
        raise ScenarioError("--timeline-detail: describes the file of --timeline; allowed: with --timeline FILE")
    read = [*files_read(WhatIf, question), *(scenario_files(scenario) if scenario else [])]
    check_outputs(*read, csv=csv, html=html, timeline=timeline)
    shown = Shown(wide, columns, explain, sort, top)
    from gcnsim import api

    given = given_options(WhatIf, question)
    with progress() as say:
        answer = api.what_if(scenario, **given, progress=say, notice=notice)
    text = json.dumps(answer.payload, indent=2, allow_nan=False) if as_json else shown.text(answer.told)
    notes = [_left_out(item) for item in answer.told.left_out or ()]
    with progress() as say:
        show_and_write(text, *_writes(answer, csv, html, timeline, timeline_detail, say), notes=notes)


def _writes(
    answer: api.Answer,
    csv: str | None,
    html: str | None,
    timeline: str | None,
    detail: bool,
    say: Callable[[str], None],
) -> Iterator[Callable[[], object]]:
    """Return the functions that write the requested files."""
    if csv:
        yield lambda: answer.to_csv(csv)
    if html:
        yield lambda: answer.to_html(html, say)
    if timeline:
        yield lambda: answer.to_timeline(timeline, detail=detail)


def _left_out(row: LeftOutRow) -> str:
    setting = f" ({row.setting})" if row.setting else ""
    return f"{row.method}{setting} left out: {row.reason}"


@click.command("recommend", cls=GroupedCommand, groups=GROUPS, rare=RARE)
@question_options(Recommend)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema gcnsim.recommend/1).")
@click.option("--out", type=click.Path(), help="Write the JSON to a file, too.")
@click.option("--csv", type=click.Path(), help="Write the table to a CSV file.")
@click.option("--html", type=click.Path(), help="Write an offline page with figures.")
@overwrite_option
def recommend(as_json: bool, out: str | None, csv: str | None, html: str | None, **question: Any) -> None:
    """Search hundreds of machines and settings for one that meets a target.

    A recommended setting meets the target with a chance of at least --confidence. Its sampling rate
    is at least --min-sampling-rate and its tau at most --max-staleness, unless the iterations of each method
    are known (--runs, --iterations-needed METHOD=N).

    \b
    Examples:
      gcnsim recommend --dataset reddit --target-iteration 0.5s
      gcnsim recommend --device t4,a10g --gpus 2,4,8 --minimise time --budget 500USD/month
    """
    check_outputs(*files_read(Recommend, question), out=out, csv=csv, html=html)
    from gcnsim import api

    given = given_options(Recommend, question)
    with progress() as say:
        recommendation = api.recommend(**given, progress=say, notice=notice)
    text = json.dumps(recommendation.payload, indent=2, allow_nan=False) if as_json else str(recommendation)
    writes: list[Callable[[], object]] = [lambda: api.write_json(out, recommendation.payload)] if out else []
    if csv:
        writes.append(lambda: recommendation.to_csv(csv))
    with progress() as say:
        if html:
            writes.append(lambda: recommendation.to_html(html, say))
        show_and_write(text, *writes)
