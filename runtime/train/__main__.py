"""`python -m runtime.train`: train a graph neural network on many workers, and record what each of them did.

The same command is the parent, which starts local workers and watches over them, and each worker, whose
rank is in the environment; so it also runs under torchrun, mpirun and srun.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from gcnsim.core.errors import GcnsimError
from gcnsim.core.terminal import screened
from runtime.emulation import Emulation, end_with_agent
from runtime.launch import Place, check_libraries, launch, place, run_worker
from runtime.launch.verdict import error_text, say
from runtime.launch.worker import quiet_sockets
from runtime.record.folder_lock import lock_folder
from runtime.train.earlier_run import CHECKPOINTS, latest
from runtime.train.preflight import check_outputs, out_folder, quota_warning, writes_folder
from runtime.train.tasks import Task, naming, refuse, tasks_of, with_folder


def main(argv: Sequence[str]) -> int:
    """Parse `argv`, then be the parent or a worker; the exit code."""
    where: Place | None = None
    try:
        where = place()
        if where is not None and Emulation.here() is not None:
            end_with_agent()
        tasks = tasks_of(argv)
        if tasks is None:
            return 0
        check_libraries()
        if where is None:
            argv, tasks = with_folder(argv, tasks)
            refuse(tasks)
    except (GcnsimError, click.ClickException) as error:
        # All workers were given the same arguments: one of them says what is wrong with these.
        if where is None or where.rank == 0:
            say(error_text(error))
        return 2
    if where is not None:
        run_worker(lambda place: _work(tasks, place))
    return _continuable(launch(argv, tasks[0].options.workers), tasks)


def _continuable(code: int, tasks: Sequence[Task]) -> int:
    """`code`; after a crash or a request to stop, the command that continues a single run is printed."""
    options = tasks[0].options
    if code not in (0, 2) and tasks[0].name is None and writes_folder(options):
        folder = out_folder(options)
        if latest(folder / CHECKPOINTS) is not None:
            say(f"continue it with: {shlex.join(['python', '-m', 'runtime.train', '--resume', str(folder)])}")
    return code


def _work(tasks: Sequence[Task], place: Place) -> int:
    made: list[Path] = []
    for task in tasks if place.rank == 0 else ():
        with naming(task.name):
            check_outputs(task.options)
            if writes_folder(task.options):
                folder = out_folder(task.options)
                made += [] if folder.exists() else [folder]
                lock_folder(folder)
    warning = quota_warning(tasks[0].options, place) if place.local_rank == 0 else None
    if warning and not tasks[0].options.json_log:
        say(warning)
    quiet_sockets()
    from runtime.train.worker import work

    try:
        return work(tasks, place)
    finally:
        for folder in made:
            with suppress(OSError):  # what a run was written to stays
                folder.rmdir()


if __name__ == "__main__":
    with screened():
        sys.exit(main(sys.argv[1:]))
