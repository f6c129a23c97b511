"""What an answer says of mini-batches on GPUs: who draws them, and where their rows lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gcnsim.errors import plural
from gcnsim.machine import resolve_machine
from gcnsim.methods import HOST, ON_GPU, UVA, Placement
from gcnsim.planning.study_cache import StudyCache
from gcnsim.scenario import Scenario
from gcnsim.sources import RangeEnd, resolve_model
from gcnsim.sources.placement import placement_of, sampler_of

LIES = {
    HOST: "rows picked out of host memory by its cores",
    UVA: "rows read from host memory by the GPU",
    ON_GPU: "rows on the GPU",
}


def batch_words(studies: StudyCache, asked: Sequence[Scenario]) -> str | None:
    """`dgl: drawn by the GPU, graph and rows on the GPU`, of each method of `asked`; None where none has any."""
    return "; ".join(dict.fromkeys(_words(studies, asked))) or None


def _words(studies: StudyCache, asked: Sequence[Scenario]) -> Iterator[str]:
    for scenario in asked:
        if not scenario.method.mini_batches or resolve_machine(scenario.cluster).kind != "gpu":
            continue
        accesses = studies.accesses
        model = resolve_model(scenario.workload, accesses.declared)
        counts = accesses.counts(scenario, model.features, RangeEnd.LIKELY)
        placement = placement_of(scenario, counts, model.shapes)
        lies = "graph and rows on the GPU" if placement.graph_on_gpu else LIES[placement.features or ON_GPU]
        because = ""
        if sampler_of(scenario).features is None:
            because = ", which holds them" if placement.features == ON_GPU else ", which does not hold them"
        yield f"{scenario.method.name}: {_drawn(placement)}, {lies}{because}"


def _drawn(placement: Placement) -> str:
    if placement.on_gpu:
        return "drawn by the GPU" if placement.graph_on_gpu else "drawn by the GPU from a graph in host memory"
    if not placement.threads:
        return "drawn by the trainer before each"
    return f"drawn ahead by {plural(placement.threads, 'thread')} of the host for each GPU"
