"""Workers of a sweep and their task: this machine's cores, a Dask cluster, or a Ray cluster.

A worker receives a chunk of points and returns their rows, both as JSON text. The text contains the versions and file
hashes that the rows depend on, and a worker with others refuses it. An executor yields each chunk's index with its
answer as they arrive. The answer is None if the worker died `ATTEMPTS` times. Exceptions of a chunk are raised here.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import platform
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from gcnsim import __version__
from gcnsim.core.errors import FileError, GcnsimError, ScenarioError
from gcnsim.core.processes import parallel_stream
from gcnsim.hardware import is_file
from gcnsim.planning.rows import RowEvaluator
from gcnsim.planning.sweep_points import Settings
from gcnsim.planning.sweep_question import NONE, read_prices
from gcnsim.results import KEYS
from gcnsim.scenario import Scenario
from gcnsim.scenario.load import FILE_FIELDS
from gcnsim.simulation.templates import Templates

DONE: Final = "done"
REFUSED: Final = "refused"
TOO_LARGE: Final = "does not fit"
LOST: Final = "lost"
STATES: Final = (DONE, REFUSED, TOO_LARGE, LOST)
"""The states of a point: answered; refused by the method or the machine; skipped because it does not fit in memory;
lost because its worker died several times.
"""

DEVICE: Final = "cluster.device"
"""A field that may name a file with a device of the user."""

SHARED: Final = ("base", "interval", "fits", "prices")
"""The data that all chunks of a sweep share, in the order of the arguments of `Answering`."""


def versions() -> dict[str, str]:
    """The versions that must agree on both sides for identical bytes."""
    return {"gcnsim": __version__, "python": ".".join(platform.python_version_tuple()[:2]), "numpy": np.__version__}


def file_hash(path: str) -> str:
    """SHA-256 (hex) of a file, or of the names and contents in a folder. Raises FileError."""
    try:
        stamp = Path(path).stat()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    return _file_hash(path, (stamp.st_mtime_ns, stamp.st_size))


@lru_cache(maxsize=64)
def _file_hash(path: str, _: tuple[int, int]) -> str:
    place, digest = Path(path), hashlib.sha256()
    try:
        for one in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if one.is_file():
                digest.update(one.name.encode())
                with open(one, "rb") as file:
                    while block := file.read(1 << 20):
                        digest.update(block)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    return digest.hexdigest()


def files_of(scenario: Scenario) -> Iterator[str]:
    """The files that a scenario names."""
    for path in FILE_FIELDS:
        section, _, key = path.partition(".")
        spec = getattr(scenario, section)
        value = spec.values().get(key) if section == "method" else getattr(spec, key, None)
        if isinstance(value, str):
            yield value
    cluster = scenario.cluster
    yield from filter(is_file, (*(cluster.devices or (cluster.device,)), cluster.host))


def answer(text: str) -> str:
    """The answer to a chunk as JSON: `rows`, or `mismatch` if this worker has other versions or files."""
    request = json.loads(text)
    problem = _mismatch(request)
    if problem is not None:
        return json.dumps({"mismatch": problem})
    worker = _worker(json.dumps([request[key] for key in SHARED], sort_keys=True))
    return json.dumps({"rows": worker.rows(request["points"])}, allow_nan=False)


def _mismatch(request: Mapping[str, Any]) -> str | None:
    own = versions()
    for name, wanted in request["versions"].items():
        if own.get(name) != wanted:
            return f"{name} {own.get(name)} on a worker, {wanted} here; allowed: the same on both"
    for path, wanted in request["files"].items():
        try:
            actual = file_hash(path)
        except FileError as error:
            return f"{error} (on a worker)"
        if actual != wanted:
            return f"{path}: another file on a worker than here; allowed: the same on both"
    return None


_kept: dict[str, Answering] = {}
"""Answering objects of this process, by question; a worker answers many chunks of one sweep."""


def _worker(request: str) -> Answering:
    if request not in _kept:
        _kept.clear()
        _kept[request] = Answering(*json.loads(request))
    return _kept[request]


class Answering:
    """Answers points of one base and reads shared inputs once."""

    def __init__(
        self, base: Mapping[str, Any], interval: str, fits: bool, prices: Mapping[str, Any] | None = None
    ) -> None:
        self._settings = Settings(base)
        self._interval, self._fits = interval != NONE, fits
        self._evaluator = RowEvaluator(read_prices(prices))
        self._templates = Templates()

    def rows(self, points: Sequence[tuple[int, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        """A row for each point as plain data: `point`, `state`, `reason`, and the fields of `Row` if it is answered."""
        with self._templates.used():
            return [self._row(index, values) for index, values in points]

    def _row(self, index: int, values: Mapping[str, Any]) -> dict[str, Any]:
        try:
            scenario = self._settings.scenario(values)
            # A setting that surely exceeds the memory is not simulated.
            possible = not self._fits or self._evaluator.studies(scenario).fits(scenario)
            row = self._evaluator.row(scenario, interval=self._interval) if possible else None
        except GcnsimError as error:
            return {"point": index, "state": REFUSED, "reason": str(error)}
        if row is None or (self._fits and row.fits is False):
            return {"point": index, "state": TOO_LARGE, "reason": "does not fit the memory of its GPUs or servers"}
        return {"point": index, "state": DONE, "reason": None, **{key: getattr(row, key) for key in KEYS}}


Answer: TypeAlias = tuple[int, str | None]

ATTEMPTS: Final = 3
"""How often a chunk is given to a worker."""

IN_FLIGHT: Final = 3
"""Outstanding chunks per worker: enough to keep every worker busy."""

REACH_S: Final = 10
"""Seconds after which a silent scheduler counts as unreachable."""

OWN: Final = ("auto", "local")
"""Ray addresses that find or start a cluster on this machine."""

NAMES: Final = ("cores", "dask", "ray")


class Executor(Protocol):
    """Answers chunks on some set of workers."""

    def answers(self, chunks: Sequence[str]) -> Iterator[Answer]:
        """Yield each chunk's index and answer, in any order."""


