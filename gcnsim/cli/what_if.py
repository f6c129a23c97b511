"""`gcnsim what-if`: the main job. Parse, call, print."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from gcnsim.cli.completing import complete
from gcnsim.cli.faults import WithFaults
from gcnsim.cli.ids import HELP
from gcnsim.cli.outputs import MEASURED, check_outputs, machine_files, overridden, scenario_files, show_and_write
from gcnsim.cli.pricing import price_book, price_options
from gcnsim.cli.progress import notice, progress
from gcnsim.errors import ScenarioError, UnitError
from gcnsim.graph import IDS
from gcnsim.methods import COMPARED
from gcnsim.units import fraction

if TYPE_CHECKING:
    from gcnsim import api
    from gcnsim.results import LeftOutRow, WhatIf


class Values(click.ParamType[list[Any]]):
    """One value or several, separated by commas, each read by `kind`."""

    def __init__(self, name: str, kind: Callable[[str], Any], allowed: str) -> None:
        self.name = name
        self.kind = kind
        self.allowed = allowed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The values as a list. Raises ScenarioError naming the option and the value."""
        option = f"--{self.name}"
        values = []
        for text in str(value).split(","):
            try:
                values.append(self.kind(text.strip()))
            except ValueError:
                raise ScenarioError(f"{option}: {text.strip()!r} is not {self.allowed}") from None
        return values


class Share(click.ParamType[float]):
    """A share of one, written with its unit."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share. Raises UnitError naming the option."""
        try:
            return fraction(value)
        except UnitError as error:
            raise UnitError(f"--target-accuracy: {error}") from None


class Needed(click.ParamType[tuple[str, int]]):
    """METHOD=N: iterations that a method is given to reach an accuracy."""

    name = "needed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """The method and its iterations. Raises ScenarioError naming the option."""
        method, _, count = str(value).partition("=")
        try:
            return method.strip(), _whole(count.strip())
        except ValueError:
            raise ScenarioError(f"--target-iterations: {value!r} is not METHOD=N, N a whole number") from None


def _text(text: str) -> str:
    if not text:
        raise ValueError
    return text


class Shown:
    """How the answer is printed: which columns, and how much of what it rests on."""

    def __init__(
        self,
        wide: bool,
        columns: list[str] | None,
        provenance: bool,
        assumptions: bool,
        sort: str | None,
        top: int | None,
    ) -> None:
        """Raises ScenarioError for a column that there is not: before anything is simulated."""
        if columns is not None:
            from gcnsim.report.answer.columns import checked

            checked(columns)
        if sort is not None:
            from gcnsim.report.answer.rows import checked_order

            checked_order(sort)
        self.options: dict[str, Any] = {
            "wide": wide,
            "columns": columns,
            "provenance": provenance,
            "assumptions": assumptions,
            "sort": sort,
            "top": top,
        }

    def text(self, answer: WhatIf) -> str:
        """The answer for a terminal."""
        from gcnsim.report.answer.table import render_table

        return render_table(answer, **self.options)


Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def _whole(text: str) -> int:
    """Decimal digits and a sign: what `int` reads besides (6_0, other scripts) is a slip here."""
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError
    return int(text)


def rule_options(command: Callable[..., None]) -> Callable[..., None]:
    """How approximate a setting may be that is recommended."""
    staler = click.option(
        "--max-staleness", type=int, help="Most iterations of staleness that may be recommended.  [default: 2]"
    )
    less = click.option(
        "--min-sampling-rate", type=float, help="Least sampling rate that may be recommended.  [default: 0.1]"
    )
    return less(staler(command))


def option(name: str, kind: Callable[[str], Any], allowed: str, text: str, default: str | None = None) -> Decorator:
    """An option that takes a list: a row each."""
    values = Values(name, kind, allowed)
    shown = default is not None
    return click.option(
        f"--{name}",
        type=values,
        default=default,
        show_default=shown,
        help=text,
        shell_complete=complete,
    )


def named(name: str, text: str) -> Decorator:
    """An option that takes a name, which a shell completes."""
    return click.option(f"--{name}", shell_complete=complete, help=text)


def size_options(command: Callable[..., None]) -> Callable[..., None]:
    """A graph by its sizes, and the widths of any."""
    known = (
        click.option("--nodes", metavar="COUNT", help="A graph by its sizes: so many nodes, 3M or 2500000."),
        click.option("--edges", metavar="COUNT", help="Its undirected edges, each counted once, e.g. 117M."),
        click.option("--features", type=int, help="Input features per node.  [default: the data's, else 128]"),
        click.option("--classes", type=int, help="Width of the output.  [default: the data's, else 16]"),
        click.option(
            "--train", metavar="SHARE", help="Nodes that train, for mini-batches.  [default: the data's, else 65%]"
        ),
    )
    for each in reversed(known):
        command = each(command)
    return command


def sizes_of(question: dict[str, Any]) -> dict[str, Any]:
    """What of `question` says a graph's sizes, taken out of it."""
    given = {name: question.pop(name) for name in ("nodes", "edges", "features", "classes", "train")}
    return {name: value for name, value in given.items() if value is not None}


