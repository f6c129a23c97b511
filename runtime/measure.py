"""`python -m runtime.measure`: measure the parts of a workload one by one, alone on one device, into a file."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from gcnsim.core.errors import FileError, GcnsimError, ScenarioError
from gcnsim.core.processes import cores
from gcnsim.core.terminal import LiveLine, screened
from runtime.launch import Place, Watch, check_libraries, connect, place, run_worker
from runtime.launch.verdict import error_text
from runtime.launch.worker import quiet_sockets
from runtime.measuring.request import HELP_OF, KNOBS, MeasureRequest, settings_of
from runtime.microbench import FULL, MicrobenchRequest, ProcessError
from runtime.microbench.measurements import AT_ONCE
from runtime.options import flag
from runtime.profile import leave, out_file, take
from runtime.train.tasks import with_options

PROGRAM: Final = "runtime.measure"
DEFAULT: Final = "measured.parquet"
LINKS: Final = "links.json"
FOLDER: Final = "measured"
OF_LINKS: Final = ("links", "device", "threads", "out", "overwrite", "json", "quiet")
"""The options that a measurement of links takes."""

OF_RUNS: Final = ("runs", "seconds", "out", "overwrite", "quiet")
"""Those that a measurement of recorded runs' parts takes."""


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
    help="Measure messages between processes, and the slowdown of busy cores, instead of parts of a graph; under "
    "torchrun on several servers, also the network. `gcnsim calibrate` reads the file.  [default of --out: links.json]",
)
@click.option(
    "--runs",
    multiple=True,
    metavar="FOLDER",
    help="Measure what these recorded runs trained, on the machine that trained them: the folder of a run, or a folder "
    "of runs. Writes a file for each graph, partition and model.  [default of --out: measured]",
)
@_with_options
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Measure each part of a workload alone on one device, with the training code; run nothing else meanwhile.

    Methods and knobs take several values, separated by commas: each combination is measured. The parts take turns
    until the mean of each is known to within 2 %, or time is up. Data from other workers count as already received.

    \b
    Examples:
      python -m runtime.measure
      python -m runtime.measure --graph graph.npz --parts 6 --method psc-gcn,pipegcn --epsilon 0.1,0.3
      python -m runtime.measure --links
      python -m runtime.measure --runs runs --out measured
      torchrun --nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint HOST:29500 \\
          -m runtime.measure --links
    """
    for name, allowed in (("links", OF_LINKS), ("runs", OF_RUNS)):
        for other in sorted(given.keys() - set(allowed)) if given[name] else ():
            if context.get_parameter_source(other) is click.core.ParameterSource.COMMANDLINE:
                words = ", ".join(map(flag, allowed[1:]))
                raise click.UsageError(f"{flag(other)}: is for a graph's parts; allowed with {flag(name)}: {words}")
    context.obj = given


def main(argv: Sequence[str]) -> int:
    """Parse `argv`, measure, write; the exit code, 2 for a user's error."""
    signal.signal(signal.SIGTERM, leave)
    where: Place | None = None
    try:
        where = place()
        with command.make_context(PROGRAM, list(argv)) as context:
            command.invoke(context)
            options = context.obj
        if options["links"]:
            return _links(options, where)
        if where is not None:
            raise ScenarioError("RANK: is set: one process measures all parts; allowed under torchrun: --links")
        return _of_runs(options) if options["runs"] else _measure(options)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (click.ClickException, GcnsimError) as error:
        # All workers of torchrun were given the same arguments: one of them says what is wrong with these.
        return _failed(error_text(error, PROGRAM), 2) if where is None or where.rank == 0 else 2
    except ProcessError as error:
        return _failed(str(error), error.code)
    except KeyboardInterrupt:
        return _failed("stopped by SIGINT", 128 + signal.SIGINT)


def _links(options: dict[str, Any], where: Place | None) -> int:
    """Measure messages between processes, and kernels in several at once: as many as cores, and twice as many.

    where: this worker among those of several servers; None: on this machine alone. Raises ScenarioError for several
    workers of one server alone, and what `take` does.
    """
    if where is not None and where.local_world == where.world:
        raise ScenarioError("--links: torchrun started all workers on one server; allowed: several, or no torchrun")
    threads, most = options["threads"] or 1, int(AT_ONCE.high)
    counts = {1, 2, min(cores(), most), min(max(1, cores() // threads), most), min(2 * cores(), 16)}
    request = MicrobenchRequest(FULL, options["device"], threads, tuple(sorted(counts)), kernels=False)
    if where is not None:
        check_libraries()
        run_worker(lambda place: _between_servers(request, options, place))
    return take(request, LINKS, options)


def _of_runs(options: dict[str, Any]) -> int:
    """A file for each graph, partition and model of the runs; files that are there stay, unless --overwrite says."""
    check_libraries()
    from runtime.measuring.request import files_of, runs_in

    folder = Path(options["out"] or FOLDER)
    files = files_of(runs_in(options["runs"]))
    lacking = {name: settings for name, settings in files.items()
               if options["overwrite"] or not (folder / name).is_file()}  # fmt: skip
    each_s = options["seconds"] / max(1, sum(map(len, lacking.values())))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"--out: {folder}: cannot be used as a folder: {error.strerror}") from None
    for name, settings in lacking.items():
        _take(MeasureRequest(settings, each_s * len(settings)), str(folder / name), options)
    return 0


def _between_servers(request: MicrobenchRequest, options: dict[str, Any], place: Place) -> int:
    """Take part at `place`; worker 0 writes the file."""
    quiet_sockets()
    with Watch(place):
        from runtime.microbench.network import MEETING_S, measured_together, meet

        connect(place, MEETING_S, "gloo")
        servers = meet(place, request.device)
        if place.rank:
            measured_together(servers, request)
            return 0
        return take(request, LINKS, options, lambda own, show: measured_together(servers, own, show)[0])


def _measure(options: dict[str, Any]) -> int:
    check_libraries()
    request = MeasureRequest(settings_of(options), options["seconds"])
    return _take(request, out_file(DEFAULT, options["out"], overwrite=options["overwrite"]), options)


def _take(request: MeasureRequest, out: str, options: dict[str, Any]) -> int:
    """Measure, write and say so; the exit code."""
    line = None if options["quiet"] else LiveLine(sys.stderr)
    if line is not None:
        line.show("starting")
    from runtime.measuring.document import about, measured, text, write

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


if __name__ == "__main__":
    with screened():
        sys.exit(main(sys.argv[1:]))
