"""The Python API: a what-if, a simulation or a graph in one call each.

>>> import gcnsim
>>> answer = gcnsim.what_if(gpus=2, method="pipegcn")
>>> answer.results[0]["method"]
'pipegcn'
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from gcnsim.engine import timeline
from gcnsim.errors import FileError, ScenarioError
from gcnsim.graph import Graph, from_networkx, load_graph
from gcnsim.knobs import RATE, has_knob
from gcnsim.methods import methods
from gcnsim.planning import Grid, Progress, Target, Workshop, links_of, provenance, row_of, scenarios, sweep_bandwidth
from gcnsim.planning import what_if as _what_if
from gcnsim.processes import cores
from gcnsim.record import Calibration, write_calibration
from gcnsim.scenario import SCHEMA, MethodSpec, Scenario, from_mapping, load_scenario, parse_cache, to_mapping
from gcnsim.sections import replacing
from gcnsim.study import Result
from gcnsim.units import bandwidth as parse_bandwidth

__all__ = [
    "Answer",
    "Graph",
    "Simulation",
    "bandwidth_curve",
    "calibrate",
    "from_networkx",
    "load_graph",
    "render_calibration",
    "render_validation",
    "reproduce",
    "simulate",
    "validate",
    "what_if",
    "write_json",
    "write_result",
    "write_timeline",
    "write_validation",
]

if TYPE_CHECKING:
    import networkx as nx

CURVES = 6
"""Most rows drawn against bandwidth: more lines than that cannot be told apart."""

T = TypeVar("T")
Some: TypeAlias = T | Sequence[T]
"""One value, or several: a row each."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a what-if found. payload: plain data in the shape of the JSON schema `gcnsim.what-if/1`."""

    payload: Mapping[str, Any]
    workshop: Workshop
    grid: Grid
    base: Scenario
    last: Result
    """The simulated run of the last row."""

    @property
    def results(self) -> list[dict[str, Any]]:
        """One dict per row: seconds, bytes, shares."""
        rows: list[dict[str, Any]] = self.payload["results"]
        return rows

    @property
    def recommendation(self) -> dict[str, Any]:
        """The recommended method and knobs, with its iteration time and why."""
        chosen: dict[str, Any] = self.payload["recommendation"]
        return chosen

    def __str__(self) -> str:
        """The table that the command line prints."""
        from gcnsim.report import render_table

        return render_table(dict(self.payload))


def what_if(
    *,
    dataset: str | None = None,
    graph: str | Path | Graph | nx.Graph[Any] | None = None,
    gpus: Some[int] = 6,
    gpus_per_server: int | None = None,
    device: str = "t4",
    bandwidth: Some[str] = "15Gbps",
    method: Some[str] = "all",
    tau: Some[int] | None = None,
    epsilon: Some[float] | None = None,
    cache: Some[str] | None = None,
    rate: Some[float] | None = None,
    cache_policy: str | None = None,
    norms: str | Path | None = None,
    model: str | None = None,
    layers: int | None = None,
    hidden: int | None = None,
    calibration: str | Path | None = None,
    target_accuracy: float | None = None,
    runs: Sequence[str | Path] = (),
    iterations: int = 30,
    seed: int = 0,
    overrides: Sequence[str] = (),
    progress: Progress = lambda _: None,
    processes: int | None = None,
) -> Answer:
    """Predict iteration times of every combination asked for, recommend knobs, and try a step more of each.

    Sequences give a row per value. graph: a file, a `Graph` or a NetworkX graph. gpus_per_server: None is
    2, the last server holding what is left. calibration: a record of `calibrate`. target_accuracy: a share of one on
    validation nodes; time and cost until it is reached, by the iterations that the recorded `runs` needed. overrides:
    `PATH=VALUE` on scenario fields, e.g. `cluster.latency=20us`. progress: told what is being done. processes: None is
    one per core; answers do not depend on it.
    Raises GcnsimError (one line: path, value, what is allowed).
    """
    if graph is not None and not isinstance(graph, Graph | str | Path):
        graph = from_networkx(graph)
    file = graph.name if isinstance(graph, Graph) else None if graph is None else str(graph)
    workload = {"dataset": dataset, "graph": file, "model": model, "layers": layers, "hidden": hidden}
    machines = {"gpus": _list(gpus), "bandwidth": _list(bandwidth)}
    cluster = {name: values[0] for name, values in machines.items()}
    mapping = {
        "schema": SCHEMA,
        "name": "what-if",
        "cluster": _given(
            cluster
            | {"gpus_per_server": gpus_per_server, "device": device, "calibration": calibration and str(calibration)}
        ),
        "workload": _given(workload),
        "method": _given({"name": "psc-gcn", "cache_policy": cache_policy, "norms": norms and str(norms)}),
        "run": {"iterations": iterations, "seed": seed},
    }
    base = from_mapping(mapping, "what-if", overrides)
    knobs = _given({"tau": tau, "epsilon": epsilon, "cache": cache, "rate": rate})
    grid = _grid(base, _list(method), machines, {name: _list(value) for name, value in knobs.items()})
    loaded = graph if isinstance(graph, Graph) else None
    answer, workshop = _what_if(base, grid, progress, processes or cores(), loaded, _target(target_accuracy, runs))
    return Answer(answer.payload(), workshop, grid, answer.base, answer.rows[-1][0].result)


