"""The peer's side of the comparison with SimGrid: a script of the system's Python, which alone can import it.

It reads one question as JSON from stdin and writes one answer as JSON to stdout (`tests/simgrid_peer.py` asks). Of
gcnsim it uses nothing. Links share by SimGrid's own solver; its corrections of bandwidth and latency are switched off,
and its precision is set to what the comparison needs.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import simgrid

SETTINGS = (
    "network/model:CM02",
    "network/TCP-gamma:0",
    "network/bandwidth-factor:1",
    "network/latency-factor:1",
    "network/weight-S:0",
    "network/crosstraffic:0",
)
PRECISION = (
    ("precision/timing:1e-13", "surf/precision:1e-13"),  # seconds
    ("precision/work-amount:1e-13", "maxmin/precision:1e-13"),  # of what is shared
)
"""Names of newer and of older versions."""

UNLIMITED = 1e30
SPEED = 1e9
"""Of hosts that compute, flop/s: any will do, work comes in seconds."""


def main() -> None:
    """Answer the question on stdin."""
    question = json.load(sys.stdin)
    engine = simgrid.Engine(["simgrid_actors", "--log=root.thresh:critical"])
    configure(question["full"])
    network = Network(question)
    spans = [[-1.0, -1.0] for _ in range(question["size"])]
    if "flows" in question:
        simgrid.Actor.create("all", network.computing[0], send_all, network, question["flows"], spans)
    else:
        act_all(network, question, spans)
    begin = time.process_time()
    engine.run()
    seconds = time.process_time() - begin
    json.dump({"version": simgrid.simgrid_version, "spans": spans, "seconds": seconds}, sys.stdout)


def configure(full: bool) -> None:
    """full: share all links anew after each event, else only what SimGrid thinks has changed (its default)."""
    for setting in (*SETTINGS, *(["network/optim:Full"] if full else [])):
        simgrid.Engine.set_config(setting)
    for newer, older in PRECISION:
        try:
            simgrid.Engine.set_config(newer)
        except IndexError:
            simgrid.Engine.set_config(older)


class Network:
    """A pair of hosts for each route, with its links between them and nothing else."""

    def __init__(self, question: dict[str, Any]) -> None:
        zone = simgrid.NetZone.create_full_zone("zone")
        links = [zone.create_link(f"link{i}", link).seal() for i, link in enumerate(question["links"])]
        side = int(len(question["routes"]) ** 0.5) + 1
        tails = [zone.create_host(f"tail{i}", SPEED).seal() for i in range(side)]
        heads = [zone.create_host(f"head{i}", SPEED).seal() for i in range(side)]
        self.pairs = [(tails[i // side], heads[i % side]) for i in range(len(question["routes"]))]
        for i, (route, pair) in enumerate(zip(question["routes"], self.pairs, strict=True)):
            limit = UNLIMITED if route["cap"] is None else route["cap"]
            own = zone.create_link(f"own{i}", limit).set_latency(question["latency"])
            own.set_sharing_policy(simgrid.Link.SharingPolicy.FATPIPE, None)  # each flow may use all of it
            way = [simgrid.LinkInRoute(item) for item in (own.seal(), *(links[link] for link in route["links"]))]
            zone.add_route(pair[0].netpoint, pair[1].netpoint, None, None, way, False)
        # One for each stream: what one computes takes nothing from others.
        streams = range(len(question.get("streams", (None,))))
        self.computing = [zone.create_host(f"computing{i}", SPEED).seal() for i in streams]
        zone.seal()


def send_all(network: Network, flows: list[tuple[float, int, int]], spans: list[list[float]]) -> None:
    """Start each flow (when, route, amount) at its time, those of one time together; wait for all."""
    comms = []
    for start, route, amount in flows:
        if start > simgrid.Engine.clock:
            simgrid.this_actor.sleep_until(start)
        comms.append(simgrid.Comm.sendto_async(*network.pairs[route], amount))
    simgrid.Comm.wait_all(comms)
    spans[:] = [[comm.start_time, comm.finish_time] for comm in comms]


def act_all(network: Network, question: dict[str, Any], spans: list[list[float]]) -> None:
    """An actor for each stream: it does its ops in their order, each when all that it waits for has told it."""
    content = [simgrid.Semaphore(0) for _ in spans]
    lines = [simgrid.Mutex() for _ in range(question["connections"])]

    def act(ops: list[dict[str, Any]]) -> None:
        for op in ops:
            for _ in range(op["waits"]):
                content[op["id"]].acquire()
            start = simgrid.Engine.clock
            if op["amount"]:
                work(op)
            spans[op["id"]] = [start, simgrid.Engine.clock]
            for follower in op["tells"]:
                content[follower].release()

    def work(op: dict[str, Any]) -> None:
        if op["route"] < 0:
            simgrid.this_actor.execute(op["amount"] * SPEED)
        elif op["connection"] < 0:
            send(op, op["latency"])
        else:
            ready = simgrid.Engine.clock
            lines[op["connection"]].lock()
            send(op, max(op["startup"], ready + op["latency"] - simgrid.Engine.clock))
            lines[op["connection"]].unlock()

    def send(op: dict[str, Any], latency: float) -> None:
        if latency > 0:
            simgrid.this_actor.sleep_for(latency)
        simgrid.Comm.sendto(*network.pairs[op["route"]], op["amount"])

    for host, stream in zip(network.computing, question["streams"], strict=True):
        simgrid.Actor.create("stream", host, act, stream)


if __name__ == "__main__":
    main()
