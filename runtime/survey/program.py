"""The program of every worker of a survey: meet, measure, train one run after another. Worker 0 decides and writes.

Generated graphs are the same on every server. They have hubs and neighbourhoods, so that some parts have much to
exchange.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from gcnsim.core.atomic import atomic_write
from gcnsim.core.streams import stream
from gcnsim.graph import Graph, build_csr
from gcnsim.records.run_files import Cluster
from runtime.data import DatasetCache
from runtime.emulation import Emulation
from runtime.emulation.spec import PAYLOAD_SHARE
from runtime.launch import Place, Watch, connect
from runtime.microbench import MicrobenchRequest, document, write
from runtime.microbench.network import MEETING_S, Servers, measured_together, meet
from runtime.survey.folder import MICROBENCH, SurveyFolder, clear, note_failure
from runtime.survey.rule import BUDGETS, GRAPHS, GeneratedGraph, SurveyRequest, fitting
from runtime.train.preflight import agree_on
from runtime.train.tasks import naming
from runtime.train.worker import train

_SHOWN: Final = 12
"""Digits of a hash that identify a file and fit on a line."""

MOST_AT_ONCE: Final = 64
"""The most processes that the micro-benchmarks start."""


def survey(request: SurveyRequest, place: Place) -> int:
    """Take part in the survey as this worker; returns the exit code. Raises GcnsimError and the errors of runs."""
    start = time.monotonic()
    with Watch(place) as watch:
        connect(place, MEETING_S, "gloo")
        # All other settings of a run follow from these two, or are only needed by worker 0.
        agree_on([(0, "rule", request.rule.sha256[:_SHOWN]), (0, "device", request.device)], place)
        servers = meet(place, request.device)
        folder = SurveyFolder(request, _surveyed(request, servers)) if place.rank == 0 else None
        _graphs(request, servers)
        _measure(request, servers, folder)
        _train(request, servers, folder, watch, start + 60 * request.minutes)
        if place.local_rank == 0:
            clear(request.out)
    if folder is not None:
        _print_survey(request, folder, folder.close(time.monotonic() - start))
    return 0


def _surveyed(request: SurveyRequest, servers: Servers) -> dict[str, Any]:
    """The properties that must stay the same when a survey is resumed."""
    emulation = Emulation.here()
    return {
        "rule": request.rule.sha256,
        "device": request.device,
        "workers": servers.place.world,
        "servers": list(servers.facts),
        "versions": servers.versions,
        "bandwidth": request.bandwidth,
        "emulated": None if emulation is None else _emulated(emulation),
    }


def _emulated(emulation: Emulation) -> dict[str, Any]:
    """The properties of an emulated cluster that must stay the same; accelerator: the emulated GPU, if any."""
    found: dict[str, Any] = {"bandwidth": emulation.bandwidth, "limiter": emulation.limiter}
    return found if emulation.accelerator is None else found | {"accelerator": emulation.accelerator["name"]}


def _graphs(request: SurveyRequest, servers: Servers) -> None:
    """Generate graphs on every server, the same on all; servers may or may not share the folder."""
    if servers.place.local_rank == 0:
        clear(request.out)
        (request.out / GRAPHS).mkdir(parents=True, exist_ok=True)
        for name, made in request.rule.graphs.items():
            path = request.out / GRAPHS / f"{name}.npz"
            if isinstance(made, GeneratedGraph) and not path.is_file():
                save(path, made_up(name, made, request.device))
    servers.channel.barrier()


def _measure(survey_request: SurveyRequest, servers: Servers, folder: SurveyFolder | None) -> None:
    """Run the micro-benchmarks of the first server and of the network, unless they are done."""
    if _broadcast(servers, int(folder is not None and folder.has_microbench)):
        return
    start = time.perf_counter()
    budget = BUDGETS[survey_request.rule.profile]
    # Kernels of cores are measured with their workload, afterwards.
    kernels = survey_request.device == "cuda"
    request = MicrobenchRequest(budget, survey_request.device, 1, _at_once(survey_request, servers), kernels=kernels)
    if folder is not None:
        _say(f"micro-benchmarks ({budget.level}) of {'the first' if servers.count > 1 else 'this'} server")
    measurements, rate = measured_together(servers, request)
    if folder is not None:
        # What is emulated is said by the emulation.
        rate = None if Emulation.here() else rate
        folder.measured(None if rate is None else cluster_of(servers, rate, survey_request.bandwidth))
        write(folder.path / MICROBENCH, document(request, measurements, time.perf_counter() - start))


def cluster_of(servers: Servers, measured: float, bandwidth: float | None) -> Cluster:
    """The facts that a simulation needs. bandwidth: of the wire; None: what carries the payload that was `measured`."""
    return Cluster(
        hosts=servers.count,
        workers_per_host=servers.each,
        bandwidth=measured / PAYLOAD_SHARE if bandwidth is None else bandwidth,
        measured=measured,
    )


def _at_once(request: SurveyRequest, servers: Servers) -> tuple[int, ...]:
    """Numbers of concurrent processes to measure: contention is fitted up to the number of cores."""
    cores = int(servers.facts[0]["cores"])
    wanted = {1, 2, servers.each}
    if request.device == "cpu":
        wanted |= {cores} if servers.count > 1 else {cores, 2 * cores}
    return tuple(sorted({min(count, MOST_AT_ONCE) for count in wanted}))


def _train(
    request: SurveyRequest, servers: Servers, folder: SurveyFolder | None, watch: Watch, deadline: float
) -> None:
    """Train the runs that fit, until none does or a worker is asked to stop.

    A failed run is recorded and ends the survey, because its workers have lost each other; the next start skips it.
    """
    shelf, runs = DatasetCache(), request.rule.planned()
    while True:
        at = -1
        if folder is not None and not watch.stop:
            sound = [run for run in runs if run.name not in folder.failed]
            left = fitting(sound, folder.took, deadline - time.monotonic(), request.rule.least_repeats)
            if left:
                folder.begin(left[0])
                at = runs.index(left[0])
                _say(f"{left[0].name}, {len(folder.took)} of {len(folder.took) + len(left)} runs done")
        at = _broadcast(servers, at)
        if at < 0:
            return
        start = time.monotonic()
        # What the run before held of a GPU's memory is neither kept nor counted.
        gc.collect()
        task = request.task(runs[at])
        with naming(task.name):
            try:
                stopped = train(task, servers.place, watch, shelf)
            except Exception as error:
                note_failure(request.out, runs[at], error)
                raise
        if stopped:
            return
        if folder is not None:
            folder.admit(runs[at], time.monotonic() - start)


def _broadcast(servers: Servers, number: int) -> int:
    """Worker 0's number, on all workers."""
    tensor = torch.tensor([number])
    servers.channel.broadcast(tensor)
    return int(tensor)


