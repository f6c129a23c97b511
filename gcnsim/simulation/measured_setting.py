"""Which measured times answer a scenario: those of its method and knobs, or between those of two rates of sampling.

Free are staleness, cache, refresh, overlap and everything of servers and links. What else was measured otherwise is
refused, with the command that measures it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import hypot, log
from typing import Any, Final, NoReturn

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.hardware import gpu_named
from gcnsim.methods import Method, create_method, is_method, method_type
from gcnsim.records.compute_command import measure_command
from gcnsim.records.compute_facts import MeasuredCompute, MeasuredSetting
from gcnsim.scenario import LEAN, Scenario, from_knobs, setting_text
from gcnsim.scenario.machine import Machine, resolve_machine
from gcnsim.scenario.train_command import cut_options
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.source import Source

FREE: Final = ("tau", "cache", "cache_policy", "refresh")
"""Knobs that change no kernel that is measured: a look-up is scaled by its rows, a refresh is measured by itself."""

RATE: Final = "epsilon"
"""The knob between whose measured values times are interpolated."""

PLAIN: Final = {"payload": "fp32", "implementation": LEAN, "sampler_device": None, "sampler_threads": None}
"""Fields of a cluster that change what workers compute, as they were measured."""

INTERPOLATED: Final = 0.03
"""What interpolation adds to the relative error: between rates 0.1 and 0.5, three times apart, kernels lie so close to
a power law."""


@dataclass(frozen=True, slots=True)
class Answering:
    """What answers a scenario. near: the measured setting, of two the nearer; far: the other, and share: how far the
    scenario lies from near to far, in the logarithm of the rate; error: half the relative 90 % interval."""

    near: MeasuredSetting
    far: MeasuredSetting | None
    share: float
    error: float


def answering(scenario: Scenario) -> Answering | None:
    """What answers the scenario; None of GPUs whose machine names no measured times.

    Raises ScenarioError for CPU cores without measured times or a schedule of the method, for another device, model or
    number of parts than were measured, and for a method or knobs that were not, with the command that measures them.
    """
    machine = resolve_machine(scenario.cluster)
    found = machine.measured
    if machine.kind == "cpu" and not scenario.method.supports_cpu:
        name = scenario.method.name
        raise ScenarioError(f"method.name: {name} is modelled for GPUs only; cluster.device is {machine.device.name}")
    if found is None:
        if machine.kind == "cpu":
            raise ScenarioError(
                f"cluster.measured_compute: null is not allowed on CPU cores ({machine.device.name}), whose compute is "
                f"measured, never assumed; measure it: {_command(scenario, None)}, then --measured-compute FILE"
            )
        return None
    _refuse_other(scenario, machine, found)
    requested = scenario.method
    alike = [(setting, own) for setting in found.settings if (own := _alike(setting, requested)) is not None]
    # Of a rate that was measured with and without a cache, the one whose look-ups are those of the question.
    alike.sort(key=lambda pair: _unlike(pair[1], requested))
    if not alike:
        _refuse_method(scenario, found)
    same = [item for item, own in alike if own.epsilon == requested.epsilon]
    if same:
        return _whole(scenario, found, Answering(same[0], None, 0.0, same[0].relative_error))
    by_rate = {own.epsilon: item for item, own in reversed(alike) if own.epsilon < 1.0}
    rates = sorted(by_rate.items(), key=lambda pair: pair[0])
    below = [pair for pair in rates if pair[0] < requested.epsilon]
    above = [pair for pair in rates if pair[0] > requested.epsilon]
    if not below or not above:
        content = ", ".join(f"{own.epsilon:g}" for _, own in alike)
        _refuse(
            scenario,
            found,
            f"method.{RATE}: {requested.epsilon:g}",
            f"{requested.name} at {RATE} {content}, and between",
        )
    (low, lower), (high, higher) = below[-1], above[0]
    share = log(requested.epsilon / low) / log(high / low)
    error = hypot(max(lower.relative_error, higher.relative_error), INTERPOLATED)
    if share <= 0.5:
        return _whole(scenario, found, Answering(lower, higher, share, error))
    return _whole(scenario, found, Answering(higher, lower, 1.0 - share, error))


def refuse_unmeasured(scenario: Scenario, accesses: Source) -> Answering | None:
    """As `answering`, and refuses another graph or partition than was measured, where both are known."""
    found = resolve_machine(scenario.cluster).measured
    answer = answering(scenario)
    if found is None:
        return None
    if accesses.graph_hash is not None and accesses.graph_hash != found.graph["hash"]:
        source = scenario.workload.graph or accesses.name
        _refuse(scenario, found, f"workload: {source} (hash {accesses.graph_hash[:12]})",
                f"{found.graph['name']} (hash {found.graph['hash'][:12]})")  # fmt: skip
    own = None if scenario.method.mini_batches else accesses.partition_hash(scenario)
    if own is not None and own != found.partition["hash"]:
        _refuse(scenario, found, f"partition: one of hash {own[:12]}", f"that of hash {found.partition['hash'][:12]}")
    model = resolve_model(scenario.workload, accesses.declared)
    for name, width in (("features", model.features), ("classes", model.shapes[-1].d_out)):
        if width != found.graph[name]:
            _refuse(scenario, found, f"workload.{name}: {width}", f"{found.graph[name]}")
    return answer


def measured_error(scenario: Scenario) -> float:
    """Half the relative 90 % interval of the scenario's measured times; 0 where it has none."""
    found = answering(scenario)
    return 0.0 if found is None else found.error


