"""`--dry-run`: what a survey would do, write and report about the machine, without starting a worker or writing a file.

It estimates the time and output size of a run, for planning only. Sizes follow from the recorded data (docs/files.md).
Times follow from operations and bytes over the rates below, which are rough values of a typical machine. The survey
itself uses the measured times of its runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp
from typing import Any, Final

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.core.terminal import aligned
from gcnsim.hardware import gpu_of
from runtime.launch import Place
from runtime.microbench.network import versions_here
from runtime.options import Options
from runtime.record import hardware
from runtime.survey.folder import MICROBENCH, NOT_TOLD, commands, earlier, failures
from runtime.survey.rule import STATE, GeneratedGraph, PlannedRun, SurveyRequest, fitting

VALUE: Final = 4
"""Bytes of a float and of a node id."""


@dataclass(frozen=True, slots=True)
class Rates:
    """start_s: time of a run without its iterations. flops_per_s: of each worker. sent_bytes_per_s: of each worker.

    profile_s: of micro-benchmarks, by their level.
    """

    start_s: float
    flops_per_s: float
    sent_bytes_per_s: float
    profile_s: dict[str, float]


RATES: Final = {
    # A survey of two workers on two cores of an AMD EPYC, and messages there.
    "cpu": Rates(1.3, 1e10, 5e8, {"tiny": 5.0, "quick": 20.0, "full": 60.0}),
    # Assumed. Slow on purpose, nearest to a T4 whose rows go through the host.
    "cuda": Rates(4.0, 4e11, 5e8, {"tiny": 10.0, "quick": 60.0, "full": 300.0}),
}

PROFILE_BYTES: Final = {"tiny": 1e5, "quick": 4e5, "full": 1e6}
SPAN_BYTES: Final = 900.0
"""Bytes of a worker's iteration in the timeline, measured."""

STEPS: Final = 3
"""One forward product and two backward ones."""


def seconds(options: Options, made: GeneratedGraph, workers: int, cores: int) -> float:
    """Seconds of a run on `workers` workers of the options' device. cores: of the machine, shared by CPU workers."""
    rates, nodes = RATES[options.device], made.nodes[options.device]
    widths = _widths(options, made)
    dense = sum(into * out for into, out in pairwise(widths))
    sides = 2 if options.model == "graphsage" else 1
    flops = 2.0 * STEPS * nodes * (made.degree * sum(widths[:-1]) + sides * dense)
    at_once = workers if options.device == "cuda" else min(workers, cores)
    share = float(str(options.knobs.get("epsilon", 1.0)))
    sent = 2.0 * VALUE * share * boundary(made, options.device, workers) * sum(widths[:-1])
    step = flops / (rates.flops_per_s * at_once) + sent / (rates.sent_bytes_per_s * workers)
    return rates.start_s + options.iterations * step


def nbytes(options: Options, made: GeneratedGraph, workers: int) -> float:
    """Bytes of a run's folder: access trace, spans, weights, and sampling norms."""
    widths, beyond = _widths(options, made), boundary(made, options.device, workers)
    trace = beyond * (2 * VALUE + options.iterations / 8)
    weights = VALUE * sum(into * out for into, out in pairwise(widths))
    norms = 2 * VALUE * made.nodes[options.device] if "epsilon" in options.knobs else 0
    return trace + weights + norms + SPAN_BYTES * options.iterations * workers + 1e4


def graph_bytes(made: GeneratedGraph, device: str) -> float:
    """Bytes of the file of a generated graph."""
    return made.nodes[device] * (VALUE * made.degree + 2 * VALUE)


def boundary(made: GeneratedGraph, device: str, workers: int) -> float:
    """Boundary nodes of all workers together: far edges end at any worker, near ones within their own."""
    away = made.degree * made.far / workers
    return made.nodes[device] * (workers - 1) * (1.0 - exp(-away))


def _widths(options: Options, made: GeneratedGraph) -> list[int]:
    return [made.features, *[options.hidden] * (options.layers - 1), made.classes]


TRAIN, DONE, LEFT_OUT, FAILED = "train", "done", "left out", "failed"
CALIBRATE, JUDGE = "calibrate", "judge"

HEADS: Final = ("runs", "of", "to", "graph", "trained with", "s each", "MB each")
WORDS: Final = (True, False, True, True, True, False, False)


