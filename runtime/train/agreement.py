"""Workers that were given unlike options say so before they train: what each would compute would be another run's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from gcnsim.errors import ScenarioError
from gcnsim.ids import Rank
from runtime.launch import Place
from runtime.options import Options, flag

OWN: Final = frozenset(
    (
        *("workers", "graph", "partition", "init_weights", "save_init", "out", "save_trace", "loss_log", "resume"),
        *("device", "threads", "overwrite", "json", "json_log", "quiet"),
    )
)
"""Options that may differ: where a worker's server has its files and what it is; what only worker 0 says."""

_BYTES: Final = 16

Field: TypeAlias = tuple[int, str, Any]
"""Of which run, the option's name, its value (plain JSON)."""


def shared(options: Options) -> dict[str, Any]:
    """The options that all workers must have alike, knobs by their own names."""
    told = options.asdict()
    knobs: Mapping[str, Any] = told.pop("knobs")
    return {**{name: value for name, value in told.items() if name not in OWN}, **knobs}


def agree(runs: Sequence[Options], place: Place) -> None:
    """Return when all workers have the same runs; the process group is joined.

    Raises ScenarioError, on every worker, naming the first option in which one differs from worker 0.
    """
    agree_on([(k, name, value) for k, run in enumerate(runs) for name, value in shared(run).items()], place)


def agree_on(fields: Sequence[Field], place: Place) -> None:
    """Return when all workers have the same fields. Raises ScenarioError as `agree`."""
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
