"""The parts that recorded runs trained: which settings, and the file of measured times that each belongs to.

Runs of one graph, partition and model are one file; each method with its knobs is measured once, staleness and refresh
apart: the first changes no kernel, the second only how often one is run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from gcnsim.core.errors import ScenarioError
from gcnsim.records.recorded_run import RecordedRun, read_recorded_run
from gcnsim.records.run_files import RUN
from runtime.measuring.request import options_from
from runtime.methods import METHODS
from runtime.options import Options

FREE: Final = ("tau", "refresh")
"""Knobs that need no measurement of their own."""

DIGITS: Final = 8


def runs_in(folders: Iterable[str | Path]) -> list[RecordedRun]:
    """The runs in these folders: each is that of a run, or holds those of runs. Those that cannot be measured are left
    out. Raises FileError for a run that cannot be read, ScenarioError where there is none.
    """
    found = []
    for folder in map(Path, folders):
        every = [folder] if (folder / RUN).is_file() else sorted(path.parent for path in folder.glob(f"*/{RUN}"))
        found += [read_recorded_run(path) for path in every]
    can = [run for run in found if run.options["method"] in METHODS and METHODS[run.options["method"]].alone]
    if not can:
        raise ScenarioError("--runs: no recorded run whose parts can be measured; allowed: folders of runtime.train")
    return can


def options_of(run: RecordedRun) -> Options:
    """What trains one part of the run."""
    knobs = {name: value for name, value in run.options["knobs"].items() if name not in FREE}
    return options_from({**run.options, "workers": run.workers, "threads": run.threads, "knobs": knobs})


def files_of(runs: Sequence[RecordedRun]) -> dict[str, tuple[Options, ...]]:
    """The settings of each file, by the file's name: graph, parts and a hash of all that was asked."""
    groups: dict[str, dict[str, Options]] = {}
    for run in runs:
        options = options_of(run)
        plain = options.asdict()
        setting = json.dumps([plain.pop("method"), plain.pop("knobs")], sort_keys=True)
        groups.setdefault(json.dumps(plain, sort_keys=True), {})[setting] = options
    return dict(_named(key, settings) for key, settings in groups.items())


def _named(key: str, settings: dict[str, Options]) -> tuple[str, tuple[Options, ...]]:
    first = next(iter(settings.values()))
    digest = hashlib.sha256("".join([key, *sorted(settings)]).encode()).hexdigest()[:DIGITS]
    return f"{Path(first.graph or first.dataset).stem}-{first.workers}-{digest}.parquet", tuple(settings.values())
