"""What several rooms' tests build from: real graphs where they are at hand, links by hand, and the facts of small runs.

Of small runs every number is written here; nothing comes from the catalogue, so a corrected datasheet changes no test.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from gcnsim.core.ids import IntArray
from gcnsim.hardware import DeviceProfile, Figure, HostProfile
from gcnsim.hardware.link_specs import Link, LinkSpec
from gcnsim.hardware.profiles import HOST
from gcnsim.hardware.topology import Cluster, build_cluster
from gcnsim.schedule import Builder, Schedule
from gcnsim.schedule.schedule import Op
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload import layer_shapes
from tests.cases import Case

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")  # what is fast is measured in benchmarks/: a busy machine fails no test

NOTES = pytest.StashKey[list[str]]()
"""What tests have to tell besides that they passed."""


@pytest.fixture(scope="session")
def tell(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Adds a line to the end of the test report."""
    return pytestconfig.stash.setdefault(NOTES, []).append


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The garbage collector need not look through all modules again and again: none of them goes away."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000)  # trees of the source are walked in 40 % less time, in 1 % more memory
        gc.enable()


def pytest_configure() -> None:
    """Commands that tests run leave no process behind that compiles the engine; tests of that say so."""
    os.environ["GCNSIM_COMPILE"] = "no"


ALONE = (
    "tests/runtime/accelerator/test_runs.py",
    "tests/runtime/cli/test_emulate.py",
    "tests/runtime/cli/test_me",
    "tests/runtime/cli/test_microbench.py",
    "tests/runtime/cli/test_survey.py",
    "tests/runtime/emulation/",
    "tests/runtime/exchange/test_neighbours.py",
    "tests/runtime/launch/test_parent.py",
    "tests/runtime/launch/test_watch.py",
    "tests/runtime/measuring/",
    "tests/runtime/microbench/",
    "tests/runtime/survey/test_on_",
    "tests/runtime/train/test_launched.py",
    "tests/runtime/train/test_meeting.py",
    "tests/studies/test_emulated_faults.py",
    "tests/studies/test_validation_loop.py",
)
"""Tests of one group: they make network namespaces, agree on ports, or bound and compare times."""


