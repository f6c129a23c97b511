"""Estimates as plain data: the rows that JSON, tables and pages share."""

from __future__ import annotations

from typing import Any

from gcnsim.planning.workshop import Estimate
from gcnsim.scenario import Scenario
from gcnsim.study import Result, link_units


def in_gbps(bandwidth: float) -> str:
    """A NIC's bandwidth (bytes/s) as networks are sold, whatever unit it was given in: `15Gbps`."""
    return f"{bandwidth * 8 / 1e9:.12g}Gbps"


def machine_of(scenario: Scenario) -> dict[str, Any]:
    """The machine of a row: what a grid varies besides the method."""
    return {"gpus": scenario.cluster.gpus, "bandwidth": in_gbps(scenario.cluster.bandwidth)}


def setting_of(scenario: Scenario, result: Result) -> dict[str, Any]:
    """Method and knobs of a scenario, and the cache that its result had."""
    method = scenario.method
    return {
        "method": method.name,
        "tau": method.tau,
        "epsilon": method.epsilon,
        "rate": method.rate,
        "cache_fraction": result.cache_fraction,
    }


def row_of(estimate: Estimate, baseline_s: float) -> dict[str, Any]:
    """One row of results; baseline_s: the iteration time of full-graph training on the same machine."""
    metrics = estimate.result.metrics
    return setting_of(estimate.scenario, estimate.result) | {
        "iteration_s": metrics.iteration_s,
        "iteration_s_low": estimate.low_s,
        "iteration_s_high": estimate.high_s,
        "compute_s": metrics.compute_s,
        "exposed_comm_s": metrics.exposed_comm_s,
        "exposed_other_s": metrics.exposed_other_s,
        "hidden_comm_s": metrics.hidden_comm_s,
        "sampling_s": metrics.sampling_s,
        "gpu_utilization": metrics.gpu_utilization,
        "nic_utilization": metrics.nic_utilization,
        "cache_hit_rate": estimate.result.cache_hit_rate,
        "nic_bytes": metrics.nic_bytes,
        "speedup_vs_full_graph": baseline_s / metrics.iteration_s,
        "bottleneck": metrics.bottleneck,
    }


def links_of(result: Result) -> dict[str, dict[str, float]]:
    """Per network, PCIe and memory link in use: mean bytes per iteration, and their share of its capacity."""
    schedule = result.run.schedule
    carried = link_units(result.run, result.warm_up)
    facts = zip(schedule.link_names, schedule.link_kinds, schedule.capacity, strict=True)
    return {
        name: {"bytes": carried[name], "utilization": carried[name] / capacity / result.metrics.iteration_s}
        for name, kind, capacity in facts
        if kind != "cpu" and carried[name] > 0
    }
