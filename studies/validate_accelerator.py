"""Runs on emulated hosts whose workers wait as long as GPUs would take, and predictions of them.

`python -m studies.validate_accelerator` follows `studies/accelerator_rule.yaml`, which says before anything runs what
is made and what is allowed. Runs that are finished are kept: started again, it makes those that are missing.
`--minutes` ends it earlier, between two clusters, and judges what is there. Everything lies in out/accelerator; the
figures also go to docs/accelerator.json with `--keep`. Needs Linux, root, `ip` and `tc`, and the graphs in GCNSIM_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.measuring import OUT
from gcnsim.core import units
from gcnsim.core.processes import cores
from gcnsim.core.streams import stream
from gcnsim.core.yaml_files import read_yaml
from gcnsim.evidence.validation import judge, payload
from gcnsim.graph import load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.report.evidence import render_validation
from studies.validation_runs import drawn

RULE = Path(__file__).with_name("accelerator_rule.yaml")
FOLDER = OUT / "accelerator"


@dataclass(frozen=True, slots=True)
class Setting:
    """One cluster with the runs that are made on it, in order: name of the folder, arguments of training, scale.

    scale: of the longer iterations, which most runs have.
    """

    name: str
    facts: Mapping[str, Any]
    bandwidth: str
    scale: float
    runs: tuple[tuple[str, tuple[str, ...], float], ...]

    @property
    def workers(self) -> int:
        """On all hosts."""
        return int(self.facts["hosts"] * self.facts["workers_per_host"])


def settings(rule: Mapping[str, Any]) -> list[Setting]:
    """All settings; of each the bandwidth and the order of its runs are drawn."""
    found = []
    for index, facts in enumerate(rule["settings"]):
        bandwidth = drawn(facts["bandwidth"], rule["draw"], index)
        made = facts["hosts"] * units.bandwidth(bandwidth) / units.bandwidth(rule["scale"]["carried"])
        scale = float(max(rule["scale"]["least"], int(np.ceil(made))))
        short = rule["scale"]["short"]
        times = short["times"] if facts["hosts"] * facts["workers_per_host"] >= short["workers"] else 1
        scales = [scale * times if which in short["methods"] else scale for which in range(len(rule["methods"]))]
        name = f"{index}-{facts['graph']}-{facts['hosts']}x{facts['workers_per_host']}"
        order = stream(rule["draw"], "order", index).permutation(len(rule["methods"]))
        runs = tuple((f"{name}-m{which}", tuple(rule["methods"][which]), scales[which]) for which in order.tolist())
        found.append(Setting(name, facts, bandwidth, scale, runs))
    return found


def owners(setting: Setting, folder: Path) -> Path:
    """The file of the setting's partition by METIS, made once; uneven: half of the workers have two of its parts."""
    path = folder / f"{setting.name}.npy"
    if not path.exists():
        workers = setting.workers
        double = workers // 2 if setting.facts.get("uneven") else 0
        graph = load_graph(str(Path(os.environ["GCNSIM_DATA"]) / f"{setting.facts['graph']}.npz"))
        owner = partition_graph(graph, workers + double, "metis", "vol", 0).owner
        np.save(path, np.where(owner >= workers, owner - workers, owner), allow_pickle=False)
    return path


def command(setting: Setting, scale: float, plan: Path, receives: str) -> list[str]:
    """What emulates the setting's cluster at a scale and makes the runs of `plan`."""
    facts = setting.facts
    words = [sys.executable, "-m", "runtime.emulate", "--hosts", str(facts["hosts"])]
    words += ["--workers-per-host", str(facts["workers_per_host"]), "--bandwidth", setting.bandwidth]
    words += ["--accelerator", facts["device"], "--scale", f"{scale:g}", "--receives", receives]
    if "gpus_per_switch" in facts:
        words += ["--gpus-per-switch", str(facts["gpus_per_switch"])]
    if "slow" in facts:
        words += ["--slow-worker", facts["slow"]]
    if "background" in facts:
        rate = units.bandwidth(setting.bandwidth) * facts["background"]
        words += ["--background", units.BANDWIDTH.exact(round(rate))]
    return [*words, "--plan", str(plan), "--", "--overwrite"]


