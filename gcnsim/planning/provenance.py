"""What an answer rests on: the graph, the figures, the assumptions with their ranges, and what the interval covers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gcnsim import __version__
from gcnsim.knobs import has_knob
from gcnsim.planning.workshop import Estimate, Workshop
from gcnsim.profile import QUANTITIES, Figure, figures_of, link
from gcnsim.record import Calibration, content_hash
from gcnsim.sampling import NODES
from gcnsim.scenario import Scenario, scenario_hash
from gcnsim.study import (
    BOUNDARY,
    CACHE_HITS,
    DISPERSION,
    HOST_MEMORY,
    LOAD,
    REMOTE,
    VR_ROWS,
    Corner,
    GraphAccesses,
    Model,
    PublishedAccesses,
    Range,
    SurrogateAccesses,
    TraceAccesses,
    calibration_of,
    profiles,
    resolve_model,
)
from gcnsim.trace import profile_at
from gcnsim.workload import boundary_at

NOT_CALIBRATED = (
    "none: device and network figures are datasheet values, assumptions, and CPU rates measured on one machine; "
    "nothing is fitted to a training run"
)

UNUSED = {"memory", "flops_fp16", "memory_bandwidth of a host"}
"""Figures of the catalogue that no cost law reads yet."""

ON_CORES = {
    f"{name} of a host"
    for name in (
        "build_entries_per_s",
        "socket_bandwidth",
        "busy_core_rate",
        "slice_s",
        "reduce_step_s",
        "draw_s",
        "loss_values_per_s",
        "iteration_s",
    )
}
"""Figures that only workers on CPU cores need."""


def provenance(
    workshop: Workshop, scenario: Scenario, estimates: Sequence[Estimate], asked: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The provenance of rows that share `scenario`'s workload, as plain data. asked: the grid of values, if any."""
    assumptions = [*_workload_assumptions(workshop, scenario, estimates), *_figures(scenario, "assumed")]
    record = calibration_of(scenario.cluster.calibration)
    told = {
        "graph": _graph(workshop, scenario),
        "model": str(resolve_model(scenario.workload, workshop.accesses.declared)),
        "device": _device(scenario),
        "interval": _interval(assumptions, record),
        "assumptions": assumptions,
        "measured": [f"{item['name']} {item['value']}: {item['basis']}" for item in _figures(scenario, "measured")],
        "calibration": NOT_CALIBRATED if record is None else _calibration(scenario.cluster.calibration or "", record),
        "engine": "reference",
        "version": __version__,
        "seed": scenario.run.seed,
        "scenario_hash": scenario_hash(scenario),
        "bounds": [
            {"lower_s": each.result.bounds.lower_s, "upper_s": each.result.bounds.upper_s} for each in estimates
        ],
        "warnings": list(dict.fromkeys(_warnings(workshop, scenario, estimates))),
    }
    if asked is not None:
        question = json.dumps([told["scenario_hash"], asked], sort_keys=True)
        told["question_hash"] = hashlib.sha256(question.encode()).hexdigest()
    return told


def _calibration(path: str, record: Calibration) -> str:
    """What a calibrated answer rests on, in a sentence."""
    runs = sum(source.kind == "run" for source in record.inputs)
    return (
        f"{path} (SHA-256 {content_hash(path)[:12]}): {record.device} on "
        f"{record.machine.get('cpu', 'an unnamed processor')}, micro-benchmarks and {runs} recorded runs"
    )


def _interval(assumptions: Sequence[Mapping[str, Any]], record: Calibration | None) -> str:
    """What the intervals cover, in a sentence."""
    covered = ", and both ends of the assumptions marked so" if any(item["in_interval"] for item in assumptions) else ""
    left = "no calibration residuals, so device and network figures are not covered"
    if record is not None and record.error is not None:
        left = f"and {100 * record.error:.1f} % that the calibration left unexplained in the runs it was fitted to"
    return f"90 % of the mean over drawn graphs and the precision of the simulation{covered}; {left}"