def _target(accuracy: float | None, runs: Sequence[str | Path]) -> Target | None:
    """The accuracy asked for with the runs that may tell. Raises ScenarioError for one without the other."""
    if accuracy is None:
        if runs:
            raise ScenarioError("--runs: are read for --target-accuracy alone; give that too")
        return None
    if not 0 < accuracy <= 1:
        raise ScenarioError(f"--target-accuracy: {accuracy:g} is not allowed; a share above 0% and at most 100%")
    return Target.of(accuracy, runs)


def _grid(base: Scenario, method: list[str], machines: Mapping[str, Any], knobs: Mapping[str, Any]) -> Grid:
    """The values asked for; what was not asked stands where the base scenario has it."""
    names = list(dict.fromkeys(name for asked in method for name in (methods() if asked == "all" else [asked])))
    _check_types(names, machines, knobs)
    for knob, values in knobs.items():
        if not any(has_knob(name, knob) for name in names):
            given = {knob: parse_cache(values[0], "method.cache") if knob == "cache" else values[0]}
            MethodSpec.of(names[0], **given)
    caches = knobs.get("cache", [])
    return Grid(
        methods=tuple(MethodSpec.of(name).name for name in names),
        gpus=_distinct(machines["gpus"], base.cluster.gpus),
        bandwidths=_distinct([parse_bandwidth(each) for each in machines["bandwidth"]], base.cluster.bandwidth),
        taus=tuple(knobs.get("tau", [base.method.tau])),
        epsilons=tuple(knobs.get("epsilon", [base.method.epsilon])),
        caches=tuple(parse_cache(each, "method.cache") for each in caches) or (base.method.cache,),
        rates=tuple(knobs.get("rate", [base.method.rate if has_knob(base.method.name, "rate") else RATE.default])),
    )


def _check_types(names: Sequence[Any], machines: Mapping[str, Any], knobs: Mapping[str, Any]) -> None:
    """Refuse values of a kind that no option can have; their ranges are the scenario's to check."""
    for path, values, kinds, noun in (
        ("method.name", names, str, "a name"),
        ("cluster.gpus", machines["gpus"], int, "a whole number"),
        ("cluster.bandwidth", machines["bandwidth"], str, "a bandwidth with its unit"),
        ("method.tau", knobs.get("tau", []), int, "a whole number"),
        ("method.epsilon", knobs.get("epsilon", []), (int, float), "a number"),
        ("method.rate", knobs.get("rate", []), (int, float), "a number"),
        ("method.cache", knobs.get("cache", []), str, "a share (30%) or bytes (2GiB)"),
    ):
        for value in values:
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise ScenarioError(f"{path}: {value!r} is not {noun}")


def bandwidth_curve(answer: Answer, progress: Progress = lambda _: None) -> Any:
    """Iteration time of the first machine's first rows at 1/8 to 8 times its bandwidth, for the figure."""
    from gcnsim.report import BandwidthCurve, Series

    base = answer.base
    first = replace(answer.grid, gpus=answer.grid.gpus[:1], bandwidths=answer.grid.bandwidths[:1])
    rows = list(dict.fromkeys(scenarios(base, first)))[:CURVES]
    values = tuple(base.cluster.bandwidth * 2.0**power for power in range(-3, 4))
    curves = sweep_bandwidth(answer.workshop, rows, values, progress)
    series = tuple(
        Series(
            _label(each.method),
            tuple(point.iteration_s for point in curve),
            tuple(point.low_s for point in curve),
            tuple(point.high_s for point in curve),
        )
        for each, curve in zip(rows, curves, strict=True)
    )
    return BandwidthCurve(values, series)


@dataclass(frozen=True, slots=True)
class Simulation:
    """One simulated scenario. payload: plain data in the shape of the JSON schema `gcnsim.result/1`."""

    payload: Mapping[str, Any]
    result: Result

    def __str__(self) -> str:
        """The text that the command line prints."""
        from gcnsim.report import render_result

        return render_result(self.payload)


