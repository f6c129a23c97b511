"""The what-if in one call: options in, answer out.

A scenario file may be the base of a what-if. Options take precedence over its fields, and a note names each field that
an option replaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from gcnsim.api.answer import Answer
from gcnsim.api.targets import rates_measured, site_of, target_of, those_measured
from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import denied, unknown_schema
from gcnsim.core.processes import cores
from gcnsim.core.yaml_files import read_yaml
from gcnsim.graph import Graph
from gcnsim.hardware import PriceBook, kind_of_network
from gcnsim.methods import (
    COMPARED,
    NO_OVERLAP,
    OVERLAP,
    all_knobs,
    create_method,
    has_knob,
    method_type,
    methods,
)
from gcnsim.planning.candidate import Candidate
from gcnsim.planning.measured import read_measurement
from gcnsim.planning.recommend import Rule
from gcnsim.planning.space import ANY_OVERLAP, MACHINES, METHODS, Space
from gcnsim.planning.what_if import Extras
from gcnsim.planning.what_if import what_if as _what_if
from gcnsim.scenario import (
    SCHEMA,
    SOURCES,
    ClusterSpec,
    Scenario,
    from_mapping,
    of_host,
    read_injected,
    read_knob,
    rule_at,
)
from gcnsim.scenario.machine import refuse_no_effect
from gcnsim.scenario.option import listed
from gcnsim.scenario.question import Question, keywords
from gcnsim.scenario.what_if import WhatIf
from gcnsim.simulation import Result, refuse_undrawn
from gcnsim.trace.stored_profile import is_profile
from gcnsim.workload.knobs import KNOBS


def read_base(given: str | Path | Mapping[str, Any] | None) -> dict[str, Any]:
    """The scenario that a what-if starts from, as plain data; empty if none was given.

    Raises FileError, and ScenarioError for anything that is not a scenario.
    """
    if given is None:
        return {}
    base = dict(given) if isinstance(given, Mapping) else read_yaml(given)
    where = "scenario" if isinstance(given, Mapping) else given
    if not isinstance(base, dict):
        raise ScenarioError(f"{where}: {denied(base)} a scenario; it starts with schema: {SCHEMA}")
    if base.get("schema") != SCHEMA:
        raise ScenarioError(f"{where}: {unknown_schema(base)}; write schema: {SCHEMA}")
    for key, value in base.items():
        if key not in ("schema", "name", "faults") and not isinstance(value, dict):
            raise ScenarioError(f"{where}: {key}: {denied(value)} a section")
    return {key: dict(value) if isinstance(value, dict) else value for key, value in base.items()}


def put_before(base: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The scenario `base`, whose fields the options (by section and field) replace."""
    merged = {**base}
    for section, fields in options.items():
        own = dict(base.get(section, {}))
        for key in fields:
            for name in _with(section, key, fields[key]):
                own.pop(name, None)
        merged[section] = {**own, **fields}
    return merged


