"""Which runs the validation makes, on which graphs, and the making of them on emulated clusters.

`studies/validation_rule.yaml` says what is held out before anything runs. Runs that are there as the rule asks are not
made again, so a loop that `--minutes` ended goes on.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gcnsim.core import units
from gcnsim.core.streams import stream
from studies.validation_tables import COMMITTED

QUICK = {"draw": 0, "repeats": 1, "settings": 1, "methods": 3, "calibration": 2, "calibrations": 1}
"""How much of the rule the quick loop makes, on a made-up graph."""

NO_NETWORK = ""
"""The bandwidth of a cluster of one server."""

GENERATED = "generated"
SCENARIO_FILE = "asked.yaml"
"""In a run's folder: what was asked when it was made."""

TURN, BATCH = 3, 9
"""Runs of a setting before the next setting's, and of one launch, at most: between launches the clock is looked at."""


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

    @property
    def parts(self) -> tuple[str, int]:
        """The graph, and into how many parts it is cut."""
        return self.graph, self.hosts * self.workers_per_host


def planned(rule: Mapping[str, Any], part: str = COMMITTED, *, quick: bool = False) -> list[Planned]:
    """All runs of a set, its repeats in turn so that a slow minute does not hit one configuration.

    Runs that calibrate are made before the held-out ones, among them and after, so that a slow minute is seen. Of other
    systems a few runs of each setting take turns; those of one server come last.
    """
    question = rule if part == COMMITTED else rule[part]
    times = QUICK["calibrations"] if quick else question["calibrations"]
    seen = [_that_calibrate(rule, again, question["with"], quick=quick) for again in range(times)]
    one_by_one = part == COMMITTED
    held_out = [[run] for run in _held_out(rule, quick=quick)] if one_by_one else _in_turn(question)
    alone = [run for few in held_out for run in few if run.bandwidth == NO_NETWORK]
    launches = [few for few in held_out if few[0].bandwidth != NO_NETWORK]
    runs: list[Planned] = []
    for again, calibrating in enumerate(seen):
        first, last = (len(launches) * end // max(times - 1, 1) for end in (again, again + 1))
        runs += [*calibrating, *(run for few in launches[first:last] for run in few)]
    return runs + alone


def _that_calibrate(rule: Mapping[str, Any], again: int, words: Sequence[str], *, quick: bool) -> list[Planned]:
    return [
        Planned(
            f"calibration-{index}-r{again}",
            entry["graph"],
            entry["hosts"],
            entry["workers_per_host"],
            entry["bandwidth"],
            (*entry["args"], *words),
            rule["iterations"][entry["graph"]],
            calibration=True,
        )
        for index, entry in enumerate(rule["calibration"][: QUICK["calibration"] if quick else None])
    ]


def _held_out(rule: Mapping[str, Any], *, quick: bool) -> list[Planned]:
    draw, repeats = ((QUICK if quick else rule)[name] for name in ("draw", "repeats"))
    runs = []
    methods = rule["methods"][:: QUICK["methods"] if quick else 1]
    for index, setting in enumerate(rule["held_out"][: QUICK["settings"] if quick else None]):
        bandwidth = drawn(setting["bandwidth"], draw, index)
        for repeat in range(repeats):
            order = stream(draw, "order", index, repeat).permutation(len(methods))
            runs += [_run(setting, bandwidth, which, methods[which], repeat, rule) for which in order.tolist()]
    return runs


def _in_turn(question: Mapping[str, Any]) -> list[list[Planned]]:
    """A few runs of every setting, in a drawn order, then the next few of each."""
    settings = [_of_setting(question, repeat, index) for repeat in range(question["repeats"])
                for index in range(len(question["held_out"]))]  # fmt: skip
    every = [batched([run for run in setting if run.bandwidth != NO_NETWORK], TURN) for setting in settings]
    found = []
    for turn in range(max(map(len, every))):
        order = stream(question["draw"], "systems turn", turn).permutation(len(every)).tolist()
        found += [every[which][turn] for which in order if turn < len(every[which])]
    return found + [[run] for setting in settings for run in setting if run.bandwidth == NO_NETWORK]


def _of_setting(question: Mapping[str, Any], repeat: int, place: int) -> list[Planned]:
    setting, every = question["held_out"][place], methods_of(question)
    bandwidth, alone = drawn(setting["bandwidth"], question["draw"], place), list(map(tuple, question["alone"]))
    order = stream(question["draw"], "systems order", place, repeat).permutation(len(every)).tolist()
    return [
        _run(setting, NO_NETWORK if tuple(every[which]) in alone else bandwidth, which, every[which], repeat, question)
        for which in order
    ]


def _run(
    setting: Mapping[str, Any],
    bandwidth: str,
    which: int,
    args: Sequence[str],
    repeat: int,
    question: Mapping[str, Any],
) -> Planned:
    graph, hosts, workers = setting["graph"], setting["hosts"], setting["workers_per_host"]
    name = f"{graph}-{hosts}x{workers}-m{which}-r{repeat}"
    if bandwidth == NO_NETWORK:
        hosts, workers = 1, hosts * workers
    iterations = question.get("short", {}).get(args[args.index("--method") + 1], question["iterations"][graph])
    words = (*args, *question["with"])
    return Planned(name, graph, hosts, workers, bandwidth, words, iterations, calibration=False)


def methods_of(question: Mapping[str, Any]) -> list[list[str]]:
    """What every setting of other systems trains: on its network, then on one server."""
    return [*question["methods"], *question["alone"]]


def drawn(ends: Sequence[str], draw: int, place: int) -> str:
    """A bandwidth between `ends`, log-uniform, to two digits, in Mbit/s."""
    low, high = (units.bandwidth(end) * 8e-6 for end in ends)
    value = exp(stream(draw, "bandwidth", place).uniform(log(low), log(high)))
    digits = 10 ** (int(np.floor(np.log10(value))) - 1)
    return f"{round(value / digits) * digits:g}Mbps"


def arguments(run: Planned, rule: Mapping[str, Any], graphs: Mapping[str, Sequence[str]], within: Path) -> list[str]:
    """What runtime.train is asked for this run. within: the loop's folder."""
    model = rule["model"]
    folder = within / "runs" / run.name
    words = [*graphs[run.graph], "--layers", str(model["layers"]), "--hidden", str(model["hidden"])]
    words += ["--iterations", str(run.iterations), "--eval-every", "0", "--threads", "1", "--quiet"]
    return [*words, "--save-trace", str(folder / "access.trace"), *run.args]


def scenario_text(run: Planned, words: Sequence[str]) -> str:
    """What a run is made of, as it is kept beside it."""
    return yaml.safe_dump(asdict(run) | {"args": list(words)}, sort_keys=True)


def finished(run: Planned, text: str, within: Path) -> bool:
    """Whether the run was made as `text` asks."""
    folder = within / "runs" / run.name
    known = folder / SCENARIO_FILE
    return (folder / "run.json").is_file() and known.is_file() and known.read_text(encoding="utf-8") == text


def make(
    runs: Sequence[Planned],
    rule: Mapping[str, Any],
    graphs: Mapping[str, Sequence[str]],
    until: float,
    within: Path,
    after: Callable[[Sequence[Planned]], None] = lambda _: None,
) -> list[Planned]:
    """Make the runs that are lacking until the clock says so; those that are there then.

    after: gets the runs of each launch.
    """
    texts = {run: scenario_text(run, arguments(run, rule, graphs, within)) for run in runs}
    lacking = [run for run in runs if not finished(run, texts[run], within)]
    for _, group in itertools.groupby(lacking, key=lambda run: (run.graph, run.cluster)):
        for few in batched(list(group), BATCH):
            if time.monotonic() > until:
                break
            train(few, rule, graphs, within)
            for run in few:
                (within / "runs" / run.name / SCENARIO_FILE).write_text(texts[run], encoding="utf-8")
            after(few)
    return there(runs, rule, graphs, within)


def there(
    runs: Sequence[Planned], rule: Mapping[str, Any], graphs: Mapping[str, Sequence[str]], within: Path
) -> list[Planned]:
    """Return those of `runs` that were made as the rule asks."""
    return [run for run in runs if finished(run, scenario_text(run, arguments(run, rule, graphs, within)), within)]


def batched(runs: Sequence[Planned], size: int) -> list[list[Planned]]:
    """`runs` in lists of `size` at most."""
    return [list(runs[first : first + size]) for first in range(0, len(runs), size)]


def train(runs: Sequence[Planned], rule: Mapping[str, Any], graphs: Mapping[str, Sequence[str]], within: Path) -> None:
    """Make runs of one graph and cluster, in one launch."""
    (hosts, workers, bandwidth), graph = runs[0].cluster, runs[0].graph
    for run in runs:
        (within / "runs" / run.name).mkdir(parents=True, exist_ok=True)
    plan = [{"out": str(within / "runs" / run.name), "args": arguments(run, rule, graphs, within)} for run in runs]
    path = within / "plan.yaml"
    path.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    sys.stderr.write(f"{len(runs)} runs of {graph} on {hosts} x {workers} {bandwidth and f'at {bandwidth}'}\n")
    if bandwidth == NO_NETWORK:
        for entry in plan:
            command = [sys.executable, "-m", "runtime.train", "--workers", str(workers), "--out", str(entry["out"])]
            subprocess.run([*command, "--overwrite", *entry["args"]], check=True, stdout=subprocess.DEVNULL)
        return
    command = [sys.executable, "-m", "runtime.emulate", "--hosts", str(hosts), "--workers-per-host", str(workers)]
    command += ["--bandwidth", bandwidth, "--plan", str(path), "--", "--overwrite"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def graphs_of(rule: Mapping[str, Any], part: str, within: Path, *, quick: bool = False) -> dict[str, list[str]]:
    """How runtime.train is given each graph: from the data folder, or made up.

    Raises FileNotFoundError for a real graph of other systems that is not there.
    """
    folder, width = Path(os.environ.get("GCNSIM_DATA", "")), str(rule["model"]["features"])
    made_up = ["--random-features", width, "--random-classes", "10"]
    found = {}
    for name in rule["iterations"]:
        if os.environ.get("GCNSIM_DATA") and (folder / f"{name}.npz").is_file():
            found[name] = ["--dataset", name, "--feature-dim", width]
        else:
            path = _balanced_parts(name, 4_000 if quick else 14_000, within)
            sys.stderr.write(f"{name}: GCNSIM_DATA has no such graph; a made-up one stands for it\n")
            found[name] = ["--graph", str(path), *made_up]
    for name in () if part == COMMITTED else rule[part]["iterations"]:
        if name == GENERATED:
            found[name] = ["--graph", str(_generated(rule[part][GENERATED], within)), *made_up]
        elif (folder / f"{name}.npz").is_file():
            found[name] = ["--dataset", name, "--feature-dim", width]
        else:
            raise FileNotFoundError(f"GCNSIM_DATA: has no {name}.npz, which the rule asks for")
    return found


def _balanced_parts(name: str, nodes: int, within: Path) -> Path:
    """A graph of hubs and neighbourhoods: most edges near, some far, degrees by a power law."""
    from gcnsim.graph import build_csr

    generator = stream(0, "made up", name)
    source = generator.integers(nodes, size=18 * nodes)
    near = (source + (generator.exponential(nodes / 60, source.size) + 1).astype(np.int64)) % nodes
    far = (nodes * generator.random(source.size) ** 3).astype(np.int64)
    target = np.where(generator.random(source.size) < 0.85, near, far)
    path = within / f"{name}.npz"
    graph = build_csr(source, target, nodes, name)
    np.savez(path, allow_pickle=False, indptr=graph.indptr, indices=graph.indices)
    return path


def _generated(question: Mapping[str, Any], within: Path) -> Path:
    """The rule's block model, drawn where it lies not there yet: the same graph each time."""
    path = within / f"{GENERATED}.npz"
    if not path.is_file():
        words = ["block", *(word for name in ("nodes", "edges", "seed") for word in (f"--{name}", str(question[name])))]
        words += ["--set", f"communities={question['communities']}", "--out", str(path)]
        command = [str(Path(sys.executable).with_name("gcnsim")), "graph", "generate", *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path
