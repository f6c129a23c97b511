"""How long the parts of an answer take, and the law by which that is announced (`gcnsim/planning/durations.py`).

    python -m benchmarks.bench_durations            measure, fit, print the law and its errors
    python -m benchmarks.bench_durations --write    also write gcnsim/data/durations.yaml

Processor time of one core; two GPUs in a server, the default dataset, bandwidths of 5, 15 and 50 Gbit/s. A part's
coefficients are least squares on logarithms. Settings of `LEFT_OUT` GPUs are not fitted: the errors over them say what
the law is worth, and those of whole questions what is announced is.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from benchmarks.measuring import OUT, finished, machine
from gcnsim.planning.durations import FEATURES, FILE, Law, Size
from gcnsim.scenario import SCHEMA, Scenario, from_mapping

GPUS: Final = (2, 4, 6, 8, 12, 16, 24, 48, 96)
LEFT_OUT: Final = (6, 16, 24)
METHODS: Final[Sequence[Mapping[str, Any]]] = (
    {"name": "full-graph"},
    {"name": "pipegcn"},
    {"name": "bns-gcn"},
    {"name": "psc-gcn", "tau": 0},
    {"name": "psc-gcn", "tau": 1},
    {"name": "psc-gcn", "tau": 2},
    {"name": "psc-gcn", "tau": 3},
)
FEW_METHODS: Final = (METHODS[0], METHODS[1], METHODS[5])
BANDWIDTHS: Final = ("15Gbps", "5Gbps", "50Gbps")
MANY: Final = 48
"""GPUs from which on few methods, and from twice as many on no runs until they are steady, are measured: a few
iterations say what an op takes."""

MOST_OPS: Final = 300_000
"""Ops that are simulated where only the time of an op is asked for, in whole iterations, at least two."""

ENGINES: Final = {"compiled": GPUS, "reference": (2, 4, 6, 12, 24), "coarse": (12, 24, 48, 96)}
RANKED: Final = (2, 4, 6, 8, 12, 16, 24, 48, 96)
DRAWN: Final = (2, 4, 6, 8, 12, 16, 24, 48)
ASKED: Final = (2, 4, 6, 8, 12, 16, 24)
"""Whole questions, by GPUs, at the first two bandwidths and of one method and of four."""

Row: TypeAlias = dict[str, Any]


def main() -> int:
    """Measure, fit, print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the coefficients into the package")
    parser.add_argument("--rows", help="a JSON file of rows measured before, instead of measuring")
    parser.add_argument("--measure", choices=(*ENGINES, "questions"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        for row in questions() if asked.measure == "questions" else parts(asked.measure):
            sys.stdout.write(json.dumps(row) + "\n")
            sys.stdout.flush()
        return 0
    if asked.rows:
        with open(asked.rows, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
    else:
        rows = [row for name in ENGINES for row in measured(name)]
    law = fitted(rows)
    show(law, rows)
    OUT.mkdir(exist_ok=True)
    content: dict[str, Any] = {"benchmark": "durations", "machine": machine(), "rows": rows, "parts": law.parts}
    (OUT / "durations.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if asked.write:
        FILE.write_text(written(law), encoding="utf-8")
    if FILE.is_file():
        show_questions(measured("questions"))
    return 0


def measured(name: str) -> list[Row]:
    """The rows of a process of its own: of the parts by this engine, or of whole questions."""
    environment = os.environ | {"GCNSIM_ENGINE": "reference" if name == "reference" else "compiled"}
    command = [sys.executable, "-m", "benchmarks.bench_durations", "--measure", name]
    found = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found.append(json.loads(line))
            sys.stderr.write(line)
    if process.returncode:
        raise SystemExit(process.returncode)
    return found


def asked_for(method: Mapping[str, Any], gpus: int, bandwidth: str = BANDWIDTHS[0], **run: Any) -> Scenario:
    """A setting that is measured."""
    cluster = {"gpus": gpus, "bandwidth": bandwidth}
    given = {"schema": SCHEMA, "method": dict(method), "cluster": cluster, "run": run}
    return from_mapping(given, "benchmark")


def parts(name: str) -> Iterator[Row]:
    """Rows of one engine; of the compiled one also of all that is not the engine."""
    warm()
    for gpus in ENGINES[name]:
        for method in METHODS if name == "compiled" else FEW_METHODS:
            yield op_row(name, asked_for(method, gpus, fidelity="coarse" if name == "coarse" else "exact"))
    if name == "compiled":
        yield from other_rows()


def other_rows() -> Iterator[Row]:
    """Rows of all that is not the engine."""
    for gpus in GPUS:
        for method in METHODS if gpus < MANY else FEW_METHODS:
            for bandwidth in BANDWIDTHS if gpus <= 12 else BANDWIDTHS[:1]:
                yield from study_rows(asked_for(method, gpus, bandwidth), settled=gpus < 2 * MANY)
    yield from (ranking_row(gpus) for gpus in RANKED)
    yield start_row()
    for gpus in DRAWN:
        yield from (draw_row(asked_for(method, gpus)) for method in FEW_METHODS)


def warm() -> None:
    """What is imported and laid out the first time would be most of a short run."""
    list(study_rows(asked_for(METHODS[5], GPUS[0]), settled=True))
    ranking_row(GPUS[0])
    draw_row(asked_for(METHODS[0], GPUS[0]))


def start_row() -> Row:
    """Seconds of a new process until it asks, and of what it prints: those of a short question less all other parts."""
    arguments = ("what-if", "--gpus", "2", "--method", "full-graph", "--processes", "1")
    whole = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        finished(arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        whole.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    inside = question_row(2, BANDWIDTHS[0], "full-graph")["value"]
    return row("start", asked_for(METHODS[0], 2), max(0.0, min(whole) - inside))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of processor time, and what `work` returns."""
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def row(part: str, scenario: Scenario, value: float, **more: Any) -> Row:
    """One measurement of a part."""
    return {"part": part, "scenario": described(scenario), "gpus": scenario.cluster.gpus, "value": value, **more}


def described(scenario: Scenario) -> Row:
    """What `asked_for` makes the scenario of again."""
    method: Row = {"name": scenario.method.name}
    if scenario.method.has("tau"):
        method["tau"] = scenario.method.tau
    return {
        "method": method,
        "gpus": scenario.cluster.gpus,
        "bandwidth": f"{scenario.cluster.bandwidth:.0f}B/s",
        "fidelity": scenario.run.fidelity,
    }


def op_row(name: str, scenario: Scenario) -> Row:
    """Seconds of an op of an iteration."""
    from gcnsim.engine import simulate
    from gcnsim.schedule import bounds
    from gcnsim.simulation.fidelity import as_closely
    from gcnsim.simulation.run import write_schedule
    from gcnsim.sources import RangeEnd, open_source, resolve_model

    accesses = open_source(scenario)
    features = resolve_model(scenario.workload, accesses.declared).features
    calm = write_schedule(scenario, accesses.counts(scenario, features, RangeEnd.LIKELY), accesses)
    schedule = as_closely(calm, scenario, bounds(calm).lower_s)
    count = max(2, min(20, MOST_OPS // schedule.columns.size))
    seconds = min(timed(lambda: simulate(schedule, count))[0] for _ in range(2 if scenario.cluster.gpus < MANY else 1))
    return row(name, scenario, seconds / (count * schedule.columns.size), ops=schedule.columns.size)


def study_rows(scenario: Scenario, *, settled: bool) -> Iterator[Row]:
    """Iterations until steady, and seconds of all else of a setting; not settled: of a run of few iterations."""
    import gcnsim.simulation.run as room
    from gcnsim.planning import StudyCache
    from gcnsim.uncertainty import estimated_counts

    studies = StudyCache(scenario)
    estimated_counts(scenario, studies.accesses)
    seconds, engine_s = beside_engine(room, lambda: studies.prepare([], [scenario]), None if settled else 4)
    yield row("study", scenario, seconds)
    if settled:
        yield row("iterations", scenario, studies.result(scenario).run.simulated, engine_s=engine_s)


def beside_engine(room: Any, work: Callable[[], Any], most: int | None = None) -> tuple[float, float]:
    """Seconds of `work` besides the engine, and of the engine, as the module `room` calls it; most: iterations."""
    engine_s, simulate = [0.0], room.simulate

    def watched(schedule: Any, iterations: int, *rest: Any, **more: Any) -> Any:
        seconds, run = timed(lambda: simulate(schedule, most or iterations, *rest, **more))
        engine_s[0] += seconds
        return run

    room.simulate = watched
    try:
        seconds, _ = timed(work)
    finally:
        room.simulate = simulate
    return seconds - engine_s[0], engine_s[0]


def ranking_row(gpus: int) -> Row:
    """Seconds of ranking the candidates of a machine."""
    from gcnsim.planning import Rule, StudyCache
    from gcnsim.planning.recommend import shortlist

    scenario = asked_for(METHODS[-1], gpus)
    studies = StudyCache(scenario)
    seconds, found = timed(lambda: shortlist(studies, scenario, Rule()))
    return row("ranking", scenario, seconds, candidates=len(found))


def draw_row(scenario: Scenario) -> Row:
    """Seconds of a simulated draw of the assumptions, besides what its ops take."""
    import gcnsim.uncertainty.simulated as room
    from gcnsim.planning import StudyCache

    runs = room.DrawnRuns.of(scenario, StudyCache(scenario).accesses, 0)
    seconds, engine_s = beside_engine(room, lambda: [runs.pace(draw) for draw in range(0, 64, 16)])
    return row("draw", scenario, seconds / 4, engine_s=engine_s / 4)


def questions() -> Iterator[Row]:
    """Whole questions: seconds, and those expected, both without the start of the process."""
    warm()
    for gpus in ASKED:
        for bandwidth in BANDWIDTHS[:2] if gpus < 24 else BANDWIDTHS[:1]:
            yield from (question_row(gpus, bandwidth, method) for method in (None, "psc-gcn"))


def question_row(gpus: int, bandwidth: str, method: str | None) -> Row:
    """One whole question."""
    import gcnsim
    from gcnsim.planning.durations import fitted_law

    room = importlib.import_module("gcnsim.planning.what_if")
    asked: list[Any] = []
    before, room.announced = room.announced, lambda work, cores: asked.append(work)  # type: ignore[attr-defined]
    try:
        seconds, _ = timed(lambda: gcnsim.what_if(gpus=gpus, bandwidth=bandwidth, method=method, processes=1))
    finally:
        room.announced = before  # type: ignore[attr-defined]
    law = fitted_law()
    expected = asked[0].cost(law).seconds - law.start_s
    return {"gpus": gpus, "bandwidth": bandwidth, "method": method or "four", "value": seconds, "expected": expected}


def size_of(row: Row) -> Size:
    """The size of the setting of a row."""
    asked = row["scenario"]
    return Size.of(asked_for(asked["method"], asked["gpus"], asked["bandwidth"], fidelity=asked["fidelity"]))


def fitted(rows: Sequence[Row]) -> Law:
    """The law of the rows whose GPUs are not left out."""
    found: dict[str, dict[str, float]] = {}
    for part, features in FEATURES.items():
        own = [each for each in rows if each["part"] == part and each["gpus"] not in LEFT_OUT]
        sizes = [size_of(each) for each in own]
        matrix = np.array([[size.feature(feature) for feature in features] for size in sizes])
        values = np.log([each["value"] for each in own])
        found[part] = {
            name: round(float(value), 3) for name, value in zip(features, solved(matrix, values), strict=True)
        }
    return Law(found, round(next(each["value"] for each in rows if each["part"] == "start"), 2))


def solved(matrix: Any, values: Any) -> Any:
    """Least squares; what grows does not grow the less for more of it: such coefficients are put to nothing."""
    used = list(range(matrix.shape[1]))
    while True:
        found = np.linalg.lstsq(matrix[:, used], values, rcond=None)[0]
        falling = [each for each, value in zip(used, found, strict=True) if each > 0 and value < 0]
        if not falling:
            whole = np.zeros(matrix.shape[1])
            whole[used] = found
            return whole
        used.remove(falling[-1])


def show(law: Law, rows: Sequence[Row]) -> None:
    """Print the law, and by how much it is wrong over what was not fitted and over all."""
    for part, coefficients in law.parts.items():
        own = [each for each in rows if each["part"] == part]
        errors = np.log([each["value"] / law.part(part, size_of(each)) for each in own])
        out = np.array([each["gpus"] in LEFT_OUT for each in own])
        sys.stdout.write(f"{part:<11}" + " ".join(f"{name} {value:g}" for name, value in coefficients.items()) + "\n")
        for name, some in (("not fitted", errors[out]), ("fitted", errors[~out])):
            sys.stdout.write(f"    {name}: {said(some)}\n")


def said(errors: Any) -> str:
    """How far times are from what is expected: the median, and what nine of ten are within."""
    if not len(errors):
        return "none"
    middle, most = np.exp(np.median(errors)), np.exp(np.quantile(np.abs(errors), 0.9))
    return f"{middle:.2f} times the expected, nine of ten within a factor of {most:.2f} ({len(errors)})"


def show_questions(rows: Sequence[Row]) -> None:
    """Print whole questions beside what is expected of them."""
    for each in rows:
        name = f"{each['gpus']:>3} GPUs, {each['bandwidth']:>6}, {each['method']}"
        sys.stdout.write(f"{name:<32}{each['value']:8.2f} s, expected {each['expected']:8.2f} s\n")
    errors = np.log([each["value"] / each["expected"] for each in rows])
    sys.stdout.write(f"questions: {said(errors)}\n")


def written(law: Law) -> str:
    """The data file."""
    about = machine()
    lines = [
        "# How long the parts of an answer take: coefficients of the law in gcnsim/planning/durations.py.",
        "# Measured and written by `python -m benchmarks.bench_durations --write`, processor time of one core.",
        f'machine: "{about["cpu"]}, {about["cores"]} cores, Python {about["python"]}, load {about["load_1min"]}"',
        f"start_s: {law.start_s}",
        "parts:",
    ]
    for part, coefficients in law.parts.items():
        lines += [f"  {part}:", *(f"    {name}: {value}" for name, value in coefficients.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
