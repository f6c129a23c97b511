"""What an answer rests on: the graph, the figures, the assumptions with their ranges, and what the interval covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gcnsim import __version__
from gcnsim.planning.workshop import Estimate, Workshop
from gcnsim.profile import QUANTITIES, Figure, device, figures_of, host, link
from gcnsim.scenario import Scenario, scenario_hash
from gcnsim.study import DISPERSION, VR_ROWS, GraphAccesses, PublishedAccesses, TraceAccesses, keeps_all, resolve_model
from gcnsim.workload import boundary_at

NOT_CALIBRATED = "none: device and network figures are datasheet values and assumptions, not fitted to any run"


def provenance(workshop: Workshop, scenario: Scenario, estimates: Sequence[Estimate]) -> dict[str, Any]:
    """The provenance of rows that share `scenario`'s workload, as plain data."""
    accesses = workshop.accesses
    published = isinstance(accesses, PublishedAccesses)
    spread = "90 % of the mean over iterations (trace sampling)"
    corners = ", and both ends of the assumptions marked as in the interval" if published else ""
    return {
        "graph": _graph(workshop, scenario),
        "model": str(resolve_model(scenario.workload, accesses.declared)),
        "device": _device(scenario),
        "interval": f"{spread}{corners}; no calibration residuals yet, so device and network figures are not covered",
        "assumptions": [*_workload_assumptions(workshop, scenario, estimates), *_figure_assumptions(scenario)],
        "calibration": NOT_CALIBRATED,
        "engine": "reference",
        "version": __version__,
        "seed": scenario.run.seed,
        "scenario_hash": scenario_hash(scenario),
        "bounds": [
            {"lower_s": each.result.bounds.lower_s, "upper_s": each.result.bounds.upper_s} for each in estimates
        ],
        "warnings": list(dict.fromkeys(_warnings(workshop, scenario, estimates))),
    }


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
        return {
            "kind": "recorded-trace",
            "text": f"{accesses.path}: {trace.iterations} graphs of {origin.graph_name} drawn with {origin.sampler} at "
            f"epsilon {origin.epsilon:g}; {origin.partition_method}, seed {origin.partition_seed}: boundary/inner "
            f"{boundary / int(trace.inner_nodes.sum()):.3g} at {trace.parts} parts",
            "hash": origin.graph_hash,
        }
    facts = accesses.facts
    inner, outer, note = boundary_at(facts, scenario.cluster.gpus)
    return {
        "kind": "published-statistics",
        "text": f"{facts.name}: {facts.nodes:,} nodes, {facts.entries:,} stored entries; {inner:,.0f} inner and "
        f"{outer:,.0f} boundary nodes per worker, {note}",
        "citations": dict(facts.citations),
    }


def _device(scenario: Scenario) -> str:
    cluster = scenario.cluster
    gpu = device(cluster.device)
    kinds = ", ".join(gpu.provenance())
    return f"{cluster.gpus} x {gpu.title}, {cluster.servers} server(s) of {cluster.gpus_per_server}; figures: {kinds}"


def _workload_assumptions(
    workshop: Workshop, scenario: Scenario, estimates: Sequence[Estimate]
) -> Iterator[dict[str, Any]]:
    accesses = workshop.accesses
    if not isinstance(accesses, PublishedAccesses):
        return
    if scenario.cluster.gpus > 1:
        four = "range seen on four real graphs at 4 to 8 METIS parts, scaled to boundary/inner"
        basis = four if scenario.workload.cross_fraction is None else "given"
        low, likely, high = accesses.cross_fractions(scenario)
        yield _row("cross_fraction", f"{100 * likely:.3g} %", f"{100 * low:.3g} %", f"{100 * high:.3g} %", basis, True)
        basis = "largest over mean part, four real graphs" if scenario.workload.imbalance is None else "given"
        few, usual, many = accesses.imbalances(scenario)
        yield _row("imbalance", f"{usual:.3g}", f"{few:.3g}", f"{many:.3g}", basis, True)
        basis = "standard deviation of log cross edges per boundary node, four real graphs"
        yield _row("dispersion", f"{DISPERSION:g}", "1.0", "1.5", basis, False)
        if any(not keeps_all(each.scenario.method) for each in estimates):
            low, likely, high = VR_ROWS
            basis = "rows the vr sampler needs over the first-order rule used without a graph, four real graphs"
            yield _row("vr_rows", f"{likely:g}", f"{low:g}", f"{high:g}", basis, True)


def _row(name: str, value: str, low: str, high: str, basis: str, covered: bool) -> dict[str, Any]:
    return {"name": name, "value": value, "low": low, "high": high, "basis": basis, "in_interval": covered}


def _figure_assumptions(scenario: Scenario) -> Iterator[dict[str, Any]]:
    cluster = scenario.cluster
    gpu = device(cluster.device)
    profiles = {gpu.name: gpu, cluster.pcie or gpu.link: link(cluster.pcie or gpu.link)}
    profiles |= {cluster.link: link(cluster.link), cluster.host: host(cluster.host)}
    replaced = {(cluster.link, "bandwidth")}
    if cluster.latency is not None:
        replaced.add((cluster.link, "latency_s"))
    for name, profile in profiles.items():
        for field, figure in figures_of(profile).items():
            if figure.source == "assumed" and (name, field) not in replaced:
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
    if isinstance(workshop.accesses, PublishedAccesses):
        for gpus in dict.fromkeys(each.scenario.cluster.gpus for each in estimates):
            _, _, note = boundary_at(workshop.accesses.facts, gpus)
            if "polated" in note:
                yield f"{gpus} GPUs: boundary nodes {note}"
    for each in estimates:
        cluster, method = each.scenario.cluster, each.scenario.method
        if cluster.gpus % cluster.gpus_per_server:
            last = cluster.gpus % cluster.gpus_per_server
            yield f"{cluster.gpus} GPUs, {cluster.gpus_per_server} per server: the last server holds {last}"
        if not each.result.settled:
            yield f"{method.name} (tau {method.tau}): still drifting after {each.result.run.iterations} iterations"