def preview(request: SurveyRequest, place: Place | None) -> dict[str, Any]:
    """The plan as plain JSON values; place: of this worker, None before any is started.

    Raises GcnsimError for a folder of another survey.
    """
    cuda = request.device == "cuda"
    machine, versions = hardware(cuda), versions_here(cuda)
    servers = 1 if place is None else place.world // place.local_world
    before = _before(request, servers, machine, versions)
    runs = _runs(request, int(machine["cores"]), before)
    level, profiled = request.rule.profile, (request.out / MICROBENCH).is_file()
    profile_s = 0.0 if profiled else RATES[request.device].profile_s[level]
    _fit(request, runs, before, profile_s)
    included = [run for run in runs if run["state"] in (TRAIN, DONE)]
    graphs = [made for made in request.rule.graphs.values() if isinstance(made, GeneratedGraph)]
    return {
        "out": str(request.out),
        "device": request.device,
        "machine": machine,
        "versions": versions,
        "servers": servers,
        "workers": request.workers,
        "rule": request.rule.path.name,
        "minutes": request.minutes,
        "microbenchmarks": {"level": level, "seconds": profile_s, "done": profiled},
        "runs": runs,
        "seconds": profile_s + sum(run["seconds"] or 0.0 for run in runs if run["state"] == TRAIN),
        "bytes": PROFILE_BYTES[level] + sum(entry["bytes"] or 0.0 for entry in included),
        "graph_bytes": sum(graph_bytes(made, request.device) for made in graphs),
        "left_out": [run["name"] for run in runs if run["state"] == LEFT_OUT],
        "notes": list(_notes(request, machine, runs)),
        "afterwards": commands([entry["name"] for entry in included], request.out, request.device),
    }


def _before(
    request: SurveyRequest, servers: int, machine: Mapping[str, Any], versions: Mapping[str, str]
) -> Mapping[str, Any]:
    """The runs of an unfinished survey in the folder; empty without one."""
    if not (request.out / STATE).is_file():
        return {"runs": {}, "failed": {}}
    same = {
        "rule": request.rule.sha256,
        "device": request.device,
        "workers": request.workers,
        "versions": dict(versions),
    }
    # Other servers are unknown before the workers meet.
    same |= {"servers": [dict(machine)]} if servers == 1 else {}
    raw = earlier(request.out, same | {"bandwidth": request.bandwidth})
    return {"runs": raw["runs"], "failed": raw.get("failed", {}) | failures(request.out)}


