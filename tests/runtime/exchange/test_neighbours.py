"""Sums over neighbours across workers, of drawn graphs and emulated links."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.graph.parts import own_send_sets
from gcnsim.timeline import Direction, OpKind, Phase
from runtime.emulation import Emulation
from runtime.emulation.spec import PAYLOAD_SHARE
from runtime.exchange import CachedRows, DropoutConfig, IterationContext, Requests, Stopwatch, static_requests
from runtime.exchange.channels import LinkEmulation, Meter, wire_of
from runtime.exchange.sampled_graph import order_of
from runtime.record import Recorder
from tests.runtime.conftest import Case
from tests.runtime.exchange.dense import builder

LIKE = torch.zeros(400, 50, dtype=torch.float64)


def test_the_same_names_give_the_same_mask_and_others_another() -> None:
    dropping = DropoutConfig(0.3, False, 7, 1)
    mask = dropping.mask(LIKE, 2, 1, "inner")
    assert torch.equal(mask, DropoutConfig(0.3, True, 7, 1).mask(LIKE, 2, 1, "inner"))
    others = [
        dropping.mask(LIKE, 3, 1, "inner"),
        dropping.mask(LIKE, 2, 0, "inner"),
        dropping.mask(LIKE, 2, 1, "boundary"),
        DropoutConfig(0.3, False, 8, 1).mask(LIKE, 2, 1, "inner"),
        DropoutConfig(0.3, False, 7, 2).mask(LIKE, 2, 1, "inner"),
    ]
    kept = 0.7**2 + 0.3**2
    for other in others:
        agree = float((other == mask).double().mean())
        assert abs(agree - kept) < 5 * math.sqrt(kept * (1 - kept) / LIKE.numel()), "independent"


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_masks_are_zero_or_the_inverse_of_the_share_kept_and_one_in_the_mean(rate: float, dtype: torch.dtype) -> None:
    mask = DropoutConfig(rate, False, 0, 0).mask(LIKE.to(dtype), 0, 0, "inner")
    assert mask.dtype == dtype
    assert mask.shape == LIKE.shape
    kept = mask > 0
    assert bool(torch.isclose(mask[kept], torch.tensor(1.0 / (1.0 - rate), dtype=dtype)).all())
    error = math.sqrt(rate / (1.0 - rate) / LIKE.numel())
    assert abs(float(mask.double().mean()) - 1.0) <= 5 * error + 1e-7


def test_the_ambient_generator_is_left_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    DropoutConfig(0.3, False, 7, 1).mask(LIKE, 2, 1, "inner")
    assert torch.equal(torch.get_rng_state(), before)


def test_dropping_is_timed_forward_and_backward() -> None:
    recorder = Recorder(rank=1)
    watch = Stopwatch(recorder, 4, OpKind.UPDATE)
    drawn: Any = None
    step = IterationContext(4, drawn, None, recorder, watch, DropoutConfig(0.3, False, 7, 1))
    h = torch.ones(50, 8, dtype=torch.float64, requires_grad=True)
    kept = step.dropped(2, h)
    mask = DropoutConfig(0.3, False, 7, 1).mask(h, 4, 2, "inner")
    assert torch.equal(kept, h * mask)
    kept.sum().backward()  # type: ignore[no-untyped-call]
    assert h.grad is not None
    assert torch.equal(h.grad, mask)
    spans = recorder.timeline(0)
    assert spans.layer.tolist() == [2, 2]
    assert spans.direction.tolist() == [Direction.FORWARD, Direction.BACKWARD]
    assert all(spans.of_phase(Phase.COMPUTE))
    assert (spans.end_ps > spans.start_ps).all()


@settings(deadline=None, max_examples=100)
@given(
    nodes=st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=40),
    cached=st.booleans(),
)
def test_order_is_by_owner_then_misses_then_ascending(nodes: list[tuple[int, bool, bool]], cached: bool) -> None:
    """nodes: owner, needed, held of each boundary index."""
    nodes = sorted(nodes, key=lambda node: node[0])
    owner = np.array([node[0] for node in nodes], np.int64)
    needed = np.array([node[1] for node in nodes], np.bool_)
    hit = np.array([node[2] for node in nodes], np.bool_)
    slot = np.where(hit, np.cumsum(hit) - 1, -1)
    held = CachedRows(slot, torch.zeros(int(hit.sum()), 1)) if cached else None
    ptr = np.searchsorted(owner, np.arange(5))
    index, places, misses = order_of(needed, ptr, held)
    lacking = {k for k in range(len(nodes)) if not (cached and hit[k])}
    wanted = sorted(np.flatnonzero(needed).tolist(), key=lambda k: (owner[k], k not in lacking, k))
    assert index.tolist() == wanted
    for m in range(4):
        own = index[places[m] : places[m + 1]].tolist()
        assert all(owner[k] == m for k in own)
        assert misses[m] == sum(k in lacking for k in own)
        assert set(own[: misses[m]]) <= lacking
    assert places[0] == 0
    assert places[-1] == index.size


def test_static_requests_are_the_send_sets(case: Case) -> None:
    parts = case.parts(3)
    for n, part in enumerate(parts):
        requests = static_requests(own_send_sets(part), torch.device("cpu"))
        assert requests.index.dtype == torch.int64
        assert requests.rows == requests.ptr[-1] == requests.index.numel()
        assert requests.misses == tuple(np.diff(requests.ptr).tolist())
        for m, other in enumerate(parts):
            sent = part.inner[requests.index[requests.ptr[m] : requests.ptr[m + 1]].numpy()]
            first, last = other.boundary_ptr[n : n + 2]
            assert np.array_equal(sent, other.boundary[first:last]), f"{n} to {m}: the k-th sent is the k-th received"


def test_requests_must_have_been_exchanged(case: Case) -> None:
    sampled_graph = builder(case.parts(2)[0], "symmetric").whole()
    with pytest.raises(AssertionError, match="never exchanged"):
        sampled_graph.incoming_requests()
    requests = Requests(torch.zeros(0, dtype=torch.int64), (0, 0, 0), (0, 0))
    with_requests = sampled_graph.with_requests(requests)
    assert with_requests.incoming_requests() is requests
    assert with_requests.inner is sampled_graph.inner
    assert sampled_graph.requests is None


def emulation(**fields: object) -> Emulation:
    """Two hosts of two workers at 1 MB/s of payload."""
    facts = {
        "hosts": 2,
        "workers_per_host": 2,
        "bandwidth": 1e6 / PAYLOAD_SHARE,
        "measured": None,
        "burst": 0,
        "latency_s": 0.0,
        "latency_by": "none",
        "limiter": "exchange",
        "cores": 2,
        "congestion": "bbr",
    }
    return Emulation(**{**facts, **fields})  # type: ignore[arg-type]


def took(work: Callable[[], None]) -> float:
    """Seconds."""
    start = time.monotonic()
    work()
    return time.monotonic() - start


def test_a_meter_serves_one_after_the_other() -> None:
    meter = Meter(1000.0)
    assert meter.take(500, 10.0) == pytest.approx(10.5)
    assert meter.take(500, 10.2) == pytest.approx(11.0)
    assert meter.take(100, 20.0) == pytest.approx(20.1)


def test_a_message_to_another_host_takes_the_workers_share_of_the_link() -> None:
    wire = LinkEmulation(emulation(), 1)
    assert took(lambda: wire.before_send(2, 50_000)) == pytest.approx(0.1, abs=0.03)
    assert took(lambda: wire.before_send(0, 50_000)) < 0.03, "the same host"


def test_one_senders_message_has_waited_already_but_two_share_the_receivers_link() -> None:
    wire = LinkEmulation(emulation(), 0)
    assert took(lambda: wire.after_receive(2, 50_000, True)) < 0.03
    assert took(lambda: wire.after_receive(3, 50_000, True)) == pytest.approx(0.1, abs=0.04)


def test_latency_delays_what_was_waited_for() -> None:
    wire = LinkEmulation(emulation(limiter="netns", latency_s=0.05, latency_by="exchange"), 0)
    assert took(lambda: wire.after_receive(2, 10**9, True)) == pytest.approx(0.05, abs=0.03)
    assert took(lambda: wire.after_receive(2, 10**9, False)) < 0.03, "it came while nobody waited"
    assert took(lambda: wire.after_receive(1, 10**9, True)) < 0.03, "the same host"


def test_a_sum_takes_a_rings_time() -> None:
    wire = LinkEmulation(emulation(latency_s=0.01, latency_by="exchange"), 0)
    since = time.monotonic()
    # 6 steps of a quarter of the bytes at the host's rate, each with the latency.
    assert took(lambda: wire.after_sum(40_000, 4, since)) == pytest.approx(6 * (0.01 + 0.01), abs=0.04)
    alone = LinkEmulation(emulation(hosts=1, workers_per_host=4), 0)
    assert took(lambda: alone.after_sum(40_000, 4, time.monotonic())) < 0.03


def test_only_what_the_network_does_not_do_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for facts, wanted in (
        (emulation(), True),
        (emulation(limiter="netns"), False),
        (emulation(limiter="netns", latency_s=1e-3, latency_by="netem"), False),
        (emulation(limiter="userns", latency_s=1e-3, latency_by="exchange"), True),
    ):
        for name, value in facts.environment().items():
            monkeypatch.setenv(name, value)
        assert (wire_of(0) is not None) is wanted
