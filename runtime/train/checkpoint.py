"""Checkpoints: a folder per saved iteration, one safetensors file per worker, and a JSON file that completes it.

`checkpoints/000100/` contains the state after 100 iterations. `state.json` is written last, with the SHA-256 of every
worker's file and of itself. A folder without it is incomplete and never used, and an altered file is detected. No
random state is saved: every draw comes from a named stream of its iteration. Weights and optimizer are in worker 0's
file; every worker's file has its rows and gradients in transit.

A run continues from the requested checkpoint, or from its last one after a restart.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias, TypedDict

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor
from torch.nn import Parameter

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError
from gcnsim.core.ids import Iteration, Rank
from gcnsim.core.json_files import canonical, read_json
from gcnsim.core.shapes import As, Keys, OneOrMore, Share, Within
from gcnsim.workload import wrong_aggregator
from runtime.options import Options
from runtime.train.earlier_run import CHECKPOINTS, STATE, latest, whole
from runtime.train.preflight import out_folder, restarted, writes_folder
from runtime.train.reduce import Optimizer

WORKERS = "--workers"
"""The name of the number of workers in an identity."""
_UNSAID: Final = MappingProxyType({"--aggregator": "plain"})
"""The defaults of fields that checkpoints of older versions lack."""

KEPT = 2
"""The number of complete checkpoints that are kept; older ones are removed."""


Sha256: TypeAlias = Annotated[str, Within(pattern="^[0-9a-f]{64}$")]
Scores: TypeAlias = Annotated[
    tuple[Share | None, Share | None, Share | None],
    "Accuracy on training, validation and test nodes; null: no such nodes.",
]


class CheckpointNotes(TypedDict):
    """Results so far."""

    best: Scores
    scores: Scores
    norms: list[Iteration]
    """Iterations whose norms were written."""


class CheckpointState(TypedDict):
    """What makes a checkpoint whole, `state.json` beside the workers' tensors."""

    done: Iteration
    """Iterations."""
    identity: Annotated[Mapping[str, Any], As(Keys.of((WORKERS,), OneOrMore), Any)]
    """What a run that goes on must agree on."""
    notes: Annotated[Mapping[str, Any], As(CheckpointNotes)]
    parts: Annotated[list[Sha256], Within(min_items=1)]
    """Of each worker's file, by rank."""
    sha256: Sha256
    """Of this document without this key: keys sorted, no spaces."""


@dataclass(frozen=True)
class Checkpoint:
    """The state for resuming. done: iterations. identity: the options that the run must share.

    notes: results so far.
    """

    done: Iteration
    identity: Mapping[str, Any]
    notes: Mapping[str, Any]
    shared: dict[str, Tensor]
    own: dict[str, Tensor]


def write_part(folder: Path, done: Iteration, rank: Rank, tensors: dict[str, Tensor]) -> bytes:
    """Write one worker's tensors of the checkpoint after `done` iterations; returns the file's SHA-256. Raises
    FileError.
    """
    target = folder / f"{done:06d}"
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{target}: cannot be used as a folder: {error.strerror}") from None
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    with atomic_write(target / _part(rank)) as file:
        file.write(content)
    return hashlib.sha256(content).digest()


def complete(
    folder: Path, done: Iteration, identity: Mapping[str, Any], notes: Mapping[str, Any], parts: Sequence[bytes]
) -> None:
    """Complete the checkpoint after all `parts` (their SHA-256, by rank) are written. Raises FileError.

    It is then the last one: later ones, of a diverged run, are removed, and so are those before the last KEPT.
    """
    document = {"done": done, "identity": identity, "notes": notes, "parts": [digest.hex() for digest in parts]}
    document["sha256"] = _digest(document)
    with atomic_write(folder / f"{done:06d}" / STATE, text=True) as file:
        json.dump(document, file, indent=1, allow_nan=False)
    found = whole(folder)
    past = [checkpoint for checkpoint in found if int(checkpoint.name) <= done]
    for checkpoint in found:
        if checkpoint not in past[-KEPT:]:
            _remove(checkpoint)


def forget(folder: Path, done: Iteration) -> None:
    """Remove the checkpoint after `done` iterations, if there is one."""
    _remove(folder / f"{done:06d}")


