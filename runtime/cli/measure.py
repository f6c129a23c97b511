"""`python -m runtime.measure`: measure the parts of a workload one by one, alone on one device, into a file."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final

import click

from gcnsim.errors import GcnsimError, ScenarioError
from gcnsim.processes import cores
from gcnsim.terminal import LiveLine
from runtime.cli.microbench import out_file, take
from runtime.launch import check_libraries
from runtime.measuring.request import HELP_OF, KNOBS, MeasureRequest, settings_of
from runtime.microbench import FULL, MicrobenchRequest, ProcessError
from runtime.options import flag
from runtime.train.tasks import with_options

PROGRAM: Final = "runtime.measure"
DEFAULT: Final = "measured.parquet"
LINKS: Final = "links.json"
OF_LINKS: Final = ("links", "device", "threads", "out", "overwrite", "json", "quiet")
"""The options that a measurement of links takes."""


_ALLOWED: Final = ", ".join(flag(name) for name in OF_LINKS[1:])


def _with_options(command: Any) -> Any:
    return with_options(command, HELP_OF, KNOBS, lists=True)


@click.command(PROGRAM, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--parts", "--workers", "workers", type=int, default=2, show_default=True, help="Parts of the graph.")
@click.option(
    "--seconds", type=float, default=60.0, show_default=True, help="Stop after this time, for all settings together."
)
@click.option(
    "--links",
    is_flag=True,
    help="Instead of parts of a graph, measure the cost of messages and busy cores between processes of this machine; "
    "`gcnsim calibrate` reads the file.  [default of --out: links.json]",
)
@_with_options
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Measure each part of a workload alone on one device, with the training code; run nothing else meanwhile.

    Methods and knobs take several values, separated by commas: each combination is measured. The parts take turns
    until the mean of each is known to 2 %, or time is up. Data from other workers are available at once.

    \b
    Examples:
      python -m runtime.measure
      python -m runtime.measure --graph graph.npz --parts 6 --method psc-gcn,pipegcn --epsilon 0.1,0.3
      python -m runtime.measure --links
    """
    if given["links"]:
        for name in given.keys() - set(OF_LINKS):
            if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
                raise click.UsageError(f"{flag(name)}: is of a graph's parts; allowed with --links: {_ALLOWED}")
    context.obj = given


def main(argv: Sequence[str]) -> int:
    """Parse `argv`, measure, write; the exit code, 2 for a user's error."""
    signal.signal(signal.SIGTERM, _leave)
    try:
        with command.make_context(PROGRAM, list(argv)) as context:
            command.invoke(context)
            options = context.obj
        return _links(options) if options["links"] else _measure(options)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        return _failed(" ".join(error.format_message().split()) + f" (see python -m {PROGRAM} --help)", 2)
    except GcnsimError as error:
        return _failed(str(error), 2)
    except ProcessError as error:
        return _failed(str(error), error.code)
    except KeyboardInterrupt:
        return _failed("stopped by SIGINT", 128 + signal.SIGINT)


def _links(options: dict[str, Any]) -> int:
    """Measure messages between processes, and kernels in several at once: as many as cores, and twice as many."""
    counts = tuple(sorted({1, 2, cores(), min(2 * cores(), 16)}))
    request = MicrobenchRequest(FULL, options["device"], options["threads"] or 1, counts, kernels=False)
    return take(request, LINKS, options)


def _measure(options: dict[str, Any]) -> int:
    check_libraries()
    request = MeasureRequest(settings_of(options), options["seconds"])
    out = out_file(DEFAULT, options["out"], overwrite=options["overwrite"])
    line = None if options["quiet"] else LiveLine(sys.stderr)
    if line is not None:
        line.show("starting")
    from runtime.measuring.document import about, text, write
    from runtime.measuring.workload import measured

    try:
        measured_workload = measured(request, (lambda _: None) if line is None else line.show)
    finally:
        if line is not None:
            line.clear()
    for note in measured_workload.notes:
        sys.stderr.write(f"note: {note}\n")
    head = about(measured_workload)
    if not head["parts"]:
        first = head["skipped"][0]
        raise ScenarioError(f"no part could be measured; part {first['part']}: {first['reason']}")
    shown = (
        json.dumps({**head, "out": out}, allow_nan=False)
        if options["json"]
        else text(head, measured_workload.settings, out)
    )
    try:
        sys.stdout.write(f"{shown}\n")
        sys.stdout.flush()
    finally:
        write(out, head, measured_workload.settings)
    return 0


def _failed(line: str, code: int) -> int:
    sys.stderr.write(f"{PROGRAM}: {line}\n")
    return code


def _leave(signum: int, frame: FrameType | None) -> None:
    """End by way of every `finally`."""
    raise SystemExit(128 + signum)