def _runs(request: SurveyRequest, cores: int, before: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All runs of the rule with their estimates; seconds and bytes are null for graphs that are not generated."""
    found = []
    for run in request.rule.planned():
        options, made = request.task(run).options, request.rule.graphs[run.graph]
        sizes: tuple[float | None, float | None] = (None, None)
        if isinstance(made, GeneratedGraph):
            workers = request.workers
            sizes = seconds(options, made, workers, cores), nbytes(options, made, workers)
        found.append(
            {
                "name": run.name,
                "use": CALIBRATE if run.seen else JUDGE,
                "graph": run.graph,
                **_facts(options),
                "workers": request.workers,
                "args": list(run.args),
                "repeat": run.repeat,
                "seconds": sizes[0],
                "bytes": sizes[1],
                "state": DONE if run.name in before["runs"] else FAILED if run.name in before["failed"] else TRAIN,
            }
        )
    return found


def _facts(options: Options) -> dict[str, Any]:
    return {
        "method": options.method,
        "model": options.model,
        "layers": options.layers,
        "hidden": options.hidden,
        "iterations": options.iterations,
    }


def _fit(request: SurveyRequest, runs: Sequence[dict[str, Any]], before: Mapping[str, Any], profile_s: float) -> None:
    """Scale expected seconds to those of finished runs, and mark runs that would be dropped."""
    took, by_name = before["runs"], {entry["name"]: entry for entry in runs}
    done = [entry for entry in runs if entry["state"] == DONE and entry["seconds"]]
    scale = sum(took[entry["name"]] for entry in done) / sum(entry["seconds"] for entry in done) if done else 1.0
    for entry in runs:
        if entry["state"] == DONE:
            entry["seconds"] = took[entry["name"]]
        elif entry["seconds"] is not None:
            entry["seconds"] *= scale
    known = [entry["seconds"] for entry in runs if entry["seconds"] is not None]
    unknown = sum(known) / len(known) if known else 0.0
    planned: list[PlannedRun] = [run for run in request.rule.planned() if by_name[run.name]["state"] != FAILED]
    expected = {run.name: by_name[run.name]["seconds"] or unknown for run in planned}
    chosen = fitting(planned, took, 60 * request.minutes - profile_s, request.rule.least_repeats, expected)
    names = {run.name for run in chosen}
    for run in planned:
        if by_name[run.name]["state"] == TRAIN and run.name not in names:
            by_name[run.name]["state"] = LEFT_OUT


def _notes(request: SurveyRequest, machine: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The notes to read before it starts."""
    if request.device == "cuda":
        yield "tried on one GPU, not on several: seconds are assumed; please report any failure"
        try:
            gpu_of(machine["gpus"], "this machine")
        except ScenarioError as error:
            yield f"gcnsim calibrate will refuse the folder as it is: {error}"
    elif machine["gpus"]:
        yield f"this machine has {plural(len(machine['gpus']), 'GPU')}: --device cuda surveys them"
    if any(run["seconds"] is None for run in runs):
        yield "times and sizes of runs on graphs that the rule does not generate are unknown, and not in the sums"
    if request.out.is_absolute() or os.pardir in request.out.parts:
        yield f"--out: records contain paths as typed, so they would contain {request.out}; a relative one reveals less"


def preview_text(found: Mapping[str, Any]) -> str:
    """The same in words."""
    machine, minutes = found["machine"], f"{found['minutes']:g} minutes"
    trained = sum(run["state"] == TRAIN for run in found["runs"])
    *afterwards, pack = found["afterwards"]
    lines = [
        f"Survey into {found['out']} (--dry-run: nothing is started, nothing is written)",
        "",
        *aligned(list(_setting(found)), left=2),
        "",
        *aligned(list(_rows(found["runs"])), HEADS, left=WORDS),
        "",
        f"In all about {_minutes(found['seconds'])} minutes for {plural(trained, 'run')} to train, and "
        f"{_megabytes(found['bytes'])} MB to send back",
        f"(graphs, another {_megabytes(found['graph_bytes'])} MB, are not sent).",
        f"Left out within {minutes}: {', '.join(found['left_out']) or 'nothing'}.",
        "The rule, written before any run, says which runs calibrate and which validate; none does both.",
        "",
        "What the folder contains about the machine:",
        *(f"  {line}" for line in _machine_lines(machine, found["versions"])),
        f"  not included: {NOT_TOLD}",
        "",
        "What to do with it, in the folder (its README has these lines too):",
        *(f"  {line}" for line in afterwards),
        "To send it back, in the folder above, then in an issue of the project:",
        f"  {pack}",
        *(f"\nnote: {note}" for note in found["notes"]),
    ]
    return "\n".join(lines) + "\n"


def _setting(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    machine, profile = found["machine"], found["microbenchmarks"]
    using = ", ".join(machine["gpus"]) if found["device"] == "cuda" else plural(machine["cores"], "core")
    yield "device", f"{found['device']}: {using}"
    yield "workers", f"{found['workers']} on {plural(found['servers'], 'server')}"
    yield "rule", f"{found['rule']}, within {found['minutes']:g} minutes"
    did = "done already" if profile["done"] else f"about {_minutes(profile['seconds'])} minutes"
    yield "micro-benchmarks", f"{profile['level']}, {did}"


def _rows(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """One line per configuration, with the number of repeats."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        groups.setdefault(run["name"].rpartition("-r")[0] or run["name"], []).append(run)
    for name, same in sorted(groups.items(), key=lambda item: (item[1][0]["use"], item[0])):
        first = same[0]
        going = sum(entry["state"] != LEFT_OUT for entry in same)
        count = f"{len(same)}" if going == len(same) else f"{going} of {len(same)}"
        known = first["seconds"] is not None
        yield (
            name, count, first["use"], first["graph"], " ".join(first["args"]),
            f"{first['seconds']:.0f}" if known else "?", _megabytes(first["bytes"]) if known else "?",
        )  # fmt: skip


def _machine_lines(machine: Mapping[str, Any], versions: Mapping[str, str]) -> Iterator[str]:
    quota = "" if machine.get("quota") is None else f" ({machine['quota']:g} by quota)"
    yield f"{machine['cpu']}, {machine['cores']} cores{quota}, {machine['memory_bytes'] / 2**30:.0f} GiB"
    yield f"GPUs: {', '.join(machine['gpus']) or 'none'}"
    yield ", ".join(f"{name} {version}" for name, version in versions.items())


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.1f}"