def make(setting: Setting, rule: Mapping[str, Any], folder: Path, receives: str) -> None:
    """Make the runs of a setting that are not there yet."""
    model = rule["model"]
    shared = ["--dataset", setting.facts["graph"], "--feature-dim", str(model["features"]), "--quiet"]
    shared += ["--layers", str(model["layers"]), "--hidden", str(model["hidden"]), "--threads", "1"]
    shared += ["--iterations", str(rule["iterations"]), "--warmup", str(rule["unmeasured"])]
    shared += ["--partition", str(owners(setting, folder))]
    for scale in sorted({scale for *_, scale in setting.runs}):
        missing = [(name, words) for name, words, own in setting.runs if own == scale and not finished(folder / name)]
        if not missing:
            continue
        plan = folder / "plan.yaml"
        entries = [{"out": str(folder / name), "args": [*shared, *words]} for name, words in missing]
        plan.write_text(yaml.safe_dump(entries, sort_keys=False), encoding="utf-8")
        sys.stderr.write(f"{setting.name}: {len(missing)} runs at {setting.bandwidth}, scale {scale:g}\n")
        names = command(setting, scale, plan, receives)
        if subprocess.run(names, check=False, stdout=subprocess.DEVNULL).returncode:
            # On a busy machine a link may be found too slow: what is missing is made when this is started again.
            sys.stderr.write(f"{setting.name}: not all runs were made\n")


def finished(run: Path) -> bool:
    """Whether a run is there with all that a prediction needs."""
    try:
        facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(facts["finished"] and facts["summary"] and (run / "access.trace").is_file())


def checks(found: Mapping[str, Any], bounds: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Each bound of the rule, and whether it is kept."""
    low, high = bounds["coverage"]
    regret, kendall = found["regret"], found["kendall"]
    return [
        (f"mean absolute error {found['mape']:.2%} (<= {bounds['mape']:.0%})", found["mape"] <= bounds["mape"]),
        (f"90th percentile {found['p90_ape']:.2%} (<= {bounds['p90']:.0%})", found["p90_ape"] <= bounds["p90"]),
        (f"bias {found['bias']:+.2%} (within {bounds['bias']:.1%})", abs(found["bias"]) <= bounds["bias"]),
        *(
            (f"{phase} {value['p90']:.2%} (<= {bounds['phase_p90']:.0%})", value["p90"] <= bounds["phase_p90"])
            for phase, value in found["phases"].items()
        ),
        (f"Kendall {kendall} (>= {bounds['kendall']})", kendall is not None and kendall >= bounds["kendall"]),
        (f"regret {regret} (<= {bounds['regret']:.0%})", regret is not None and regret["mean"] <= bounds["regret"]),
        (f"coverage {found['coverage']:.0%} ({low:.0%} to {high:.0%})", low <= found["coverage"] <= high),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make, predict and print; the exit code is 1 when a bound is missed."""
    parser = argparse.ArgumentParser(prog="studies.validate_accelerator", description=__doc__)
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin no cluster after so long")
    parser.add_argument("--receives", choices=("reached", "ahead"), default="reached", help="as of runtime.emulate")
    parser.add_argument("--keep", action="store_true", help="write the figures to docs/accelerator.json")
    options = parser.parse_args(arguments)
    if not os.environ.get("GCNSIM_DATA"):
        parser.error("GCNSIM_DATA: not set; it names the folder of the graphs")
    rule: dict[str, Any] = read_yaml(RULE)
    folder, begun = FOLDER / options.receives, time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    every = settings(rule)
    for setting in every:
        if time.perf_counter() - begun < 60 * options.minutes:
            make(setting, rule, folder, options.receives)
    there = [folder / name for setting in every for name, *_ in setting.runs if finished(folder / name)]
    judged, warnings = judge(there, None, processes=cores())
    found = payload(judged, None, warnings)
    # Partitions are known by their names, wherever they lay when the runs were made.
    text = re.sub(r"(?<=partition )\S*/", "", json.dumps(found, indent=1)) + "\n"
    (folder / "validation.json").write_text(text, encoding="utf-8")
    if options.keep:
        Path("docs/accelerator.json").write_text(text, encoding="utf-8")
    kept = checks(found, rule["bounds"])
    sys.stdout.write(render_validation(found) + "\n\n")
    for words, good in kept:
        sys.stdout.write(f"{'kept  ' if good else 'MISSED'}  {words}\n")
    planned = sum(len(setting.runs) for setting in every)
    minutes, load = (time.perf_counter() - begun) / 60, os.getloadavg()[0]
    sys.stdout.write(f"{len(there)} of {planned} runs, {minutes:.1f} minutes, load {load:.1f}\n")
    return int(not all(good for _, good in kept))


if __name__ == "__main__":
    sys.exit(main())