class Cores:
    """Answers chunks on `processes` cores of this machine."""

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def answers(self, chunks: Sequence[str]) -> Iterator[Answer]:
        """Yield each chunk's index and answer, in any order."""
        yield from parallel_stream(answer, chunks, self.processes, ATTEMPTS)


def _handed_out(
    chunks: Sequence[str],
    workers: int,
    submit: Callable[[str], Any],
    finished: Callable[[list[Any]], tuple[Any, str | None]],
) -> Iterator[Answer]:
    """Yield each chunk's index and answer, in any order, with a few chunks queued for each worker.

    submit: submits a chunk and returns its handle. finished: waits for one of the handles and returns its answer.
    """
    places: dict[Any, int] = {}
    todo = list(reversed(range(len(chunks))))
    while todo or places:
        while todo and len(places) < IN_FLIGHT * max(1, workers):
            place = todo.pop()
            places[submit(chunks[place])] = place
        name, text = finished(list(places))
        yield places.pop(name), text


class Dask:
    """Answers chunks on the workers of a Dask scheduler. Raises ScenarioError if it is not installed or unreachable."""

    def __init__(self, scheduler: str) -> None:
        self._distributed = distributed = _extra("distributed", "dask")
        _reach("scheduler", scheduler, "tcp://10.0.0.1:8786")
        try:
            self._client = distributed.Client(scheduler, timeout=REACH_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise _unreachable("scheduler", scheduler, error) from None
        self._lost: type[BaseException] = importlib.import_module("distributed.scheduler").KilledWorker

    def answers(self, chunks: Sequence[str]) -> Iterator[Answer]:
        """Yield each chunk's index and answer, in any order."""
        with self._client as client:
            running = self._distributed.as_completed(loop=client.loop)

            def submit(chunk: str) -> Any:
                future = client.submit(answer, chunk, pure=False)
                running.add(future)
                return future.key

            def finished(_: list[Any]) -> tuple[Any, str | None]:
                done = next(running)
                try:
                    return done.key, done.result()
                except self._lost:
                    # By then the scheduler has tried several workers (its allowed-failures, 3).
                    return done.key, None

            yield from _handed_out(chunks, sum(client.nthreads().values()), submit, finished)


class Ray:
    """Answers chunks on the workers of a Ray cluster. Raises ScenarioError if it is not installed or unreachable."""

    def __init__(self, address: str) -> None:
        self._ray = ray = _extra("ray", "ray")
        if address not in OWN:
            _reach("address", address, "10.0.0.1:6379")
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
        except (ConnectionError, OSError, ValueError, RuntimeError) as error:
            raise _unreachable("address", address, error) from None

    def answers(self, chunks: Sequence[str]) -> Iterator[Answer]:
        """Yield each chunk's index and answer, in any order."""
        ray = self._ray
        lost = (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError)
        task = ray.remote(max_retries=ATTEMPTS - 1, num_cpus=1)(answer)

        def finished(running: list[Any]) -> tuple[Any, str | None]:
            (done,), _ = ray.wait(running, num_returns=1)
            try:
                return done, ray.get(done)
            except lost:
                return done, None

        try:
            yield from _handed_out(chunks, int(ray.cluster_resources().get("CPU", 1)), task.remote, finished)
        finally:
            ray.shutdown()


def executor_of(name: str, address: str | None, processes: int) -> Executor:
    """The executor `name`, at `address` if it needs one. Raises ScenarioError."""
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
    """Raise ScenarioError for an invalid address or one that nothing listens on; the libraries take minutes to report
    it.
    """
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
