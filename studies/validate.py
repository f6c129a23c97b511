"""The whole loop: micro-benchmarks, runs on emulated clusters, calibration on six of them, validation on all others.

`python -m studies.validate` follows `studies/validation_rule.yaml`, or the file that `--rule` names: it says before
anything runs what is held out. `--quick` makes a small loop. Everything lies in out/validation afterwards, or in the
folder `--out`; with `--keep` the figures also go to docs/validation.json and the tables to docs/validation.md. The rule
has three other loops: `--unseen` leaves one graph out (`studies/unseen_graphs.py`), `--systems` trains other methods
and models, `--kernels` by other kernels (`studies/other_systems.py`). Needs Linux, root, `ip` and `tc`; graphs come
from GCNSIM_DATA, or are made up.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.measuring import OUT
from gcnsim import units
from gcnsim.calibration_record.record import read_calibration
from gcnsim.io.yaml_files import read_yaml
from gcnsim.streams import stream
from studies.validation_tables import JSON, KERNELS, SYSTEMS, result_table, write_kept, write_table

RULE = Path(__file__).with_name("validation_rule.yaml")
FOLDER = OUT / "validation"
QUICK = {"draw": 0, "repeats": 1, "settings": 1, "methods": 3, "calibration": 2, "calibrations": 1}
"""How much of the rule the quick loop makes, on a made-up graph."""

NO_NETWORK = ""
"""The bandwidth of a cluster of one server."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One run. graph, hosts, workers per host and bandwidth decide the cluster it is made on."""

    name: str
    graph: str
    hosts: int
    workers_per_host: int
    bandwidth: str
    args: tuple[str, ...]
    iterations: int
    calibration: bool

    @property
    def cluster(self) -> tuple[int, int, str]:
        """What one launch has in common."""
        return self.hosts, self.workers_per_host, self.bandwidth


