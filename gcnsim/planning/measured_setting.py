"""Whether a measured time answers the question it is given to: the same graph, model, device, workers and parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from gcnsim.evidence.facts import facts_of_profile, facts_of_run
from gcnsim.machine import resolve_machine
from gcnsim.planning.candidate import Candidate
from gcnsim.planning.study_cache import StudyCache
from gcnsim.results import Differs
from gcnsim.runs.measured import Measured
from gcnsim.runs.recorded_run import RecordedRun, read_recorded_run
from gcnsim.sources import RangeEnd, resolve_model
from gcnsim.units import BANDWIDTH

WORDS: Final[Mapping[str, str]] = {
    "workload.model": "model",
    "workload.layers": "layers",
    "workload.features": "features",
    "workload.hidden": "hidden width",
    "workload.classes": "classes",
    "cluster.device": "device",
    "cluster.gpus": "workers",
    "method.name": "method",
    "method.tau": "tau",
    "method.epsilon": "epsilon",
    "method.rate": "rate",
    "method.cache": "cache",
    "cluster.gpus_per_server": "workers per server",
    "cluster.bandwidth": "bandwidth",
}
"""What is compared, in this order, after the graph; with the word that a reader knows it by."""

KNOBS: Final = ("tau", "epsilon", "rate", "cache")

OTHER_PARTS: Final = 0.05
"""Boundaries that differ by more than this are those of another partition: METIS of another seed stays within it."""


def differences(measured: Measured, studies: StudyCache, row: Candidate) -> tuple[Differs, ...]:
    """In what the measured run is another than `row`; of what either does not say nothing is compared.

    Raises FileError for a run that cannot be read, ScenarioError for one on devices that the catalogue does not know.
    """
    run = None if measured.kind == "trace" else read_recorded_run(measured.path)
    facts = facts_of_profile(measured.workers, measured.devices, measured.path) if run is None else facts_of_run(run)
    asked = _asked(studies, row)
    found = [*_graph(run, studies)] if run is not None else []
    same_graph = run is not None and not found
    found += [
        Differs(word, facts[name], asked[name])
        for name, word in WORDS.items()
        if name in facts and name in asked and facts[name] != asked[name]
    ]
    if run is not None and same_graph and not found:
        found += _parts(run, studies, row)
    return tuple(found)


def _asked(studies: StudyCache, row: Candidate) -> dict[str, str]:
    """The row's setting, by the names of `facts_of_run`."""
    scenario, method = row.scenario, row.scenario.method
    cluster, machine = scenario.cluster, resolve_machine(scenario.cluster)
    model = resolve_model(scenario.workload, studies.accesses.declared)
    shapes = model.shapes
    found = {
        "workload.model": model.name,
        "workload.layers": str(len(shapes)),
        "workload.features": str(model.features),
        "workload.hidden": str(shapes[0].d_out),
        "workload.classes": str(shapes[-1].d_out),
        "cluster.device": machine.device.name,
        "cluster.gpus": str(cluster.gpus),
        "cluster.gpus_per_server": str(cluster.gpus_per_server),
        "cluster.bandwidth": BANDWIDTH.exact(cluster.bandwidth),
        "method.name": method.name,
    }
    knobs = (name for name in KNOBS if method.has(name))
    return found | {f"method.{name}": f"{getattr(method, name):.12g}" for name in knobs}


def _graph(run: RecordedRun, studies: StudyCache) -> Iterator[Differs]:
    """By content where that is known of both, else by name."""
    source = studies.accesses
    name, content = run.graph["name"], run.graph["hash"]
    if source.graph_hash is None:
        if name.casefold() != source.name.casefold():
            yield Differs("graph", name, source.name)
    elif content != source.graph_hash:
        same = name == source.name
        yield Differs("graph", *(f"{text} ({code[:8]})" if same else text for text, code in _named(run, studies)))


def _named(run: RecordedRun, studies: StudyCache) -> Iterator[tuple[str, str]]:
    yield run.graph["name"], run.graph["hash"]
    yield studies.accesses.name, studies.accesses.graph_hash or ""


def _parts(run: RecordedRun, studies: StudyCache, row: Candidate) -> Iterator[Differs]:
    """The boundary of all workers together, where it is that of another partition."""
    model = resolve_model(row.scenario.workload, studies.accesses.declared)
    counts = studies.accesses.counts(row.scenario, model.features, RangeEnd.LIKELY)
    predicted, measured = int(counts.boundary_nodes.sum()), sum(run.boundary)
    if abs(measured - predicted) > OTHER_PARTS * max(predicted, 1):
        yield Differs("boundary nodes of all parts", f"{measured:,}", f"{predicted:,}")