@click.command("what-if", cls=WithFaults)
@click.argument("scenario", required=False, type=click.Path())
@click.option(
    "--dataset", shell_complete=complete, help="Built-in dataset (gcnsim catalog list datasets).  [default: reddit]"
)
@click.option("--graph", type=click.Path(), help="Your own graph file instead: partitioned, sampled and replayed.")
@click.option("--ids", type=click.Choice(IDS), help=f"{HELP}  [default: {IDS[0]}]")
@size_options
@option("gpus", _whole, "a whole number", "GPUs, one worker each (list).  [default: 6]")
@option("gpus-per-server", _whole, "a whole number", "GPUs in a server, the last the rest (list).  [default: 2]")
@option("device", _text, "a device", "GPU of the catalogue, or a file (list).  [default: the host's, else t4]")
@option("host", _text, "a host", "Server of the catalogue, or a file: its CPU; GPUs and NIC where not given (list).")
@click.option("--calibration", type=click.Path(), help="Calibration record of the device (gcnsim calibrate).")
@click.option("--measured-compute", type=click.Path(), help=MEASURED)
@option(
    "bandwidth",
    _text,
    "a bandwidth",
    "NIC of a server: 15Gbps, 10GbE, a link (list).  [default: the host's, else 15Gbps]",
)
@option("method", _text, "a method", f"all, or methods of the catalogue (list).  [default: {','.join(COMPARED)}]")
@option(
    "allow", _text, "a method", "Methods that may be recommended (list).  [default: those named, else those compared]"
)
@rule_options
@option("tau", _whole, "a whole number of iterations", "Staleness in iterations (list).  [default: 2]")
@option("epsilon", _text, "a share (0.1 or 10%)", "Sampling rate (list).  [default: 0.1]")
@option("cache", _text, "a share (30% or 0.3) or bytes (2GiB)", "Layer-0 feature cache per GPU (list).  [default: 0%]")
@option("rate", _text, "a share (0.1 or 10%)", "Share of boundary nodes drawn, bns-gcn (list).  [default: 0.1]")
@named("cache-policy", "inclusion, degree or random.  [default: inclusion]")
@click.option("--norms", type=click.Path(), help="Node norms from a training run; variance-reduced sampling uses them.")
@named("model", "gcn or graphsage.  [default: the dataset's, else gcn]")
@click.option("--layers", type=int, help="Graph convolutions.  [default: the dataset's, else 4]")
@click.option("--hidden", type=int, help="Hidden width.  [default: the dataset's, else 256]")
@click.option("--target-accuracy", type=Share(), help="Time and cost to this validation accuracy, e.g. 90%.")
@click.option("--runs", multiple=True, type=click.Path(), help="Recorded run to take iterations from (repeatable).")
@click.option(
    "--target-iterations",
    multiple=True,
    type=Needed(),
    metavar="METHOD=N",
    help="Published or assumed iterations to it, for methods without a run (repeatable).",
)
@price_options
@click.option("--iterations", type=int, help="Sampled graphs recorded, iterations measured.  [default: 30]")
@click.option("--seed", type=int, help="Seed of every random draw.  [default: 0]")
@click.option("--processes", type=click.IntRange(min=1), help="Processes to use.  [default: one per core]")
@click.option(
    "--measured",
    multiple=True,
    metavar="[METHOD=]TIME",
    help="What you measured, 640ms or the path of a run or trace, beside the prediction (repeatable).",
)
@click.option("--partition-seeds", type=int, default=0, help="Try so many METIS seeds on your own graph.")
@click.option(
    "--payload",
    shell_complete=complete,
    help="Boundary rows travel as fp16, bf16, int8, int4 or int2.  [default: fp32]",
)
@named("fidelity", "exact, or coarse sharing of links.  [default: auto, coarse from 192 GPUs]")
@click.option("--max-wait", metavar="TIME", help="Limit computing time, e.g. 30s; the answer gets coarser.")
@named("implementation", "lean: ideal code; released: with the overheads of the papers' code.  [default: lean]")
@named("transport", "Rows between GPUs: direct (NCCL), or staged through the host (gloo).  [default: direct, assumed]")
@click.option("--inject", multiple=True, metavar="KIND:...", help="Fault, e.g. pause:worker=0,seconds=2s (repeatable).")
@click.option("--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Override a scenario field (repeatable).")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON (schema gcnsim.what-if/1).")
@click.option("--wide", is_flag=True, help="Print every column, however long the lines.")
@click.option("--columns", type=Values("columns", _text, "a column"), help="Print these columns (see docs/cli.md).")
@click.option("--sort", metavar="COLUMN", help="Print rows by this column, -COLUMN the largest first.")
@click.option("--top", type=click.IntRange(min=1), help="Print so many rows.  [default: all up to 12, else 10]")
@click.option("--provenance", is_flag=True, help="Print all that the numbers rest on, not three lines.")
@click.option("--assumptions", is_flag=True, help="Print what each assumption does to the time.")
@click.option("--csv", type=click.Path(), help="Write the rows to a CSV file.")
@click.option("--html", type=click.Path(), help="Write one offline page with table and figures.")
@click.option(
    "--timeline", type=click.Path(), help="Write the recommended setting's run for Perfetto or chrome://tracing."
)
@click.option("--timeline-detail", is_flag=True, help="With a track for every stream, not one per kind of work.")
def command(
    as_json: bool,
    wide: bool,
    columns: list[str] | None,
    provenance: bool,
    assumptions: bool,
    sort: str | None,
    top: int | None,
    csv: str | None,
    html: str | None,
    timeline: str | None,
    timeline_detail: bool,
    **question: Any,
) -> None:
    """Predict an iteration, its bottleneck, and what each knob would bring.

    SCENARIO is a file to start from; options replace its fields. Options marked (list) take values separated by
    commas: a row for every combination.

    \b
    Examples:
      gcnsim what-if --bandwidth 15Gbps --gpus 6
      gcnsim what-if --graph amazon_cs.npz --gpus 4 --bandwidth 1Gbps --tau 0,1,2 --epsilon 0.1,1
    """
    if timeline_detail and timeline is None:
        raise ScenarioError("--timeline-detail: is of the file that --timeline names; allowed: with --timeline FILE")
    read = [question["graph"], question["norms"], question["calibration"], *question["runs"], question["prices"]]
    read += [question["measured_compute"], *machine_files(question["device"], question["host"])]
    read += scenario_files(question["scenario"]) if question["scenario"] else []
    check_outputs(*read, *overridden(question["overrides"]), csv=csv, html=html, timeline=timeline)
    shown = Shown(wide, columns, provenance, assumptions, sort, top)
    from gcnsim import api

    book = price_book(question)
    with progress(own=bool(question["graph"] or question["scenario"])) as say:
        needed, sizes = dict(question.pop("target_iterations")), sizes_of(question)
        answer = api.what_if(
            **question, sizes=sizes, target_iterations=needed, prices=book, progress=say, notice=say.notice
        )
    text = json.dumps(answer.payload, indent=2, allow_nan=False) if as_json else shown.text(answer.told)
    notes = [_left_out(each) for each in answer.told.left_out or ()]
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
    """What writes each file that was asked for."""
    if csv:
        yield lambda: answer.to_csv(csv)
    if html:
        yield lambda: answer.to_html(html, say, notice)
    if timeline:
        yield lambda: answer.to_timeline(timeline, detail=detail)


def _left_out(each: LeftOutRow) -> str:
    setting = f" ({each.setting})" if each.setting else ""
    return f"{each.method}{setting} left out: {each.reason}"
