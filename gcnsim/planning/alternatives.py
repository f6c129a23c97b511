"""Alternatives to a scenario: another host side, other paths between GPUs, another partition, fewer GPUs.

Host side: more cores, samplers with several threads, or sampling on the GPU. Paths: direct copies instead of staged
ones, or added NVLink. Partitions of the user's graph: other seeds or other settings of the partitioner.

The fewest GPUs that can hold a scenario follow from the counts at that number of parts; nothing is scaled. A part with
half the nodes has more than half as many boundary nodes, and its cache is a share of these. Memory at one number of
parts therefore does not determine memory at another. The counts at other sizes are known for a dataset, but not for a
single partition of a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.core.ids import Seconds
from gcnsim.graph.assign import EDGES, KWAY, NODES, RECURSIVE, metis_label
from gcnsim.scenario import DIRECT, MOST_GPUS, STAGED, ClusterSpec, PartitionSpec, Scenario
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation.batches import sampler_of
from gcnsim.simulation.limit import SLIGHT, Limit
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.propagation import with_figures
from gcnsim.simulation.run import both, fits, memory_of
from gcnsim.simulation.server_memory import server_holds, server_memory_of
from gcnsim.simulation.source import RangeEnd, Source


@dataclass(frozen=True, slots=True)
class KnobChange:
    """One changed knob, which gives `scenario`. even: whether the change is to a balanced partition."""

    knob: str
    start: int | float | str
    end: int | float | str
    scenario: Scenario
    even: bool = False


def host_steps(scenario: Scenario) -> list[KnobChange]:
    """Twice the cores; and if a sampler runs on the host, four times its threads, or the GPU instead."""
    cores = resolve_machine(scenario.cluster).host.cores.value
    steps = [KnobChange("host cores", round(cores), round(2 * cores), more_cores(scenario))]
    if _draws_on_host(scenario):
        threads = _threads(scenario)
        steps.append(KnobChange("sampler threads", threads, 4 * threads, more_sampler_threads(scenario)))
        steps.append(KnobChange("sampler", "CPU", "GPU", gpu_sampler(scenario)))
    return steps


def more_cores(scenario: Scenario) -> Scenario:
    """The scenario with twice the cores in every server."""
    host = resolve_machine(scenario.cluster).host
    return with_figures(scenario, {f"{host.name}.cores": 2.0 * host.cores.value})


def more_sampler_threads(scenario: Scenario) -> Scenario:
    """The scenario with four times the threads for sampling one worker's graph, without overhead."""
    threads = 4 * _threads(scenario)
    return replace(scenario, cluster=replace(scenario.cluster, sampler_threads=threads))


def gpu_sampler(scenario: Scenario) -> Scenario:
    """The scenario with graphs sampled on the GPUs, at the rate of `gcnsim.cost.sampler_seconds`."""
    return replace(scenario, cluster=replace(scenario.cluster, sampler_device="gpu", sampler_threads=None))


def cores_used(scenario: Scenario) -> tuple[int, int] | None:
    """The most cores that the samplers of a server use at once, and the number it has; None without sampling on the
    host.
    """
    if not _draws_on_host(scenario):
        return None
    cluster = scenario.cluster
    workers = min(cluster.gpus, cluster.gpus_per_server)
    return workers * _threads(scenario), round(resolve_machine(cluster).host.cores.value)


def why_cores_do_not_matter(scenario: Scenario) -> str | None:
    """Why more cores would not speed up a sampler; None if they would, or if no sampler is on the host."""
    used = cores_used(scenario)
    if used is None or used[0] > used[1]:
        return None
    threads = _threads(scenario)
    return f"sampling uses {used[0]} of a server's {used[1]} cores ({plural(threads, 'thread')} per worker)"


def sampler_decides(limit: Limit, scenario: Scenario) -> str | None:
    """A sentence that the host's sampler is the bottleneck, with the consequence; None if it is not."""
    # For mini-batches the host also gathers rows, and the bottleneck does not distinguish the two.
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
    """Whether host threads sample the graphs of GPU workers."""
    method, cluster = scenario.method, scenario.cluster
    on_gpus = resolve_machine(cluster).kind == "gpu"
    if method.mini_batches:
        return on_gpus and not sampler_of(scenario).on_gpu
    return on_gpus and method.draws_on_host and not method.sampling().whole and cluster.sampler_device != "gpu"


def _threads(scenario: Scenario) -> int:
    """CPU threads that sample for one worker."""
    if scenario.method.mini_batches:
        return max(1, sampler_of(scenario).threads)
    return scenario.cluster.sampler_threads or 1


