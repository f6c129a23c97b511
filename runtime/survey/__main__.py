"""`python -m runtime.survey`: measure a cluster and train the runs of a rule on it, into one folder to validate with.

As with training, the same command is the parent of local workers and each worker; so it also runs under torchrun, once
on each server.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from gcnsim.core.errors import GcnsimError, UnitError
from gcnsim.core.terminal import screened
from gcnsim.core.units import BANDWIDTH
from runtime.emulation import Emulation, end_with_agent
from runtime.launch import Place, check_libraries, launch, place, run_worker
from runtime.launch.verdict import error_text
from runtime.launch.worker import quiet_sockets
from runtime.record.folder_lock import lock_folder
from runtime.survey import ONE_WORKER, RULE, SurveyRequest, read_rule

PROGRAM: Final = "runtime.survey"


@click.command(PROGRAM, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--out", default="survey", show_default=True, help="Folder of the survey; an unfinished one is continued."
)
@click.option(
    "--minutes", type=float, default=30.0, show_default=True, help="Do not start a run that would end after this."
)
@click.option("--device", help="cpu or cuda.  [default: cuda where torch sees a GPU]")
@click.option(
    "--workers",
    type=int,
    help="Local workers to start; under torchrun, its own count applies.  [default: one for each GPU, or 2 on cpu]",
)
@click.option("--rule", metavar="FILE", help="What to measure and train (.yaml).  [default: the built-in rule]")
@click.option(
    "--bandwidth", help="Bandwidth of each server's link per direction, headers included.  [default: as measured]"
)
@click.option(
    "--dry-run", is_flag=True, help="Only print what would be done, how long it would take and what it would write."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a line for each run, then one for the survey.")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Survey a cluster: micro-benchmarks and recorded runs for calibration and validation, in one folder.

    On several servers, it opens ports: use it on trusted networks only.

    \b
    Examples:
      python -m runtime.survey --dry-run
      python -m runtime.survey --workers 2
      torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint HOST:29500 \\
          -m runtime.survey --device cuda --out survey
    """
    context.obj = given


def main(argv: Sequence[str]) -> int:
    """Parse `argv`, then be the parent or a worker; the exit code, 2 for a user's error."""
    where: Place | None = None
    try:
        where = place()
        if where is not None and Emulation.here() is not None:
            end_with_agent()
        options = _parsed(argv)
        if options is None:
            return 0
        check_libraries()
        request = _request(options, where)
        if where is None or where.rank == 0:
            request.refuse(where)
            if options["dry_run"]:
                _print_preview(request, where)
        if options["dry_run"]:
            return 0
    except (GcnsimError, click.ClickException) as error:
        # All workers were given the same arguments: one of them says what is wrong with these.
        if where is None or where.rank == 0:
            _say(error)
        return 2
    if where is not None:
        run_worker(lambda place: _work(request, place))
    return launch(argv, request.workers, command=[sys.executable, "-m", PROGRAM])


def _parsed(argv: Sequence[str]) -> dict[str, Any] | None:
    """The arguments; None when help was asked for and printed."""
    try:
        with command.make_context(PROGRAM, list(argv)) as context:
            command.invoke(context)
            found: dict[str, Any] = context.obj
            return found
    except click.exceptions.Exit:
        return None


def _request(options: dict[str, Any], where: Place | None) -> SurveyRequest:
    """The survey, of the device, the workers and the rule that suit what is here where nobody named them."""
    device, workers = options["device"], options["workers"] if where is None else where.world
    gpus = _gpus() if device is None or (device == "cuda" and workers is None) else 0
    device = device or ("cuda" if gpus else "cpu")
    if workers is None:
        workers = (gpus or 1) if device == "cuda" else 2
    try:
        bandwidth = None if options["bandwidth"] is None else BANDWIDTH.parse(options["bandwidth"])
    except UnitError as error:
        raise UnitError(f"--bandwidth: {error}") from None
    return SurveyRequest(
        out=Path(options["out"]),
        rule=read_rule(options["rule"] or (RULE if workers > 1 else ONE_WORKER)),
        device=device,
        workers=workers,
        minutes=options["minutes"],
        bandwidth=bandwidth,
        json=options["as_json"],
    )


def _gpus() -> int:
    """GPUs of this server that torch sees."""
    quiet_sockets()
    from runtime.record import hardware

    return len(hardware(cuda=True)["gpus"])


def _print_preview(request: SurveyRequest, where: Place | None) -> None:
    """Say what would be done."""
    quiet_sockets()
    from runtime.survey.preview import preview, preview_text

    found = preview(request, where)
    sys.stdout.write(json.dumps(found) + "\n" if request.json else preview_text(found))
    sys.stdout.flush()


def _work(request: SurveyRequest, place: Place) -> int:
    made = place.rank == 0 and not request.out.exists()
    if place.rank == 0:
        lock_folder(request.out)
    try:
        quiet_sockets()
        from runtime.survey.program import survey

        return survey(request, place)
    finally:
        if made:
            with suppress(OSError):  # what a survey was written to stays
                request.out.rmdir()


def _say(error: GcnsimError | click.ClickException) -> None:
    sys.stderr.write(f"{PROGRAM}: {error_text(error, PROGRAM)}\n")


if __name__ == "__main__":
    with screened():
        sys.exit(main(sys.argv[1:]))