def _print_survey(request: SurveyRequest, folder: SurveyFolder, minutes: float) -> None:
    dropped = folder.dropped()
    if request.json:
        final = {"out": str(folder.path), "runs": len(folder.took), "dropped": dropped, "minutes": minutes}
        sys.stdout.write(json.dumps(final) + "\n")
    else:
        left = f"; left out: {', '.join(dropped)}" if dropped else ""
        sys.stdout.write(f"{folder.path}: {len(folder.took)} runs in {minutes:.1f} minutes{left}\n")
        sys.stdout.write(f"what to do with it: {folder.path / 'README.md'}\n")
    sys.stdout.flush()


def _say(line: str) -> None:
    sys.stderr.write(f"runtime.survey: {line}\n")
    sys.stderr.flush()


_REACH: Final = 1 / 60
"""The mean distance of a near neighbour, as a share of all nodes."""

_HUBS: Final = 3.0
"""Far ends are distributed as u to this power: degrees follow a power law, and node 0 is the largest hub."""


def made_up(name: str, made: GeneratedGraph, device: str) -> Graph:
    """The graph `name`, generated from its name: near edges by an exponential distance, far ones to hubs."""
    nodes = made.nodes[device]
    generator = stream(0, "survey", name)
    source = generator.integers(nodes, size=nodes * made.degree // 2)
    near = (source + 1 + generator.exponential(nodes * _REACH, source.size).astype(np.int64)) % nodes
    far = (nodes * generator.random(source.size) ** _HUBS).astype(np.int64)
    target = np.where(generator.random(source.size) < made.far, far, near)
    return build_csr(source, target, nodes, name)


def save(path: Path, graph: Graph) -> None:
    """Write the graph in the format that training reads, unless it exists. Raises FileError."""
    if path.is_file():
        return
    with atomic_write(path) as file:
        np.savez(file, allow_pickle=False, indptr=graph.indptr, indices=graph.indices)
