"""The systems and models that the committed set does not train, on graphs that no calibration has seen.

`python -m studies.validate --systems` follows `systems` of `studies/validation_rule.yaml`, written before it runs, and
`--kernels` follows `kernels`, whose runs sum neighbours by other kernels, profiles and calibration included. The six
calibration runs of the committed set, each made several times, calibrate; every other run is predicted, one that the
simulator does not model is listed with its refusal. Runs in out/systems-DRAW (out/kernels-DRAW) that are as the rule
asks are not made again, so a loop that `--minutes` ended goes on. Needs Linux, root, `ip` and `tc`, and GCNSIM_DATA.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import OUT
from gcnsim.errors import GcnsimError
from gcnsim.evidence import scenario_of
from gcnsim.io.yaml_files import read_yaml
from gcnsim.runs.recorded_run import read_recorded_run
from gcnsim.streams import stream
from studies.unseen_graphs import batched, finished, make, scenario_text
from studies.validate import NO_NETWORK, RULE, Planned, arguments, data, data_folder, drawn, judged, was_quiet
from studies.validation_tables import JSON, SYSTEMS, result_table, write_kept, write_table

GENERATED = "generated"


def folder_of(part: str, draw: int) -> Path:
    """Where everything of a draw of a part lies: its profile and calibrating runs are of no other."""
    return OUT / f"{part}-{draw}"


def planned(rule: Mapping[str, Any], part: str = SYSTEMS) -> list[Planned]:
    """All runs: the held-out ones, a few of each setting in turn so that a slow quarter of an hour is no setting's own,
    and those that calibrate the committed set.

    These are made as often as asked, the first before all and the last after all that use a network, so that a slow
    minute is in both.
    """
    question = rule[part]
    settings = [_of_setting(question, repeat, index) for repeat in range(question["repeats"])
                for index in range(len(question["held_out"]))]  # fmt: skip
    # Runs of one cluster and graph are one launch: those of one server come last.
    alone = [run for setting in settings for run in setting if run.hosts == 1]
    launches = _in_turn(question["draw"], [batched([run for run in setting if run.hosts > 1]) for setting in settings])
    runs: list[Planned] = []
    times = question["calibrations"]
    for again in range(times):
        first, last = (len(launches) * end // max(times - 1, 1) for end in (again, again + 1))
        runs += _that_calibrate(rule, again, question["with"])
        runs += [run for few in launches[first:last] for run in few]
    return runs + alone


def _in_turn(draw: int, settings: Sequence[Sequence[tuple[Planned, ...]]]) -> list[tuple[Planned, ...]]:
    """A launch of every setting, in a drawn order, then the next one of each."""
    found = []
    for turn in range(max(map(len, settings))):
        order = stream(draw, "systems turn", turn).permutation(len(settings)).tolist()
        found += [settings[which][turn] for which in order if turn < len(settings[which])]
    return found


def _that_calibrate(rule: Mapping[str, Any], again: int, words: Sequence[str]) -> list[Planned]:
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
        for index, entry in enumerate(rule["calibration"])
    ]


def _of_setting(question: Mapping[str, Any], repeat: int, place: int) -> list[Planned]:
    each = question["held_out"][place]
    graph, hosts, workers = each["graph"], each["hosts"], each["workers_per_host"]
    bandwidth = drawn(each["bandwidth"], question["draw"], place)
    every, runs = _methods(question), []
    for which in stream(question["draw"], "systems order", place, repeat).permutation(len(every)).tolist():
        name, args = f"{graph}-{hosts}x{workers}-m{which}-r{repeat}", tuple(every[which])
        cluster: tuple[int, int, str] = (hosts, workers, bandwidth)
        if args in map(tuple, question["alone"]):
            cluster = (1, hosts * workers, NO_NETWORK)
        words = (*args, *question["with"])
        iterations = question["short"].get(_method_of(args), question["iterations"][graph])
        runs.append(Planned(name, graph, *cluster, words, iterations, calibration=False))
    return runs


def _method_of(args: Sequence[str]) -> str:
    return args[args.index("--method") + 1]


def _methods(question: Mapping[str, Any]) -> list[list[str]]:
    return [*question["methods"], *question["alone"]]


def graphs_of(rule: Mapping[str, Any], folder: Path, part: str = SYSTEMS) -> dict[str, list[str]]:
    """How runtime.train is given each graph: those of the committed set, real ones of the folder, the generated one."""
    width, found = str(rule["model"]["features"]), dict(data(rule, quick=False))
    for name in rule[part]["iterations"]:
        if name == GENERATED:
            made = ["--random-features", width, "--random-classes", "10"]
            path = _generated(rule[part][GENERATED], folder_of(part, rule[part]["draw"]))
            found[name] = ["--graph", str(path), *made]
        elif (folder / f"{name}.npz").is_file():
            found[name] = ["--dataset", name, "--feature-dim", width]
    return found


def _generated(question: Mapping[str, Any], within: Path) -> Path:
    """The rule's block model, drawn where it lies not there yet: the same graph each time."""
    path = within / f"{GENERATED}.npz"
    if not path.is_file():
        words = ["block", *(word for name in ("nodes", "edges", "seed") for word in (f"--{name}", str(question[name])))]
        words += ["--set", f"communities={question['communities']}", "--out", str(path)]
        subprocess.run([_gcnsim(), "graph", "generate", *words], check=True, stdout=subprocess.DEVNULL)
    return path


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


