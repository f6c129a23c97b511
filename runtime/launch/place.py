"""The rank of this process among the workers, from the environment that started it."""

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


def place(env: Mapping[str, str] | None = None) -> Place | None:
    """This process's rank from RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE; None if it was not launched.

    Without RANK, the tasks of a Slurm step count as launched if there are several and MASTER_ADDR gives their meeting
    point. Without LOCAL_RANK, a worker is alone on its server. Raises ScenarioError for incomplete variables.
    """
    env = os.environ if env is None else env
    if "RANK" in env or "WORLD_SIZE" in env:
        _together(env, "RANK", "WORLD_SIZE")
        _together(env, "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        local = ("LOCAL_RANK", "LOCAL_WORLD_SIZE") if "LOCAL_RANK" in env else None
        return _checked(env, ("RANK", "WORLD_SIZE"), local)
    if "MASTER_ADDR" in env and _number(env, "SLURM_NTASKS", default=1) > 1 and "SLURM_PROCID" in env:
        return _checked(env, ("SLURM_PROCID", "SLURM_NTASKS"), ("SLURM_LOCALID", "SLURM_TASKS_PER_NODE"))
    return None


def _checked(env: Mapping[str, str], whole: tuple[str, str], local: tuple[str, str] | None) -> Place:
    launched = RENDEZVOUS in env
    for name in () if launched else ("MASTER_ADDR", "MASTER_PORT"):
        if name not in env:
            raise ScenarioError(f"{name}: not set, but {whole[0]} is; torchrun sets both; without it, set both")
    rank, world = _number(env, whole[0]), _number(env, whole[1])
    _below(whole, rank, world)
    if local is None:
        return Place(rank, world, 0, 1, launched)
    local_rank = _number(env, local[0])
    local_world = _slurm_tasks(env) if local[1].startswith("SLURM") else _number(env, local[1])
    _below(local, local_rank, local_world)
    if local_world > world:
        raise ScenarioError(f"{local[1]}: {local_world} is not allowed; allowed: 1 to {whole[1]} ({world})")
    return Place(rank, world, local_rank, local_world, launched)


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


def _below(names: tuple[str, str], rank: int, world: int) -> None:
    if rank >= world:
        raise ScenarioError(f"{names[0]}: {rank} is not allowed; allowed: 0 to {names[1]} - 1 ({world - 1})")


def _slurm_tasks(env: Mapping[str, str]) -> int:
    """Tasks of this Slurm step on this node."""
    name = "SLURM_STEP_TASKS_PER_NODE" if "SLURM_STEP_TASKS_PER_NODE" in env else "SLURM_TASKS_PER_NODE"
    node, text = _number(env, "SLURM_NODEID", default=0), env.get(name, "")
    runs = [_TASKS.fullmatch(part) for part in text.split(",")]
    counts = [int(run[1]) for run in runs if run for _ in range(int(run[2] or 1))]
    if not all(runs) or node >= len(counts):
        raise ScenarioError(f"{name}: {text!r} does not say how many tasks node {node} has; like 4(x2),3")
    return counts[node]