def simulate(scenario: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Simulation:
    """Simulate one scenario: a YAML file, or its content as a mapping.

    Raises GcnsimError (one line: path, value, what is allowed).
    """
    if isinstance(scenario, Mapping):
        asked = from_mapping(dict(scenario), "scenario", overrides)
    else:
        asked = load_scenario(scenario, overrides)
    workshop = Workshop(asked, cores())
    workshop.prepare([], [asked])
    estimate = workshop.estimate(asked)
    baseline = workshop.result(replace(asked, method=MethodSpec.of("full-graph")))
    result = estimate.result
    payload = {
        "schema": "gcnsim.result/1",
        "scenario": to_mapping(asked),
        "provenance": provenance(workshop, asked, [estimate]),
        "result": row_of(estimate, baseline.metrics.iteration_s),
        "links": links_of(result),
        "run": {
            "iterations": result.run.iterations,
            "measured": result.run.iterations - result.warm_up,
            "settled": result.settled,
        },
    }
    return Simulation(payload, result)


def write_timeline(result: Result, path: str | Path) -> None:
    """Write a run as Chrome trace JSON, for chrome://tracing or Perfetto. Raises FileError."""
    from gcnsim.report import write_chrome_trace

    method = result.scenario.method
    knobs = f"tau {method.tau}, epsilon {method.epsilon:g}" + ("" if method.rate == 1.0 else f", rate {method.rate:g}")
    title = f"{result.scenario.name}: {method.name}, {knobs}"
    write_chrome_trace(path, timeline(result.run), title)


def write_result(simulation: Simulation, folder: str | Path) -> None:
    """Write result.json and spans.parquet into `folder`, which is made if need be. Raises FileError."""
    from gcnsim.report import write_spans

    target = _made(folder)
    told = simulation.payload["provenance"]
    about = {key: str(told[key]) for key in ("version", "seed", "scenario_hash", "engine")}
    write_spans(target / "spans.parquet", timeline(simulation.result.run), about)
    write_json(target / "result.json", simulation.payload)


def calibrate(
    measurements: str | Path,
    runs: Sequence[str | Path] = (),
    out: str | Path | None = None,
    progress: Progress = lambda _: None,
    processes: int | None = None,
    warn: Progress = lambda _: None,
) -> Calibration:
    """Fit the figures of a machine to its micro-benchmarks, refined on recorded runs; write the record to `out`.

    warn: hears what may mislead, a line each. Raises GcnsimError (one line: path, value, what is allowed).
    """
    from gcnsim.calibration import calibrate as fit

    record = fit(measurements, runs, progress=progress, warn=warn, processes=processes or cores())
    if out is not None:
        write_calibration(out, record)
    return record


def validate(
    runs: Sequence[str | Path],
    calibration: str | Path | None = None,
    *,
    strict: bool = False,
    progress: Progress = lambda _: None,
    processes: int | None = None,
) -> dict[str, Any]:
    """Predict recorded runs and compare: plain data in the shape of the JSON schema `gcnsim.validation/1`.

    strict: refuse runs of another machine or version than the calibration. Raises GcnsimError.
    """
    from gcnsim.validation import judge, payload

    judged, warnings = judge(runs, calibration, strict=strict, progress=progress, processes=processes or cores())
    return payload(judged, calibration, warnings)


def write_validation(folder: str | Path, found: Mapping[str, Any]) -> None:
    """Write validation.md, .csv and .html into `folder`, which is made if need be. Raises FileError."""
    from gcnsim import report

    report.write_validation(_made(folder), found)


def render_validation(found: Mapping[str, Any]) -> str:
    """The text that the command line prints."""
    from gcnsim import report

    return report.render_validation(found)


def reproduce(
    published: str | Path | None = None, *, progress: Progress = lambda _: None, processes: int | None = None
) -> dict[str, Any]:
    """Predict every row of published tables: plain data in the shape of the JSON schema `gcnsim.reproduction/1`.

    published: a folder of published facts; None: those of the package. Raises GcnsimError.
    """
    from gcnsim import reproduction

    rows = reproduction.read_published(reproduction.SHIPPED if published is None else published)
    cells = reproduction.reproduce(rows, progress=progress, processes=processes or cores())
    return reproduction.payload(cells)


def render_calibration(record: Calibration, path: str) -> str:
    """The text that the command line prints."""
    from gcnsim import report

    return report.render_calibration(record, path)


def write_json(path: str | Path, found: Mapping[str, Any]) -> None:
    """Write plain data as JSON. Raises FileError."""
    with replacing(Path(path), text=True) as file:
        file.write(json.dumps(dict(found), indent=2, allow_nan=False) + "\n")


def _made(folder: str | Path) -> Path:
    """`folder`, made if need be. Raises FileError."""
    target = Path(folder)
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"{target}: cannot be made: {error.strerror}") from None
    return target


def _label(method: MethodSpec) -> str:
    if method.name == "bns-gcn":
        return f"{method.name} (rate {method.rate:g})"
    if method.name != "psc-gcn":
        return method.name
    cache = "" if method.cache.empty else f", cache {method.cache.describe()}"
    return f"{method.name} (tau {method.tau}, epsilon {method.epsilon:g}{cache})"


def _list(value: Any) -> list[Any]:
    values = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not values:
        raise ScenarioError("what-if: an empty list of values; give at least one")
    return values


def _given(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value is not None}


def _distinct(values: Sequence[Any], first: Any) -> tuple[Any, ...]:
    """The values asked for, the first as the scenario read it (an override may have changed it), none twice."""
    return tuple(dict.fromkeys([first, *values[1:]]))
