"""Which part runs on which GPU: as numbered, balanced, or one of many random orders.

METIS' numbers are arbitrary, and so is which parts share a network card. Without an order of the user's, the answer is
that of the median of `ORDERS` random orders, and each joint draw has another of them. An order's load ranks them: what
its busiest network card carries, and on unequal GPUs the time of the slowest worker with that of its card.

`placed_counts` gives the counts in the answer's order; joint draws move them to another (`Orders.ranks`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.core.streams import stream
from gcnsim.graph.placement import balanced_order, card_loads
from gcnsim.hardware import DeviceProfile
from gcnsim.methods import BASELINE, create_method
from gcnsim.scenario import AS_NUMBERED, BALANCED, RANDOM, Scenario
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.trace.bins import MANY_PARTS
from gcnsim.trace.counts import AccessCounts

PLACEMENT: Final = "placement"
"""The name of the order of the parts among the assumptions."""

ORDERS: Final = 64
"""Random orders; joint draws have all of them."""

FEWER_ORDERS: Final = 16
"""The same beyond `MANY_PARTS` parts, where ranking one takes longer and all are more alike."""


def placement_of_parts(scenario: Scenario) -> str:
    """The scenario's placement: as asked, or as numbered where the user or a record says which part runs where."""
    spec = scenario.partition
    if spec.placement is not None:
        return spec.placement
    told = spec.file is not None or spec.statistics == "published" or scenario.workload.trace is not None
    return AS_NUMBERED if told or scenario.cluster.measured_compute else RANDOM


def placement_words(scenario: Scenario) -> tuple[str, str, str, str]:
    """Value, both ends and basis of the order of the parts, if it is any."""
    unequal = len({device.name for device in _devices(scenario)}) > 1
    load = "the slowest worker and its card" if unequal else "the busiest network card"
    basis = f"which part runs on which GPU, by what {load} has to do; partition.placement: balanced chooses"
    return f"the median of {ORDERS} random orders", "the least", "the most", basis


def matters(scenario: Scenario) -> bool:
    """Whether the order of the parts may change the time: several servers of several GPUs, or unequal GPUs."""
    cluster = scenario.cluster
    if scenario.method.mini_batches or (cluster.gpus < 3 and cluster.devices is None):
        return False
    unequal = len({device.name for device in resolve_machine(cluster).devices}) > 1
    return unequal or (cluster.servers > 1 and cluster.gpus_per_server > 1)