def replaced(base: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A note for each field of `base` that an option changes."""
    for section, fields in options.items():
        own = base.get(section, {})
        for key, value in fields.items():
            gone = [name for name in _with(section, key, value) if own.get(name) is not None]
            lost = [name for name in gone if name != key or not _same(f"{section}.{key}", own[name], value)]
            for name in lost:
                yield f"--{key.replace('_', '-')} {value} replaces {section}.{name}: {own[name]} of the scenario"


def _with(section: str, key: str, value: Any) -> tuple[str, ...]:
    """The fields that an option replaces: another source, and what a host has of its own."""
    if section == "workload" and key in SOURCES:
        return SOURCES if key == "nodes" else (*SOURCES, "edges")
    if section == "cluster" and key == "host":
        return ("host", *of_host(value))
    if section == "cluster" and key == "device":
        return ("device", "devices")
    return (key,)


def _same(path: str, one: object, other: object) -> bool:
    """Whether a field means the same, however it is written."""
    rule, _ = rule_at(path)
    return bool(rule.read(one, path) == rule.read(other, path))


SERVER: Final = ("host", "gpus_per_server", "device")
"""Options that say what a server is."""


@keywords(WhatIf)
def what_if(question: WhatIf) -> Answer:
    """Predict the iteration time of every combination of the given values, and recommend a setting.

    scenario: a file or plain data to start from (schema `gcnsim.scenario/1`); the other keywords replace its fields.
    graph: a path, a `Graph`, or a graph of NetworkX, SciPy, PyTorch Geometric or DGL. Keywords marked (list) take one
    value or a list; each combination is a row. Keywords marked (repeatable) take a sequence. progress, notice: called
    with a line of text about the progress, or about an unusual input. Times are in seconds, sizes in bytes.

    Raises GcnsimError with one line: the field, its value, and what is allowed.

    >>> import gcnsim
    >>> answer = gcnsim.what_if(gpus=2, method="pipegcn", bandwidth=["10Gbps", "25Gbps"])
    >>> len(answer.rows), answer.rows[0].method
    (2, 'pipegcn')
    """
    graph = _graph(question)
    space, rule = _space_of(question, graph)
    book = question.prices or PriceBook()
    book.refuse_idle({name for cluster in space.machines for name in (cluster.devices or (cluster.device,))})
    if (question.bandwidth or question.link) and all(cluster.servers == 1 for cluster in space.machines):
        given = "--bandwidth" if question.bandwidth else "--link"
        question.note(f"{given}: moves nothing here: all GPUs are in one server (--gpus-per-server spreads them)")
    times = [question.measured] if isinstance(question.measured, str) else question.measured
    answer = _what_if(
        space,
        question.say,
        question.processes or cores(),
        graph if isinstance(graph, Graph) else None,
        target_of(question, dict.fromkeys((*space.methods, *rule.methods))),
        rule,
        Extras(tuple(map(read_measurement, times)), question.partition_seeds, book, site_of(question)),
        question.note,
    )
    return Answer(answer.result, answer.studies, space, _requested_method(answer.chosen))


def settings(**options: Any) -> list[Scenario]:
    """The settings that `what_if` would predict with these options, one per row; nothing is simulated.

    Raises GcnsimError with one line: the field, its value, and what is allowed.
    """
    return asked(**options)[0].settings()


def asked(**options: Any) -> tuple[Space, Rule]:
    """What `what_if` reads in these options: the settings, and what may be recommended.

    Raises GcnsimError like `settings`.
    """
    question = WhatIf(**options)
    space, rule = _space_of(question, _graph(question))
    refuse_undrawn(space.settings())
    return space, rule


def _graph(question: WhatIf) -> str | Path | Graph | None:
    """The graph that was given, objects of other libraries as ours."""
    graph = graph_of(question)
    if question.ids is not None and isinstance(graph, Graph):
        raise ScenarioError(
            f"ids: {question.ids} is for a file; {graph.name} is a graph in memory, with nodes of its own"
        )
    return graph


def graph_of(question: Question) -> str | Path | Graph | None:
    """The graph that a question is about, objects of other libraries as ours; None of one without."""
    graph = question.graph
    if graph is None or isinstance(graph, Graph | str | Path):
        return graph
    from gcnsim.graph.load import from_object

    return from_object(graph)


def _space_of(question: WhatIf, graph: str | Path | Graph | None) -> tuple[Space, Rule]:
    """The settings that are asked for, and what may be recommended."""
    file = read_base(question.scenario)
    own, others = _own_knobs(question.overrides)
    servers = _servers(question, graph, file, others)
    base = replace(servers[0], faults=(*servers[0].faults, *read_injected(question.inject)))
    knobs = own | question.knobs()
    named = _named(question, file)
    if question.method is None:
        named = those_measured(named, base, question.note) or named
    given = {path.removeprefix("method.") for path in knobs} | {*file.get("method", {})}
    knobs |= rates_measured(named, base, given, question.overrides)
    if base.method.overlap != NO_OVERLAP:
        knobs = {ANY_OVERLAP: (base.method.overlap,)} | knobs
        base = replace(base, method=replace(base.method, overlap=NO_OVERLAP))
    every = dict.fromkeys(name for entry in named for name in (methods() if entry == "all" else [entry]))
    for path, values in knobs.items():
        knob = path.removeprefix("method.")
        if knob != OVERLAP and not any(has_knob(name, knob) for name in every):
            create_method(next(iter(every)), **{knob: values[0]})
    optional = set(every) - set(named) if "all" in named else set()
    axes = {MACHINES: _machines(question, [server.cluster for server in servers]), METHODS: tuple(every), **knobs}
    space = Space(base, axes, frozenset(optional - set(() if base.cluster.measured_compute else COMPARED)))
    _refuse_idle(space)
    return space, _rule(None if question.method is None and named == list(COMPARED) else named, question)


def _servers(
    question: WhatIf, graph: str | Path | Graph | None, file: Mapping[str, Any], overrides: Sequence[str]
) -> list[Scenario]:
    """The question on every kind of server, with the first number of GPUs and the first bandwidth."""
    several = {name: listed(getattr(question, name)) for name in (*SERVER, "gpus", "bandwidth")}
    given = {name: values for name, values in several.items() if values}
    servers: list[Scenario] = []
    for own in product(*(given.get(name, [None]) for name in SERVER)):
        first = {name: values[0] for name, values in given.items()} | dict(zip(SERVER, own, strict=True))
        sections = sections_of(question, graph, first)
        if not servers:
            for note in replaced(file, sections):
                question.note(note)
        servers.append(base_of(sections, overrides, file))
    return servers


def _machines(question: WhatIf, servers: Sequence[ClusterSpec]) -> tuple[ClusterSpec, ...]:
    """Every server with every number of GPUs and every bandwidth that is asked for.

    The first of each is as the server has it, since an override may have changed it.
    """
    gpus, bandwidths = question.values("gpus", first=1), question.values("bandwidth", first=1)
    _refuse_networks(listed(question.bandwidth))
    machines = [
        replace(server, gpus=count, bandwidth=bandwidth)
        for server in dict.fromkeys(servers)
        for count in (server.gpus, *gpus)
        for bandwidth in (server.bandwidth, *bandwidths)
    ]
    return tuple(dict.fromkeys(machines))


def _named(question: WhatIf, file: Mapping[str, Any]) -> list[str]:
    """The methods asked for: those named, else the usual ones, and that of the scenario."""
    if question.method is not None:
        return [name if name == "all" else method_type(str(name)).name for name in listed(question.method)]
    own = file.get("method", {}).get("name")
    return list(dict.fromkeys([*COMPARED, *([] if own is None else [method_type(str(own)).name])]))


def _requested_method(chosen: Candidate) -> Result:
    """The simulated run under the name that was asked for, not that of a simpler method with the same schedule."""
    return replace(chosen.result, scenario=chosen.scenario)


def sections_of(
    question: Question, graph: str | Path | Graph | None, machine: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, dict[str, Any]]:
    """What was given of each section of a scenario. machine: the first value of fields that have several."""
    found = question.sections()
    source, file = _source(graph)
    if file is not None:
        found["workload"][source] = file
    return found | {"cluster": {**_given(machine), **found["cluster"]}}


def _rule(named: Sequence[str] | None, question: WhatIf) -> Rule:
    """What may be recommended: the methods named, else those compared by default, unless `allow` names others."""
    allow = question.allow
    allowed_methods = [name for name in named or () if name != "all"]
    if allow is not None:
        named = [name for item in listed(allow) for name in (methods() if item == "all" else [item])]
        allowed_methods = [method_type(name, "--allow").name for name in named]
    return Rule.of(allowed_methods, question.min_sampling_rate, question.max_staleness)


def _refuse_idle(space: Space) -> None:
    """Raises ScenarioError for what would change no row."""
    rows = [setting.method for setting in space.settings()]
    if all(row.overlap != space.overlap for row in rows):
        replace(rows[0], overlap=space.overlap)  # what no row has is refused
    refuse_no_effect(list(space.machines))


def base_of(
    sections: Mapping[str, Mapping[str, Any]], overrides: Sequence[str], file: Mapping[str, Any] | None = None
) -> Scenario:
    """The scenario of the first machine: of a file, with what was given of each section in place of its own."""
    values = {section: _given(fields) for section, fields in sections.items()}
    return from_mapping({"schema": SCHEMA, "name": "what-if", **put_before(file or {}, values)}, "what-if", overrides)


def _source(graph: str | Path | Graph | None) -> tuple[str, str | None]:
    """The field of `workload` that `graph` goes into, and its name there."""
    if graph is None:
        return "graph", None
    if isinstance(graph, Graph):
        return "graph", graph.name
    return "profile" if is_profile(graph) else "graph", str(graph)


def _own_knobs(overrides: Sequence[str]) -> tuple[dict[str, tuple[Any, ...]], list[str]]:
    """Overrides of knobs that not every method asked for may have, with their values by path, and the other ones."""
    own, others = {}, []
    paths = {f"method.{name}" for name in (OVERLAP, *(all_knobs().keys() - KNOBS.keys()))} if overrides else set()
    for text in overrides:
        path = text.partition("=")[0].strip()
        if path in paths:
            own[path] = read_knob(text)[1]
        else:
            others.append(text)
    return own, others


def _refuse_networks(bandwidths: Sequence[Any]) -> None:
    """Raises ScenarioError for networks of several kinds: rows say their bandwidth, not their latency."""
    kinds = {kind_of_network(bandwidth): bandwidth for bandwidth in bandwidths}
    if len(kinds) > 1:
        raise ScenarioError(
            f"cluster.bandwidth: {' and '.join(map(str, kinds.values()))} are networks of different kinds; "
            "allowed: one kind in a question (sweep --axis cluster.bandwidth takes several)"
        )


def _given(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value is not None}