def measured_methods(found: MeasuredCompute) -> tuple[str, ...]:
    """The measured methods that are modelled here."""
    return tuple(name for name in found.methods if is_method(name))


@lru_cache(maxsize=4096)
def method_of(setting: MeasuredSetting) -> Method | None:
    """The method of a measured setting; None of one that is not modelled here. Raises ScenarioError for its knobs."""
    if not is_method(setting.method):
        return None
    kind = method_type(setting.method)
    return from_knobs(kind.name, {name: value for name, value in setting.knobs.items() if kind.has(name)})


def _alike(setting: MeasuredSetting, method: Method) -> Method | None:
    """The method of a setting that was measured as `method` is, whatever is free of it and its rate; else None."""
    own = method_of(setting)
    if own is None:
        return None
    case: Method | None = type(own).as_this_method(method)
    if case is None and method.sampling().whole:
        # What was measured may be a case of what is asked, as PipeGCN is of PSC-GCN.
        own, case = type(method).as_this_method(own), method
    # Moving averages of what is received are kernels of their own.
    if own is None or case is None or getattr(own, "smooths", ()) != getattr(method, "smooths", ()):
        return None
    values, others = own.values(), case.values()
    # A cache of mini-batches is what their loading takes.
    free = () if own.mini_batches else FREE
    kept = {name for name in values if name not in (*free, RATE)}
    # Nothing is drawn at rate 1, so how it would be drawn is nothing to it.
    whole = not own.mini_batches and own.sampling().whole and case.sampling().whole
    return own if whole or all(values[name] == others[name] for name in kept) else None


def _unlike(own: Method, method: Method) -> int:
    """In how many of the knobs that may differ they do."""
    values, others = own.values(), method.values()
    return sum(values.get(name) != others.get(name) for name in FREE)


def _whole(scenario: Scenario, found: MeasuredCompute, answer: Answering) -> Answering:
    """The answer. Raises ScenarioError where a part of it was skipped."""
    for item in filter(None, (answer.near, answer.far)):
        for part, why in item.skipped.items():
            name = setting_text(scenario.method)
            raise ScenarioError(
                f"cluster.measured_compute: {found.path} has no times of part {part} with {name}: {why}; measure it "
                f"where it fits: {_command(scenario, found)}"
            )
    return answer