def set_aside(folder: Path) -> None:
    """Move the checkpoints of an earlier run to `<folder>.old`; one such generation is kept.

    Raises FileError.
    """
    if not folder.exists():
        return
    old = folder.with_name(f"{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    try:
        os.replace(folder, old)
    except OSError as error:
        raise FileError(f"{folder}: cannot be moved to {old.name}: {error.strerror}") from None


def read_checkpoint(folder: Path, rank: Rank, identity: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint in `folder` for worker `rank`.

    Raises FileError if it is damaged, or written by a run that differs in `identity`: another model, graph, partition.
    """
    state = _state(folder / STATE)
    made = state["identity"]
    for name, value in identity.items():
        before = made.get(name, _UNSAID.get(name))
        if before != value:
            raise FileError(f"{folder}: made with {name} {before!r}, but this run has {value!r}")
    parts = state["parts"]
    shared = _tensors(folder / _part(0), parts[0], "shared.")
    return Checkpoint(state["done"], made, state["notes"], shared, _tensors(folder / _part(rank), parts[rank], "own."))


def made_with(folder: Path, name: str) -> str:
    """The option `name` of the run that wrote the checkpoint in `folder`. Raises FileError."""
    found = _state(folder / STATE)["identity"].get(name, _UNSAID.get(name))
    if not isinstance(found, str):
        raise FileError(f"{folder / STATE}: identity.{name} is {found!r}, wanted text")
    return found


def _state(path: Path) -> dict[str, Any]:
    """The JSON of a checkpoint, with its format checked."""
    found = read_json(path, "checkpoint", "; not the state of a checkpoint, or one of an older version")
    if found["sha256"] != _digest({name: value for name, value in found.items() if name != "sha256"}):
        raise FileError(f"{path}: altered: its sha256 is not that of its content")
    if wrong := wrong_aggregator(found["identity"], "--sage-aggregator"):
        raise FileError(f"{path}: identity.{wrong}")
    workers, parts = found["identity"][WORKERS], len(found["parts"])
    if workers != parts:
        raise FileError(f"{path}: parts has {parts} items, identity.{WORKERS} is {workers}")
    return found


def _digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the content of a state, independent of its layout."""
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def optimizer_tensors(optimizer: Optimizer, names: Mapping[Parameter, str]) -> dict[str, Tensor]:
    """The optimizer's state of each weight, by `optimizer.<weight>.<what>`."""
    return {
        f"optimizer.{name}.{key}": torch.as_tensor(value)
        for weight, name in names.items()
        for key, value in optimizer.state[weight].items()
    }


def restore_optimizer(optimizer: Optimizer, names: Mapping[Parameter, str], found: dict[str, Tensor]) -> None:
    """The reverse of `optimizer_tensors`."""
    for weight, name in names.items():
        prefix = f"optimizer.{name}."
        for key, value in found.items():
            if key.startswith(prefix):
                what = key.removeprefix(prefix)
                # Adam counts its steps in float32, whatever the weights are.
                kind = value.dtype if what == "step" else weight.dtype
                optimizer.state[weight][what] = value.to(weight.device, kind, copy=True)


def _tensors(path: Path, digest: str, prefix: str) -> dict[str, Tensor]:
    """The tensors whose names start with `prefix`, without it. digest: SHA-256 of the file, in hexadecimal."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise FileError(f"{path}: truncated or altered: its SHA-256 is not the one in {STATE}")
    try:
        found = load(content)
    # torch raises other errors for impossible shapes.
    except (SafetensorError, RuntimeError, TypeError, ValueError, OverflowError, MemoryError) as error:
        raise FileError(f"{path}: not a file of tensors: {' '.join(str(error).split())[:200]}") from None
    return {name.removeprefix(prefix): tensor for name, tensor in found.items() if name.startswith(prefix)}


def _remove(folder: Path) -> None:
    (folder / STATE).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _part(rank: Rank) -> str:
    return f"worker{rank}.safetensors"


def starting_point(options: Options, out: Path) -> Path | None:
    """The checkpoint to continue from: the last one of this run after a restart, otherwise the requested one.

    Raises FileError if the requested folder contains none.
    """
    own = latest(out / CHECKPOINTS) if restarted() and writes_folder(options) else None
    if own is not None or options.resume is None:
        return own
    path = Path(options.resume)
    folder = path if (path / STATE).is_file() else latest(path / CHECKPOINTS) or latest(path)
    if folder is None:
        raise FileError(f"--resume: {path} has no complete checkpoint; allowed: the folder of a run that saved one")
    return folder


def with_saved_kernels(options: Options) -> Options:
    """`options`; if --aggregator is auto and the run is resumed, with the kernels of the checkpoint.

    Raises FileError for a checkpoint that is missing or damaged.
    """
    folder = starting_point(options, out_folder(options)) if options.aggregator == "auto" else None
    return options if folder is None else replace(options, aggregator=made_with(folder, "--aggregator"))
