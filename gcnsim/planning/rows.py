"""Convert estimates to results: the rows, memory and links that JSON, tables and pages share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import inf
from typing import Any, Final

from gcnsim.core.errors import ScenarioError
from gcnsim.cost import RESERVED, Memory
from gcnsim.hardware import USD, PriceBook, Rent
from gcnsim.methods import Method, NeighbourBatches
from gcnsim.methods.known_loss import known_loss
from gcnsim.planning.candidate import Estimate, baseline_of, full_graph
from gcnsim.planning.study import Studies
from gcnsim.results import LinkTraffic, MemoryReport, PricesReport, Row, RunLength
from gcnsim.scenario import ClusterSpec, Scenario, knob_text
from gcnsim.simulation import Result, link_units, tightest, wrong_by
from gcnsim.simulation.run import fits
from gcnsim.workload.knobs import usual_fanout


def device_of(cluster: ClusterSpec) -> str:
    """Return the device of all servers, or the list of devices if servers differ."""
    return cluster.device if cluster.devices is None else ",".join(cluster.devices)


def rent_of(cluster: ClusterSpec, book: PriceBook) -> Rent | None:
    """Return the cluster's price per hour, or None if no price is known or the servers differ."""
    if cluster.devices is not None:
        return None
    size = cluster.gpus, cluster.servers, cluster.gpus_per_server
    return book.rent(cluster.device, *size, cluster.host)


def cost_of(rent: Rent | None, seconds: float | None) -> float | None:
    """Return the price of `seconds` on a rented cluster in US dollars, or None if either is unknown."""
    return None if rent is None or seconds is None else rent.per_hour * seconds / 3600.0


def row_of(estimate: Estimate, baseline_s: float | None, dataset: str, book: PriceBook | None = None) -> Row:
    """Return one row of results, not yet compared with others.

    dataset: the name of the graph. baseline_s: the full-graph iteration time on the same machine, None if unknown.
    book: the prices, None for the catalogue's.
    """
    scenario, result, metrics = estimate.scenario, estimate.result, estimate.result.metrics
    method, limit = scenario.method, result.limit
    epoch_s = metrics.iteration_s * result.per_epoch
    rent = rent_of(scenario.cluster, book or PriceBook())
    return Row(
        dataset=dataset,
        device=device_of(scenario.cluster),
        gpus=scenario.cluster.gpus,
        bandwidth_bytes_per_s=scenario.cluster.bandwidth,
        method=method.name,
        tau=method.tau,
        epsilon=method.epsilon,
        rate=method.rate,
        cache_fraction=result.cache_fraction,
        iteration_s=metrics.iteration_s,
        iteration_s_low=estimate.low_s,
        iteration_s_high=estimate.high_s,
        compute_s=metrics.compute_s,
        exposed_comm_s=metrics.exposed_comm_s,
        exposed_other_s=metrics.exposed_other_s,
        hidden_comm_s=metrics.hidden_comm_s,
        sampling_s=metrics.sampling_s,
        gpu_utilization=metrics.gpu_utilization,
        nic_utilization=metrics.nic_utilization,
        cache_hit_rate=result.cache_hit_rate,
        nic_bytes=metrics.nic_bytes,
        speedup_vs_full_graph=None if baseline_s is None else baseline_s / epoch_s,
        known_loss=None if (lost := known_loss(method)) is None else lost.worst,
        bottleneck=limit.word,
        iterations_per_epoch=result.per_epoch,
        epoch_s=epoch_s,
        setting=setting_words(method, result.layers),
        memory_bytes=None if result.memory is None else most(result).total,
        fits=result.fits,
        limited_by=limit.text,
        limited_by_kind=limit.kind,
        limited_by_share=limit.share,
        limited_by_kind_share=limit.kind_share,
        limited_by_worker=limit.worker,
        currency=None if rent is None else USD,
        cost_per_hour=None if rent is None else rent.per_hour,
        cost_per_iteration=cost_of(rent, metrics.iteration_s),
        cost_per_1000_iterations=cost_of(rent, 1000.0 * metrics.iteration_s),
        cost_per_epoch=cost_of(rent, epoch_s),
        price=None if rent is None else rent.text,
        price_of=None if rent is None else rent.of or None,
    )


def setting_words(method: Method, layers: int) -> str:
    """Return the knobs of a method without a column: those that differ from the default, and of neighbours drawn around
    a batch both its size and the fan-out, which decide the time."""
    if not isinstance(method, NeighbourBatches):
        return knob_text(method)
    said = {"batch": str(method.batch)}
    if method.fanout is None and method.layer_sizes is None:
        said["fanout"] = ",".join(map(str, usual_fanout(layers)))
    return knob_text(method, said)


