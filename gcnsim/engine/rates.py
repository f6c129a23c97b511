"""What every link carried at every instant of a run, read off its starts and ends: the sharing of links, done again.

Exact where nothing waits for queues: from its first byte to its last a flow has the max-min fair rate, and who is under
way is known. Where flows wait for queues, which a run does not keep, or links were shared once per grain, rates are
scaled to the bytes that were moved.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gcnsim.engine.fairness import Sharing, connected
from gcnsim.engine.run import Run
from gcnsim.ids import FloatArray, IntArray
from gcnsim.timeline import PS_PER_S


def begun(run: Run) -> IntArray:
    """When each op began, int64[T, ops]: a message not before the one ahead of it on its connection has arrived."""
    found: IntArray = run.starts.copy()
    connections = run.schedule.columns.connection
    for connection in np.unique(connections[connections >= 0]):
        chosen = np.flatnonzero(connections == connection)
        starts, ends = run.starts[:, chosen].ravel(), run.ends[:, chosen].ravel()
        order = np.lexsort((ends, starts))
        ahead = np.concatenate([[0], np.maximum.accumulate(ends[order])[:-1]])
        actual = np.empty_like(starts)
        actual[order] = np.maximum(starts[order], ahead)
        found[:, chosen] = actual.reshape(run.iterations, -1)
    return found


def link_rates(run: Run) -> Mapping[str, tuple[IntArray, FloatArray]]:
    """Per link that carries bytes, by name: instants in picoseconds, ascending, and bytes per second from each on.

    The last rate of a link is 0. Links that carried nothing are left out, and so are cores.
    """
    schedule = run.schedule
    moves = [
        op.index
        for op in schedule.ops
        if op.route is not None and op.thread < 0 and all(schedule.link_kinds[link] != "cpu" for link in op.route)
    ]
    group_of = connected(len(schedule.capacity), [schedule.ops[op].route or () for op in moves])
    found: dict[str, tuple[IntArray, FloatArray]] = {}
    for group in sorted(set(group_of)):
        links = [link for link, own in enumerate(group_of) if own == group]
        ops = [op for op in moves if group_of[(schedule.ops[op].route or (-1,))[0]] == group]
        if ops:
            found |= _group_rates(run, links, ops)
    order = [name for name in schedule.link_names if name in found]
    return {name: found[name] for name in order}


def _group_rates(run: Run, links: list[int], ops: list[int]) -> dict[str, tuple[IntArray, FloatArray]]:
    """`link_rates` of links that these ops connect."""
    schedule = run.schedule
    kinds = sorted({(schedule.ops[op].route or (), schedule.ops[op].cap or np.inf) for op in ops})
    bundle = np.array([kinds.index((schedule.ops[op].route or (), schedule.ops[op].cap or np.inf)) for op in ops])
    work = schedule.demand[np.arange(run.iterations) % schedule.demand.shape[0]][:, ops]
    first = np.minimum(_first_bytes(run)[:, ops], run.ends[:, ops] - 1)
    sent = work > 0
    units, since, until = work[sent], first[sent], run.ends[:, ops][sent]
    of = np.broadcast_to(bundle, work.shape)[sent]
    if not units.size:
        return {}
    instants = np.unique(np.concatenate([since, until]))
    begins, ends = np.searchsorted(instants, since), np.searchsorted(instants, until)
    rates = _rates(run, links, kinds, _under_way(instants.size, len(kinds), of, begins, ends, np.ones(units.size)))
    seconds = np.diff(instants, append=instants[-1:]) / PS_PER_S
    served = np.concatenate([np.zeros((1, len(kinds))), np.cumsum(rates * seconds[:, None], axis=0)])
    weight = units / np.maximum(served[ends, of] - served[begins, of], 1e-9)
    carried = _under_way(instants.size, len(kinds), of, begins, ends, weight) * rates
    found = {}
    for link in links:
        crossing = [place for place, (route, _) in enumerate(kinds) if link in route]
        rate = carried[:, crossing].sum(axis=1)
        changed = np.flatnonzero(np.abs(np.diff(rate, prepend=0.0)) > 1e-6 * schedule.capacity[link])
        if changed.size:
            rate[-1] = 0.0
            found[schedule.link_names[link]] = instants[changed], np.maximum(rate[changed], 0.0)
    return found


def _first_bytes(run: Run) -> IntArray:
    """When the first byte of each flow moves, int64[T, ops]: after its latency, or its start-up behind another."""
    columns = run.schedule.columns
    latency, startup = (
        np.rint(columns.of_route(seconds) * PS_PER_S).astype(np.int64)
        for seconds in (columns.latency_s, columns.startup_s)
    )
    behind = begun(run)
    found: IntArray = np.where(
        behind > run.starts, np.maximum(behind + startup, run.starts + latency), run.starts + latency
    )
    return found


def _under_way(
    instants: int, bundles: int, of: IntArray, begins: IntArray, ends: IntArray, weight: FloatArray
) -> FloatArray:
    """Sum of the weights of each bundle's flows from each instant on, float64[instants, bundles]."""
    change = np.zeros((instants, bundles))
    np.add.at(change, (begins, of), weight)
    np.add.at(change, (ends, of), -weight)
    return np.cumsum(change, axis=0)


def _rates(run: Run, links: list[int], kinds: list[tuple[tuple[int, ...], float]], counts: FloatArray) -> FloatArray:
    """The rate of one flow of each bundle from each instant on, float64[instants, bundles]."""
    place = {link: position for position, link in enumerate(links)}
    sharing = Sharing(
        [run.schedule.capacity[link] for link in links],
        [tuple(place[link] for link in route) for route, _ in kinds],
        [None if cap == np.inf else cap for _, cap in kinds],
    )
    distinct, which = np.unique(np.rint(counts).astype(np.int64), axis=0, return_inverse=True)
    each = np.array([sharing.rates(tuple(row)) for row in distinct.tolist()])
    return np.asarray(each[which.ravel()])
