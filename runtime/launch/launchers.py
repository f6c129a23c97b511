"""A worker's rank among the others, from the environment variables of whatever started the process.

A launcher that is not recognised would start a whole training in each of its processes. So each of the usual ones is
recognised, and one that gives too few variables is refused with the names of those that are missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import Rank

RENDEZVOUS: Final = "GCNSIM_RENDEZVOUS"
"""The file through which the workers of the built-in launcher find one another; only the launcher sets it."""

_COUNT: Final = re.compile(r"[0-9]{1,9}")
_TASKS: Final = re.compile(r"([0-9]{1,9})(?:\(x([0-9]{1,6})\))?")
"""One run of Slurm's tasks per node: `4`, or `4(x3)` for three nodes with 4 each."""


@dataclass(frozen=True, slots=True)
class Place:
    """One worker among `world`, and among the `local_world` on its server."""

    rank: Rank
    world: int
    local_rank: int
    local_world: int
    launched: bool
    """Whether the built-in launcher started it, which supervises and reports; otherwise torchrun or a similar tool did.
    """


@dataclass(frozen=True, slots=True)
class Launcher:
    """The variables in which a launcher states a process's rank and their number, in all and on its server."""

    rank: str
    world: str
    local_rank: str
    local_world: str

    def started(self, env: Mapping[str, str]) -> bool:
        """Whether it started this process as one of several."""
        return self.rank in env and env.get(self.world, "1") != "1"


_TORCHRUN: Final = Launcher("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_OPEN_MPI: Final = Launcher(*(f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")))
_MPICH: Final = Launcher("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
_SLURM: Final = Launcher("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_TASKS_PER_NODE")
_SLURM_STEP: Final = Launcher("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE")
_MEETING_POINT: Final = ("MASTER_ADDR", "MASTER_PORT")


def place(env: Mapping[str, str] | None = None) -> Place | None:
    """This process's place among the workers of torchrun, Open MPI, MPICH, Intel MPI or srun; None if it was not
    launched as one of several.

    With RANK but without LOCAL_RANK, a worker is alone on its server. Raises ScenarioError for incomplete variables.
    """
    env = os.environ if env is None else env
    if "RANK" in env or "WORLD_SIZE" in env:
        _together(env, "RANK", "WORLD_SIZE")
        _together(env, "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        return _checked(env, _TORCHRUN, alone="LOCAL_RANK" not in env)
    launcher = _launcher(env)
    return None if launcher is None else _checked(env, launcher)


def rank_in(env: Mapping[str, str]) -> Rank:
    """This process's rank, for its last message; 0 if it is not known."""
    launcher = _TORCHRUN if "RANK" in env else _launcher(env)
    rank = "" if launcher is None else env.get(launcher.rank, "")
    return int(rank) if _COUNT.fullmatch(rank) else 0


def _launcher(env: Mapping[str, str]) -> Launcher | None:
    """The launcher that started this process as one of several.

    MPI first: below srun or in a batch job, its processes also see Slurm's variables, which describe the job. srun can
    set PMI's variables, too, but not MPICH's local ones.
    """
    if _OPEN_MPI.started(env):
        return _OPEN_MPI
    slurm = _SLURM_STEP if _SLURM_STEP.world in env else _SLURM
    if slurm.started(env) and _MPICH.local_rank not in env and not _batch_script(env):
        return slurm
    return _MPICH if _MPICH.started(env) else None


def _batch_script(env: Mapping[str, str]) -> bool:
    """Whether it is the script of a Slurm job: one process, although it sees a rank and the job's number of tasks.

    With a meeting point it is not: srun was forgotten, and the others do not come.
    """
    return env.get("ENVIRONMENT") == "BATCH" and "SLURM_STEP_ID" not in env and "MASTER_ADDR" not in env


def _checked(env: Mapping[str, str], names: Launcher, *, alone: bool = False) -> Place:
    launched = RENDEZVOUS in env
    needed = (() if alone else (names.local_rank, names.local_world)) + (() if launched else _MEETING_POINT)
    if missing := [name for name in needed if name not in env]:
        raise ScenarioError(
            f"{names.world} is {env[names.world][:40]}, but {_listed(missing)} not set: export "
            f"{'it' if len(missing) == 1 else 'them'} to every process, or use torchrun"
        )
    rank, world = _number(env, names.rank), _number(env, names.world)
    _below(names.rank, rank, names.world, world)
    if alone:
        return Place(rank, world, 0, 1, launched)
    local_rank = _number(env, names.local_rank)
    slurm = names in (_SLURM, _SLURM_STEP)
    local_world = _slurm_tasks(env, names.local_world) if slurm else _number(env, names.local_world)
    _below(names.local_rank, local_rank, names.local_world, local_world)
    if local_world > world:
        raise ScenarioError(f"{names.local_world}: {local_world} is not allowed; allowed: 1 to {names.world} ({world})")
    return Place(rank, world, local_rank, local_world, launched)


def _listed(names: list[str]) -> str:
    """`A is`, `A and B are`, `A, B and C are`."""
    return f"{names[0]} is" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} are"


def _together(env: Mapping[str, str], one: str, other: str) -> None:
    """Refuse a variable without its counterpart."""
    for name, twin in ((one, other), (other, one)):
        if name in env and twin not in env:
            raise ScenarioError(f"{name}: set to {env[name]!r}, but {twin} is not set; set both, as torchrun does")


def _number(env: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = env.get(name, "" if default is None else str(default))
    if not _COUNT.fullmatch(text):
        raise ScenarioError(f"{name}: {text[:40]!r} is not a whole number >= 0")
    return int(text)


def _below(name: str, rank: int, count: str, world: int) -> None:
    if rank >= world:
        raise ScenarioError(f"{name}: {rank} is not allowed; allowed: 0 to {count} - 1 ({world - 1})")


def _slurm_tasks(env: Mapping[str, str], name: str) -> int:
    """Tasks of this Slurm step on this node."""
    node, text = _number(env, "SLURM_NODEID", default=0), env[name]
    runs = [_TASKS.fullmatch(part) for part in text.split(",")]
    counts = [int(run[1]) for run in runs if run for _ in range(int(run[2] or 1))]
    if not all(runs) or node >= len(counts):
        raise ScenarioError(f"{name}: {text!r} does not say how many tasks node {node} has; like 4(x2),3")
    return counts[node]
