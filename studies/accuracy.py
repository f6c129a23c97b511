"""What each method does to accuracy: amazon_cs and coauthor_phy, 400 iterations, 3 seeds, 3 workers.

`python -m studies.accuracy bound` runs the plain single-process PSC-GCN (`benchmarks.plain_psc`) and writes
`studies/accuracy_bounds.json`: by how much epsilon 0.1 may fall behind full-graph training. It was run, and the file
committed, before the runtime's figures were looked at. `python -m studies.accuracy` trains with the runtime and
judges it: pipegcn, bns-gcn at 0.1 and psc-gcn at epsilon >= 0.3 within a point of full-graph, psc-gcn at 0.1 within its
bound. Needs GCNSIM_DATA.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks.measuring import Figure, report
from benchmarks.plain_psc import Setting, accuracy
from gcnsim.core.processes import cores
from runtime.data import load_dataset
from runtime.options import Options

DATASETS = ("amazon_cs", "coauthor_phy")
SEEDS = (0, 1, 2)
WIDTH = 128
BOUNDS = Path(__file__).with_name("accuracy_bounds.json")
RATES = (0.01, 0.003)
"""Learning rates. What staleness costs shrinks with the rate (PipeGCN bounds it by rate times error)."""

SLACK = 0.005
"""Half a point: what three seeds of the reference may differ from three of the runtime."""

RUNS = {
    "full-graph": ("--method", "full-graph"),
    "pipegcn": ("--method", "pipegcn"),
    "bns-gcn 0.1": ("--method", "bns-gcn", "--rate", "0.1"),
    "bns-gcn 0.05": ("--method", "bns-gcn", "--rate", "0.05"),
    "psc-gcn 1": ("--method", "psc-gcn", "--tau", "2", "--epsilon", "1"),
    "psc-gcn 0.3": ("--method", "psc-gcn", "--tau", "2", "--epsilon", "0.3"),
    "psc-gcn 0.1": ("--method", "psc-gcn", "--tau", "2", "--epsilon", "0.1"),
    "psc-gcn tau 1 0.1": ("--method", "psc-gcn", "--tau", "1", "--epsilon", "0.1"),
}

SHOWN = ("bns-gcn 0.05", "psc-gcn tau 1 0.1")
"""Runs without a bound: what-if shows their losses."""


def bound() -> int:
    """Write what the plain reference says epsilon 0.1 costs."""
    torch.set_num_threads(cores())
    bounds = {}
    for name in DATASETS:
        dataset = load_dataset(Options(dataset=name, feature_dim=WIDTH))
        x = torch.from_numpy(dataset.features.rows(np.arange(dataset.graph.nodes)))
        found = {
            kind: [accuracy(dataset, x, setting, seed) for seed in SEEDS]
            for kind, setting in {"full": Setting(1.0, 0), "psc": Setting(0.1, 2)}.items()
        }
        drop = float(np.mean(found["full"]) - np.mean(found["psc"]))
        bounds[name] = {
            "full_graph": found["full"],
            "psc_gcn_tau2_epsilon0.1": found["psc"],
            "drop": drop,
            "bound": max(drop, 0.0) + SLACK,
        }
        sys.stdout.write(f"{name}: {json.dumps(bounds[name])}\n")
    BOUNDS.write_text(json.dumps(bounds, indent=1) + "\n", encoding="utf-8")
    return 0


def trained(dataset: str, words: tuple[str, ...], seed: int, lr: float) -> float:
    """Test accuracy of the best validation model."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "runtime.train", "--dataset", dataset, "--feature-dim", str(WIDTH)]
        command += ["--layers", "3", "--hidden", "64", "--iterations", "400", "--workers", "3", "--seed", str(seed)]
        command += ["--json", "--quiet", "--out", folder, "--no-record", "--lr", str(lr), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["test_accuracy"])


def measured(dataset: str, lr: float) -> list[Figure]:
    """Accuracy of every run, and how far it is behind full-graph training."""
    limits = json.loads(BOUNDS.read_text(encoding="utf-8"))[dataset]
    means, figures = {}, []
    for name, words in RUNS.items():
        found = [trained(dataset, words, seed, lr) for seed in SEEDS]
        means[name] = float(np.mean(found))
        figures.append(Figure(f"{dataset}: {name}, mean of {len(SEEDS)}", 100 * means[name], "%"))
        figures.append(Figure(f"{dataset}: {name}, spread", 100 * (max(found) - min(found)), "points"))
        if name != "full-graph":
            limit = f"<= {100 * limits['bound']}" if name == "psc-gcn 0.1" else "<= 1"
            behind = 100 * (means["full-graph"] - means[name])
            # The bound of epsilon 0.1 was set at the first learning rate.
            judged = name not in SHOWN and (name != "psc-gcn 0.1" or lr == RATES[0])
            figures.append(Figure(f"{dataset}: {name}, behind", behind, "points", limit if judged else ""))
    return figures


def main(rates: list[float]) -> int:
    """Judge at each learning rate; the exit code is 1 when a bound is missed."""
    missed = 0
    for lr in rates:
        figures = [figure for dataset in DATASETS for figure in measured(dataset, lr)]
        question = f"400 iterations, 3 workers, 3 layers of width 64, 128 features, 3 seeds, Adam at {lr:g}"
        missed |= report(f"accuracy-{lr:g}", question, figures)
    return missed


if __name__ == "__main__":
    sys.exit(bound() if sys.argv[1:] == ["bound"] else main([float(word) for word in sys.argv[1:]] or list(RATES)))
