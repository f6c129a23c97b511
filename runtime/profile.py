"""`python -m runtime.profile`: times the kernels of training on a GPU, one by one, and writes them to a file.

A calibration is fitted from that file. Its path is chosen and checked here.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeAlias

import click

from gcnsim.core.atomic import probe, writable
from gcnsim.core.errors import FileError, GcnsimError, ScenarioError
from gcnsim.core.terminal import LiveLine, screened
from runtime.launch import check_libraries
from runtime.launch.verdict import error_text
from runtime.microbench import (
    FULL,
    QUICK,
    Measurement,
    MicrobenchRequest,
    ProcessError,
    TimeBudget,
    document,
    measured,
    table,
    write,
)
from runtime.record.folder_lock import free_path


def out_file(default: str, request: str | None, *, overwrite: bool) -> str:
    """The file to write, which can be written and holds nothing, unless it may be replaced. Raises FileError.

    default: the file where `request` names none; with a number behind its stem where it is taken.
    """
    usual = Path(default) if overwrite else free_path(Path(default), os.path.lexists)
    path = str(usual) if request is None else request
    try:
        if writable(path):
            probe(path)
    except FileError as error:
        raise FileError(f"--out: {error}") from None
    if not overwrite and os.path.isfile(path) and os.path.getsize(path):
        raise FileError(f"--out: {path}: already exists; allowed: another file, or --overwrite to replace it")
    return path


PROGRAM: Final = "runtime.profile"
DEFAULT: Final = "profile.json"
_WORKERS: Final = {"quick": "1,2,4", "full": "1,2,3,4,6"}


@click.command(PROGRAM, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--quick", is_flag=True, help="Fewer sizes and repeats: about a minute instead of about five.")
@click.option(
    "--out", help="File of the measurements.  [default: the first free one of profile.json, profile-2.json, ...]"
)
@click.option("--overwrite", is_flag=True, help="Replace the file of --out.")
@click.option("--device", default="cuda", show_default=True, help="cuda; for CPU cores, use runtime.measure.")
@click.option("--threads", type=int, default=1, show_default=True, help="CPU threads of each process.")
@click.option("--aggregator", default="plain", show_default=True, help="Kernels that sum neighbours: plain or dgl.")
@click.option("--workers", help="Numbers of processes to run at once.  [default: 1,2,3,4,6; with --quick 1,2,4]")
@click.option("--no-network", is_flag=True, help="Skip transfers between processes.")
@click.option("--json", is_flag=True, help="Print the measurements as JSON, not as a table (gcnsim.measurements/1).")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Measure the training kernels on a GPU of this machine. Run nothing else meanwhile.

    \b
    Examples:
      python -m runtime.profile --quick
      python -m runtime.profile --workers 1,2,4 --out this-machine.json
      python -m runtime.profile --aggregator dgl --out dgl.json
    """
    context.obj = given


def main(argv: Sequence[str], budget: TimeBudget | None = None) -> int:
    """Parse `argv`, measure, write; the exit code. budget: in place of those of --quick and of a full run."""
    signal.signal(signal.SIGTERM, leave)
    try:
        with command.make_context(PROGRAM, list(argv)) as context:
            command.invoke(context)
            options = context.obj
        return _microbench(options, budget)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (click.ClickException, GcnsimError) as error:
        return _failed(error_text(error, PROGRAM), 2)
    except ProcessError as error:
        return _failed(str(error), error.code)
    except KeyboardInterrupt:
        return _failed("stopped by SIGINT", 128 + signal.SIGINT)


def _microbench(options: dict[str, Any], budget: TimeBudget | None) -> int:
    if options["device"] == "cpu":
        raise ScenarioError(
            "--device: cpu is not allowed; what CPU cores compute is measured with the workload itself (python -m "
            "runtime.measure), messages between processes by python -m runtime.measure --links; allowed: cuda"
        )
    budget = budget or (QUICK if options["quick"] else FULL)
    workers = _numbers(options["workers"] or _WORKERS.get(budget.level, "1,2"))
    request = MicrobenchRequest(
        budget, options["device"], options["threads"], workers, not options["no_network"], options["aggregator"]
    )
    return take(request, DEFAULT, options)


Show: TypeAlias = Callable[[Measurement], None]


def take(
    request: MicrobenchRequest,
    default: str,
    options: Mapping[str, Any],
    measure: Callable[[MicrobenchRequest, Show], list[Measurement]] | None = None,
) -> int:
    """Take the measurements, write them and say so; the exit code. default: the file where `options` names none.

    measure: takes them, in place of processes of this machine alone. Raises GcnsimError and ProcessError.
    """
    check_libraries()
    out = out_file(default, options["out"], overwrite=options["overwrite"])
    start = time.perf_counter()
    line, count = None if options.get("quiet") else LiveLine(sys.stderr), itertools.count(1)

    def show(last: Measurement) -> None:
        if line is not None:
            line.show(f"{next(count)} measurements, {last.kernel}, processes: {last.processes} ...")

    try:
        found = (measure or measured)(request, show)
    finally:
        if line is not None:
            line.clear()
    results = document(request, found, time.perf_counter() - start)
    text = json.dumps(results, allow_nan=False) if options["json"] else table(results, out)
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    finally:
        write(out, results)
    return 0


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a list, ascending, each once. Raises ScenarioError."""
    if not re.fullmatch(r"\d{1,4}(,\d{1,4})*", text, re.ASCII):
        raise ScenarioError(f"--workers: {text!r} is not a list of whole numbers; write e.g. 1,2,4")
    return tuple(sorted({int(part) for part in text.split(",")}))


def _failed(line: str, code: int) -> int:
    sys.stderr.write(f"{PROGRAM}: {line}\n")
    return code


def leave(signum: int, frame: FrameType | None) -> None:
    """End by way of every `finally`, so that no member is left."""
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    with screened():
        sys.exit(main(sys.argv[1:]))
