"""Where a run goes on from: the checkpoint that was asked for, or its own last one after a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from gcnsim.errors import FileError
from runtime.options import Options
from runtime.train.checkpoint.files import latest, made_with
from runtime.train.preflight import out_folder, restarted, writes_folder

CHECKPOINTS: Final = "checkpoints"


def starting_point(options: Options, out: Path) -> Path | None:
    """The checkpoint to go on from: the last one of this very run after a restart, else that which was asked for.

    Raises FileError when what was asked for holds none.
    """
    own = latest(out / CHECKPOINTS) if restarted() and writes_folder(options) else None
    if own is not None or options.resume is None:
        return own
    asked = Path(options.resume)
    place = asked if (asked / "state.json").is_file() else latest(asked / CHECKPOINTS) or latest(asked)
    if place is None:
        raise FileError(f"--resume: {asked} has no complete checkpoint; allowed: the folder of a run that saved one")
    return place


def with_saved_kernels(options: Options) -> Options:
    """`options`; where --aggregator is auto and the run goes on from a checkpoint, with the kernels that made it.

    Raises FileError for a checkpoint that is missing or damaged.
    """
    place = starting_point(options, out_folder(options)) if options.aggregator == "auto" else None
    return options if place is None else replace(options, aggregator=made_with(place, "--aggregator"))
