"""The order in which one iteration can run: proof that a schedule cannot deadlock, and base of the analytic bounds."""

from __future__ import annotations

from itertools import pairwise

from gcnsim.schedule.schedule import Schedule, SortedOps


def predecessors(schedule: Schedule, *, collapse: bool) -> list[list[int]]:
    """Per op, the ops of the same iteration it must follow: its stream's previous op and its dependencies of lag 0.

    With `collapse`, the synchronous reading of the same schedule: dependencies of any lag count except a worker's
    wait for the end of its previous iteration, and no buffer is reused while it is in use.
    """
    ends = set(schedule.ends)
    if collapse:
        before = [[dep for dep, lag in op.after if lag == 0 or dep not in ends] for op in schedule.ops]
    else:
        before = [[dep for dep, lag in op.waits if lag == 0] for op in schedule.ops]
    for queue in schedule.order:
        for earlier, later in pairwise(queue):
            before[later].append(earlier)
    return before


def topological(schedule: Schedule, *, collapse: bool = False) -> SortedOps:
    """Op ids in an order that respects `predecessors`, and these predecessors.

    Found once for a schedule. Raises ValueError naming an op on a cycle: such a schedule would wait for itself.
    """
    if collapse not in schedule.orders:
        schedule.orders[collapse] = _sorted(schedule, predecessors(schedule, collapse=collapse))
    return schedule.orders[collapse]


def _sorted(schedule: Schedule, before: list[list[int]]) -> SortedOps:
    missing = [len(deps) for deps in before]
    followers: list[list[int]] = [[] for _ in before]
    for op, deps in enumerate(before):
        for dep in deps:
            followers[dep].append(op)
    ready = [op for op, count in enumerate(missing) if count == 0]
    done: list[int] = []
    while ready:
        op = ready.pop()
        done.append(op)
        for follower in followers[op]:
            missing[follower] -= 1
            if missing[follower] == 0:
                ready.append(follower)
    if len(done) < len(before):
        stuck = schedule.ops[next(op for op, count in enumerate(missing) if count)]
        raise ValueError(f"{schedule.method}: op {stuck.index} ({stuck.kind}, worker {stuck.worker}) waits for itself")
    return done, before


def all_waits(schedule: Schedule) -> list[list[tuple[int, int]]]:
    """Per op, all (op, lag) pairs it waits for, its stream's previous op among them."""
    waits = [list(op.waits) for op in schedule.ops]
    for queue in schedule.order:
        for earlier, later in zip((queue[-1], *queue), queue, strict=False):
            waits[later].append((earlier, 1 if later == queue[0] else 0))
    return waits