MOST_BASELINES: Final = 100_000
"""The most full-graph times that a `RowEvaluator` keeps."""


class RowEvaluator:
    """Evaluates settings one by one: each workload is read once, each baseline simulated once, and no other result is
    kept.

    book: prices, None for the catalogue's. most_workloads: the cache is emptied beyond this number of workloads.
    templates: the context in which settings are simulated, which reuses schedules.
    """

    def __init__(
        self,
        book: PriceBook | None = None,
        most_workloads: float = inf,
        templates: Callable[[Scenario], AbstractContextManager[object]] = lambda _: nullcontext(),
    ) -> None:
        self._book, self._most_workloads, self._templates = book, most_workloads, templates
        self._studies: dict[Any, Studies] = {}
        self._baselines: dict[Scenario, float | None] = {}

    def studies(self, scenario: Scenario) -> Studies:
        """Return the study cache of the scenario's workload, without results."""
        key = (scenario.workload, scenario.partition, scenario.run)
        if key not in self._studies:
            if len(self._studies) >= self._most_workloads:
                self._studies.clear()
            self._studies[key] = Studies(scenario)
        return self._studies[key]

    def row(self, scenario: Scenario, *, interval: bool = True) -> Row:
        """The row of a setting. interval: whether to estimate the effect of the assumptions. Raises GcnsimError."""
        studies, compared = self.studies(scenario), full_graph(scenario)
        if compared not in self._baselines:
            if len(self._baselines) >= MOST_BASELINES:
                self._baselines.clear()
            with self._templates(compared):
                self._baselines[compared] = baseline_s(studies, scenario)
        with self._templates(scenario):
            if interval:
                estimate = studies.estimate(scenario, bounded=False)
            else:
                estimate = Estimate.without_interval(scenario, studies.result(scenario))
            row = row_of(estimate, self._baselines[compared], studies.accesses.name, self._book)
        studies.forget()
        return row


def baseline_s(studies: Studies, scenario: Scenario) -> float | None:
    """Return seconds per iteration of full-graph training on the scenario's machine, or None if that is unknown or does
    not fit.
    """
    if (compared := baseline_of(scenario)) is None:
        return None
    try:
        full = studies.result(compared)
        return None if full.fits is False else full.metrics.iteration_s
    except ScenarioError:
        if scenario.method.needs_boundary:
            raise
        return None


def most(result: Result) -> Memory:
    """Return the memory of the worker closest to its GPU's limit. The result must have a memory law."""
    assert result.memory is not None
    return result.memory[tightest(result.memory, result.machine.capacities)]


def lacking(result: Result) -> str:
    """Return the memory that a setting that does not fit lacks: that of GPUs, of servers, or of both."""
    on_gpus = fits(result.memory, result.machine.capacities) is not False
    if result.server_fits is False:
        return "the servers' memory" if on_gpus else "the memory of GPUs and servers"
    return "the GPUs' memory"


def run_length(result: Result) -> RunLength:
    """Return the length and the fidelity of a run."""
    run, grain_s = result.run, result.run.schedule.grain_s
    return RunLength(
        iterations=run.iterations,
        measured=run.iterations - result.warm_up,
        settled=result.settled,
        simulated=run.simulated,
        by_period=run.by_period,
        fidelity=result.fidelity,
        grain_s=grain_s or None,
        error=wrong_by(run.schedule) or None,
    )


def memory_report(studies: Studies, scenario: Scenario) -> MemoryReport | None:
    """Return the memory of every worker by component and the memory of its device, or None without a memory law."""
    result = studies.result(scenario)
    if result.memory is None:
        return None
    room = result.machine.capacities
    rank = tightest(result.memory, room)
    return MemoryReport(
        device_bytes=None if room is None else room[rank],
        devices_bytes=None if room is None else tuple(room),
        tightest=rank,
        reserved_bytes=RESERVED,
        fits=result.fits,
        least_gpus=studies.least_gpus(result.scenario),
        workers=tuple(result.memory),
    )


def links_of(result: Result) -> dict[str, LinkTraffic]:
    """Per network, PCIe and memory link in use, the mean bytes per iteration and their share of the capacity."""
    schedule = result.run.schedule
    carried = link_units(result.run, result.warm_up)
    facts = zip(schedule.link_names, schedule.link_kinds, schedule.capacity, strict=True)
    return {
        name: LinkTraffic(carried[name], carried[name] / capacity / result.metrics.iteration_s)
        for name, kind, capacity in facts
        if kind != "cpu" and carried[name] > 0
    }


def prices_report(book: PriceBook) -> PricesReport | None:
    """Return the prices used for costs, or None if none were chosen."""
    return PricesReport(book.pricing, USD) if book.asked else None
