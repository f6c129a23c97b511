"""Is the access trace of a recorded run its own? Another graph or partition would be predicted without a word."""

from __future__ import annotations

from collections.abc import Iterator

from gcnsim.errors import FileError, ScenarioError, plural
from gcnsim.runs.recorded_run import TRACE, RecordedRun
from gcnsim.sampling import NODES
from gcnsim.scenario import Scenario
from gcnsim.trace import AccessTrace, BatchTrace, read_batch_trace, read_trace


def refuse_other_trace(run: RecordedRun, scenario: Scenario) -> None:
    """Raise ScenarioError, naming the trace, unless it is of the graph, the parts and the draws of `run`.

    scenario: what the simulator is asked about it. Raises FileError for a trace that cannot be read.
    """
    if not run.trace.exists():
        asked = f"allowed: a run that has it (older ones need --save-trace {run.path / TRACE} in training)"
        raise FileError(f"{run.trace}: no access trace of the run; {asked}")
    if scenario.method.mini_batches:
        found = [*_other_batches(run, read_batch_trace(run.trace))]
    else:
        trace = read_trace(run.trace)
        found = [*_elsewhere(run, trace), *_drawn_otherwise(run, trace, scenario)]
    for wrong in found:
        raise ScenarioError(f"{run.trace}: {wrong}; allowed: the trace of {run.path}")


def _other_batches(run: RecordedRun, trace: BatchTrace) -> Iterator[str]:
    """Graph, workers, method and seed of mini-batches."""
    origin = trace.origin
    if origin.graph_hash != run.graph["hash"]:
        yield f"is of the graph {origin.graph_hash[:12]}, the run of {run.graph['hash'][:12]}"
    if trace.workers != run.workers:
        yield f"has {plural(trace.workers, 'worker')}, the run {run.workers}"
    for name, found in (("method", origin.method), ("seed", origin.seed)):
        if found != run.options[name]:
            yield f"was drawn with {name} {found}, the run with {run.options[name]}"


def _elsewhere(run: RecordedRun, trace: AccessTrace) -> Iterator[str]:
    """Graph and parts."""
    origin = trace.origin
    if origin.graph_hash != run.graph["hash"]:
        yield f"is of the graph {origin.graph_hash[:12]}, the run of {run.graph['hash'][:12]}"
    if trace.parts != run.workers:
        yield f"has {plural(trace.parts, 'worker')}, the run {run.workers}"
    if origin.partition_method != run.partition["method"]:
        yield f"is of a partition by {origin.partition_method}, the run of one by {run.partition['method']}"
    for name, found, wanted in (
        ("inner", trace.inner_nodes.tolist(), run.inner),
        ("boundary", trace.boundary_nodes.tolist(), run.boundary),
    ):
        for rank, (one, other) in enumerate(zip(found, wanted, strict=False)):
            if one != other:
                yield f"has {one} {name} nodes of worker {rank}, the run {other}"


def _drawn_otherwise(run: RecordedRun, trace: AccessTrace, scenario: Scenario) -> Iterator[str]:
    """Sampler, rate and seed."""
    origin, (sampler, rate) = trace.origin, scenario.method.sampling().drawn_by
    if (origin.sampler, origin.epsilon) != (sampler, rate):
        knob = "rate" if origin.sampler == NODES else "epsilon"
        yield f"was drawn with {origin.sampler} at {knob} {origin.epsilon:g}, the run with {sampler} at {rate:g}"
    if not scenario.method.sampling().whole and origin.seed != run.options["seed"]:
        yield f"was drawn with seed {origin.seed}, the run with {run.options['seed']}"
