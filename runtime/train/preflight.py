"""What can be refused before any worker starts, without torch: places to write to, and a crowd of workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from gcnsim.errors import FileError, ScenarioError, plural
from gcnsim.io.atomic import probe, writable
from gcnsim.processes import cores
from gcnsim.resources import usable_resources
from runtime.launch.place import Place
from runtime.options import Options, flag
from runtime.record.held import free_path
from runtime.record.run_folder import RUN, holds_run

DEFAULT: Final = "run"
"""The default run folder."""

_CROWD: Final = 8
"""More workers than this are counted against the graph's nodes first: each costs a process that imports torch."""


def out_folder(options: Options) -> Path:
    """The run folder: the one asked for, else the one that `--resume` goes on from, else `run`.

    What starts the workers gives them a folder where `run` holds a run already (`free_folder`).
    """
    if options.out is None and options.resume is not None and (Path(options.resume) / RUN).is_file():
        return Path(options.resume)
    return Path(options.out if options.out is not None else DEFAULT)


def free_folder(options: Options) -> Path | None:
    """A free run folder if none was named and the default one holds a run; else None."""
    folder = out_folder(options)
    if options.out is not None or not writes_folder(options) or _may_replace(options, folder):
        return None
    found = free_path(folder, os.path.lexists) if folder.is_dir() and holds_run(folder) else folder
    return None if found == folder else found


def restarted() -> bool:
    """Whether torchrun started the workers again after one of them failed."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") or "0") > 0


def _may_replace(options: Options, folder: Path) -> bool:
    """Whether a run in `folder` may be written to: as asked, or since it is the one that goes on."""
    if options.overwrite or restarted():
        return True
    if options.resume is None:
        return False
    start, own = Path(os.path.realpath(options.resume)), Path(os.path.realpath(folder))
    return own in (start, *start.parents)


def writes_folder(options: Options) -> bool:
    """Whether the run leaves anything in its run folder."""
    return options.record or options.checkpoint_every > 0


def check_outputs(options: Options) -> None:
    """Raise FileError for a file or folder that the run could not write when it comes to it."""
    for name in ("save_init", "loss_log", "save_trace"):
        path = getattr(options, name)
        if path is None or (name == "save_trace" and made_with_folder(options, Path(path))):
            continue
        try:
            if writable(path):
                probe(path)
        except FileError as error:
            raise FileError(f"{flag(name)}: {error}") from None
    if writes_folder(options):
        folder = out_folder(options)
        try:
            replaced = holds_run(folder) and not _may_replace(options, folder)
        except FileError as error:
            raise FileError(f"--out: {error}") from None
        if replaced:
            raise FileError(
                f"--out: {folder}: holds a run already; allowed: another folder, --overwrite (replaces that run) or "
                f"--resume {folder} (continues it)"
            )


def made_with_folder(options: Options, path: Path) -> bool:
    """Whether `path` lies in a run folder that is not there yet, and is made before the run begins."""
    folder = Path(os.path.realpath(out_folder(options)))
    return writes_folder(options) and not folder.exists() and Path(os.path.realpath(path)).parent == folder


def threads_of(options: Options, place: Place) -> int:
    """Threads of a worker: as asked for, else its share of the cores that its server lets it use."""
    return options.threads or max(1, cores() // place.local_world)


def quota_warning(options: Options, place: Place) -> str | None:
    """A line where a container grants the workers here less CPU time than their threads ask for; None elsewhere."""
    quota, threads = usable_resources().quota, threads_of(options, place)
    if quota is None or place.local_world * threads <= quota:
        return None
    return (
        f"the CPU quota of this container is {quota:g} CPUs, less than {plural(place.local_world * threads, 'thread')} "
        f"of {plural(place.local_world, 'worker')} here: they are stopped for a part of the time"
    )


def check_worker_count(options: Options) -> None:
    """Raise ScenarioError when many workers are more than the graph has nodes; few find out themselves."""
    if options.workers <= _CROWD:
        return
    from runtime.data import load_dataset

    nodes = load_dataset(options).graph.nodes
    if options.workers > nodes:
        raise ScenarioError(
            f"--workers: {options.workers} is more than the graph's {nodes} nodes; allowed: 1 to {nodes}"
        )