def path_steps(scenario: Scenario) -> list[KnobChange]:
    """Direct copies if rows are staged; otherwise NVLink, if the device supports it and the servers lack it.

    None on a platform, whose figures are fitted to the paths of its runs.
    """
    cluster = scenario.cluster
    if cluster.gpus == 1 or cluster.platform is not None or "transport" not in scenario.method.uses:
        return []
    machine = resolve_machine(cluster)
    if machine.kind != "gpu":
        return []
    if machine.between.transport == STAGED:
        if cluster.sockets != "free":
            return []
        direct = replace(scenario, cluster=replace(cluster, transport=DIRECT))
        return [KnobChange("transport", STAGED, DIRECT, direct)]
    rates = [device.nvlink for device in machine.devices or (machine.device,)]
    alone = min(cluster.gpus, cluster.gpus_per_server) == 1
    if machine.between.nvlink is not None or alone or not all(rates):
        return []
    rate = min(item.value for item in rates if item is not None)
    moved = replace(scenario, cluster=replace(cluster, nvlink=rate))
    return [KnobChange("NVLink", "none", f"{rate / 1e9:g} GB/s", moved)]


def staging_decides(limit: Limit, scenario: Scenario) -> str | None:
    """A sentence that staged copies are the bottleneck, with the consequence; None if they are not."""
    machine = resolve_machine(scenario.cluster)
    staged = machine.kind == "gpu" and machine.between.transport == STAGED
    if limit.kind not in ("memory", "pcie") or not staged or "transport" not in scenario.method.uses:
        return None
    what = "gradients" if limit.text.startswith("all-reduce") else "rows"
    return (
        f"{what} are staged, copied whole into host memory and out of it: that costs the time (cluster.transport: "
        "direct moves them from GPU to GPU, as NCCL does)"
    )


MOST_SEEDS: Final = 100

SETTINGS: Final[tuple[dict[str, Any], ...]] = (
    {"balance": EDGES},
    {"objective": "cut", "balance": EDGES},
    {"objective": "cut"},
    {"objective": "vol"},
    {"objective": "cut", "algorithm": RECURSIVE},
    {"imbalance": 0.1},
)
"""METIS settings to try; the first ones balance the work of GPUs and samplers."""

SECONDS_PER_ENTRY: Final = {"vol": 0.7e-6, "cut": 0.13e-6}
"""Seconds of METIS on one core at 3 GHz per stored entry, by objective: four real graphs of 0.5 to 9 million at 8
parts.
"""


@dataclass(frozen=True, slots=True)
class PartitionVariant:
    """An alternative partition. setting: its name; scenario: the question with it."""

    setting: str
    scenario: Scenario


def partition_setting(spec: PartitionSpec) -> str:
    """The partition in a word: `metis-vol`, `metis-cut-recursive`, `random`, or the file's name."""
    if spec.file is not None:
        return spec.file
    if spec.method != "metis":
        return spec.method
    return metis_label(spec.objective, spec.algorithm, spec.imbalance, spec.balance)


def partition_variants(scenario: Scenario) -> list[PartitionVariant]:
    """The METIS settings to try instead of the scenario's.

    Empty if the graph is not available, if the partition came from a file, and for one worker.
    """
    if scenario.workload.graph is None or scenario.partition.file is not None or scenario.cluster.gpus == 1:
        return []
    now = scenario.partition
    plain = replace(now, method="metis", algorithm=KWAY, imbalance=None, balance=NODES)
    specs = [plain, *(replace(plain, **setting) for setting in SETTINGS)]
    others = (spec for spec in dict.fromkeys(specs) if spec != now)
    return [PartitionVariant(partition_setting(spec), replace(scenario, partition=spec)) for spec in others]


def seeds_of(scenario: Scenario, count: int) -> list[Scenario]:
    """The scenario under `count` seeds of the partitioner: its own, and the following ones.

    The accesses of one graph (`gcnsim.simulation.graph_source.GraphSource`) cache each of these partitions. METIS gives
    the same partition for seeds 0 and 1, so only one of them is used. Raises ScenarioError if the partition does not
    depend on a seed.
    """
    spec = scenario.partition
    if not 1 <= count <= MOST_SEEDS:
        raise ScenarioError(f"--partition-seeds: {count} is not allowed; 1 to {MOST_SEEDS}")
    if why := _no_seed(scenario):
        raise ScenarioError(f"--partition-seeds: {count} is not allowed; {why}")
    first = 1 if spec.method == "metis" and spec.seed == 0 else spec.seed
    seeds = [spec.seed, *((first + step) % 2**31 for step in range(1, count))]
    return [replace(scenario, partition=replace(spec, seed=seed)) for seed in seeds]