def _graph(workshop: Workshop, scenario: Scenario) -> Mapping[str, Any]:
    accesses = workshop.accesses
    if isinstance(accesses, GraphAccesses):
        graph = accesses.graph
        cut, parts = accesses.partition(scenario)
        boundary = sum(part.boundary_nodes for part in parts)
        return {
            "kind": "real",
            "text": f"{graph.name}: {graph.nodes:,} nodes, {graph.entries:,} stored entries ({graph.cleaning}); "
            f"{cut.method}, seed {cut.seed}: boundary/inner {boundary / graph.nodes:.3g} at {cut.parts} parts",
            "hash": cut.graph_hash,
        }
    if isinstance(accesses, TraceAccesses):
        origin, trace = accesses.trace.origin, accesses.trace
        boundary = int(trace.boundary_nodes.sum())
        knob = "rate" if origin.sampler == NODES else "epsilon"
        return {
            "kind": "recorded-trace",
            "text": f"{accesses.path}: {trace.iterations} graphs of {origin.graph_name} drawn with {origin.sampler} at "
            f"{knob} {origin.epsilon:g}; {origin.partition_method}, seed {origin.partition_seed}: boundary/inner "
            f"{boundary / int(trace.inner_nodes.sum()):.3g} at {trace.parts} parts",
            "hash": origin.graph_hash,
        }
    if isinstance(accesses, SurrogateAccesses) and accesses.profiled(scenario):
        return _surrogate(accesses, scenario.cluster.gpus)
    facts = accesses.facts
    inner, outer, note = boundary_at(facts, scenario.cluster.gpus)
    return {
        "kind": "published-statistics",
        "text": f"{facts.name}: {facts.nodes:,} nodes, {facts.entries:,} stored entries; {inner:,.0f} inner and "
        f"{outer:,.0f} boundary nodes per worker, {note}",
        "citations": dict(facts.citations),
    }


def _surrogate(accesses: SurrogateAccesses, gpus: int) -> Mapping[str, Any]:
    facts, profile = accesses.facts, accesses.profile(gpus)
    origin = profile.origin
    missed = ", ".join(f"{100 * error:+.0f} % at {parts}" for parts, error in (origin.residuals or {}).items())
    return {
        "kind": "surrogate-profile",
        "text": f"{facts.name}: a surrogate of {facts.nodes:,} nodes, {facts.entries:,} stored entries; "
        f"{profile.inner_nodes.mean():,.0f} inner and {profile.boundary_nodes.mean():,.0f} boundary nodes per worker, "
        f"{accesses.note(gpus)}; its boundary against the published: {missed or 'nothing published'}"
        + (f"; measured with {100 * origin.scale:g} % of the nodes" if origin.scale != 1.0 else ""),
        "citations": dict(facts.citations),
    }


def _device(scenario: Scenario) -> str:
    cluster = scenario.cluster
    gpu, _, _ = profiles(cluster)
    kinds = ", ".join(gpu.provenance())
    return f"{cluster.gpus} x {gpu.title}, {cluster.servers} server(s) of {cluster.gpus_per_server}; figures: {kinds}"


def _workload_assumptions(
    workshop: Workshop, scenario: Scenario, estimates: Sequence[Estimate]
) -> Iterator[dict[str, Any]]:
    accesses = workshop.accesses
    if isinstance(accesses, SurrogateAccesses):
        profiled = dict.fromkeys(each.scenario.cluster.gpus for each in estimates if accesses.profiled(each.scenario))
        for gpus in list(profiled)[:1]:
            yield _cross_edges(accesses, gpus)
        if profiled and accesses.profiled(scenario):
            return
        accesses = accesses.published
    if not isinstance(accesses, PublishedAccesses):
        return
    if scenario.cluster.gpus == 1:
        return
    workload = scenario.workload
    four = "four real graphs at 4 to 8 METIS parts"
    shares = Range(*accesses.cross_fractions(scenario))
    basis = f"{four}, scaled to boundary/inner" if workload.cross_fraction is None else "given"
    low, likely, high = (f"{100 * share:.3g} %" for share in shares)
    yield _row("cross_fraction", likely, low, high, basis, True)
    basis = f"of the largest part over the mean part, {four}" if workload.imbalance is None else "given"
    known = {
        "load_imbalance": (accesses.imbalances(scenario, LOAD), f"stored entries {basis}"),
        "boundary_imbalance": (accesses.imbalances(scenario, BOUNDARY), f"boundary nodes {basis}"),
        "remote_ownership": (REMOTE, f"boundary rows owned on other servers, over equal ownership, {four}"),
    }
    # Nodes that are drawn whatever their edges are ask nothing of the spread of edges.
    methods = [each.scenario.method for each in estimates if each.scenario.method.epsilon < 1.0]
    if methods:
        known["dispersion"] = (DISPERSION, f"standard deviation of log cross edges per boundary node, {four}")
    if any(method.sampler == "vr" for method in methods):
        known["vr_rows"] = (VR_ROWS, f"rows the vr sampler needs, over the first-order rule used here, {four}")
    if any(not method.cache.empty for method in methods):
        known["cache_hits"] = (CACHE_HITS, f"cache hits, over a cache that knows all cross edges, {four}")
    for name, (value, why) in known.items():
        least, most = sorted((value.low, value.high))
        yield _row(name, f"{value.likely:.3g}", f"{least:.3g}", f"{most:.3g}", why, True)


