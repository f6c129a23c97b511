"""The whole loop: runs on emulated clusters, their parts measured beside them, links measured, predictions compared.

`python -m studies.validate` follows `studies/validation_rule.yaml`, or the file that `--rule` names: it says before
anything runs what is held out. After the runs, `runtime.measure` times their parts and messages between processes; six
runs, made several times, fit the links; all others are predicted. `--quick` makes a small loop, `--systems` trains
other methods and models, `--kernels` sums by other kernels. Everything lies in out/validation (out/systems-DRAW, ..)
afterwards, or in the folder `--out`; runs that are there as the rule asks are not made again. With `--keep` the figures
also go to docs/validation.json and the tables to docs/validation.md. Needs Linux, root, `ip` and `tc`; graphs come from
GCNSIM_DATA, or are made up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import OUT
from gcnsim.core.errors import GcnsimError
from gcnsim.core.yaml_files import read_yaml
from gcnsim.evidence.recorded_run import scenario_of
from gcnsim.records.calibration import read_calibration
from gcnsim.records.recorded_run import read_recorded_run
from runtime.measuring.request import files_of, runs_in
from studies.validation_runs import Planned, graphs_of, make, planned, there
from studies.validation_tables import (
    COMMITTED,
    JSON,
    KERNELS,
    SYSTEMS,
    TABLES,
    by_method,
    result_table,
    write_kept,
    write_table,
)

RULE = Path(__file__).with_name("validation_rule.yaml")
EACH_S = {False: 7.0, True: 5.0}
"""Seconds in which the parts of a setting are measured, in a whole loop and in a quick one."""


def main() -> int:
    """Run the loop; the exit code is 1 when a bound of docs/validation.md is missed."""
    parser = argparse.ArgumentParser(prog="studies.validate", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small loop of at most 4 minutes")
    parser.add_argument("--keep", action="store_true", help="write the figures to docs/validation.json")
    parser.add_argument("--systems", action="store_true", help="other methods and models instead")
    parser.add_argument("--kernels", action="store_true", help="other kernels instead")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so many")
    parser.add_argument("--rule", type=Path, default=RULE, help="what is trained and what is held out (YAML)")
    parser.add_argument("--out", type=Path, help="folder of the runs, the measurements and the figures")
    options = parser.parse_args()
    if options.keep and options.rule.resolve() != RULE:
        parser.error(f"--keep: not with another rule than {RULE.name}, whose figures the documents give")
    if options.quick and (options.keep or options.systems or options.kernels):
        other = "keep" if options.keep else "systems" if options.systems else "kernels"
        parser.error(f"--{other}: not with --quick, whose few runs are no validation; allowed: one of the two")
    part = SYSTEMS if options.systems else KERNELS if options.kernels else COMMITTED
    rule: dict[str, Any] = read_yaml(options.rule)
    folder: Path = options.out or OUT / ("validation" if part == COMMITTED else f"{part}-{rule[part]['draw']}")
    return loop(rule, part, folder, minutes=options.minutes, quick=options.quick, keep=options.keep)


def loop(rule: Mapping[str, Any], part: str, folder: Path, *, minutes: float, quick: bool, keep: bool) -> int:
    """Make what is lacking, measure, predict and judge; 1 where a bound is missed, or not all runs are made."""
    begun = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    runs = planned(rule, part, quick=quick)
    beside, graphs = Beside(runs, folder, EACH_S[quick]), graphs_of(rule, part, folder, quick=quick)
    beside(there(runs, rule, graphs, folder))
    made = make(runs, rule, graphs, begun + 60 * minutes, folder, beside)
    refused = refusals([run for run in made if not run.calibration], folder)
    known = [run for run in made if run not in refused]
    sys.stdout.write(f"{len(made)} of {len(runs)} runs are made; {len(made) - len(refused)} are modelled\n")
    if len(made) < len(runs):
        sys.stderr.write("call again to make the others\n")
        return 1
    measure(known, folder, EACH_S[quick])
    measure_links(folder)
    found = predicted(known, folder)
    sys.stdout.write(f"\n{(time.monotonic() - begun) / 60:.1f} minutes\n")
    checks = judged(found, quick=quick)
    quiet = quick or was_quiet(folder / "calibration.json", (rule if part == COMMITTED else rule[part])["quiet"])
    methods = "" if part == COMMITTED else "\n" + by_method(rule[part], planned(rule, part), found["rows"], refused)
    sys.stdout.write(methods)
    if keep and quiet:
        listed = {} if part == COMMITTED else {"refused": {run.name: reason for run, reason in refused.items()}}
        write_kept(part, found | listed)
        write_table(TABLES[part], result_table(found, checks, settings=not methods) + methods)
    elif keep:
        sys.stderr.write(f"{JSON} is as before: the machine was not quiet\n")
    return int(not (quiet and all(kept for _, kept in checks)))


class Beside:
    """Measures the parts of a graph as soon as each setting that trains them was made once.

    A machine's speed changes within minutes, so parts are measured next to the runs.
    """

    def __init__(self, runs: Sequence[Planned], within: Path, each_s: float) -> None:
        """runs: all of the loop."""
        self._within, self._each_s = within, each_s
        self._lacking: dict[tuple[str, int], set[tuple[str, ...]]] = {}
        self._made: dict[tuple[str, int], list[Planned]] = {}
        for run in runs:
            self._lacking.setdefault(run.parts, set()).add(run.args)

    def __call__(self, made: Sequence[Planned]) -> None:
        """Hear of runs that were made."""
        for run in made:
            self._made.setdefault(run.parts, []).append(run)
            lacking = self._lacking[run.parts]
            if run.args in lacking and not (lacking := lacking - {run.args}):
                known = self._made[run.parts]
                refused = refusals(known, self._within)
                measure([one for one in known if one not in refused], self._within, self._each_s)
            self._lacking[run.parts] = lacking


def refusals(runs: Sequence[Planned], within: Path) -> dict[Planned, str]:
    """The runs that the simulator says it does not model, with what it says."""
    found = {}
    for run in runs:
        path = within / "runs" / run.name
        try:
            scenario_of(read_recorded_run(path))
        except GcnsimError as error:
            found[run] = str(error).removeprefix(f"{path}: ")
    return found


def measure(runs: Sequence[Planned], within: Path, each_s: float) -> None:
    """Times of the runs' parts, into `within`; what is there stays."""
    paths = [str(within / "runs" / run.name) for run in runs]
    every = files_of(runs_in(paths)) if paths else {}
    lacking = [settings for name, settings in every.items() if not (within / "measured" / name).is_file()]
    if not lacking:
        return
    words = [word for path in paths for word in ("--runs", path)]
    command = [sys.executable, "-m", "runtime.measure", *words, "--out", str(within / "measured")]
    seconds = each_s * sum(map(len, lacking))
    subprocess.run([*command, "--seconds", f"{seconds:g}"], check=True, stdout=subprocess.DEVNULL)


