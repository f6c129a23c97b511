"""The what-if in one call: options in, answer out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, TypeVar

from gcnsim.api.answer import Answer
from gcnsim.api.measured import rates_measured, those_measured
from gcnsim.api.scenario_file import put_before, read_base, read_sizes, replaced
from gcnsim.boundary import is_profile
from gcnsim.errors import ScenarioError
from gcnsim.graph import Graph, from_object
from gcnsim.hardware import PriceBook, kind_of_network
from gcnsim.knobs import KNOBS, RATE
from gcnsim.machine import refuse_no_effect
from gcnsim.methods import (
    COMPARED,
    DEFAULT,
    NO_OVERLAP,
    OVERLAP,
    all_knobs,
    create_method,
    has_knob,
    method_type,
    methods,
)
from gcnsim.planning import (
    Candidate,
    Extras,
    Grid,
    Progress,
    Rule,
    Target,
    read_max_wait,
    read_measurement,
    scenarios,
)
from gcnsim.planning import what_if as _what_if
from gcnsim.processes import cores
from gcnsim.scenario import (
    SCHEMA,
    ClusterSpec,
    Scenario,
    from_mapping,
    parse_cache,
    read_injected,
    read_knob,
    rule_at,
)
from gcnsim.simulation import Result, refuse_undrawn

SERVER: Final = ("host", "gpus_per_server")
"""Options that say what a server is."""

MACHINE: Final = (*SERVER, "gpus", "bandwidth", "device")
"""Options of machines: each may have several values."""

FILES: Final = ("calibration", "measured_compute", "norms")
"""Options that name a file; the first two are of the cluster."""

TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "method.name": (str, "a name"),
    "method.tau": (int, "a whole number"),
    "cluster.host": (str, "a name"),
    "cluster.gpus_per_server": (int, "a whole number"),
    "cluster.gpus": (int, "a whole number"),
    "cluster.device": (str, "a name"),
    "cluster.bandwidth": (str, "a bandwidth with its unit"),
}
"""By path, what each of several values is."""

T = TypeVar("T")
Some: TypeAlias = T | Sequence[T]
"""One value, or several: a row each."""


def what_if(
    scenario: str | Path | Mapping[str, Any] | None = None,
    *,
    dataset: str | None = None,
    graph: Any = None,
    ids: str | None = None,
    sizes: Mapping[str, Any] | None = None,
    gpus: Some[int] | None = None,
    gpus_per_server: Some[int] | None = None,
    device: Some[str] | None = None,
    host: Some[str] | None = None,
    bandwidth: Some[str] | None = None,
    method: Some[str] | None = None,
    tau: Some[int] | None = None,
    epsilon: Some[float | str] | None = None,
    cache: Some[str | float] | None = None,
    rate: Some[float | str] | None = None,
    cache_policy: str | None = None,
    norms: str | Path | None = None,
    model: str | None = None,
    layers: int | None = None,
    hidden: int | None = None,
    calibration: str | Path | None = None,
    measured_compute: str | Path | None = None,
    target_accuracy: float | None = None,
    runs: Sequence[str | Path] = (),
    target_iterations: Mapping[str, int] | None = None,
    iterations: int | None = None,
    seed: int | None = None,
    overrides: Sequence[str] = (),
    inject: Sequence[str] = (),
    allow: Some[str] | None = None,
    min_sampling_rate: float | None = None,
    max_staleness: int | None = None,
    measured: Some[str] = (),
    partition_seeds: int = 0,
    payload: str | None = None,
    fidelity: str | None = None,
    prices: PriceBook | None = None,
    max_wait: str | None = None,
    implementation: str | None = None,
    transport: str | None = None,
    progress: Progress = lambda _: None,
    notice: Progress = lambda _: None,
    processes: int | None = None,
) -> Answer:
    """Predict iteration times of every combination asked for, recommend knobs, and try a step more of each.

    scenario: a file or plain data to start from (`gcnsim.scenario/1`); options replace its fields, a sequence is a row
    each. method: None compares the usual ones, "all" every one; those named, or of allow, may be recommended, with
    rates from min_sampling_rate (0.1), tau up to max_staleness (2). graph: a file (or stored profile), or one of
    NetworkX, SciPy, PyG, DGL or ours. ids: as of `load_graph`. sizes: of a graph, in place of it: nodes, edges
    (undirected; `3M`), features, classes, train. host: its device, GPUs per server and bandwidth stand where these are
    None, else t4, 2, 15Gbps. gpus: 6; iterations: 30; seed: 0. bandwidth: `15Gbps`, `10GbE`. epsilon, rate, cache:
    shares. target_accuracy: a share of one, by recorded `runs`, else target_iterations. overrides: `PATH=VALUE` on
    fields. calibration: a record. measured_compute: times that runtime.measure took. inject: `KIND:name=value,...`.
    measured: `[METHOD=]TIME`, or a run's path. fidelity: `exact`, `coarse`. prices: None: the catalogue's. max_wait:
    `30s`. implementation: `released` or lean. transport: `direct` (NCCL), `staged`. Raises GcnsimError.
    """
    return _answered(SimpleNamespace(**locals()))


_DEFAULTS: Final[Mapping[str, Any]] = {name: each.default for name, each in signature(what_if).parameters.items()}
"""What is not given, by option."""


def _answered(given: SimpleNamespace) -> Answer:
    """The answer to what `what_if` was given, parameter by parameter."""
    graph = _graph(given)
    base, grid, named = _asked(given, graph)
    book = given.prices or PriceBook()
    clusters = [each.cluster for each in scenarios(base, grid)]
    book.refuse_idle({name for each in clusters for name in (each.devices or (each.device,))})
    max_wait_s = None if given.max_wait is None else read_max_wait(given.max_wait)
    times = [given.measured] if isinstance(given.measured, str) else given.measured
    found = _what_if(
        base,
        grid,
        given.progress,
        given.processes or cores(),
        graph if isinstance(graph, Graph) else None,
        _target(given.target_accuracy, given.runs, given.target_iterations or {}),
        _rule(None if given.method is None and named == list(COMPARED) else named, given),
        Extras(tuple(read_measurement(each) for each in times), given.partition_seeds, book, max_wait_s),
        given.notice,
    )
    return Answer(found.result, found.studies, grid, found.base, _as_asked(found.chosen))


def settings(**options: Any) -> list[Scenario]:
    """The settings that `what_if` would answer for these options of its own, a row each; nothing is simulated.

    Raises GcnsimError (one line: path, value, what is allowed).
    """
    given = SimpleNamespace(**{**_DEFAULTS, **options})
    base, grid, _ = _asked(given, _graph(given))
    every = scenarios(base, grid)
    refuse_undrawn(every)
    return every


def _graph(given: SimpleNamespace) -> str | Path | Graph | None:
    """The graph that was given, objects of other libraries as ours."""
    graph: Any = given.graph
    if graph is not None and not isinstance(graph, Graph | str | Path):
        graph = from_object(graph)
    if given.ids is not None and isinstance(graph, Graph):
        raise ScenarioError(f"ids: {given.ids} is for a file; {graph.name} is a graph at hand, with nodes of its own")
    found: str | Path | Graph | None = graph
    return found


def _asked(given: SimpleNamespace, graph: str | Path | Graph | None) -> tuple[Scenario, Grid, list[str]]:
    """The question on its first machine, the values asked for, and the methods named."""
    file = read_base(given.scenario)
    machines = {name: _list(getattr(given, name)) for name in MACHINE if getattr(given, name) is not None}
    chosen, others = _own_knobs(given.overrides)
    faults = read_injected(given.inject)
    servers: list[Scenario] = []
    for own in product(*(machines.get(name, [None]) for name in SERVER)):
        first = {name: values[0] for name, values in machines.items()} | dict(zip(SERVER, own, strict=True))
        options = _sections(given, graph, first)
        if not servers:
            for note in replaced(file, options):
                given.notice(note)
        servers.append(_base(options, others, file))
    base = replace(servers[0], faults=(*servers[0].faults, *faults))
    knobs = _given({name: getattr(given, name) for name in ("tau", "epsilon", "cache", "rate")})
    named = _named(given.method, file)
    if given.method is None:
        named = those_measured(named, base, given.notice) or named
    knobs |= rates_measured(named, base, {*knobs, *file.get("method", {})}, given.overrides)
    if base.method.overlap != NO_OVERLAP:
        chosen = {OVERLAP: (base.method.overlap,)} | chosen
        base = replace(base, method=replace(base.method, overlap=NO_OVERLAP))
    clusters = tuple(dict.fromkeys(each.cluster for each in servers))
    grid = _grid(base, named, machines, {name: _list(value) for name, value in knobs.items()}, chosen, clusters)
    return base, grid, named


def _named(asked: Any, file: Mapping[str, Any]) -> list[str]:
    """The methods asked for: those named, else the usual ones, and that of the scenario."""
    if asked is not None:
        names = _list(asked)
        _check_types({"method.name": names})
        return [name if name == "all" else method_type(name).name for name in names]
    own = file.get("method", {}).get("name")
    return list(dict.fromkeys([*COMPARED, *([] if own is None else [method_type(str(own)).name])]))


def _as_asked(chosen: Candidate) -> Result:
    """The simulated run under the name that was asked for, not that of a simpler method with the same schedule."""
    return replace(chosen.result, scenario=chosen.scenario)


def _sections(
    given: SimpleNamespace, graph: str | Path | Graph | None, machine: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """What was given of each section of a scenario, the first machine of it."""
    source, file = _source(graph)
    named = {name: getattr(given, name) for name in ("dataset", "ids", "model", "layers", "hidden")}
    named |= read_sizes(given.sizes)
    texts = {name: value and str(value) for name, value in vars(given).items() if name in FILES}
    sections = {
        "cluster": {**machine, "payload": given.payload, "implementation": given.implementation}
        | {"transport": given.transport}
        | {name: texts[name] for name in FILES[:2]},
        "workload": named | {source: file},
        "method": {"cache_policy": given.cache_policy, "norms": texts["norms"]},
        "run": {"iterations": given.iterations, "seed": given.seed, "fidelity": given.fidelity},
    }
    return {section: _given(fields) for section, fields in sections.items()}


def _rule(named: Sequence[str] | None, given: SimpleNamespace) -> Rule:
    """What may be recommended: the methods named, else those compared by default, unless `allow` names others."""
    allow = given.allow
    asked = [name for name in named or () if name != "all"]
    if allow is not None:
        named = [name for each in _list(allow) for name in (methods() if each == "all" else [each])]
        asked = [method_type(name, "--allow").name for name in named]
    return Rule.of(asked, given.min_sampling_rate, given.max_staleness)


def _refuse_idle(base: Scenario, grid: Grid, own: Mapping[str, tuple[Any, ...]]) -> None:
    """Raises ScenarioError for what would change no row."""
    rows = [each.method for each in scenarios(base, grid)]
    if OVERLAP in own and all(each.overlap != own[OVERLAP][0] for each in rows):
        replace(rows[0], overlap=own[OVERLAP][0])  # what no row has is refused
    refuse_no_effect([replace(each, gpus=gpus) for each in grid.servers or (base.cluster,) for gpus in grid.gpus])


def _base(
    sections: Mapping[str, Mapping[str, Any]], overrides: Sequence[str], file: Mapping[str, Any] | None = None
) -> Scenario:
    """The scenario of the first machine: of a file, with what was given of each section in the place of its own."""
    given = {section: _given(fields) for section, fields in sections.items()}
    return from_mapping({"schema": SCHEMA, "name": "what-if", **put_before(file or {}, given)}, "what-if", overrides)


def _source(graph: str | Path | Graph | None) -> tuple[str, str | None]:
    """The field of `workload` that `graph` goes into, and its name there."""
    if graph is None:
        return "graph", None
    if isinstance(graph, Graph):
        return "graph", graph.name
    return "profile" if is_profile(graph) else "graph", str(graph)


def _target(accuracy: float | None, runs: Sequence[str | Path], given: Mapping[str, int]) -> Target | None:
    """The accuracy asked for with what may tell of it. Raises ScenarioError for one without the other."""
    given = {method_type(name).name: count for name, count in given.items()}
    for name, count in given.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ScenarioError(f"--target-iterations: {name}={count!r} is not allowed; a whole number of at least 1")
    if accuracy is None:
        for option, asked in (("--runs", runs), ("--target-iterations", given)):
            if asked:
                raise ScenarioError(f"{option}: only valid with --target-accuracy")
        return None
    if not 0 < accuracy <= 1:
        raise ScenarioError(f"--target-accuracy: {accuracy:g} is not allowed; a share above 0% and at most 100%")
    return Target.of(accuracy, runs, given)


def _own_knobs(overrides: Sequence[str]) -> tuple[dict[str, tuple[Any, ...]], list[str]]:
    """Overrides of knobs that not every method asked for may have, with their values, and the other overrides."""
    own, others = {}, []
    own_names = {OVERLAP, *(all_knobs().keys() - KNOBS.keys())} if overrides else set()
    for text in overrides:
        path = text.partition("=")[0].strip()
        if path.startswith("method.") and path.removeprefix("method.") in own_names:
            name, values = read_knob(text)
            own[name] = values
        else:
            others.append(text)
    return own, others


def _grid(
    base: Scenario,
    method: list[str],
    machines: Mapping[str, list[Any]],
    knobs: Mapping[str, Any],
    own: Mapping[str, Any],
    servers: tuple[ClusterSpec, ...] = (),
) -> Grid:
    """The values asked for; what was not asked stands where the base scenario has it."""
    names = list(dict.fromkeys(name for asked in method for name in (methods() if asked == "all" else [asked])))
    _check_types({f"cluster.{name}": machines.get(name, []) for name in MACHINE} | {"method.tau": knobs.get("tau", [])})
    knobs = {name: [_knob(name, each) for each in values] for name, values in knobs.items()}
    for knob, values in {**knobs, **own}.items():
        if knob != OVERLAP and not any(has_knob(name, knob) for name in names):
            create_method(names[0], **{knob: values[0]})
    _refuse_networks(machines.get("bandwidth", []))
    stands = base.method if has_knob(base.method.name, "tau") else create_method(DEFAULT)
    always = () if base.cluster.measured_compute else COMPARED
    grid = Grid(
        methods=tuple(names),
        gpus=_distinct(machines, "gpus", base),
        devices=_distinct(machines, "device", base) if "device" in machines or len(servers) < 2 else (),
        bandwidths=_distinct(machines, "bandwidth", base) if "bandwidth" in machines or len(servers) < 2 else (),
        taus=tuple(knobs.get("tau", [stands.tau])),
        epsilons=tuple(knobs.get("epsilon", [stands.epsilon])),
        caches=tuple(knobs.get("cache", [stands.cache])),
        rates=tuple(knobs.get("rate", [base.method.rate if has_knob(base.method.name, "rate") else RATE.default])),
        own=tuple(own.items()) + ((("cache", tuple(knobs["cache"])),) if "cache" in knobs else ()),
        optional=frozenset(names) - set(method) - set(always) if "all" in method else frozenset(),
        servers=servers if len(servers) > 1 else (),
    )
    _refuse_idle(base, grid, own)
    return grid


def _knob(name: str, value: Any) -> Any:
    """A value of a knob, shares also as percentages. Raises ScenarioError or UnitError."""
    if name == "cache":
        return parse_cache(value, "method.cache")
    rule, _ = rule_at(f"method.{name}")
    return rule.read(value, f"method.{name}")


def _refuse_networks(bandwidths: Sequence[Any]) -> None:
    """Raises ScenarioError for networks of several kinds: rows say their bandwidth, not their latency."""
    kinds = {kind_of_network(each): each for each in bandwidths}
    if len(kinds) > 1:
        raise ScenarioError(
            f"cluster.bandwidth: {' and '.join(map(str, kinds.values()))} are networks of different kinds; "
            "allowed: one kind in a question (sweep --axis cluster.bandwidth takes several)"
        )


def _check_types(given: Mapping[str, Sequence[Any]]) -> None:
    """Refuse values of a kind that no option can have; their ranges are the scenario's to check."""
    for path, values in given.items():
        kind, noun = TYPES[path]
        for value in values:
            if isinstance(value, bool) or not isinstance(value, kind):
                raise ScenarioError(f"{path}: {value!r} is not {noun}")


def _list(value: Any) -> list[Any]:
    values = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not values:
        raise ScenarioError("what-if: an empty list of values; give at least one")
    return values


def _given(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value is not None}


def _distinct(machines: Mapping[str, Sequence[Any]], name: str, base: Scenario) -> tuple[Any, ...]:
    """The values asked for, the first as the scenario read it (an override may have changed it), none twice."""
    rule, _ = rule_at(f"cluster.{name}")
    others = [rule.read(each, f"cluster.{name}") for each in machines.get(name, [])[1:]]
    return tuple(dict.fromkeys([getattr(base.cluster, name), *others]))
