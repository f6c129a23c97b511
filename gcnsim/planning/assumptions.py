"""What an answer assumes: of the workload where publications say nothing, of the machine where nobody measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gcnsim.machine import resolve_machine
from gcnsim.methods import SubgraphBatches
from gcnsim.planning.workshop import Estimate, Workshop
from gcnsim.profile import QUANTITIES, Figure
from gcnsim.scenario import Scenario
from gcnsim.study import (
    BOUNDARY,
    CACHE_HITS,
    DISPERSION,
    LOAD,
    REMOTE,
    TRAIN,
    VR_ROWS,
    WITHIN,
    Accesses,
    AsPublished,
    Assumption,
    Corner,
    GraphAccesses,
    ProfileAccesses,
    PublishedAccesses,
    Range,
    SurrogateAccesses,
    degree_spreads,
    placements,
    used_figures,
)
from gcnsim.trace import StoredProfile, interpolation

PLACEMENT = "placement of parts"

FOUR = "four real graphs at 4 to 8 METIS parts"
"""Where the ranges were seen (docs/validation.md)."""


def workload_assumptions(
    workshop: Workshop, scenario: Scenario, estimates: Sequence[Estimate]
) -> Iterator[dict[str, Any]]:
    """What stands in for what publications do not say of the workload of `estimates`, with its range."""
    accesses = workshop.accesses
    yield from _of_batches(accesses, estimates)
    if any(len(placements(each.scenario)) > 1 for each in estimates):
        basis = "which part of the graph each of the unequal GPUs gets; a partition.file of workload.graph would say"
        yield _row(PLACEMENT, "as numbered", "most work on the fastest", "most work on the slowest", basis, True)
    if all(each.scenario.method.mini_batches for each in estimates):
        return
    if isinstance(accesses, ProfileAccesses) and len(accesses.corners) > 1:
        ends = [accesses.profile(corner).cross_edges_mean for corner in (Corner.LOW, Corner.LIKELY, Corner.HIGH)]
        low, likely, high = (f"{mean:.3g}" for mean in ends)
        yield _row("cross_edges", likely, low, high, f"of a boundary node in {accesses.path}; its own range", True)
        return
    if isinstance(accesses, SurrogateAccesses):
        profiled = dict.fromkeys(each.scenario.cluster.gpus for each in estimates if accesses.profiled(each.scenario))
        for gpus in list(profiled)[:1]:
            yield _cross_edges(accesses, gpus)
            yield from _of_interpolation(accesses, gpus)
            if accesses.profile(gpus).origin.source == "outline":
                yield from _of_outline(accesses.profile(gpus))
        if profiled and accesses.profiled(scenario):
            return
        accesses = accesses.published
    if not isinstance(accesses, PublishedAccesses):
        return
    if scenario.cluster.gpus == 1:
        return
    workload = scenario.workload
    shares = Range(*accesses.cross_fractions(scenario))
    basis = f"{FOUR}, scaled to boundary/inner" if workload.cross_fraction is None else "given"
    if isinstance(accesses, AsPublished):
        basis = "from the range of cross edges of a boundary node: docs/surrogates.md"
        yield from _of_outlined_tables(accesses, scenario)
    low, likely, high = (f"{100 * share:.3g} %" for share in shares)
    yield _row("cross_fraction", likely, low, high, basis, True)
    basis = f"of the largest part over the mean part, {FOUR}" if workload.imbalance is None else "given"
    if isinstance(accesses, AsPublished):
        basis = "of the largest part over the mean part, as Reddit's ten training parts (BNS-GCN, Table 1)"
    known = {
        "load_imbalance": (accesses.imbalances(scenario, LOAD), f"stored entries {basis}"),
        "boundary_imbalance": (accesses.imbalances(scenario, BOUNDARY), f"boundary nodes {basis}"),
        "remote_ownership": (REMOTE, f"boundary rows owned on other servers, over equal ownership, {FOUR}"),
    }
    # Nodes that are drawn whatever their edges are ask nothing of the spread of edges.
    methods = [each.scenario.method for each in estimates if each.scenario.method.sampling().by_edge]
    if methods:
        known["dispersion"] = (DISPERSION, f"standard deviation of log cross edges per boundary node, {FOUR}")
    if any(method.sampling().rule == "vr" for method in methods):
        known["vr_rows"] = (VR_ROWS, f"rows the vr sampler needs, over the first-order rule used here, {FOUR}")
    if any(not method.cache.empty for method in methods):
        known["cache_hits"] = (CACHE_HITS, f"cache hits, over a cache that knows all cross edges, {FOUR}")
    for name, (value, why) in known.items():
        least, most = sorted((value.low, value.high))
        yield _row(name, f"{value.likely:.3g}", f"{least:.3g}", f"{most:.3g}", why, True)


def _of_batches(accesses: Accesses, estimates: Sequence[Estimate]) -> Iterator[dict[str, Any]]:
    """What stands in for what is not known of mini-batches."""
    methods = [each.scenario.method for each in estimates if each.scenario.method.mini_batches]
    if not methods:
        return
    if isinstance(accesses, GraphAccesses):
        if not accesses.splits and all(each.scenario.workload.train_fraction is None for each in estimates):
            yield _row("train_fraction", f"{TRAIN:.0%}", "50%", "80%", "share of the nodes that train", False)
        return
    if isinstance(accesses, PublishedAccesses | SurrogateAccesses):
        low, likely, high = (f"{spread:.3g}" for spread in sorted(degree_spreads(accesses.facts)))
        yield _row("degree_spread", likely, low, high, "standard deviation of log degrees, of mini-batches", True)
        if any(isinstance(each, SubgraphBatches) and each.nodes_of == "clusters" for each in methods):
            low, likely, high = (f"{100 * share:.3g} %" for share in WITHIN)
            yield _row("within_cluster", likely, low, high, "entries that stay in a cluster of ClusterGCN", True)


def _cross_edges(accesses: SurrogateAccesses, gpus: int) -> dict[str, Any]:
    """What publications leave open of a surrogate: it decides the rows needed at a rate below 1."""
    low, likely, high = (
        f"{accesses.profile(gpus, corner).cross_edges_mean:.3g}" for corner in (Corner.LOW, Corner.LIKELY, Corner.HIGH)
    )
    source = accesses.profile(gpus).origin.source
    where = "surrogate" if source == "interpolated" else source
    basis = f"of a boundary node in the {where}; its range: docs/surrogates.md"
    return _row("cross_edges", likely, low, high, basis, True)


def _of_interpolation(accesses: SurrogateAccesses, gpus: int) -> Iterator[dict[str, Any]]:
    """What a profile between shipped ones may miss of the boundary."""
    between = interpolation(accesses.facts.name, gpus)
    if between is None or between.missed is None:
        return
    ends = [accesses.profile(gpus, corner).boundary_nodes for corner in (Corner.LOW, Corner.LIKELY, Corner.HIGH)]
    basis = f"interpolated between profiles at {between.low} and {between.high} parts, leave-one-out error"
    low, likely, high = (f"{nodes.mean():,.0f}" for nodes in ends)
    yield _row("boundary_nodes", likely, low, high, f"of the mean worker; {basis}", True)
    low, likely, high = (f"{nodes.max():,}" for nodes in ends)
    yield _row("boundary_nodes_most", likely, low, high, f"of the largest worker; {basis}", True)


def _of_outline(profile: StoredProfile) -> Iterator[dict[str, Any]]:
    """What is assumed besides where no partition was made: nothing published counts a boundary."""
    yield _boundary_ratio(profile.origin.name, profile.parts)
    ratio = profile.boundary_nodes / profile.inner_nodes
    least, most = f"{ratio.min():.3g}", f"{ratio.max():.3g}"
    basis = "the same, least and most of the workers: as uneven as the parts of another graph"
    yield _row("boundary_ratios", f"{ratio.mean():.3g}", least, most, basis, False)
    basis = f"rows the vr sampler needs, over the first-order rule used here, {FOUR}"
    yield _row("vr_rows", "1", f"{VR_ROWS.low:.3g}", f"{VR_ROWS.high:.3g}", basis, False)


def _of_outlined_tables(accesses: AsPublished, scenario: Scenario) -> Iterator[dict[str, Any]]:
    from gcnsim.graph.generate import outlines

    if accesses.facts.name in outlines() and not accesses.facts.boundary:
        yield _boundary_ratio(accesses.facts.name, accesses.parts or scenario.cluster.gpus)


def _boundary_ratio(name: str, parts: int) -> dict[str, Any]:
    from gcnsim.graph.generate import outline

    boundary = outline(name).boundary
    low, likely, high = (f"{boundary.ratio(parts, end):.3g}" for end in range(3))
    return _row(
        "boundary_ratio", likely, low, high, f"boundary over inner nodes of the mean worker: {boundary.source}", True
    )


def _row(name: str, value: str, low: str, high: str, basis: str, covered: bool) -> dict[str, Any]:
    return {"name": name, "value": value, "low": low, "high": high, "basis": basis, "in_interval": covered}


def machine_figures(scenario: Scenario, source: str, *, batches: bool = False) -> Iterator[dict[str, Any]]:
    """The figures of the scenario's machine that come from `source` and that a cost law reads.

    batches: whether mini-batches are trained, which need figures of their own.
    """
    for name, figure in used_figures(resolve_machine(scenario.cluster), batches=batches).items():
        if figure.source == source:
            yield _row(name, *_written(name.rpartition(".")[2], figure), figure.reference, source == "assumed")


def figure_row(each: Assumption) -> dict[str, Any]:
    """An assumed figure with its range, as plain data."""
    value, low, high = _written(each.name.rpartition(".")[2], each.figure)
    return {"name": each.name, "value": value, "low": low, "high": high, "basis": each.figure.reference}


def _written(field: str, figure: Figure) -> tuple[str, str, str]:
    """Value, low and high of a figure with their unit."""
    quantity = QUANTITIES[field]
    texts = [f"{each:g}" if quantity is None else quantity.exact(each) for each in _ends(figure)]
    return texts[0], texts[1], texts[2]


def _ends(figure: Figure) -> tuple[float, float, float]:
    low = figure.value if figure.low is None else figure.low
    return figure.value, low, figure.value if figure.high is None else figure.high