def measure_links(within: Path) -> None:
    """What messages cost, into `within`, unless it is there."""
    links = within / "links.json"
    if not links.is_file():
        command = [sys.executable, "-m", "runtime.measure", "--links", "--out", str(links)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def predicted(runs: Sequence[Planned], within: Path) -> dict[str, Any]:
    """What `gcnsim validate` says of the runs that are held out: parts as measured, links fitted to the others."""
    gcnsim, record, result = (
        str(Path(sys.executable).with_name("gcnsim")),
        within / "calibration.json",
        "validation.json",
    )
    compute = ["--measured-compute", str(within / "measured")]
    seen = [word for run in runs if run.calibration for word in ("--runs", str(within / "runs" / run.name))]
    command = [gcnsim, "calibrate", str(within / "links.json"), *seen, *compute, "--out", str(record), "--overwrite"]
    subprocess.run(command, check=True)
    held_out = [str(within / "runs" / run.name) for run in runs if not run.calibration]
    command = [gcnsim, "validate", *held_out, "--calibration", str(record), *compute, "--overwrite"]
    subprocess.run([*command, "--json-out", str(within / result), "--out", str(within)], check=True)
    found: dict[str, Any] = json.loads((within / result).read_text(encoding="utf-8"))
    return found


def was_quiet(record: Path, allowed: float) -> bool:
    """Whether the calibrating runs of one configuration took alike, before, among and after the others.

    They say nothing of predictions: where they differ, so do the runs that are predicted, and no model can be judged.
    """
    spread = read_calibration(record).spread
    quiet = spread is not None and spread <= allowed
    differ = "are not repeated" if spread is None else f"differ by {100 * spread:.1f} % (standard deviation)"
    words = f"calibrating runs of one configuration {differ}; a quiet machine: at most {100 * allowed:g} %"
    sys.stdout.write(f"{'quiet  ' if quiet else 'NOT JUDGED:'} {words}\n")
    return quiet


def judged(found: Mapping[str, Any], *, quick: bool) -> list[tuple[str, bool]]:
    """Each bound of docs/validation.md, and whether it is kept; the quick loop has one wide bound."""
    if quick:
        checks = [("mean absolute error <= 50 %", found["mape"] <= 0.5)]
    else:
        checks = [
            ("mean absolute error <= 4 %", found["mape"] <= 0.04),
            ("90th percentile <= 12 %", found["p90_ape"] <= 0.12),
            ("bias within 1.5 %", abs(found["bias"]) <= 0.015),
            *(
                (f"{phase} within 12 % of the iteration", value["p90"] <= 0.12)
                for phase, value in found["phases"].items()
            ),
            ("Kendall >= 0.9", found["kendall"] is not None and found["kendall"] >= 0.9),
            ("regret <= 3 %", found["regret"] is not None and found["regret"]["mean"] <= 0.03),
            ("coverage 85 to 97 %", 0.85 <= found["coverage"] <= 0.97),
        ]
    for words, kept in checks:
        sys.stdout.write(f"{'kept  ' if kept else 'MISSED'}  {words}\n")
    return checks


if __name__ == "__main__":
    sys.exit(main())
