"""Leave one graph out: a calibration on all other graphs predicts the runs of the one it has never seen.

`python -m studies.unseen_graphs` (or `studies.validate --unseen`) follows `unseen` of `studies/validation_rule.yaml`,
written before anything runs. Of each graph of GCNSIM_DATA some runs are only calibrated on, others only predicted. Runs
in out/unseen that are as the rule asks are not made again, so a loop that `--minutes` ended goes on; then the graphs
that are whole are judged, and `--keep` is refused. Needs Linux, root, `ip` and `tc`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.measuring import OUT
from gcnsim.io.yaml_files import read_yaml
from gcnsim.streams import stream
from studies.validate import RULE, Planned, arguments, data_folder, drawn, train
from studies.validation_tables import JSON, UNSEEN, write_kept, write_table

FOLDER = OUT / "unseen"
SCENARIO_FILE = "asked.yaml"
"""In a run's folder: what was asked when it was made."""

BATCH = 3
"""Runs of one launch, at most: between launches the clock is looked at."""


def planned(rule: Mapping[str, Any]) -> list[Planned]:
    """All runs. Graphs take turns in each repeat, so that a slow minute does not hit one graph; calibration first."""
    question = rule["unseen"]
    runs = [
        Planned(
            f"calibration-{graph}-{index}",
            graph,
            entry["hosts"],
            entry["workers_per_host"],
            entry["bandwidth"],
            tuple(entry["args"]),
            iterations,
            calibration=True,
        )
        for graph, iterations in question["iterations"].items()
        for index, entry in enumerate(question["calibration"])
    ]
    methods = rule["methods"]
    places = list(enumerate(itertools.product(question["iterations"].items(), question["held_out"])))
    for repeat in range(question["repeats"]):
        for place, ((graph, iterations), entry) in places:
            hosts, workers = entry["hosts"], entry["workers_per_host"]
            bandwidth = drawn(entry["bandwidth"], question["draw"], place)
            for which in stream(question["draw"], "unseen order", place, repeat).permutation(len(methods)).tolist():
                name = f"{graph}-{hosts}x{workers}-m{which}-r{repeat}"
                args = tuple(methods[which])
                runs.append(Planned(name, graph, hosts, workers, bandwidth, args, iterations, calibration=False))
    return runs


def data(rule: Mapping[str, Any], folder: Path) -> dict[str, list[str]]:
    """How runtime.train is given each graph of the rule that the folder has; random features where a graph has none."""
    width, found = str(rule["model"]["features"]), {}
    for name in rule["unseen"]["iterations"]:
        path = folder / f"{name}.npz"
        if path.is_file():
            with np.load(path, allow_pickle=False) as file:
                known = "labels" in file.files
            made_up = ["--graph", str(path), "--random-features", width, "--random-classes", "10"]
            found[name] = ["--dataset", name, "--feature-dim", width] if known else made_up
    return found


def scenario_text(run: Planned, words: Sequence[str]) -> str:
    """What a run is made of, as it is kept beside it."""
    return yaml.safe_dump(asdict(run) | {"args": list(words)}, sort_keys=True)


def finished(run: Planned, name: str, within: Path | None = None) -> bool:
    """Whether the run was made as asked. within: the loop's folder."""
    folder = (within or FOLDER) / "runs" / run.name
    known = folder / SCENARIO_FILE
    return (folder / "run.json").is_file() and known.is_file() and known.read_text(encoding="utf-8") == name


def make(
    runs: Sequence[Planned],
    rule: Mapping[str, Any],
    graphs: Mapping[str, Sequence[str]],
    until: float,
    within: Path | None = None,
) -> bool:
    """Make the runs that are lacking; whether all are there, or time ended before. within: the loop's folder."""
    folder = within or FOLDER
    words = {run: scenario_text(run, arguments(run, rule, graphs, folder)) for run in runs}
    lacking = [run for run in runs if not finished(run, words[run], folder)]
    for _, group in itertools.groupby(lacking, key=lambda run: (run.graph, run.cluster)):
        for batch in batched(list(group)):
            if time.monotonic() > until:
                return False
            train(batch, rule, graphs, folder)
            for run in batch:
                (folder / "runs" / run.name / SCENARIO_FILE).write_text(words[run], encoding="utf-8")
    return True


def batched(runs: Sequence[Planned]) -> list[tuple[Planned, ...]]:
    """`runs` in launches of BATCH at most."""
    return [tuple(runs[first : first + BATCH]) for first in range(0, len(runs), BATCH)]


def folds(runs: Sequence[Planned], there: Sequence[str]) -> dict[str, tuple[list[Planned], list[Planned]]]:
    """By graph left out: the runs calibrated on, all of other graphs, and those predicted, all of its own."""
    return {
        graph: (
            [run for run in runs if run.calibration and run.graph != graph and run.graph in there],
            [run for run in runs if not run.calibration and run.graph == graph],
        )
        for graph in there
    }


