"""The training runtime: against plain torch, its packing, its bytes, its record, and overlap on a slow link.

CPU, 2 workers on 2 cores, amazon_cs and acl_papers at 128 features (needs GCNSIM_DATA), 3 layers of width 128.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measuring import Figure, report
from benchmarks.slow_link import ADDRESSES, DEVICES, NAMES, link, possible

DATASETS = {"amazon_cs": 60, "acl_papers": 14}
"""Iterations of a run."""

ROUNDS = {"amazon_cs": 5, "acl_papers": 2}
"""Repeats of what is compared."""

MODEL = ("--feature-dim", "128", "--layers", "3", "--hidden", "128", "--eval-every", "0", "--json", "--quiet")
PORT = 29611


def trained(dataset: str, *words: str, record: bool = True) -> dict[str, Any]:
    """The final object of a run, and under `run` what its run.json holds."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "runtime.train", "--dataset", dataset, *MODEL]
        command += ["--iterations", str(DATASETS[dataset]), "--out", folder, *words]
        command += [] if record else ["--no-record"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        final: dict[str, Any] = json.loads(done.stdout)
        final["run"] = json.loads(Path(folder, "run.json").read_text()) if record else {}
    return final


def across(dataset: str, *words: str) -> dict[str, Any]:
    """The final object of a run of two workers, each in its namespace of the slow link."""
    with tempfile.TemporaryDirectory() as folder:
        workers = []
        for rank, (name, device) in enumerate(zip(NAMES, DEVICES, strict=True)):
            env = os.environ | {
                "RANK": str(rank),
                "WORLD_SIZE": "2",
                "MASTER_ADDR": ADDRESSES[0],
                "MASTER_PORT": str(PORT),
                "GLOO_SOCKET_IFNAME": device,
            }
            command = ["ip", "netns", "exec", name, sys.executable, "-m", "runtime.train", "--dataset", dataset, *MODEL]
            command += ["--iterations", str(DATASETS[dataset]), "--out", folder, "--threads", "1", *words]
            workers.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
        printed = [worker.communicate(timeout=300)[0] for worker in workers]
        if any(worker.returncode for worker in workers):
            raise RuntimeError("a worker failed")
    final: dict[str, Any] = json.loads(printed[0])
    return final


def against_plain(dataset: str) -> list[Figure]:
    """One worker against a page of plain torch."""
    ratios, ours, plain = [], [], []
    for _ in range(ROUNDS[dataset]):
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.plain_gcn", dataset, str(DATASETS[dataset])]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        mine = trained(dataset, "--workers", "1")
        ratios.append(mine["iteration_s"] / found["iteration_s"])
        ours.append(mine["iteration_s"])
        plain.append(found["iteration_s"])
    return [
        Figure(f"{dataset}: 1 worker", 1e3 * median(ours), "ms"),
        Figure(f"{dataset}: plain torch, 1 process", 1e3 * median(plain), "ms"),
        Figure(f"{dataset}: 1 worker / plain torch", median(ratios), "", "<= 1.15"),
    ]


def packing_and_record(dataset: str) -> list[Figure]:
    """Share of packing and unpacking on loopback, and what recording costs."""
    pairs = [(trained(dataset), trained(dataset, record=False)) for _ in range(ROUNDS[dataset])]
    share = median(final["pack_s"] / final["iteration_s"] for final, _ in pairs)
    cost = median(on["iteration_s"] / off["iteration_s"] for on, off in pairs) - 1.0
    return [
        Figure(f"{dataset}: packing and unpacking, share of an iteration", 100 * share, "%", "<= 10"),
        Figure(f"{dataset}: recording, share of an iteration", 100 * cost, "%", "<= 2"),
    ]


def sampled_bytes(dataset: str) -> list[Figure]:
    """Bytes of rows and gradients of psc-gcn at epsilon 0.1 against the sum of inclusion probabilities."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "run.trace"))
        final = trained(dataset, "--method", "psc-gcn", "--tau", "2", "--epsilon", "0.1", "--save-trace", path)
        from gcnsim.trace import read_trace

        rows = read_trace(path).expected_rows
    sent = sum(sum(map(sum, final["run"]["bytes"][kind])) for kind in ("rows", "gradients"))
    iterations = DATASETS[dataset]
    # Three layers of rows, two of gradients, 128 float32 values each; rows of the last tau graphs travel too.
    wanted = rows * 128 * 4 * (3 + 2) * iterations
    return [
        Figure(f"{dataset}: bytes of psc-gcn at 0.1 / predicted", sent / wanted, "", ">= 0.98"),
        Figure(f"{dataset}: predicted / bytes of psc-gcn at 0.1", wanted / sent, "", ">= 0.98"),
    ]


def on_a_slow_link(dataset: str) -> list[Figure]:
    """Synchronous and pipelined training on a link whose transfers take about as long as the computation."""
    near = trained(dataset, "--overlap", "none")
    bytes_out = near["bytes_sent"] / 2 / near["iterations"]
    megabits = 8e-6 * bytes_out / near["compute_s"]
    with link(megabits):
        runs = {
            name: across(dataset, *words)
            for name, words in {
                "tau 0, no overlap": ("--overlap", "none"),
                "tau 0, central": ("--overlap", "central"),
                "tau 1": ("--method", "pipegcn"),
                "tau 2": ("--method", "psc-gcn", "--tau", "2", "--epsilon", "1"),
            }.items()
        }
    compute = runs["tau 0, no overlap"]["compute_s"]
    wire = 8e-6 * bytes_out / megabits
    figures = [
        Figure(f"{dataset}: link", megabits, "Mbit/s"),
        Figure(f"{dataset}: compute alone", 1e3 * compute, "ms"),
        Figure(f"{dataset}: communication alone (bytes over bandwidth)", 1e3 * wire, "ms"),
    ]
    figures += [Figure(f"{dataset}: iteration, {name}", 1e3 * run["iteration_s"], "ms") for name, run in runs.items()]
    together, longest = compute + wire, max(compute, wire)
    return [
        *figures,
        Figure(f"{dataset}: tau 0, no overlap / sum", runs["tau 0, no overlap"]["iteration_s"] / together, ""),
        Figure(f"{dataset}: tau 1 / longest", runs["tau 1"]["iteration_s"] / longest, "", "<= 1.2"),
        Figure(f"{dataset}: tau 2 / longest", runs["tau 2"]["iteration_s"] / longest, "", "<= 1.2"),
    ]


def main() -> int:
    """Measure; return the exit code. Skipped, and said so, without the graphs."""
    folder = Path(os.environ.get("GCNSIM_DATA", ""))
    if not all((folder / f"{name}.npz").is_file() for name in DATASETS):
        sys.stdout.write("runtime: skipped; GCNSIM_DATA names no folder with amazon_cs.npz and acl_papers.npz\n")
        return 0
    figures = []
    for dataset in DATASETS:
        figures += [*against_plain(dataset), *packing_and_record(dataset), *sampled_bytes(dataset)]
        if possible():
            figures += on_a_slow_link(dataset)
    if not possible():
        sys.stdout.write("runtime: the slow link is skipped; it needs root, ip and tc\n")
    return report("runtime", "python -m runtime.train, 2 workers on 2 cores, 3 layers of width 128", figures)


if __name__ == "__main__":
    sys.exit(main())
