"""The micro-benchmarks on a GPU, where there is one: every kernel, and rates that such a GPU can have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gcnsim.evidence.fit import calibrate
from gcnsim.hardware import device, gpu_named
from runtime.microbench import (
    KERNELS,
    QUICK,
    TINY,
    Measurement,
    MicrobenchRequest,
    document,
    kernels,
    measured,
    program,
    write,
)
from runtime.microbench.bench import Bench, Call, Shape, facts_of, made_rows, matrix_of
from runtime.microbench.kernels import activation, launch, learnt_map, product
from runtime.microbench.measurements import NETWORK
from runtime.microbench.program import ALONE

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ONE = {name for name in KERNELS if not name.startswith("shared_")} - NETWORK
"""What one process with a GPU measures alone."""

MOST_OF_PEAK = 1.1
"""Of a datasheet's rate: more than that was not computed, or came from a cache."""


@pytest.fixture(scope="module")
def tiny() -> Iterator[list[Measurement]]:
    """All kernels at the smallest sizes."""
    before, found = torch.get_num_threads(), list[Measurement]()
    program.run(MicrobenchRequest(TINY, "cuda", 1, (1,), False), ALONE, found.append)
    yield found
    torch.set_num_threads(before)


@pytest.fixture
def bench() -> Bench:
    """Where kernels of real sizes are timed, each briefly."""
    budget = replace(QUICK, sample_s=0.02, window_s=0.5)
    return Bench(MicrobenchRequest(budget, "cuda", 1, (1,), False), torch.device("cuda", 0), lambda _: None)


def seconds(bench: Bench, call: Call) -> float:
    """Of one call."""
    found: list[Measurement] = []
    replace(bench, tell=found.append).time("launch", {}, call)
    return found[0].seconds


def test_every_kernel_of_one_process_is_measured(tiny: list[Measurement]) -> None:
    assert {item.kernel for item in tiny} == ONE
    for item in tiny:
        assert 0 < item.low <= item.seconds, item
        assert item.seconds < 1, item


def test_a_profile_is_fitted_where_the_catalogue_has_the_gpu(tiny: list[Measurement], tmp_path: Path) -> None:
    name = gpu_named(torch.cuda.get_device_name(0))
    if name is None:
        pytest.skip(f"the catalogue has no {torch.cuda.get_device_name(0)}")
    write(tmp_path / "profile.json", document(MicrobenchRequest(TINY, "cuda", 1, (1,), False), tiny, 1.0))
    record = calibrate(tmp_path / "profile.json")
    assert record.device == name
    assert {"memory_bandwidth", "spmm_efficiency"} <= set(record.figures["device"])
    assert 1e-6 < record.figures["host"]["call_s"].value < 1e-3


def test_two_processes_share_the_gpu_and_measure_messages() -> None:
    found = {item.kernel for item in measured(MicrobenchRequest(TINY, "cuda", 1, (1, 2), kernels=True))}
    assert found >= ONE
    assert {"p2p_oneway", "all_reduce"} <= found


def test_rates_are_those_of_the_memory_and_of_fp32_units(bench: Bench, tell: Callable[[str], None]) -> None:
    name = gpu_named(torch.cuda.get_device_name(0))
    if name is None:
        pytest.skip(f"the catalogue has no {torch.cuda.get_device_name(0)}")
    known = device(name)
    bench.wake()
    width, many = 128, 1_048_576
    found = {
        "relu": 8.0 * many * width / seconds(bench, activation(bench, many, width)) / known.memory_bandwidth.value,
        "gemm": 2.0 * 262_144 * 256**2 / seconds(bench, learnt_map(bench, 262_144, 256, 256))
        / known.flops_fp32.value,
        "pack": 8.0 * 400_000 * width / seconds(bench, kernels._pack(bench, 400_000, 800_000, width))
        / known.memory_bandwidth.value,
    }  # fmt: skip
    made = Shape(4_000_000, 100_000, 100_000).made()
    call, _ = product(bench, matrix_of(made, bench.device), width)
    sums = 4.0 * width * facts_of(made)["entries"] / seconds(bench, call) / known.memory_bandwidth.value
    told = ", ".join(f"{kernel} {100 * share:.0f} %" for kernel, share in {**found, "spmm": sums}.items())
    tell(f"of the peak of {name}: {told}")
    # Rows that many entries gather may come from the cache, so a sum has no such limit.
    assert all(0.1 < share < MOST_OF_PEAK for share in found.values()), told
    assert 0.05 < sums < 10, told


def test_copies_are_no_quicker_than_their_bus(bench: Bench, tell: Callable[[str], None]) -> None:
    nbytes, rates = 1 << 26, {}
    for pinned in (True, False):
        host, there = program._pair(bench, nbytes, pinned)
        rates[pinned] = nbytes / seconds(bench, program._copy(there, host))
        assert there.is_cuda
        assert host.is_pinned() == pinned
    told = ", ".join(f"{'pinned' if pinned else 'pageable'} {rate / 1e9:.1f} GB/s" for pinned, rate in rates.items())
    tell(f"copies to the GPU: {told}")
    assert all(1e8 < rate < 1e12 for rate in rates.values()), told


def test_a_launch_takes_microseconds(bench: Bench, tell: Callable[[str], None]) -> None:
    found: list[Measurement] = []
    launch(replace(bench, tell=found.append))
    tell(f"a launch from Python: {1e6 * found[0].seconds:.1f} us")
    assert 1e-6 < found[0].seconds < 1e-3


def test_rows_made_on_the_gpu_are_the_same_every_time(bench: Bench) -> None:
    one, other = made_rows(100, 16, bench.device, "a"), made_rows(100, 16, bench.device, "b")
    assert one.is_cuda
    assert torch.equal(one, other)
