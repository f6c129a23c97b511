"""The exchange's ring of slots, its counts, and errors of its threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gcnsim.timeline import Direction
from runtime.exchange import CachedRows, Exchange, PeerError, SampledGraph
from runtime.record import Recorder
from tests.runtime.exchange.mirror import INDEX, INNER, WIDTHS, MirrorLane, at_hand, graph, mirrored, values

Make = Callable[..., tuple[Exchange, MirrorLane, MirrorLane]]


@pytest.fixture
def make() -> Iterator[Make]:
    """Exchanges whose threads end with the test."""
    made: list[tuple[Exchange, MirrorLane, MirrorLane]] = []

    def exchange(tau: int, **more: Any) -> tuple[Exchange, MirrorLane, MirrorLane]:
        made.append(mirrored(tau, **more))
        return made[-1]

    yield exchange
    for item, forward, backward in made:
        for channel in (forward, backward):
            channel.gate.set()
        item.close()


def gradients(exchange: Exchange, t: int, layer: int, drawn: SampledGraph) -> None:
    """Make gradients of the boundary rows, all t + 1, and send them."""
    exchange.gradient_buffer(t, layer, drawn).fill_(t + 1.0)
    exchange.send_gradients(t, layer, drawn)


def added(exchange: Exchange, t: int, layer: int) -> Tensor:
    """What iteration t adds."""
    grad = torch.zeros(INNER, WIDTHS[layer], dtype=torch.float64)
    exchange.add_gradients(t, layer, grad)
    return grad


@pytest.mark.parametrize("tau", [1, 2, 3])
@pytest.mark.parametrize("threaded", [True, False])
def test_rows_and_gradients_are_tau_iterations_old(make: Make, tau: int, threaded: bool) -> None:
    exchange, _, _ = make(tau, threaded=threaded)
    assert not exchange.synchronous
    drawn = graph()
    for t in range(3 * tau + 2):
        for layer in (0, 1):
            rows = exchange.rows(t, layer, drawn).clone()
            wanted = values(t - tau, layer)[list(INDEX)] if t >= tau else torch.zeros(len(INDEX), WIDTHS[layer])
            assert torch.equal(rows, wanted.double())
            exchange.send_rows(t, layer, values(t, layer), at_hand(drawn))
        for layer in (1, 0):
            exchange.gradient_buffer(t, layer, drawn).fill_(t + 1.0)
            grad = added(exchange, t, layer)
            exchange.send_gradients(t, layer, drawn)
            other = [n for n in range(INNER) if n not in INDEX]
            assert bool((grad[list(INDEX)] == max(t - tau + 1, 0)).all())
            assert not grad[other].any()
    exchange.drain()


@pytest.mark.parametrize("threaded", [True, False])
def test_without_staleness_the_same_iteration_s_are_read(make: Make, threaded: bool) -> None:
    exchange, _, _ = make(0, threaded=threaded)
    assert exchange.synchronous
    drawn = graph()
    for t in range(4):
        exchange.send_rows(t, 1, values(t, 1), at_hand(drawn))
        assert torch.equal(exchange.rows(t, 1, drawn), values(t, 1)[list(INDEX)])
        gradients(exchange, t, 1, drawn)
        exchange.await_gradients(t, 1)
        assert bool((added(exchange, t, 1)[list(INDEX)] == t + 1).all())


def test_a_warm_start_reads_true_features_in_layer_0_alone(make: Make) -> None:
    exchange, _, _ = make(2)
    exchange.features = torch.arange(12.0, dtype=torch.float64).view(4, 3)
    some = graph()
    for t in (0, 1):
        assert torch.equal(exchange.rows(t, 0, some), exchange.features)
        assert not exchange.rows(t, 1, some).any()
        exchange.send_rows(t, 0, values(t, 0), at_hand(some))
    assert torch.equal(exchange.rows(2, 0, some), values(0, 0)[list(INDEX)])


def test_a_row_of_another_iteration_is_never_read(make: Make) -> None:
    exchange, _, _ = make(2)
    drawn = graph()
    exchange.send_rows(0, 0, values(0, 0), at_hand(drawn))
    gradients(exchange, 0, 1, drawn)
    with pytest.raises(AssertionError, match="slot holds iteration 0, wanted 2"):
        exchange.rows(4, 0, drawn)
    with pytest.raises(AssertionError, match="no transfer of iteration 1 was started"):
        exchange.rows(3, 0, drawn)
    with pytest.raises(AssertionError, match="slot holds iteration 0, wanted 2"):
        added(exchange, 4, 1)
    with pytest.raises(AssertionError, match="no transfer of iteration 0 was started"):
        exchange.await_gradients(2, 0)


def test_rows_of_another_graph_are_never_read(make: Make) -> None:
    exchange, _, _ = make(1)
    exchange.send_rows(0, 0, values(0, 0), at_hand(graph(1)))
    with pytest.raises(AssertionError, match="rows of graph 1 where 2 is trained"):
        exchange.rows(1, 0, graph(2))
    assert exchange.rows(1, 0, graph(1)).shape == (4, 3)


FAILING = ["posting", "waiting"]


@pytest.mark.parametrize("where", FAILING)
@pytest.mark.parametrize("tau", [0, 1])
def test_an_error_of_a_thread_is_raised_where_rows_are_awaited(make: Make, where: str, tau: int) -> None:
    exchange, forward, _ = make(tau)
    setattr(forward, where, PeerError("worker 1: gone"))
    drawn = graph()
    exchange.send_rows(0, 1, values(0, 1), at_hand(drawn))
    with pytest.raises(PeerError, match="worker 1: gone"):
        exchange.rows(tau, 1, drawn)
    with pytest.raises(PeerError, match="worker 1: gone"):
        exchange.drain()


@pytest.mark.parametrize("where", FAILING)
@pytest.mark.parametrize("tau", [0, 1])
def test_an_error_of_a_thread_is_raised_where_gradients_are_awaited(make: Make, where: str, tau: int) -> None:
    exchange, _, backward = make(tau)
    setattr(backward, where, ValueError("no memory"))
    drawn = graph()
    gradients(exchange, 0, 1, drawn)
    with pytest.raises(ValueError, match="no memory"):
        exchange.await_gradients(tau, 1)
    with pytest.raises(ValueError, match="no memory"):
        added(exchange, tau, 1)
    if tau:
        with pytest.raises(ValueError, match="no memory"):
            exchange.gradient_buffer(tau, 1, drawn)
    with pytest.raises(ValueError, match="no memory"):
        exchange.in_flight()


def test_an_error_of_packing_is_raised_too(make: Make) -> None:
    exchange, _, _ = make(1)
    drawn = graph()
    exchange.send_rows(0, 1, values(0, 1)[:2], at_hand(drawn))
    with pytest.raises((RuntimeError, IndexError), match="out of range"):
        exchange.rows(1, 1, drawn)


def test_an_error_of_the_sampler_is_raised_where_its_rows_are_awaited(make: Make) -> None:
    exchange, _, _ = make(1)
    failed: Future[SampledGraph] = Future()
    failed.set_exception(OSError("the sampler failed"))
    exchange.send_rows(0, 0, values(0, 0), failed)
    with pytest.raises(OSError, match="the sampler failed"):
        exchange.rows(1, 0, graph())


def test_without_threads_an_error_is_raised_at_once(make: Make) -> None:
    exchange, forward, _ = make(0, threaded=False)
    forward.waiting = PeerError("worker 1: gone")
    with pytest.raises(PeerError, match="worker 1: gone"):
        exchange.send_rows(0, 0, values(0, 0), at_hand(graph()))


@pytest.mark.parametrize("where", FAILING)
def test_after_a_failed_transfer_nothing_more_is_sent_in_its_direction(make: Make, where: str) -> None:
    """The others would take it for what is missing."""
    exchange, forward, backward = make(2)
    drawn = graph()
    setattr(forward, where, PeerError("worker 1: gone"))
    exchange.send_rows(0, 0, values(0, 0), at_hand(drawn))
    with pytest.raises(PeerError, match="worker 1: gone"):
        exchange.rows(2, 0, drawn)
    setattr(forward, where, None)
    exchange.send_rows(1, 0, values(1, 0), at_hand(drawn))
    with pytest.raises(PeerError, match="worker 1: gone"):
        exchange.rows(3, 0, drawn)
    assert forward.messages == []
    gradients(exchange, 0, 1, drawn)
    assert bool((added(exchange, 2, 1)[list(INDEX)] == 1.0).all())
    assert [rows for _, rows, _ in backward.messages] == [4, 4]


def test_the_sender_goes_on_and_the_reader_waits(make: Make) -> None:
    recorder = Recorder(0)
    exchange, forward, _ = make(1, recorder=recorder)
    drawn = graph()
    forward.gate.clear()
    exchange.send_rows(0, 0, values(0, 0), at_hand(drawn))
    exchange.send_rows(0, 1, values(0, 1), at_hand(drawn))
    threading.Timer(0.15, forward.gate.set).start()
    assert torch.equal(exchange.rows(1, 0, drawn), values(0, 0)[list(INDEX)])
    waits = [span for span in recorder.timeline(0) if span.kind == "wait"]
    assert len(waits) == 1
    assert (waits[0].stream, waits[0].iteration, waits[0].layer) == ("compute", 1, 0)
    assert waits[0].direction is Direction.FORWARD
    assert waits[0].end_s - waits[0].start_s > 0.05


def test_held_rows_do_not_travel(make: Make) -> None:
    exchange, forward, _ = make(1)
    held = CachedRows(np.array([-1, 1, -1, 0]), torch.tensor([[7.0, 7, 7], [8, 8, 8]], dtype=torch.float64))
    drawn = graph(held=held)
    assert drawn.needed.tolist() == [0, 2, 1, 3]
    for layer in (0, 1):
        exchange.send_rows(0, layer, values(0, layer), at_hand(drawn))
        rows = exchange.rows(1, layer, drawn)
        wanted = values(0, layer)[[INDEX[k] for k in drawn.needed]]
        if layer == 0:
            wanted[2:] = torch.tensor([[8.0], [7.0]])
        assert torch.equal(rows, wanted)
    assert [rows for _, rows, outgoing in forward.messages if outgoing] == [2, 4]
    assert exchange.bytes_sent == {(1, "rows"): 8 * (2 * WIDTHS[0] + 4 * WIDTHS[1])}


def test_bytes_are_counted_by_peer_and_kind(make: Make) -> None:
    exchange, _, _ = make(0)
    drawn = graph()
    for t in range(3):
        exchange.send_rows(t, 1, values(t, 1), at_hand(drawn))
        exchange.rows(t, 1, drawn)
    gradients(exchange, 0, 1, drawn)
    exchange.drain()
    one = 8 * len(INDEX) * WIDTHS[1]
    assert exchange.bytes_sent == {(1, "rows"): 3 * one, (1, "gradients"): one}


def test_smoothing_sees_what_was_received_never_a_cold_start(make: Make) -> None:
    seen: list[tuple[Direction, int, Tensor]] = []

    def smooth(direction: Direction, layer: int, rows: Tensor) -> Tensor:
        seen.append((direction, layer, rows.clone()))
        return rows * 10.0

    exchange, _, _ = make(1, smooth=smooth)
    drawn = graph()
    exchange.rows(0, 1, drawn)
    added(exchange, 0, 1)
    assert seen == []
    exchange.send_rows(0, 1, values(0, 1), at_hand(drawn))
    gradients(exchange, 0, 1, drawn)
    assert torch.equal(exchange.rows(1, 1, drawn), values(0, 1)[list(INDEX)] * 10.0)
    assert bool((added(exchange, 1, 1)[list(INDEX)] == 10.0).all())
    assert [(direction, layer) for direction, layer, _ in seen] == [(Direction.FORWARD, 1), (Direction.BACKWARD, 1)]


def test_what_is_in_flight_goes_on_in_another_exchange(make: Make) -> None:
    exchange, _, _ = make(2)
    drawn = graph()
    for t in (3, 4):
        for layer in (0, 1):
            exchange.send_rows(t, layer, values(t, layer), at_hand(drawn))
        gradients_at = torch.full((4, WIDTHS[1]), float(t), dtype=torch.float64)
        place = exchange._slots[Direction.BACKWARD, 1, t % 2].outgoing.rows(4)
        place.copy_(gradients_at)
        exchange.send_gradients(t, 1, drawn)
    held = {key: (item, rows.clone()) for key, (item, rows) in exchange.in_flight().items()}
    assert set(held) == {(Direction.FORWARD, layer, t) for layer in (0, 1) for t in (3, 4)} | {
        (Direction.BACKWARD, 1, t) for t in (3, 4)
    }
    other, _, _ = make(2)
    for (direction, layer, t), (item, rows) in held.items():
        other.put_back(direction, layer, t, item, rows)
    for t in (5, 6):
        for layer in (0, 1):
            assert torch.equal(other.rows(t, layer, drawn), values(t - 2, layer)[list(INDEX)])
        assert bool((added(other, t, 1)[list(INDEX)] == t - 2).all())