def _no_seed(scenario: Scenario) -> str:
    """Why the partition does not depend on a seed; empty if it does."""
    spec = scenario.partition
    if scenario.workload.graph is None:
        return "needs a graph of your own (--graph)"
    if spec.file is not None:
        return f"not with partition.file: {spec.file}"
    return "not with partition.method: block, which has no seed" if spec.method == "block" else ""


def partition_seconds(entries: int, spec: PartitionSpec) -> Seconds:
    """Approximate seconds of one core to partition a graph with this many stored entries, before splitting it."""
    return entries * SECONDS_PER_ENTRY[spec.objective] if spec.method == "metis" and spec.file is None else 0.0


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """Iteration times under several seeds of the partitioner, in seconds, the scenario's own first."""

    seeds: tuple[int, ...]
    seconds: tuple[Seconds, ...]

    @classmethod
    def of(cls, scenarios: Sequence[Scenario], seconds: Sequence[Seconds]) -> SeedSpread:
        """The results of `seeds_of`, with the iteration time of each."""
        return cls(tuple(scenario.partition.seed for scenario in scenarios), tuple(seconds))

    @property
    def low_s(self) -> Seconds:
        """The shortest."""
        return min(self.seconds)

    @property
    def high_s(self) -> Seconds:
        """The longest."""
        return max(self.seconds)

    @property
    def mean_s(self) -> Seconds:
        """The mean."""
        return sum(self.seconds) / len(self.seconds)

    @property
    def best(self) -> int:
        """The seed of the shortest."""
        return self.seeds[self.seconds.index(self.low_s)]


LINEAR_SCAN = 32
"""Numbers of GPUs up to which each is checked, because profiles answer at once."""

NEAR = 128
"""Numbers of GPUs that are checked before larger ones, whose counts take seconds each."""

DRAWN = 3
"""Graphs sampled to estimate a worker's memory; whole partitions differ little between samples."""


def holds(scenario: Scenario, accesses: Source) -> bool | None:
    """Whether the scenario fits in GPU memory, by a few sampled graphs; None without a memory law or counts."""
    run = replace(scenario.run, iterations=min(scenario.run.iterations, DRAWN))
    model = resolve_model(scenario.workload, accesses.declared)
    base = replace(scenario, run=run, faults=())
    try:
        counts = accesses.counts(base, model.features, RangeEnd.LIKELY)
        machine = resolve_machine(scenario.cluster)
        held = server_holds(server_memory_of(base, counts, model.shapes), machine.server_capacity)
        return both(fits(memory_of(base, counts, model.shapes), machine.capacities), held)
    except ScenarioError:
        return None


def known_at_other_sizes(scenario: Scenario, accesses: Source) -> bool:
    """Whether counts are known at other numbers of parts, and smaller parts need less memory.

    If the GPUs represent more (`partition.parts`), fewer of them have parts of the same size.
    """
    return accesses.any_parts and scenario.partition.parts is None and not scenario.method.mini_batches


def _first(cluster: ClusterSpec, gpus: int) -> ClusterSpec:
    """The first servers of `cluster` with `gpus` in total, reduced to the fields that memory depends on."""
    servers = -(-gpus // cluster.gpus_per_server)
    return ClusterSpec(
        gpus=gpus,
        gpus_per_server=cluster.gpus_per_server,
        device=cluster.device,
        host=cluster.host,
        transport=cluster.transport,
        devices=None if cluster.devices is None else cluster.devices[:servers],
        payload=cluster.payload,
    )


def least_gpus(scenario: Scenario, accesses: Source) -> int | None:
    """The fewest GPUs of this kind that fit the scenario; None if unknown, or if even the most are too few.

    Every number is checked up to LINEAR_SCAN, because imbalance makes memory slightly non-monotonic. Beyond, bisection
    is used: up to NEAR, otherwise up to doubled numbers until they fit.
    """
    if not known_at_other_sizes(scenario, accesses) or resolve_machine(scenario.cluster).capacities is None:
        return None
    step = scenario.method.worker_multiple
    most = min(accesses.most_gpus, MOST_GPUS) // step
    walked = min(LINEAR_SCAN // step, most)

    def enough(parts: int) -> bool:
        return bool(holds(replace(scenario, cluster=_first(scenario.cluster, parts * step), faults=()), accesses))

    found = next((parts for parts in range(1, walked + 1) if enough(parts)), None)
    if found is not None:
        return found * step
    few, many = walked, min(max(walked, NEAR // step), most)
    while few == many or not enough(many):
        if many == most:
            return None
        few, many = many, min(2 * many, most)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many * step