def by_method(
    rule: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    refused: Mapping[Planned, str],
    part: str = SYSTEMS,
) -> str:
    """A line for each of the rule's methods: its runs, their errors, or why none was predicted."""
    errors: dict[tuple[str, ...], list[float]] = {}
    args, words = {run.name: run.args for run in planned(rule, part)}, tuple(rule[part]["with"])
    for row in rows:
        errors.setdefault(args[Path(row["run"]).name], []).append(row["error"])
    document = {run.args: words for run, words in refused.items()}
    lines = ["| trained with | runs | mean error | largest | bias |", "|---|---|---|---|---|"]
    for method in _methods(rule[part]):
        found = errors.get((*method, *words), [])
        line = f"| `{' '.join(method)}` | {len(found)} |"
        if found:
            sizes = [abs(value) for value in found]
            mean, bias = sum(sizes) / len(found), sum(found) / len(found)
            figures = f"{mean:.1%} | {max(sizes):.1%} | {bias:+.1%}".replace("%", " %")
            lines.append(f"{line} {figures} |")
        else:
            lines.append(f"{line} {document.get((*method, *words), 'not made')} | | |")
    return "\n".join(lines) + "\n"


def loop(minutes: float, *, keep: bool, part: str = SYSTEMS, path: Path = RULE, out: Path | None = None) -> int:
    """Make what is lacking and judge what is modelled; 1 where a bound is missed, or not all runs are made.

    path: the rule. out: the folder; None is the one of the rule's draw.
    """
    until = time.monotonic() + 60 * minutes
    rule: dict[str, Any] = read_yaml(path)
    folder = out or folder_of(part, rule[part]["draw"])
    folder.mkdir(parents=True, exist_ok=True)
    graphs = graphs_of(rule, data_folder(), part)
    runs = planned(rule, part)
    if lacking := {run.graph for run in runs} - graphs.keys():
        sys.stderr.write(f"GCNSIM_DATA: has no {', '.join(sorted(lacking))}.npz, which the rule asks for\n")
        return 1
    profile = folder / "profile.json"
    if not profile.is_file():
        command = [sys.executable, "-m", "runtime.profile", "--out", str(profile), *rule[part]["with"]]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    whole = make(runs, rule, graphs, until, folder)
    made = [run for run in runs if finished(run, scenario_text(run, arguments(run, rule, graphs, folder)), folder)]
    seen = [run for run in made if run.calibration]
    held_out = [run for run in made if not run.calibration]
    refused = refusals(held_out, folder)
    known = [run for run in held_out if run not in refused]
    sys.stdout.write(f"{len(made)} of {len(runs)} runs are made; {len(known)} are modelled\n")
    if len(seen) < sum(run.calibration for run in runs) or not known:
        return 1
    found = _predicted(folder, seen, known)
    checks = judged(found, quick=False)
    quiet = was_quiet(folder / "calibration.json", rule[part]["quiet"])
    methods = by_method(rule, found["rows"], refused, part)
    sys.stdout.write("\n" + methods)
    if keep and whole and quiet:
        write_kept(part, found | {"refused": {run.name: reason for run, reason in refused.items()}})
        write_table(part, result_table(found, checks) + "\n" + methods)
    elif keep:
        why = "the machine was not quiet" if whole else "not all runs of the rule are made; call again to go on"
        sys.stderr.write(f"{JSON} is as before: {why}\n")
    return int(not (whole and quiet and all(kept for _, kept in checks)))


def _predicted(folder: Path, seen: Sequence[Planned], held_out: Sequence[Planned]) -> dict[str, Any]:
    """What `gcnsim validate` says of the runs that are held out, by a calibration on those seen."""
    record, result = folder / "calibration.json", folder / "validation.json"
    words = [word for run in seen for word in ("--runs", str(folder / "runs" / run.name))]
    profile = str(folder / "profile.json")
    subprocess.run([_gcnsim(), "calibrate", profile, *words, "--out", str(record)], check=True)
    words = [str(folder / "runs" / run.name) for run in held_out]
    command = [_gcnsim(), "validate", *words, "--calibration", str(record), "--json-out", str(result)]
    subprocess.run([*command, "--out", str(folder)], check=True)
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found


def _gcnsim() -> str:
    return str(Path(sys.executable).with_name("gcnsim"))
