"""Measured compute beside fitted laws: predictions of the same recorded runs, side by side.

`python -m studies.measured_compute FOLDER` takes the folder of a finished `studies.validate` loop: profile, runs and
calibration. It measures the parts of every graph that held-out runs trained, by the code of `runtime.measure`, on the
same machine. Then it predicts these runs by the calibration's laws; by measured compute with links that were measured
and fitted to no run; and, where one calibration is of all graphs, with links fitted to the runs that it saw.
`--quick` measures two seconds for a setting. Measured files that are there are kept. Run it on a quiet machine, right
after the loop.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gcnsim.api import calibrate
from gcnsim.errors import GcnsimError
from gcnsim.evidence import scenario_of
from gcnsim.processes import cores
from gcnsim.runs.recorded_run import RecordedRun, read_recorded_run
from gcnsim.validation import RunCheck, judge, row_of, summarise
from runtime.measuring.document import about, write
from runtime.measuring.request import MeasureRequest, options_from
from runtime.measuring.workload import measured
from runtime.methods import METHODS
from runtime.options import Options

FREE = ("tau", "refresh")
"""Knobs that need no measurement of their own."""

LAWS, FITTED, ALONE = "laws", "measured, links fitted to the same runs", "measured, links measured"
CALIBRATES = "calibration"
"""What the names of runs that calibrate begin with."""

FIGURES = ("mape", "median_ape", "p90_ape", "max_ape", "bias", "coverage")


def made(folder: Path, *, calibrating: bool) -> list[RecordedRun]:
    """The loop's runs that calibrate, or those that are predicted, as far as both ways can predict them."""
    found = []
    for path in sorted((folder / "runs").iterdir()):
        if path.name.startswith(CALIBRATES) != calibrating or not (path / "run.json").is_file():
            continue
        run = read_recorded_run(path)
        try:
            scenario_of(run)
        except GcnsimError:
            continue
        if METHODS[run.options["method"]].alone:
            found.append(run)
    return found


def options_of(run: RecordedRun) -> Options:
    """What trains one part of the run."""
    knobs = {name: value for name, value in run.options["knobs"].items() if name not in FREE}
    return options_from({**run.options, "workers": run.workers, "threads": run.threads, "knobs": knobs})


def measure(runs: Sequence[RecordedRun], into: Path, each_s: float) -> list[Path]:
    """Files of measured compute, one for each graph, partition and model."""
    groups: dict[str, dict[str, Options]] = {}
    for run in runs:
        options = options_of(run)
        plain = options.asdict()
        setting = json.dumps([plain.pop("method"), plain.pop("knobs")], sort_keys=True)
        groups.setdefault(json.dumps(plain, sort_keys=True), {})[setting] = options
    into.mkdir(exist_ok=True)
    paths = []
    for key, settings in groups.items():
        first, every = next(iter(settings.values())), [key, *sorted(settings)]
        kept = hashlib.sha256("".join(every).encode()).hexdigest()[:8]
        path = into / f"{Path(first.graph or first.dataset).stem}-{first.workers}-{kept}.parquet"
        paths.append(path)
        if path.is_file():
            continue
        measure_request = MeasureRequest(tuple(settings.values()), each_s * len(settings))
        measured_workload = measured(measure_request, lambda _: None)
        write(path, about(measured_workload), measured_workload.settings)
        took = sum(item.seconds for item in measured_workload.settings)
        sys.stderr.write(f"{path.name}: {len(settings)} settings in {took:.0f} s{_notes(measured_workload.notes)}\n")
    return paths


def _notes(notes: Sequence[str]) -> str:
    return "".join(f"; {note}" for note in notes if "other programs" in note)


def links(folder: Path, seen: Sequence[RecordedRun], files: Sequence[Path]) -> Path:
    """A record of measured links; where runs are `seen`, fitted to them with the measured compute of `files`."""
    raw, record = folder / "links.json", folder / f"links-{'fitted' if seen else 'measured'}.json"
    if not raw.is_file():
        command = [sys.executable, "-m", "runtime.measure", "--links", "--out", str(raw)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    calibrate(raw, [run.path for run in seen], record, measured_compute=files if seen else ())
    return record


def predicted(runs: Sequence[RecordedRun], folder: Path) -> list[RunCheck]:
    """Each run by the loop's calibration; of a loop that leaves graphs out, by the one without the run's graph."""
    found = []
    for graph in dict.fromkeys(run.graph["name"] for run in runs):
        own = folder / graph / "calibration.json"
        record = own if own.is_file() else folder / "calibration.json"
        paths = [run.path for run in runs if run.graph["name"] == graph]
        found += judge(paths, record, processes=cores())[0]
    return found


def table(found: dict[str, list[RunCheck]], methods: dict[str, str]) -> str:
    """The figures of every way, then mean error and bias by method."""
    lines = [f"| | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|"]
    figures = [summarise(checks) for checks in found.values()]
    for name in FIGURES:
        values = [figure[name] for figure in figures]
        cells = " | ".join("-" if value is None else f"{100 * value:{'+' * (name == 'bias')}.1f} %" for value in values)
        lines.append(f"| {name} | {cells} |")
    for method in sorted(set(methods.values())):
        columns = []
        for run_checks in found.values():
            errors = np.array([check.error for check in run_checks if methods[check.run] == method])
            columns.append(f"{100 * np.abs(errors).mean():.1f} % ({100 * errors.mean():+.1f} %)")
        lines.append(f"| {method} | {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str]) -> int:
    """Measure what is lacking, predict in three ways, print the table and write FOLDER/measured.json."""
    parser = argparse.ArgumentParser(prog="studies.measured_compute", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of a finished studies.validate loop")
    parser.add_argument("--quick", action="store_true", help="two seconds a setting in place of seven")
    arguments = parser.parse_args(argv)
    folder: Path = arguments.folder
    runs, seen = made(folder, calibrating=False), made(folder, calibrating=True)
    paths = measure([*runs, *seen], folder / "measured", 2.0 if arguments.quick else 7.0)
    every = [run.path for run in runs]
    found = {
        LAWS: predicted(runs, folder),
        ALONE: judge(every, links(folder, (), ()), measured=paths, processes=cores())[0],
    }
    if (folder / "calibration.json").is_file():
        record = links(folder, seen, paths)
        found[FITTED] = judge(every, record, measured=paths, processes=cores())[0]
    text = table(found, {run.path.name: run.options["method"] for run in runs})
    sys.stdout.write(text)
    document: dict[str, Any] = {name: [row_of(check) for check in checks] for name, checks in found.items()}
    (folder / "measured.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
