"""Checkpoints: a folder per saved iteration, one safetensors file per worker, and a JSON file that makes it whole.

`checkpoints/000100/` holds what is needed to go on after 100 iterations. `state.json` is written last, so a folder
without it is an attempt that never counts. No random state is saved: every draw comes from a named stream of its
iteration. Weights and optimizer are in worker 0's file; every worker's holds its rows and gradients in flight.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor
from torch.nn import Parameter

from gcnsim.errors import FileError
from gcnsim.ids import Iteration, Rank
from gcnsim.sections import replacing

STATE = "state.json"
KEPT = 2
"""Whole checkpoints that stay; older ones are removed."""


@dataclass(frozen=True)
class Checkpoint:
    """What is needed to go on. done: iterations. identity: what the run must agree on. notes: results so far."""

    done: Iteration
    identity: Mapping[str, Any]
    notes: Mapping[str, Any]
    shared: dict[str, Tensor]
    own: dict[str, Tensor]


def write_part(folder: Path, done: Iteration, rank: Rank, tensors: dict[str, Tensor]) -> None:
    """Write one worker's tensors of the checkpoint after `done` iterations. Raises FileError."""
    place = folder / f"{done:06d}"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{place}: cannot be used as a folder: {error.strerror}") from None
    with replacing(place / _part(rank)) as file:
        file.write(save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}))


def complete(folder: Path, done: Iteration, identity: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
    """Make the checkpoint count, all parts being written; remove those older than the last KEPT. Raises FileError."""
    with replacing(folder / f"{done:06d}" / STATE, text=True) as file:
        json.dump({"done": done, "identity": identity, "notes": notes}, file, indent=1, allow_nan=False)
    for old in sorted(_whole(folder))[:-KEPT]:
        (old / STATE).unlink(missing_ok=True)
        shutil.rmtree(old, ignore_errors=True)


def latest(folder: Path) -> Path | None:
    """The last whole checkpoint in `folder`; None without one."""
    return max(_whole(folder), default=None)


def read_checkpoint(place: Path, rank: Rank, identity: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint in the folder `place` as worker `rank` needs it.

    Raises FileError when it is damaged, or made by a run that differs in `identity`: another model, graph, partition.
    """
    try:
        found = json.loads((place / STATE).read_text(encoding="utf-8"))
        done, made, notes = found["done"], found["identity"], found["notes"]
    except OSError as error:
        raise FileError(f"{place / STATE}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(f"{place / STATE}: is no checkpoint's state: {error}") from None
    for name, value in identity.items():
        if made.get(name) != value:
            raise FileError(f"{place}: made with {name} {made.get(name)!r}, this run has {value!r}")
    return Checkpoint(
        int(done), made, notes, _tensors(place / _part(0), "shared."), _tensors(place / _part(rank), "own.")
    )


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: Mapping[Parameter, str]) -> dict[str, Tensor]:
    """What the optimizer remembers of each weight, by `optimizer.<weight>.<what>`."""
    return {
        f"optimizer.{name}.{key}": torch.as_tensor(value)
        for weight, name in names.items()
        for key, value in optimizer.state[weight].items()
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer, names: Mapping[Parameter, str], found: dict[str, Tensor]
) -> None:
    """The reverse of `optimizer_tensors`."""
    for weight, name in names.items():
        prefix = f"optimizer.{name}."
        for key, value in found.items():
            if key.startswith(prefix):
                what = key.removeprefix(prefix)
                # Adam counts its steps on the host.
                optimizer.state[weight][what] = (
                    value.clone() if what == "step" else value.to(weight.device, weight.dtype)
                )


def _tensors(path: Path, prefix: str) -> dict[str, Tensor]:
    """The tensors whose names start with `prefix`, without it."""
    try:
        found = load(path.read_bytes())
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    except (SafetensorError, ValueError) as error:
        raise FileError(f"{path}: truncated or altered: {error}") from None
    return {name.removeprefix(prefix): tensor for name, tensor in found.items() if name.startswith(prefix)}


def _whole(folder: Path) -> list[Path]:
    return [state.parent for state in folder.glob(f"[0-9]*/{STATE}")]


def _part(rank: Rank) -> str:
    return f"worker{rank}.safetensors"