def predicted(graph: str, seen: Sequence[Planned], held_out: Sequence[Planned], within: Path) -> dict[str, Any]:
    """The errors of one graph's runs, by a calibration that never saw it. within: the loop's folder."""
    folder = within / graph
    folder.mkdir(parents=True, exist_ok=True)
    gcnsim, record = str(Path(sys.executable).with_name("gcnsim")), folder / "calibration.json"
    words = [word for run in seen for word in ("--runs", str(within / "runs" / run.name))]
    subprocess.run([gcnsim, "calibrate", str(within / "profile.json"), *words, "--out", str(record)], check=True)
    result = folder / "validation.json"
    words = [str(within / "runs" / run.name) for run in held_out]
    command = [gcnsim, "validate", *words, "--calibration", str(record), "--json-out", str(result)]
    subprocess.run([*command, "--out", str(folder)], check=True)
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found


def together(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """All graphs in a few figures: of every run the error by the calibration without its graph."""
    rows = [row for entry in found.values() for row in entry["rows"]]
    errors = np.array([row["error"] for row in rows])
    size = np.abs(errors)
    return {
        "runs": len(rows),
        "mape": float(size.mean()),
        "median_ape": float(np.median(size)),
        "p90_ape": float(np.percentile(size, 90)),
        "max_ape": float(size.max()),
        "bias": float(errors.mean()),
        "coverage": float(np.mean([row["covered"] for row in rows])),
        "graphs": {
            graph: {name: value[name] for name in ("runs", "mape", "p90_ape", "bias")} for graph, value in found.items()
        },
        "rows": rows,
    }


def checks(found: Mapping[str, Any], bounds: Mapping[str, float]) -> list[tuple[str, str, str, bool]]:
    """Each bound of the rule: figure, bound, result, whether it is kept."""
    return [
        ("mean absolute error", f"{bounds['mape']:.0%}", f"{found['mape']:.1%}", found["mape"] <= bounds["mape"]),
        ("90th percentile", f"{bounds['p90']:.0%}", f"{found['p90_ape']:.1%}", found["p90_ape"] <= bounds["p90"]),
        ("bias", f"within {bounds['bias']:.0%}", f"{found['bias']:+.1%}", abs(found["bias"]) <= bounds["bias"]),
    ]


def table(found: Mapping[str, Any], judged: Sequence[tuple[str, str, str, bool]]) -> str:
    """Both tables of docs/validation.md."""
    lines = ["| figure | bound | result |", "|---|---|---|"]
    lines += [f"| {figure} | {bound} | {result}, {_word(kept)} |" for figure, bound, result, kept in judged]
    lines += [f"| coverage of the 90 % intervals | - | {found['coverage']:.1%} |", f"| runs | - | {found['runs']} |"]
    lines += ["", "| graph left out | runs | mean error | 90th percentile | bias |", "|---|---|---|---|---|"]
    lines += [
        f"| {graph} | {value['runs']} | {value['mape']:.1%} | {value['p90_ape']:.1%} | {value['bias']:+.1%} |"
        for graph, value in found["graphs"].items()
    ]
    return "\n".join(lines).replace("%", " %") + "\n"


def _word(kept: bool) -> str:
    return "kept" if kept else "**missed**"


def loop(minutes: float, *, keep: bool, path: Path = RULE, out: Path | None = None) -> int:
    """Make what is lacking, then judge each graph that is whole; 1 where a bound is missed or nothing can be judged.

    path: the rule. out: the folder; None is out/unseen.
    """
    until = time.monotonic() + 60 * minutes
    folder = out or FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    rule: dict[str, Any] = read_yaml(path)
    graphs = data(rule, data_folder())
    profile = folder / "profile.json"
    if not profile.is_file():
        command = [sys.executable, "-m", "runtime.profile", "--out", str(profile)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    runs = [run for run in planned(rule) if run.graph in graphs]
    whole = make(runs, rule, graphs, until, folder)
    made = {run for run in runs if finished(run, scenario_text(run, arguments(run, rule, graphs, folder)), folder)}
    every = folds(runs, list(graphs))
    ready = {graph: fold for graph, fold in every.items() if len(every) > 1 and made.issuperset([*fold[0], *fold[1]])}
    sys.stdout.write(f"{len(made)} of {len(runs)} runs are made; judged: {', '.join(ready) or 'none'}\n")
    if not ready:
        return 1
    found = together({graph: predicted(graph, *fold, folder) for graph, fold in ready.items()})
    judged = checks(found, rule["unseen"]["bounds"])
    text = table(found, judged)
    sys.stdout.write("\n" + text)
    if keep and whole and len(ready) == len(rule["unseen"]["iterations"]):
        write_kept(UNSEEN, found)
        write_table("unseen graphs", text)
    elif keep:
        sys.stderr.write(f"{JSON} is as before: not all runs of the rule are made; call again to go on\n")
    return int(not all(kept for *_, kept in judged))


def main() -> int:
    """The loop from the command line."""
    parser = argparse.ArgumentParser(prog="studies.unseen_graphs", description=__doc__)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so many minutes")
    parser.add_argument("--keep", action="store_true", help="write the figures into docs/validation.json and its page")
    options = parser.parse_args()
    return loop(options.minutes, keep=options.keep)


if __name__ == "__main__":
    sys.exit(main())