def _cross_edges(accesses: SurrogateAccesses, gpus: int) -> dict[str, Any]:
    """What publications leave open of a surrogate: it decides the rows needed at a rate below 1."""
    low, likely, high = (
        f"{accesses.profile(gpus, corner).cross_edges_mean:.3g}" for corner in (Corner.LOW, Corner.LIKELY, Corner.HIGH)
    )
    basis = "of a boundary node in the surrogate; its range: docs/surrogates.md"
    return _row("cross_edges", likely, low, high, basis, True)


def _row(name: str, value: str, low: str, high: str, basis: str, covered: bool) -> dict[str, Any]:
    return {"name": name, "value": value, "low": low, "high": high, "basis": basis, "in_interval": covered}


def _figures(scenario: Scenario, source: str) -> Iterator[dict[str, Any]]:
    """The figures of the scenario's machine that come from `source` and that a cost law reads."""
    cluster = scenario.cluster
    gpu, server, network = profiles(cluster)
    links = {name: link(name) for name in (cluster.pcie or gpu.link, HOST_MEMORY)} | {cluster.link: network}
    replaced = {(cluster.link, "bandwidth")}
    if cluster.latency is not None:
        replaced.add((cluster.link, "latency_s"))
    for name, profile in {gpu.name: gpu, **links, cluster.host: server}.items():
        for field, figure in figures_of(profile).items():
            where = f"{field} of a host" if name == cluster.host else field
            idle = where in UNUSED or (where in ON_CORES and gpu.kind != "cpu")
            if figure.source == source and (name, field) not in replaced and not idle:
                yield _row(f"{name}.{field}", *_written(field, figure), figure.reference, False)


def _written(field: str, figure: Figure) -> tuple[str, str, str]:
    """Value, low and high of a figure with their unit."""
    quantity = QUANTITIES[field]
    texts = [f"{each:g}" if quantity is None else quantity.exact(each) for each in _ends(figure)]
    return texts[0], texts[1], texts[2]


def _ends(figure: Figure) -> tuple[float, float, float]:
    low = figure.value if figure.low is None else figure.low
    return figure.value, low, figure.value if figure.high is None else figure.high


def _warnings(workshop: Workshop, scenario: Scenario, estimates: Sequence[Estimate]) -> Iterator[str]:
    model = resolve_model(scenario.workload, workshop.accesses.declared)
    for name in model.assumed:
        width = model.features if name == "features" else model.shapes[-1].d_out
        yield f"the workload declares no {name}: {width} assumed (--set workload.{name}=N)"
    accesses = workshop.accesses
    if isinstance(accesses, PublishedAccesses | SurrogateAccesses):
        for asked in {each.scenario.cluster.gpus: each.scenario for each in estimates}.values():
            gpus = asked.cluster.gpus
            from_profile = isinstance(accesses, SurrogateAccesses) and accesses.profiled(asked)
            note = profile_at(accesses.facts.name, gpus)[1] if from_profile else boundary_at(accesses.facts, gpus)[2]
            if "polated" in note:
                yield f"{gpus} GPUs: boundary nodes {note}"
    record = calibration_of(scenario.cluster.calibration)
    if record is not None:
        for each in estimates:
            yield from _uncalibrated(each.scenario, record, model)
    for each in estimates:
        cluster = each.scenario.cluster
        if cluster.gpus > cluster.gpus_per_server and cluster.gpus % cluster.gpus_per_server:
            last = cluster.gpus % cluster.gpus_per_server
            yield f"{cluster.gpus} GPUs, {cluster.gpus_per_server} per server: the last server holds {last}"
    for result in workshop.unsettled():
        method = result.scenario.method
        knob = f"rate {method.rate:g}" if method.rate < 1.0 else f"tau {method.tau}"
        yield f"{method.name} ({knob}): still drifting after {result.run.iterations} iterations"


def _uncalibrated(scenario: Scenario, record: Calibration, model: Model) -> Iterator[str]:
    """The settings of a row beyond those that the calibration's runs had."""
    method, cluster = scenario.method, scenario.cluster
    settings = {
        "workers": cluster.gpus,
        "bandwidth": cluster.bandwidth,
        "tau": method.tau,
        "epsilon": method.epsilon,
        **({"rate": method.rate} if has_knob(method.name, "rate") else {}),
        "features": model.features,
        "layers": len(model.shapes),
        "hidden": max(shape.d_out for shape in model.shapes),
    }
    for name, value in settings.items():
        low, high = record.ranges.get(name, (value, value))
        if not low <= value <= high:
            seen = f"{low:g} to {high:g}" if low < high else f"{low:g}"
            yield f"{name} {value:g} is outside the calibrated range ({seen})"