def group_of(test: str) -> str:
    """Which tests one process runs, with `--dist loadscope`: a file's stay together, as do all that must not meet."""
    file = test.split("::")[0]
    return "alone" if file.startswith(ALONE) else file


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell each process how tests are dealt out."""
    node.workerinput["dist"] = node.config.getvalue("dist")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """By groups; pytest 9.2 knows nothing of the names that `--dist loadgroup` of pytest-xdist 3.8 gives to tests."""
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = group_of
    return scheduler


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of several hands what its tests have to tell to the one that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["told"] = session.config.stash.get(NOTES, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what the tests of a process had to tell."""
    node.config.stash.setdefault(NOTES, []).extend(node.workeroutput.get("told", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what tests had to tell."""
    for line in terminalreporter.config.stash.get(NOTES, []):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real graphs that GCNSIM_DATA names; skips the test where it is not set."""
    folder = os.environ.get("GCNSIM_DATA")
    if not folder:
        pytest.skip("GCNSIM_DATA is not set: no real graphs here")
    if not Path(folder).is_dir():
        pytest.fail(f"GCNSIM_DATA is {folder}, which is not a folder")
    return Path(folder)


def _figure(value: float) -> Figure:
    return Figure(value, "assumed", "chosen for a test", "2026", value, value)


@pytest.fixture(scope="session")
def gpu() -> DeviceProfile:
    """A GPU with round figures: 100 GB/s, 1 Tflop/s, half of it in SpMM, 10 us a launch."""
    return DeviceProfile(
        name="test-gpu",
        title="GPU of the tests",
        kind="gpu",
        memory=_figure(16e9),
        memory_bandwidth=_figure(100e9),
        flops_fp32=_figure(1e12),
        flops_fp16=None,
        spmm_efficiency=_figure(0.5),
        gemm_efficiency=_figure(0.8),
        gather_efficiency=_figure(0.25),
        elementwise_efficiency=_figure(1.0),
        launch_s=_figure(1e-5),
        link="test-link",
    )


@pytest.fixture(scope="session")
def server() -> HostProfile:
    """A host with four cores that draw 100 M edges and sort 10 M edges a second each; its other figures are 0."""
    given = {
        "cores": 4,
        "memory_bandwidth": 50e9,
        "sample_edges_per_s": 1e8,
        "sort_edges_per_s": 1e7,
        "build_entries_per_s": 2e7,
        "socket_bandwidth": 1e9,
        "busy_core_rate": 0.5,
        "slice_s": 4e-3,
        "gather_bandwidth": 1e9,
        "operation_s": 1e-4,
        "rebuild_bytes": 300.0,
        "staging_bandwidth": 7e9,
        "neighbour_draws_per_s": 1e7,
        "uva_efficiency": 0.8,
    }
    figures: dict[str, Any] = {name: _figure(given.get(name, 0.0)) for name in HOST}
    return HostProfile(name="test-host", title="Host of the tests", **figures)


@pytest.fixture(scope="session")
def wires() -> Callable[..., Cluster]:
    """A cluster of one worker whose links are just wires: `wires(cap, cap, ...)`, link i is route (i,)."""

    def make(*capacity: float, latency: float = 0.0, startup: float = 0.0, workers: int = 1) -> Cluster:
        links = tuple(
            Link(f"wire{i}", "nic", f"a{i}", f"b{i}", LinkSpec(value, latency, startup))
            for i, value in enumerate(capacity)
        )
        return Cluster((0,) * workers, links)

    return make


@pytest.fixture(scope="session")
def builder(wires: Callable[..., Cluster]) -> Callable[..., Builder]:
    """A builder of one iteration on wires."""

    def make(*capacity: float, iterations: int = 1, **more: float) -> Builder:
        return Builder("test", wires(*capacity, **more), iterations)

    return make


def _rows(workers: int, iterations: int, mean: float, spread: float, slope: float) -> IntArray:
    """rows[t, n, m] around `mean`: `spread` around it by an arithmetic pattern, worker n more by `slope` * n."""
    t, n, m = np.ogrid[:iterations, :workers, :workers]
    pattern = ((37 * t + 11 * n + 5 * m) % 101 - 50) / 50.0
    rows: IntArray = np.rint(mean * (1.0 + spread * pattern) * (1.0 + slope * n)).astype(np.int64)
    rows[:, range(workers), range(workers)] = 0
    return rows


def _counts(needed: IntArray, slope: float, hits: float, entries: int, inner: int) -> AccessCounts:
    """Counts of `needed` rows, of which the share `hits` is cached; worker n keeps `slope` * n more of its entries."""
    iterations, workers, _ = needed.shape
    kept = np.rint(entries * (1.0 + slope * np.arange(workers))).astype(np.int64)
    most = needed.sum(axis=2).max(axis=0)
    return AccessCounts(
        rows=needed,
        hits=np.rint(hits * needed).astype(np.int64),
        inner_edges=np.tile(kept * 3 // 4, (iterations, 1)),
        boundary_edges=np.tile(kept // 4, (iterations, 1)),
        inner_nodes=np.full(workers, inner),
        boundary_nodes=most,
        entries=kept,
        cached_rows=np.rint(hits * most).astype(np.int64),
    )


@pytest.fixture(scope="session")
def facts(gpu: DeviceProfile, server: HostProfile) -> Callable[..., Case]:
    """Case of a small run: 2,000 rows per pair of workers, 1 M entries a worker, 3 layers of 64 values."""

    def make(
        *,
        workers: int = 4,
        per_server: int = 2,
        nic: float = 1e9,
        nic_latency: float = 5e-5,
        startup: float = 0.0,
        pcie: float = 10e9,
        cores: float = 4.0,
        tau: int = 0,
        sampled: bool = False,
        weighted: bool = False,
        iterations: int = 1,
        rows: float = 2000.0,
        spread: float = 0.0,
        slope: float = 0.0,
        hits: float = 0.0,
        entries: int = 1_000_000,
        inner: int = 20_000,
        widths: tuple[int, int, int] = (64, 64, 16),
        layers: int = 3,
        model: str = "gcn",
        rate: float = 1.0,
    ) -> Case:
        cluster = build_cluster(
            gpus=workers,
            gpus_per_server=per_server,
            pcie=LinkSpec(pcie, 1e-5 + startup, startup),
            nic=LinkSpec(nic, nic_latency + startup, startup),
            memory=LinkSpec(10e9, 1e-6 + startup / 8, startup / 8),
            cores=LinkSpec(cores),
        )
        counts = _counts(_rows(workers, iterations, rows, spread, slope), slope, hits, entries, inner)
        return Case(
            cluster=cluster,
            device=gpu,
            host=server,
            shapes=layer_shapes(model, widths[0], widths[1], layers, widths[2]),
            counts=counts,
            tau=tau,
            sampled=sampled,
            weighted=weighted,
            refresh=20,
            rate=rate,
        )

    return make


@pytest.fixture(scope="session")
def label() -> Callable[[Schedule, Op], tuple[object, ...]]:
    """What an op is, whatever its number: kind, worker, stream, layer, direction, peer, place in its stream."""

    def make(schedule: Schedule, op: Op) -> tuple[object, ...]:
        stream = schedule.streams[op.stream]
        place = schedule.order[op.stream].index(op.index)
        return op.kind, op.worker, stream.name, op.layer, op.direction, op.peer, place

    return make
