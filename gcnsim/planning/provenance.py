"""The basis of an answer: the graph, the figures, the assumptions with their ranges, and the coverage of the interval.

For mini-batches on GPUs it includes the device that samples and the place of the feature rows.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gcnsim import __version__
from gcnsim.core.errors import plural
from gcnsim.core.units import format_bytes
from gcnsim.cost import RESERVED, SYSTEM
from gcnsim.evidence.like_questions import like_questions
from gcnsim.hardware import is_file
from gcnsim.methods import HOST, ON_GPU, UVA, Placement
from gcnsim.methods.roc import Roc
from gcnsim.planning.alternatives import known_at_other_sizes
from gcnsim.planning.candidate import Candidate, Estimate
from gcnsim.planning.certainty import basis_words, heading_words, machine_figures, measured_times, workload_assumptions
from gcnsim.planning.study import Studies
from gcnsim.records.calibration import Calibration, beyond, content_hash, settings
from gcnsim.results import Assumed, Bounds, Provenance
from gcnsim.scenario import (
    COARSE,
    EXACT,
    LEAN,
    RELEASED,
    Fault,
    Jitter,
    Scenario,
    fault_words,
    figure_text,
    scenario_hash,
)
from gcnsim.scenario.machine import Machine, resolve_machine
from gcnsim.scenario.odd_rates import rate_warnings
from gcnsim.simulation import GRAIN, Result, tightest, wrong_by
from gcnsim.simulation.batches import placement_of, sampler_of
from gcnsim.simulation.model import Model
from gcnsim.simulation.placement import statistics_warning
from gcnsim.simulation.server_memory import least_servers
from gcnsim.simulation.source import Source

NOT_CALIBRATED = (
    "none: device and network figures are datasheet values, assumptions, and CPU rates measured on one machine; "
    "nothing is fitted to a training run"
)

LINKS_ASSUMED = "none: compute is measured; network and message figures are datasheet values and assumptions"


def provenance(
    studies: Studies,
    scenario: Scenario,
    estimates: Sequence[Estimate],
    values: Mapping[str, Any] | None = None,
    chosen: Scenario | None = None,
) -> Provenance:
    """Return the provenance of rows that share the workload of `scenario`.

    values: the values of the grid, if any. chosen: the recommended setting; without one, `scenario`.
    """
    settings = [estimate.scenario for estimate in estimates]
    figures = machine_figures(scenario, "assumed", batches=any(setting.method.mini_batches for setting in settings))
    assumptions = (*workload_assumptions(studies, scenario, settings), *figures)
    measured = machine_figures(scenario, "measured")
    machine, model = resolve_machine(scenario.cluster), studies.model(scenario)
    digest, question = scenario_hash(scenario), None
    if values is not None:
        question = hashlib.sha256(json.dumps([digest, values], sort_keys=True).encode()).hexdigest()
    given = (f"{name} {figure_text(name, value)}" for name, value in scenario.cluster.figures)
    return Provenance(
        graph=studies.accesses.describe(next((one for one in settings if not one.method.mini_batches), settings[0])),
        model=str(model),
        device=_device(machine),
        interval=_interval(assumptions, machine, scenario.faults, attends=model.name == "gat"),
        assumptions=assumptions,
        measured=tuple(f"{item.name} {item.value}: {item.basis}" for item in measured),
        calibration=_fitted(machine),
        engine="reference",
        version=__version__,
        seed=scenario.run.seed,
        scenario_hash=digest,
        bounds=tuple(Bounds(estimate.lower_s, estimate.upper_s) for estimate in estimates),
        warnings=tuple(dict.fromkeys(_warnings(studies, scenario, estimates))),
        given_figures=", ".join(given) or None,
        between_gpus=heading_words(settings),
        between_gpus_basis=basis_words(studies, chosen or scenario),
        mini_batches="; ".join(dict.fromkeys(batch_words(studies, settings))) or None,
        faults="; ".join(map(fault_words, scenario.faults)) or None,
        like_questions=like_questions(chosen or scenario),
        measured_compute=measured_times(settings),
        question_hash=question,
    )


def _calibration(path: str, record: Calibration) -> str:
    """Return one sentence on the runs that a calibrated answer is fitted to."""
    runs = sum(source.kind == "run" for source in record.inputs)
    return (
        f"{path} (SHA-256 {content_hash(path)[:12]}): {record.device} on "
        f"{record.machine.get('cpu', 'an unnamed processor')}, micro-benchmarks and {runs} recorded runs"
    )


def _fitted(machine: Machine) -> str:
    """Return one sentence on the data that the figures were fitted to."""
    record, published = machine.calibration, machine.platform
    fitted_to = NOT_CALIBRATED if machine.measured is None else LINKS_ASSUMED
    fitted_to = fitted_to if record is None else _calibration(machine.spec.calibration or "", record)
    if published is None:
        return fitted_to
    fitted = f"{machine.spec.platform}: fitted to published runs with implementation {RELEASED}, {published.title}"
    return fitted if record is None else f"{fitted_to}; {fitted}"


def _interval(
    assumptions: Sequence[Assumed], machine: Machine, faults: Sequence[Fault] = (), *, attends: bool = False
) -> str:
    """Return one sentence on what the intervals cover. attends: whether the model uses attention."""
    record, published = machine.calibration, machine.platform
    covered = " of the assumptions marked so" if any(item.in_interval for item in assumptions) else ""
    measured = machine.measured is not None
    open_of = "the schedule leaves out, and for errors of the measured times" if measured else "the formulas leave out"
    left = f"and about {100 * machine.law_error(attends=attends):.0f} % either way, for what {open_of}"
    if published is not None:
        why = "which the fit to published runs left open"
        if published.error.source == "assumed":
            why = "assumed: no more published rows than figures fitted to them"
        left = f"and {100 * published.error.value:.1f} % either way, {why}"
    if record is not None and record.error is not None:
        left = f"and {100 * record.error:.1f} % either way, the expected error of a run that the fit did not use"
    elif record is not None:
        left = "with fewer than three calibration runs, the error of fitted figures is unknown and not covered"
    averaged = "drawn graphs, drawn jitter" if any(isinstance(fault, Jitter) for fault in faults) else "drawn graphs"
    return (
        f"90 % of random draws{covered}, with the spread of the mean over {averaged} and the simulation's error; {left}"
    )


def _device(machine: Machine) -> str:
    cluster = machine.spec
    kinds = ", ".join(machine.device.provenance())
    titles = Counter(machine.device_of(rank).title for rank in range(cluster.gpus))
    held = ", ".join(f"{count} x {title}" for title, count in titles.items())
    own = filter(is_file, dict.fromkeys((*(cluster.devices or (cluster.device,)), cluster.host)))
    files = "".join(f"; {name} (SHA-256 {content_hash(name)[:12]})" for name in own)
    servers = f"{plural(cluster.servers, 'server')} of {min(cluster.gpus, cluster.gpus_per_server)}"
    return f"{held}, {servers}; figures: {kinds}{files}"


def _warnings(studies: Studies, scenario: Scenario, estimates: Sequence[Estimate]) -> Iterator[str]:
    accesses, model = studies.accesses, studies.model(scenario)
    settings = [estimate.scenario for estimate in estimates]
    for name in model.assumed:
        width = model.features if name == "features" else model.shapes[-1].d_out
        yield f"the workload declares no {name}: {width} assumed (--set workload.{name}=N)"
    yield from accesses.warnings(settings)
    yield from rate_warnings(settings)
    record = resolve_machine(scenario.cluster).calibration
    if record is not None:
        for setting in settings:
            yield from _uncalibrated(setting, record, model, accesses)
    for cluster in (setting.cluster for setting in settings):
        if cluster.gpus > cluster.gpus_per_server and cluster.gpus % cluster.gpus_per_server:
            last = cluster.gpus % cluster.gpus_per_server
            yield f"{plural(cluster.gpus, 'GPU')}, {cluster.gpus_per_server} per server: the last server holds {last}"
    published = (setting for setting in settings if setting.partition.statistics == "published")
    yield from filter(None, map(statistics_warning, published))
    yield from filter(None, (_swapping(studies, setting) for setting in settings))
    yield from filter(None, (too_large(studies, estimate) for estimate in estimates))
    exchanging = any(not setting.method.mini_batches for setting in settings)
    if scenario.cluster.implementation == RELEASED and exchanging:
        yield (
            f"implementation {RELEASED}: includes the overheads of the published code: calls of the host, graphs "
            f"rebuilt, rounds over peers (cluster.implementation: {LEAN} omits them)"
        )
    coarse = [wrong_by(estimate.result.run.schedule) for estimate in estimates if estimate.result.fidelity == COARSE]
    if coarse:
        which = "" if len(coarse) == len(estimates) else f"{plural(len(coarse), 'row')} "
        yield (
            f"{which}simulated coarsely: busy links are shared {1 / GRAIN:,.0f} times in an iteration, not at every "
            f"instant; intervals are {100 * max(coarse):g} % wider either way (run.fidelity: {EXACT} takes longer)"
        )
    for result in studies.unsettled():
        method = result.scenario.method
        knob = f"rate {method.rate:g}" if method.rate < 1.0 else f"tau {method.tau}"
        yield f"{method.name} ({knob}): still drifting after {result.run.iterations} iterations"


def too_large(studies: Studies, estimate: Candidate | Estimate) -> str | None:
    """Return a row with a worker or a server that needs more memory than it has, and how many would be enough.

    None if the setting fits or its memory is unknown.
    """
    result = estimate.result
    memory, room = result.memory, result.machine.capacities
    if result.server_fits is False:
        return _server_too_large(estimate.scenario, result)
    if memory is None or room is None or result.fits:
        return None
    rank, gpus = tightest(memory, room), estimate.scenario.cluster.gpus
    of = format_bytes(room[rank]) + ("" if len(set(room)) == 1 else f" (worker {rank})")
    needs = f"{format_bytes(memory[rank].total)} and {format_bytes(RESERVED)} reserved, of {of}"
    setting = f"{estimate.scenario.method.name} on {plural(gpus, 'GPU')}"
    return f"{setting} does not fit: {needs}; {_would_hold(studies, estimate.scenario)}"


def _server_too_large(scenario: Scenario, result: Result) -> str:
    memory, room = result.server_memory, result.machine.server_capacity
    assert memory is not None
    assert room is not None
    setting = f"{scenario.method.name} on {plural(scenario.cluster.gpus, 'GPU')}"
    needs = max(item.total for item in memory) + SYSTEM
    least = least_servers(scenario, memory, room)
    held = "no number of them would: each holds the whole graph" if least is None else f"{least} servers would hold it"
    of = f"{format_bytes(needs)} of {format_bytes(room)}"
    return f"{setting} does not fit the server's memory ({scenario.cluster.host}): {of}; {held}"


def _would_hold(studies: Studies, scenario: Scenario) -> str:
    if scenario.method.mini_batches:
        return "a smaller mini-batch would"
    if not known_at_other_sizes(scenario, studies.accesses):
        return "try more GPUs with a workload cut for them: this one is known only for this number of parts"
    least = studies.least_gpus(scenario)
    held = "no supported number of GPUs" if least is None else plural(least, "GPU")
    return f"{held} would hold it"


def _swapping(studies: Studies, scenario: Scenario) -> str | None:
    """For a system that swaps its graph, return what its iteration time omits and what the servers hold. None for
    others.
    """
    method = scenario.method
    if not isinstance(method, Roc):
        return None
    model, counts = studies.model(scenario), studies.counts(scenario)
    held = method.host_bytes(counts, model.shapes, scenario.cluster.gpus_per_server)
    return (
        f"{method.name} on {plural(scenario.cluster.gpus, 'GPU')}: no all-reduce, because no publication gives its "
        f"time; swapped data take {format_bytes(held)} of the fullest server's memory"
    )


def _uncalibrated(scenario: Scenario, record: Calibration, model: Model, accesses: Source) -> Iterator[str]:
    """Return the settings of a row outside the range of the calibration's runs."""
    method, cluster = scenario.method, scenario.cluster
    place = {
        "workers": cluster.gpus,
        "hosts": cluster.servers,
        "workers_per_host": min(cluster.gpus, cluster.gpus_per_server),
        "bandwidth": cluster.bandwidth,
        "latency_s": cluster.latency or 0.0,
    }
    values = {"tau": method.tau, "epsilon": method.epsilon, "rate": method.rate, "cache": method.cache.describe()}
    given = settings(
        {"method": method.name, "model": model.name, "graph": accesses.graph_hash},
        place,
        (model.features, *(shape.d_out for shape in model.shapes)),
        {name: value for name, value in values.items() if method.has(name)},
    )
    for words in beyond(given, record.ranges, accesses.name):
        yield f"outside the calibrated range: {words}"
    # Kernels that differ from the record's are refused.
    for name in (field for field in cluster.besides if field not in ("aggregator", "threads", "measured_compute")):
        yield f"outside the calibrated range: cluster.{name} (never calibrated)"


LIES = {
    HOST: "rows picked out of host memory by its cores",
    UVA: "rows read from host memory by the GPU",
    ON_GPU: "rows on the GPU",
}


def batch_words(studies: Studies, scenarios: Sequence[Scenario]) -> Iterator[str]:
    """Return `dgl: drawn by the GPU, graph and rows on the GPU` for each scenario that trains mini-batches on GPUs."""
    for scenario in scenarios:
        if not scenario.method.mini_batches or resolve_machine(scenario.cluster).kind != "gpu":
            continue
        model, counts = studies.model(scenario), studies.counts(scenario)
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
