"""Checks before training: refusals before any worker starts, without torch, and equal options of all workers.

Output paths and the number of workers are checked first. Workers then compare their options before they train. With
different options each would compute another run's result.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from gcnsim.core.atomic import probe, writable
from gcnsim.core.errors import FileError, ScenarioError, plural
from gcnsim.core.ids import Rank
from gcnsim.core.processes import cores
from gcnsim.core.resources import usable_resources
from runtime.launch.launchers import Place
from runtime.options import Options, flag
from runtime.record.folder_lock import free_path, writer
from runtime.record.run_folder import RUN, holds_run

DEFAULT: Final = "run"
"""The default run folder."""

_CROWD: Final = 8
"""With more workers than this, the graph's nodes are counted first, because each process imports torch."""


def out_folder(options: Options) -> Path:
    """The run folder: the requested one, otherwise the one of `--resume`, otherwise `run`.

    If `run` already contains a run, the launcher passes another folder (`free_folder`).
    """
    if options.out is None and options.resume is not None and (Path(options.resume) / RUN).is_file():
        return Path(options.resume)
    return Path(options.out if options.out is not None else DEFAULT)


def free_folder(options: Options) -> Path | None:
    """A free run folder if none was named and the default one contains a run; else None."""
    folder = out_folder(options)
    if options.out is not None or not writes_folder(options) or _may_replace(options, folder):
        return None
    path = free_path(folder, os.path.lexists) if folder.is_dir() and holds_run(folder) else folder
    return None if path == folder else path


def restarted() -> bool:
    """Whether torchrun restarted the workers after a failure."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") or "0") > 0


def _may_replace(options: Options, folder: Path) -> bool:
    """Whether a run in `folder` may be overwritten: requested, or because this run continues it."""
    if options.overwrite or restarted():
        return True
    if options.resume is None:
        return False
    start, own = Path(os.path.realpath(options.resume)), Path(os.path.realpath(folder))
    return own in (start, *start.parents)


def writes_folder(options: Options) -> bool:
    """Whether the run writes anything to its run folder."""
    return options.record or options.checkpoint_every > 0


def check_outputs(options: Options) -> None:
    """Raise FileError for a file or folder that the run could not write later."""
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
            if (holder := writer(folder)) is not None:
                raise FileError(f"--out: {folder}: is being written by {holder}; allowed: another folder")
            raise FileError(
                f"--out: {folder}: holds a run already; allowed: another folder, --overwrite (replaces that run) or "
                f"--resume {folder} (continues it)"
            )


def made_with_folder(options: Options, path: Path) -> bool:
    """Whether `path` is in a run folder that does not exist yet and is created before the run begins."""
    folder = Path(os.path.realpath(out_folder(options)))
    return writes_folder(options) and not folder.exists() and Path(os.path.realpath(path)).parent == folder


def threads_of(options: Options, place: Place) -> int:
    """Threads of a worker: as requested, otherwise its share of the available cores of its server."""
    return options.threads or max(1, cores() // place.local_world)


def quota_warning(options: Options, place: Place) -> str | None:
    """A warning if a container's CPU quota is below the workers' threads; otherwise None."""
    quota, threads = usable_resources().quota, threads_of(options, place)
    if quota is None or place.local_world * threads <= quota:
        return None
    return (
        f"the CPU quota of this container is {quota:g} CPUs, less than {plural(place.local_world * threads, 'thread')} "
        f"of {plural(place.local_world, 'worker')} here: they are stopped for a part of the time"
    )


def check_worker_count(options: Options) -> None:
    """Raise ScenarioError if many workers exceed the graph's nodes; with few workers, they detect it themselves."""
    if options.workers <= _CROWD:
        return
    from runtime.data import load_dataset

    nodes = load_dataset(options).graph.nodes
    if options.workers > nodes:
        raise ScenarioError(
            f"--workers: {options.workers} is more than the graph's {nodes} nodes; allowed: 1 to {nodes}"
        )


OWN: Final = frozenset(
    (
        *("workers", "graph", "partition", "init_weights", "save_init", "out", "save_trace", "loss_log", "resume"),
        *("device", "threads", "overwrite", "json", "json_log", "quiet"),
    )
)
"""Options that may differ between workers: files and properties of their servers, and worker 0's output."""

_BYTES: Final = 16

Field: TypeAlias = tuple[int, str, Any]
"""The run, the option's name, its value (plain JSON)."""


def shared(options: Options) -> dict[str, Any]:
    """The options that must be equal on all workers, knobs by their names."""
    document = options.asdict()
    knobs: Mapping[str, Any] = document.pop("knobs")
    return {**{name: value for name, value in document.items() if name not in OWN}, **knobs}


def agree(runs: Sequence[Options], place: Place) -> None:
    """Return when all workers have the same runs, in the joined process group.

    Raises ScenarioError, on every worker, naming the first option that differs from worker 0.
    """
    agree_on([(k, name, value) for k, run in enumerate(runs) for name, value in shared(run).items()], place)


def agree_on(fields: Sequence[Field], place: Place) -> None:
    """Return when all workers have the same fields. Raises ScenarioError as in `agree`."""
    import torch
    import torch.distributed as dist

    counts = [torch.zeros(1, dtype=torch.int64) for _ in range(place.world)]
    dist.all_gather(counts, torch.tensor([len(fields)]))
    first = int(counts[0])
    other = next((rank for rank, count in enumerate(counts) if int(count) != first), None)
    if other is not None:
        raise ScenarioError(f"worker {other} was given other runs or another method than worker 0; allowed: the same")
    own = torch.from_numpy(np.frombuffer(b"".join(map(_digest, fields)), np.uint8).copy())
    found = [torch.zeros_like(own) for _ in range(place.world)]
    dist.all_gather(found, own)
    for rank, theirs in enumerate(found):
        differing = (theirs != found[0]).view(-1, _BYTES).any(1).nonzero()
        if differing.numel():
            raise ScenarioError(_said(rank, fields[int(differing[0])][1], fields[int(differing[0])][2], place.rank))


def _digest(field: Field) -> bytes:
    return hashlib.sha256(json.dumps(field).encode()).digest()[:_BYTES]


def _said(rank: Rank, name: str, value: Any, mine: Rank) -> str:
    return (
        f"{flag(name)}: worker {rank} was given another value than worker 0 (worker {mine} has {value!r}); "
        "allowed: the same for all workers"
    )