def _refuse_method(scenario: Scenario, found: MeasuredCompute) -> NoReturn:
    content = dict.fromkeys(setting_text(item) for item in map(method_of, found.settings) if item is not None)
    _refuse(scenario, found, f"method: {setting_text(scenario.method)}", ", ".join(content) or ", ".join(found.methods))


def _refuse_other(scenario: Scenario, machine: Machine, found: MeasuredCompute) -> None:
    """Raises ScenarioError for what of the scenario is not as it was measured, whatever its method."""
    cluster = scenario.cluster
    _refuse_device(machine, found)
    if cluster.gpus != found.parts:
        _refuse(scenario, found, f"cluster.gpus: {cluster.gpus}", plural(found.parts, "part"))
    for name, value in PLAIN.items():
        if getattr(cluster, name) != value:
            raise ScenarioError(
                f"cluster.{name}: {getattr(cluster, name)} is not allowed with cluster.measured_compute, which has no "
                f"times of it; allowed: {value or 'null'}"
            )
    for name, question, own in _differing(scenario, found):
        _refuse(scenario, found, f"workload.{name}: {_text(question)}", _text(own))


def _refuse_device(machine: Machine, found: MeasuredCompute) -> None:
    known = gpu_named(found.device["name"]) if found.on_gpu else None
    if (machine.kind == "gpu") != found.on_gpu or (known is not None and known != machine.device.name):
        raise ScenarioError(
            f"cluster.device: {machine.device.name} is not what {found.path} was measured on, {found.device['name']}; "
            f"allowed: {known or ('a GPU of a file of its own' if found.on_gpu else 'cpu-core')}"
        )


def _differing(scenario: Scenario, found: MeasuredCompute) -> Iterator[tuple[str, Any, Any]]:
    """Fields of the model that are not as measured: the name, what is asked and what was measured."""
    workload, measured = scenario.workload, found.model
    names = ("model", "layers", "hidden", "norm", "preaggregate")
    for name in (*names, *(("heads",) if measured["model"] == "gat" else ())):
        requested, own = getattr(workload, name), measured.get(name)
        if own is not None and requested is not None and requested != own:
            yield name, requested, own
    share = measured.get("dropout")
    if share is not None and workload.dropout is not None and bool(workload.dropout) != bool(share):
        yield "dropout", workload.dropout, share
    dtype = found.training.get("dtype", "float32")
    if dtype != "float32":
        yield "dtype", "float32", dtype
    plain = type(workload)()
    for name in ("heads_joined", "keep_inputs", "dense_layers", "training_subgraph"):
        if getattr(workload, name) != getattr(plain, name):
            yield name, getattr(workload, name), getattr(plain, name)


def _refuse(scenario: Scenario, found: MeasuredCompute, name: str, measured: str) -> NoReturn:
    raise ScenarioError(
        f"{name} is not what {found.path} has measured: {measured}; measure it: {_command(scenario, found)}"
    )


def _command(scenario: Scenario, found: MeasuredCompute | None) -> str:
    """What measures the scenario."""
    workload, method = scenario.workload, scenario.method
    names = ("model", "layers", "hidden", "norm", "preaggregate", "dropout")
    question: dict[str, Any] = {name: getattr(workload, name) for name in names}
    if workload.dropout:
        question["dropout_order"] = workload.dropout_order
    if workload.model == "gat":
        question["heads"] = workload.heads
    if found is None:
        question |= {"aggregator": scenario.cluster.aggregator, "threads": scenario.cluster.threads}
    question |= cut_options(scenario.partition)
    return measure_command(
        found, workload.graph, parts=scenario.cluster.gpus, method=method.name, knobs=_knobs(method), **question
    )


def _knobs(method: Method) -> Mapping[str, Any]:
    """Those of its knobs that are not at their defaults, and what is measured of it, as options."""
    plain = create_method(method.name).values()
    content = {name: value for name, value in method.values().items() if name not in FREE}
    return {name: value for name, value in content.items() if name in (RATE, "rate") or value != plain[name]}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