def planned(rule: Mapping[str, Any], *, quick: bool = False) -> list[Planned]:
    """All runs, those of one cluster together, repeats in turn so that a slow minute does not hit one configuration.

    Runs that calibrate are made before the held-out ones, among them and after, so that a slow minute is seen.
    """
    draw, repeats, times = ((QUICK if quick else rule)[name] for name in ("draw", "repeats", "calibrations"))
    given = list(enumerate(rule["calibration"][: QUICK["calibration"] if quick else None]))
    held_out = _held_out(rule, draw, repeats, quick=quick)
    runs = []
    for again in range(times):
        for place, entry in given:
            name = f"calibration-{place}-r{again}"
            runs.append(_run(rule, entry, entry["bandwidth"], entry["args"], name, calibration=True))
        first, last = (len(held_out) * end // max(times - 1, 1) for end in (again, again + 1))
        runs += held_out[first:last]
    return runs


def _held_out(rule: Mapping[str, Any], draw: int, repeats: int, *, quick: bool) -> list[Planned]:
    runs = []
    settings = rule["held_out"][: QUICK["settings"] if quick else None]
    methods = rule["methods"][:: 3 if quick else 1]
    for index, setting in enumerate(settings):
        bandwidth = drawn(setting["bandwidth"], draw, index)
        for repeat in range(repeats):
            order = stream(draw, "order", index, repeat).permutation(len(methods))
            for which in order.tolist():
                name = f"{setting['graph']}-{setting['hosts']}x{setting['workers_per_host']}-m{which}-r{repeat}"
                runs.append(_run(rule, setting, bandwidth, methods[which], name, calibration=False))
    return runs


def _run(
    rule: Mapping[str, Any],
    entry: Mapping[str, Any],
    bandwidth: str,
    args: Sequence[str],
    name: str,
    *,
    calibration: bool,
) -> Planned:
    cluster = entry["hosts"], entry["workers_per_host"], bandwidth
    return Planned(name, entry["graph"], *cluster, tuple(args), rule["iterations"][entry["graph"]], calibration)


def drawn(ends: Sequence[str], draw: int, place: int) -> str:
    """A bandwidth between `ends`, log-uniform, to two digits, in Mbit/s."""
    low, high = (units.bandwidth(end) * 8e-6 for end in ends)
    value = exp(stream(draw, "bandwidth", place).uniform(log(low), log(high)))
    digits = 10 ** (int(np.floor(np.log10(value))) - 1)
    return f"{round(value / digits) * digits:g}Mbps"


def arguments(
    run: Planned, rule: Mapping[str, Any], graphs: Mapping[str, Sequence[str]], within: Path = FOLDER
) -> list[str]:
    """What runtime.train is asked for this run."""
    model = rule["model"]
    folder = within / "runs" / run.name
    words = [*graphs[run.graph], "--layers", str(model["layers"]), "--hidden", str(model["hidden"])]
    words += ["--iterations", str(run.iterations), "--eval-every", "0", "--threads", "1", "--quiet"]
    return [*words, "--save-trace", str(folder / "access.trace"), *run.args]


def train(
    runs: Sequence[Planned], rule: Mapping[str, Any], graphs: Mapping[str, Sequence[str]], within: Path = FOLDER
) -> None:
    """Make all runs, one launch for each cluster."""
    for run in runs:
        (within / "runs" / run.name).mkdir(parents=True, exist_ok=True)
    for cluster, group in groupby(runs, key=lambda run: (run.cluster, run.graph)):
        (hosts, workers, bandwidth), graph = cluster
        chosen = list(group)
        plan = [
            {"out": str(within / "runs" / run.name), "args": arguments(run, rule, graphs, within)} for run in chosen
        ]
        path = within / "plan.yaml"
        path.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
        sys.stderr.write(f"{len(chosen)} runs of {graph} on {hosts} x {workers} {bandwidth and f'at {bandwidth}'}\n")
        if bandwidth == NO_NETWORK:
            for entry in plan:
                command = [sys.executable, "-m", "runtime.train", "--workers", str(workers), "--out", str(entry["out"])]
                subprocess.run([*command, "--overwrite", *entry["args"]], check=True, stdout=subprocess.DEVNULL)
            continue
        command = [sys.executable, "-m", "runtime.emulate", "--hosts", str(hosts), "--workers-per-host", str(workers)]
        command += ["--bandwidth", bandwidth, "--plan", str(path), "--", "--overwrite"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def data_folder() -> Path:
    """Where real graphs are."""
    return Path(os.environ.get("GCNSIM_DATA", ""))


def data(rule: Mapping[str, Any], *, quick: bool, within: Path = FOLDER) -> Iterator[tuple[str, list[str]]]:
    """Where each graph comes from: the data folder, or one made up of as many nodes."""
    folder = data_folder()
    width = str(rule["model"]["features"])
    for name in rule["iterations"]:
        if (folder / f"{name}.npz").is_file() and os.environ.get("GCNSIM_DATA"):
            yield name, ["--dataset", name, "--feature-dim", width]
        else:
            path = balanced_parts(name, 4_000 if quick else 14_000, within)
            sys.stderr.write(f"{name}: GCNSIM_DATA has no such graph; a made-up one stands for it\n")
            yield name, ["--graph", str(path), "--random-features", width, "--random-classes", "10"]


def balanced_parts(name: str, nodes: int, within: Path = FOLDER) -> Path:
    """A graph of hubs and neighbourhoods: most edges near, some far, degrees by a power law."""
    generator = stream(0, "made up", name)
    source = generator.integers(nodes, size=18 * nodes)
    near = (source + (generator.exponential(nodes / 60, source.size) + 1).astype(np.int64)) % nodes
    far = (nodes * generator.random(source.size) ** 3).astype(np.int64)
    target = np.where(generator.random(source.size) < 0.85, near, far)
    path = within / f"{name}.npz"
    from gcnsim.graph import build_csr

    graph = build_csr(source, target, nodes, name)
    np.savez(path, allow_pickle=False, indptr=graph.indptr, indices=graph.indices)
    return path


def main() -> int:
    """Run the loop; the exit code is 1 when a bound of docs/validation.md is missed."""
    parser = argparse.ArgumentParser(prog="studies.validate", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small loop of at most 4 minutes")
    parser.add_argument("--keep", action="store_true", help="write the figures to docs/validation.json")
    parser.add_argument("--unseen", action="store_true", help="leave one graph out instead")
    parser.add_argument("--systems", action="store_true", help="other methods and models instead")
    parser.add_argument("--kernels", action="store_true", help="other kernels, and pooling, instead")
    several = "with --unseen, --systems or --kernels: begin no run after so many"
    parser.add_argument("--minutes", type=float, default=float("inf"), help=several)
    parser.add_argument("--rule", type=Path, default=RULE, help="what is trained and what is held out (YAML)")
    parser.add_argument("--out", type=Path, help="folder of the profile, the runs and the figures")
    options = parser.parse_args()
    if options.keep and options.rule.resolve() != RULE:
        parser.error(f"--keep: not with another rule than {RULE.name}, whose figures the documents give")
    if options.systems or options.kernels:
        from studies.other_systems import loop as of_part

        part = SYSTEMS if options.systems else KERNELS
        return of_part(options.minutes, keep=options.keep, part=part, path=options.rule, out=options.out)
    if options.unseen:
        from studies.unseen_graphs import loop

        return loop(options.minutes, keep=options.keep, path=options.rule, out=options.out)
    if options.quick and options.keep:
        parser.error("--keep: not with --quick, whose few runs are no validation; allowed: one of the two")
    begun = time.perf_counter()
    folder: Path = options.out or FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    rule: dict[str, Any] = read_yaml(options.rule)
    graphs = dict(data(rule, quick=options.quick, within=folder))
    profile, record = folder / "profile.json", folder / "calibration.json"
    gcnsim = str(Path(sys.executable).with_name("gcnsim"))
    command = [sys.executable, "-m", "runtime.profile", "--overwrite", "--out", str(profile)]
    subprocess.run([*command, *(["--quick"] if options.quick else [])], check=True, stdout=subprocess.DEVNULL)
    runs = planned(rule, quick=options.quick)
    train(runs, rule, graphs, folder)
    seen = [word for run in runs if run.calibration for word in ("--runs", str(folder / "runs" / run.name))]
    subprocess.run([gcnsim, "calibrate", str(profile), *seen, "--out", str(record)], check=True)
    quiet = options.quick or was_quiet(record, rule["quiet"])
    held_out = [str(folder / "runs" / run.name) for run in runs if not run.calibration]
    result = folder / "validation.json"
    command = [gcnsim, "validate", *held_out, "--calibration", str(record), "--json-out", str(result)]
    subprocess.run([*command, "--out", str(folder)], check=True)
    found = json.loads(result.read_text(encoding="utf-8"))
    sys.stdout.write(f"\n{(time.perf_counter() - begun) / 60:.1f} minutes\n")
    checks = judged(found, quick=options.quick)
    if options.keep and quiet:
        write_kept("", found)
        write_table("committed set", result_table(found, checks))
    elif options.keep:
        sys.stderr.write(f"{JSON} is as before: the machine was not quiet\n")
    return int(not (quiet and all(kept for _, kept in checks)))


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