def placed_counts(accesses: Source, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
    """The source's counts with the parts on the workers where the scenario's answer has them."""
    counts = accesses.counts(scenario, features, bound)
    order = order_of(accesses, scenario, features)
    if order is None:
        return counts
    kept = _kept(accesses)
    key = ("placed", id(counts), order.tobytes())
    if key not in kept:
        kept[key] = counts, counts.placed(order)
    placed: AccessCounts = kept[key][1]
    return placed


def order_of(accesses: Source, scenario: Scenario, features: int) -> IntArray | None:
    """The part of each rank, int64[P], in the answer itself; None as numbered."""
    chosen = placement_of_parts(scenario)
    if chosen == AS_NUMBERED or not accesses.placeable or not matters(scenario):
        return None
    if chosen == BALANCED:
        return np.asarray(_found(accesses, scenario, features).parts[0])
    orders = random_orders(accesses, scenario, features)
    return None if orders is None else np.asarray(orders.parts[len(orders.parts) // 2])


class Orders(NamedTuple):
    """Orders of the parts by their load.

    parts: int64[K, P], the part of each rank. loads: float64[K], over that of the middle one.
    """

    parts: IntArray
    loads: FloatArray

    def at(self, position: FloatArray) -> IntArray:
        """Which of them belongs to each position in [-1, 1]: the least load at -1, the median at 0."""
        index = np.floor((position + 1.0) / 2.0 * len(self.parts)).astype(np.int64)
        return np.asarray(np.clip(index, 0, len(self.parts) - 1))

    def ranks(self, position: FloatArray) -> IntArray:
        """The rank, in the median order, of the part of each rank at each position, int64[draws, P]."""
        now = self.parts[len(self.parts) // 2]
        rank_of = np.empty_like(now)
        rank_of[now] = np.arange(now.size)
        return np.asarray(rank_of[self.parts[self.at(position)]])


def random_orders(accesses: Source, scenario: Scenario, features: int) -> Orders | None:
    """Random orders of the parts; None if the order is chosen or does not matter."""
    if placement_of_parts(scenario) != RANDOM or not accesses.placeable or not matters(scenario):
        return None
    return _found(accesses, scenario, features)


def _found(accesses: Source, scenario: Scenario, features: int) -> Orders:
    """The balanced order alone, or the random ones by their load."""
    cluster, spec = scenario.cluster, scenario.partition
    workload = scenario.workload
    chosen = placement_of_parts(scenario)
    # Only unequal GPUs weigh what they compute against the network.
    machine = cluster.gpus, cluster.gpus_per_server, cluster.devices, cluster.bandwidth if cluster.devices else None
    key = (chosen, workload, replace(spec, placement=None), scenario.run.seed, *machine)
    kept = _kept(accesses)
    if key not in kept:
        counts = _whole(accesses, scenario, features)
        rows = np.rint(counts.rows.mean(axis=0)).astype(np.int64)
        work = np.asarray((counts.inner_edges + counts.boundary_edges).mean(axis=0) + counts.inner_nodes)
        pace = np.array([_pace(device) for device in _devices(scenario)])
        kept[key] = _balanced(scenario, rows, work, pace) if chosen == BALANCED else _random(scenario, rows, work, pace)
    found: Orders = kept[key]
    return found


def _whole(accesses: Source, scenario: Scenario, features: int) -> AccessCounts:
    """The counts of full-graph training, which differ from no other method's by chance; else the method's own."""
    calm = replace(scenario, run=replace(scenario.run, iterations=1), faults=())
    try:
        return accesses.counts(replace(calm, method=create_method(BASELINE)), features, RangeEnd.LIKELY)
    except ScenarioError:
        return accesses.counts(calm, features, RangeEnd.LIKELY)


def _random(scenario: Scenario, rows: IntArray, work: FloatArray, pace: FloatArray) -> Orders:
    cluster = scenario.cluster
    generator = stream(scenario.run.seed, PLACEMENT, cluster.gpus, cluster.gpus_per_server)
    count = ORDERS if cluster.gpus <= MANY_PARTS else FEWER_ORDERS
    orders = np.stack([generator.permutation(cluster.gpus) for _ in range(count)])
    loads = _loads(scenario, rows, work, pace, orders)
    rank = np.argsort(loads, kind="stable")
    return Orders(orders[rank], loads[rank] / max(float(loads[rank[count // 2]]), 1e-300))


def _balanced(scenario: Scenario, rows: IntArray, work: FloatArray, pace: FloatArray) -> Orders:
    """The order with the least load alone: on unequal GPUs, the heaviest parts on the fastest ones first."""
    per_server = scenario.cluster.gpus_per_server
    if np.unique(pace).size == 1:
        return Orders(balanced_order(rows, per_server)[None], np.ones(1))
    heavy: IntArray = np.empty(rows.shape[0], np.int64)
    heavy[np.argsort(-pace, kind="stable")] = np.argsort(-work, kind="stable")
    kinds = np.unique(pace, return_inverse=True)[1]
    within = balanced_order(rows[np.ix_(heavy, heavy)], per_server, kinds)
    orders = np.stack([heavy, heavy[within], _random(scenario, rows, work, pace).parts[0]])
    return Orders(orders[[int(_loads(scenario, rows, work, pace, orders).argmin())]], np.ones(1))


def _loads(scenario: Scenario, rows: IntArray, work: FloatArray, pace: FloatArray, orders: IntArray) -> FloatArray:
    """What ranks orders, float64[K]: rows of the busiest card, or seconds of the slowest worker per byte of a row."""
    cluster = scenario.cluster
    each = cluster.gpus_per_server
    several = cluster.servers > 1
    cards = card_loads(rows, orders, each) if several else np.zeros((len(orders), 1))
    if np.unique(pace).size == 1:
        return np.asarray(cards.max(axis=1))
    network = resolve_machine(cluster).network.efficiency.value * cluster.bandwidth
    server = np.arange(cluster.gpus) // each if several else np.zeros(cluster.gpus, np.int64)
    return np.asarray((work[orders] / pace + cards[:, server] / network).max(axis=1))


def _devices(scenario: Scenario) -> list[DeviceProfile]:
    machine = resolve_machine(scenario.cluster)
    return list(machine.devices) or [machine.device] * scenario.cluster.gpus


def _pace(device: DeviceProfile) -> float:
    """Bytes per second at which a device aggregates neighbours, which is most of a part's work."""
    return device.memory_bandwidth.value * device.spmm_efficiency.value


_KEPT: WeakKeyDictionary[Source, dict[object, Any]] = WeakKeyDictionary()


def _kept(accesses: Source) -> dict[object, Any]:
    """What was found for a source."""
    return _KEPT.setdefault(accesses, {})
