"""Where a scenario's mini-batches are drawn and their input rows lie: as asked, else as is usual with the method."""

from __future__ import annotations

from dataclasses import replace

from gcnsim.boundary import AccessCounts
from gcnsim.cost import VALUE, Memory, stored_graph_bytes
from gcnsim.errors import ScenarioError
from gcnsim.ids import Bytes
from gcnsim.machine import resolve_machine
from gcnsim.methods import ON_GPU, UVA, Placement
from gcnsim.scenario import RELEASED, Scenario
from gcnsim.sources.batches import batching
from gcnsim.workload import LayerShape


def sampler_of(scenario: Scenario) -> Placement:
    """What draws the scenario's mini-batches; where rows lie is None where their size decides.

    Raises ScenarioError for threads of a sampler that is the GPU, and for rows where the method has none.
    """
    method, cluster = batching(scenario), scenario.cluster
    usual = method.scripts if cluster.implementation == RELEASED else method.usual
    on_gpu = usual.on_gpu if cluster.sampler_device is None else cluster.sampler_device == "gpu"
    if on_gpu and cluster.sampler_threads not in (None, 1):
        raise ScenarioError(
            f"cluster.sampler_threads: {cluster.sampler_threads} needs cluster.sampler_device: cpu; {method.name} "
            "draws on the GPU"
        )
    if cluster.features is not None and cluster.features not in method.rows_in:
        raise ScenarioError(
            f"cluster.features: {cluster.features} is not modelled with {method.name}; allowed: "
            f"{', '.join(method.rows_in)}"
        )
    threads = usual.threads if cluster.sampler_threads is None else cluster.sampler_threads
    return Placement(on_gpu, threads, cluster.features or usual.features)


def placement_of(scenario: Scenario, counts: AccessCounts, shapes: tuple[LayerShape, ...]) -> Placement:
    """The same, with where rows lie: on the GPU where every one holds them beside its largest batch, else UVA."""
    found = sampler_of(scenario)
    if found.features is not None:
        return found
    everywhere = replace(found, features=ON_GPU)
    held, room = batch_memory_of(scenario, counts, shapes, everywhere), resolve_machine(scenario.cluster).capacities
    fits = held is not None and room is not None and all(map(Memory.fits, held, room))
    return everywhere if fits else replace(found, features=UVA)


def batch_memory_of(
    scenario: Scenario, counts: AccessCounts, shapes: tuple[LayerShape, ...], placement: Placement | None = None
) -> tuple[Memory, ...] | None:
    """Per worker what its GPU holds of mini-batches, with the rows and the graph where they lie on it."""
    method, norm = batching(scenario), scenario.workload.norm == "layer"
    held = method.memory(counts, shapes, norm=norm, payload=scenario.cluster.payload)
    if held is None or resolve_machine(scenario.cluster).kind != "gpu":
        return held
    lies = placement or placement_of(scenario, counts, shapes)
    if lies.features != ON_GPU:
        return held
    nodes, entries = int(counts.inner_nodes.sum()), int(counts.entries.sum())
    rows: Bytes = float(VALUE * nodes * method.plan(shapes).width)
    graph: Bytes = float(stored_graph_bytes(nodes, entries)) if lies.graph_on_gpu else 0.0
    return tuple(replace(each, features=each.features + rows, adjacency=each.adjacency + graph) for each in held)
