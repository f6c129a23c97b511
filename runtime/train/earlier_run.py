"""The run that `--resume` continues: its folder, and its options, which the command line need not repeat.

Nothing here imports torch, because the parent of the workers asks, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.core.json_files import read_json
from runtime.methods import method_type
from runtime.options import flag, plain
from runtime.record.run_folder import RUN

IDENTITY: Final = (
    *("method", "workers", "seed", "model", "layers", "hidden", "heads", "dropout", "dropout_order", "norm"),
    *("bias", "sage_mean", "preaggregate", "optimizer", "dtype", "feature_norm", "aggregator"),
)
"""Options on which a checkpoint and the run that continues it must agree; knobs and the graph's hash, too."""

NOT_TAKEN: Final = frozenset({"out", "resume", "overwrite", "json", "json_log", "quiet", "init_weights", "save_init"})
"""Options that are not taken from the run: they are about one start of it."""

STATE: Final = "state.json"
"""The file that completes a checkpoint."""

CHECKPOINTS: Final = "checkpoints"


def latest(folder: Path) -> Path | None:
    """The last complete checkpoint in `folder`; None without one."""
    return next(reversed(whole(folder)), None)


def whole(folder: Path) -> list[Path]:
    """The complete checkpoints in `folder`, by their iterations."""
    found = (state.parent for state in folder.glob(f"*/{STATE}"))
    return sorted(
        (checkpoint for checkpoint in found if checkpoint.name.isdecimal()), key=lambda checkpoint: int(checkpoint.name)
    )


def home(resume: str) -> Path | None:
    """The run folder of the run, its checkpoints or one checkpoint at `resume`; None if it has no record."""
    path = Path(resume)
    return next((folder for folder in (path, path.parent, path.parent.parent) if (folder / RUN).is_file()), None)


def with_options_of_run(given: Mapping[str, Any], typed: Collection[str]) -> dict[str, Any]:
    """`given`, options and knobs by name, with those of the resumed run where they were not `typed`.

    Without `--resume`, or without a record of that run, `given`. Raises FileError for a damaged record, ScenarioError
    for typed options that the run must not change, all at once.
    """
    folder = None if given["resume"] is None else home(given["resume"])
    if folder is None:
        return dict(given)
    try:
        recorded = read_json(folder / RUN, "run")["options"]
    except FileError as error:
        raise FileError(f"--resume: {error}") from None
    taken = {name: value for name, value in recorded.items() if name in given and name not in NOT_TAKEN}
    knobs = {name: value for name, value in recorded["knobs"].items() if name in given and value is not None}
    fixed = {name: value for name, value in taken.items() if name in IDENTITY}
    wanted = {name: given[name] for name in fixed if name in typed and given[name] != "auto"}
    if "method" in wanted:
        wanted["method"] = method_type(wanted["method"]).name
    if wanted.get("method", recorded["method"]) == recorded["method"]:
        typed_knobs = {name: given[name] for name in recorded["knobs"] if name in typed}
        settled = method_type(recorded["method"]).settled(typed_knobs)
        wanted |= {name: plain(settled[name]) for name in typed_knobs}
        fixed |= recorded["knobs"]
    differing = [
        f"{_typed(name, fixed[name])} (given: {_typed(name, value)})"
        for name, value in wanted.items()
        if value != fixed[name]
    ]
    if differing:
        raise ScenarioError(
            f"--resume: {folder} was made with {', '.join(differing)}; allowed: its options, which need not be given"
        )
    return {**given, **{name: value for name, value in (taken | knobs).items() if name not in typed}}


def _typed(name: str, value: Any) -> str:
    """An option with its value, as typed."""
    if isinstance(value, bool):
        return flag(name) if value else flag(f"no_{name}")
    return f"{flag(name)} {'none' if value is None else value}"
