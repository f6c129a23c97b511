"""SimGrid as a peer of the engine: the same flows, or a whole schedule, in a process of the system's Python.

SimGrid is an independent simulator of distributed systems (Casanova et al., JPDC 74(10), 2014) whose links share by a
max-min solver of its own. Debian packages it as python3-simgrid, for its own Python alone.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import frexp
from pathlib import Path
from typing import Any

import numpy as np

from gcnsim.core.ids import FloatArray, Seconds
from gcnsim.engine.fairness import connected
from gcnsim.schedule import Schedule
from gcnsim.schedule.schedule import Op

PYTHON = "/usr/bin/python3"
ABSENT = f"{PYTHON} has no SimGrid (Debian: apt install python3-simgrid)"

BITS = 55
"""Amounts are whole numbers of bytes in SimGrid: the largest of connected links gets this many bits."""


@dataclass(frozen=True, slots=True)
class Route:
    """The links that a flow crosses, and the most that it may use of them; None for no limit of its own."""

    links: tuple[int, ...]
    cap: float | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """Units that leave at `start` (s) on the route of this number."""

    start: Seconds
    route: int
    amount: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Starts and ends in seconds, as asked, and how long SimGrid itself worked, in processor time."""

    version: str
    starts: FloatArray
    ends: FloatArray
    seconds: Seconds


@cache
def available() -> bool:
    """Whether there is a SimGrid to ask."""
    if not Path(PYTHON).is_file():
        return False
    return subprocess.run([PYTHON, "-I", "-c", "import simgrid"], capture_output=True, check=False).returncode == 0


def ask_flows(
    capacity: Sequence[float],
    routes: Sequence[Route],
    flows: Sequence[Flow],
    *,
    latency: Seconds = 0.0,
    full: bool = True,
) -> Answer:
    """The flows' starts and ends; an empty one ends at once. capacity: units per second of each link. latency: of every
    route.

    full: share all links anew after each event. SimGrid's default looks at what an event may have changed; in 3.32 it
    overlooked a link where two routes had their latency on another that they shared (none is shared here).
    """
    scale = _scales(capacity, [routes[flow.route].links for flow in flows], [flow.amount for flow in flows])
    sent = [(flow.start, flow.route, _whole(flow.amount, routes[flow.route], scale)) for flow in flows]
    order = sorted((number for number, flow in enumerate(flows) if flow.amount), key=lambda number: flows[number].start)
    found = _ask(_network(capacity, routes, scale), latency, full, len(order), flows=[sent[number] for number in order])
    spans = np.array([[flow.start, flow.start] for flow in flows])
    spans[order] = found["spans"]
    return _answer(found, spans)


def ask_schedule(schedule: Schedule, iterations: int, *, full: bool = False) -> Answer:
    """Starts and ends of every op, float64[iterations, ops], an actor for each stream.

    Of schedules without queues and threads on cores, which SimGrid has none of. Latencies pass before a message is
    given to its links.
    """
    ops = schedule.ops
    assert not schedule.cores
    assert not any(op.queue for op in ops)
    routes = {key: index for index, key in enumerate(dict.fromkeys(map(_route, ops))) if key.links}
    places = {route: index for index, route in enumerate(routes)}
    flows = [op for op in ops if op.route is not None]
    largest = schedule.demand.max(axis=0)
    scale = _scales(schedule.capacity, [_route(op).links for op in flows], [largest[op.index] for op in flows])
    tells: list[list[tuple[int, int]]] = [[] for _ in ops]
    for op in ops:
        for other, lag in op.waits:
            tells[other].append((op.index, lag))

    def instance(op: Op, iteration: int) -> dict[str, Any]:
        amount = float(schedule.demand[iteration % len(schedule.demand), op.index])
        return {
            "id": iteration * len(ops) + op.index,
            "route": -1 if op.route is None else places[_route(op)],
            "amount": amount if op.route is None else _whole(amount, _route(op), scale),
            "latency": op.latency_s,
            "startup": op.startup_s,
            "connection": op.connection,
            "waits": sum(lag <= iteration for _, lag in op.waits),
            "tells": [(iteration + lag) * len(ops) + to for to, lag in tells[op.index] if iteration + lag < iterations],
        }

    streams = [[instance(ops[op], t) for t in range(iterations) for op in order] for order in schedule.order]
    connections = 1 + max(op.connection for op in ops)
    network = _network(schedule.capacity, list(places), scale)
    found = _ask(network, 0.0, full, iterations * len(ops), streams=streams, connections=connections)
    return _answer(found, np.array(found["spans"]).reshape(iterations, len(ops), 2))


def _route(op: Op) -> Route:
    return Route(op.route or (), op.cap)


def _scales(capacity: Sequence[float], ways: Sequence[tuple[int, ...]], amounts: Sequence[float]) -> list[float]:
    """Per link, a power of two: what SimGrid's whole bytes are of its units. Links that flows connect have the same."""
    group = connected(len(capacity), ways)
    largest = dict.fromkeys(group, 0.0)
    for links, amount in zip(ways, amounts, strict=True):
        largest[group[links[0]]] = max(largest[group[links[0]]], amount)
    return [2.0 ** (BITS - frexp(largest[number])[1]) for number in group]


def _whole(amount: float, route: Route, scale: Sequence[float]) -> int:
    return max(1, round(amount * scale[route.links[0]])) if amount else 0


def _network(capacity: Sequence[float], routes: Sequence[Route], scale: Sequence[float]) -> dict[str, Any]:
    return {
        "links": [value * times for value, times in zip(capacity, scale, strict=True)],
        "routes": [
            {"links": route.links, "cap": None if route.cap is None else route.cap * scale[route.links[0]]}
            for route in routes
        ],
    }


def _ask(network: Mapping[str, Any], latency: Seconds, full: bool, size: int, **work: Any) -> Mapping[str, Any]:
    question = json.dumps({**network, "latency": latency, "full": full, "size": size, **work})
    script = Path(__file__).with_name("simgrid_actors.py")
    command = [PYTHON, "-I", str(script)]
    done = subprocess.run(command, input=question, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise RuntimeError(f"SimGrid: exit code {done.returncode}: {done.stderr[-500:]}")
    answer: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _answer(found: Mapping[str, Any], spans: FloatArray) -> Answer:
    return Answer(found["version"], spans[..., 0], spans[..., 1], found["seconds"])
