"""Who answers chunks: this machine's cores, a Dask cluster, a Ray cluster.

An executor takes texts and yields each one's place with its answer, as they come; None where the worker that had it
ended, `ATTEMPTS` times. What a chunk raises is raised here.
"""

from __future__ import annotations

import importlib
import re
import socket
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

from gcnsim.errors import ScenarioError
from gcnsim.processes import parallel_stream
from gcnsim.sweeps.work import answer

Answer: TypeAlias = tuple[int, str | None]

ATTEMPTS: Final = 3
"""Times that a chunk is given to a worker."""

IN_FLIGHT: Final = 3
"""Chunks given out for each worker: so many wait that none idles, and not all of them."""

REACH_S: Final = 10
"""Seconds in which a scheduler answers, or cannot be reached."""

OWN: Final = ("auto", "local")
"""Addresses of Ray that are found, or begun, on this machine."""

NAMES: Final = ("cores", "dask", "ray")


class Executor(Protocol):
    """Answers chunks somewhere."""

    def answers(self, chunks: Sequence[str]) -> Iterator[Answer]:
        """Each chunk's place and answer, in any order."""


class Cores:
    """This machine's cores: `processes` of them."""

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def answers(self, chunks: Sequence[str]) -> Iterator[Answer]:
        """Each chunk's place and answer, in any order."""
        yield from parallel_stream(answer, chunks, self.processes, ATTEMPTS)


class Dask:
    """The workers of a Dask scheduler. Raises ScenarioError where it is not installed or cannot be reached."""

    def __init__(self, scheduler: str) -> None:
        distributed = _extra("distributed", "dask")
        _reach("scheduler", scheduler, "tcp://10.0.0.1:8786")
        try:
            self._client = distributed.Client(scheduler, timeout=REACH_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise _unreachable("scheduler", scheduler, error) from None
        self._distributed = distributed
        self._lost: type[BaseException] = importlib.import_module("distributed.scheduler").KilledWorker

    def answers(self, chunks: Sequence[str]) -> Iterator[Answer]:
        """Each chunk's place and answer, in any order."""
        with self._client as client:
            workers = max(1, sum(client.nthreads().values()))
            running = self._distributed.as_completed(loop=client.loop)
            places: dict[Any, int] = {}
            todo = list(reversed(range(len(chunks))))
            while todo or places:
                while todo and len(places) < IN_FLIGHT * workers:
                    future = client.submit(answer, chunks[todo[-1]], pure=False)
                    places[future.key] = todo.pop()
                    running.add(future)
                done = next(running)
                place = places.pop(done.key)
                try:
                    yield place, done.result()
                except self._lost:
                    # The scheduler has asked several workers by then (its allowed-failures, 3).
                    yield place, None


class Ray:
    """The workers of a Ray cluster. Raises ScenarioError where it is not installed or cannot be reached."""

    def __init__(self, address: str) -> None:
        self._ray = ray = _extra("ray", "ray")
        if address not in OWN:
            _reach("address", address, "10.0.0.1:6379")
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
        except (ConnectionError, OSError, ValueError, RuntimeError) as error:
            raise _unreachable("address", address, error) from None

    def answers(self, chunks: Sequence[str]) -> Iterator[Answer]:
        """Each chunk's place and answer, in any order."""
        ray = self._ray
        lost = (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError)
        task = ray.remote(max_retries=ATTEMPTS - 1, num_cpus=1)(answer)
        workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        places: dict[Any, int] = {}
        todo = list(reversed(range(len(chunks))))
        try:
            while todo or places:
                while todo and len(places) < IN_FLIGHT * workers:
                    place = todo.pop()
                    places[task.remote(chunks[place])] = place
                (done,), _ = ray.wait(list(places), num_returns=1)
                place = places.pop(done)
                try:
                    yield place, ray.get(done)
                except lost:
                    yield place, None
        finally:
            ray.shutdown()


def executor_of(name: str, address: str | None, processes: int) -> Executor:
    """The executor `name`, at `address` where it needs one. Raises ScenarioError."""
    if name == "cores":
        if address is not None:
            raise ScenarioError("--scheduler, --address: only valid with --executor dask or ray; it is cores")
        return Cores(processes)
    option = "--scheduler" if name == "dask" else "--address"
    if address is None:
        raise ScenarioError(f"--executor: {name} needs {option}, where its cluster is")
    return Dask(address) if name == "dask" else Ray(address)


def _extra(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ScenarioError(f"--executor: {extra} is not installed; pip install 'gcnsim[{extra}]'") from None


def _reach(option: str, address: str, example: str) -> None:
    """Raises ScenarioError for what is no address, or where nobody listens: the libraries take minutes to say so."""
    match = re.fullmatch(r"(?:[a-z]+://)?\[?([^\s\[\]]+?)\]?:(\d{1,5})", address)
    if match is None or int(match[2]) >= 2**16:
        raise ScenarioError(f"--{option}: {address!r} is not an address; write e.g. {example}")
    try:
        socket.create_connection((match[1], int(match[2])), REACH_S).close()
    except OSError as error:
        raise _unreachable(option, address, error) from None


def _unreachable(option: str, address: str, error: BaseException) -> ScenarioError:
    reason = " ".join(str(error).split())[:160] or type(error).__name__
    return ScenarioError(f"--{option}: {address} cannot be reached: {reason}")
