"""What the CPU side of servers could be otherwise: more cores, samplers of several threads, sampling on the GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gcnsim.errors import plural
from gcnsim.machine import resolve_machine
from gcnsim.scenario import Scenario
from gcnsim.simulation.limit import SLIGHT, Limit
from gcnsim.sources.placement import sampler_of
from gcnsim.uncertainty.propagation import with_figures


@dataclass(frozen=True, slots=True)
class KnobChange:
    """One knob changed one step, which gives `scenario`. even: it is the partition that changes, to even parts."""

    knob: str
    start: int | float | str
    end: int | float | str
    scenario: Scenario
    even: bool = False


def host_steps(scenario: Scenario) -> list[KnobChange]:
    """Twice the cores; and where a sampler draws on the host, four times its threads, and the GPU in its place."""
    cores = resolve_machine(scenario.cluster).host.cores.value
    steps = [KnobChange("host cores", round(cores), round(2 * cores), more_cores(scenario))]
    if _draws_on_host(scenario):
        threads = _threads(scenario)
        steps.append(KnobChange("sampler threads", threads, 4 * threads, more_sampler_threads(scenario)))
        steps.append(KnobChange("sampler", "CPU", "GPU", gpu_sampler(scenario)))
    return steps


def more_cores(scenario: Scenario, factor: float = 2.0) -> Scenario:
    """The scenario with `factor` times the cores in every server."""
    host = resolve_machine(scenario.cluster).host
    return with_figures(scenario, {f"{host.name}.cores": factor * host.cores.value})


def more_sampler_threads(scenario: Scenario, factor: int = 4) -> Scenario:
    """The scenario with `factor` times the threads that share the drawing of one worker's graph, without loss."""
    threads = factor * _threads(scenario)
    return replace(scenario, cluster=replace(scenario.cluster, sampler_threads=threads))


def gpu_sampler(scenario: Scenario) -> Scenario:
    """The scenario with graphs drawn on the GPUs, at the rate of `gcnsim.cost.sampler_seconds`."""
    return replace(scenario, cluster=replace(scenario.cluster, sampler_device="gpu", sampler_threads=None))


def cores_used(scenario: Scenario) -> tuple[int, int] | None:
    """The most cores that the samplers of a server use at once, and how many it has; None where none draws there."""
    if not _draws_on_host(scenario):
        return None
    cluster = scenario.cluster
    workers = min(cluster.gpus, cluster.gpus_per_server)
    return workers * _threads(scenario), round(resolve_machine(cluster).host.cores.value)


def why_cores_do_not_matter(scenario: Scenario) -> str | None:
    """Why more cores would bring nothing to a sampler; None where they would, or no sampler is on the host."""
    used = cores_used(scenario)
    if used is None or used[0] > used[1]:
        return None
    threads = _threads(scenario)
    return f"sampling uses {used[0]} of a server's {used[1]} cores ({plural(threads, 'thread')} per worker)"


def sampler_decides(limit: Limit, scenario: Scenario) -> str | None:
    """That the host's sampler limits, and what follows; None where something else does."""
    # Of mini-batches the host picks rows too, and the limit does not say which of both.
    mini_batches = scenario.method.mini_batches
    if limit.kind != "cpu" or limit.share <= SLIGHT or mini_batches or not _draws_on_host(scenario):
        return None
    reason = why_cores_do_not_matter(scenario)
    if limit.only:
        text = "at the stated values the host's CPU sampler decides: a faster GPU, network or PCIe then changes nothing"
        return text if reason is None else f"{text}; nor do more cores: {reason}"
    text = "at the stated values the host's CPU sampler costs the most time"
    return text if reason is None else f"{text}; more cores change nothing: {reason}"


def _draws_on_host(scenario: Scenario) -> bool:
    """Whether the scenario's graphs are drawn by threads of the host, of GPUs' workers."""
    method, cluster = scenario.method, scenario.cluster
    on_gpus = resolve_machine(cluster).kind == "gpu"
    if method.mini_batches:
        return on_gpus and not sampler_of(scenario).on_gpu
    return on_gpus and method.draws_on_host and not method.sampling().whole and cluster.sampler_device != "gpu"


def _threads(scenario: Scenario) -> int:
    """CPU threads that draw for one worker."""
    if scenario.method.mini_batches:
        return max(1, sampler_of(scenario).threads)
    return scenario.cluster.sampler_threads or 1
