"""Channels, staging, requests, rings and stopwatches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gcnsim.core.ids import AnyArray
from gcnsim.timeline import Direction, OpKind
from runtime.exchange import Stopwatch
from runtime.exchange.staging import Buffer, CopyStream, Staging
from tests.runtime.block_jobs import added_up, passed_around, values
from tests.runtime.conftest import Case, MakeOptions, mostly
from tests.runtime.crew import Crew
from tests.runtime.exchange.channel_jobs import (
    WIDTH,
    RankRequests,
    apart,
    asking,
    collected,
    deserted,
    gathered,
    left_alone,
    message,
    swapped,
)


def test_parcels_of_unequal_sizes_some_of_them_empty(crew: Crew) -> None:
    sizes = [[0, 5, 0, 1], [2, 0, 300, 0], [0, 0, 0, 0], [7, 1, 2, 0]]
    content = crew.run(4, swapped, sizes, 3)
    for rank, (found, done) in enumerate(content):
        for turn, incoming in enumerate(found):
            for m, rows in enumerate(incoming):
                assert np.array_equal(rows, message(m, rank, sizes[m][rank], turn)), f"{m} to {rank}"
        coming = [(m, False) for m in range(4) if sizes[m][rank]]
        going = [(m, True) for m in range(4) if sizes[rank][m]]
        assert len(done) == 3 * len(coming + going), "empty messages never travel"
        assert set(done) == set(coming + going)
        for turn in range(3):
            text = done[turn * len(coming + going) :][: len(coming + going)]
            assert text[: len(coming)] == coming, "receives first"


def test_arrays_of_different_lengths(crew: Crew) -> None:
    payloads = [b"", b"\x00\x01\xff", bytes(range(256)) * 40]
    for found in crew.run(3, gathered, payloads):
        assert found == payloads


def test_arrays_that_are_all_empty(crew: Crew) -> None:
    assert crew.run(2, gathered, [b"", b""]) == [[b"", b""]] * 2


def test_collectives(crew: Crew) -> None:
    assert crew.run(3, collected) == [(7.0, [1.0, 2.0, 4.0], 2.0, True)] * 3


def test_transfers_of_different_lanes_never_meet(crew: Crew) -> None:
    assert crew.run(2, apart) == [(1.0, 2.0)] * 2


@pytest.mark.parametrize("kind", ["rows", "sum"])
def test_a_silent_peer_is_found_by_the_timeout(crew: Crew, kind: str) -> None:
    content = crew.run(3, left_alone, 1, 2.0, kind)
    for rank in (0, 2):
        text, seconds = content[rank]
        # Of a sum nobody can say who is missing; the first to give up also closes the connection of the other.
        assert text.startswith("worker 1: " if kind == "rows" else "a worker: "), text
        assert "\n" not in text
        assert text.endswith("(channel rows)")
        assert seconds < 30.0
    assert any("timed out: no answer within 2 s" in content[rank][0] for rank in (0, 2))
    if kind == "rows":
        assert all("timed out: no answer within 2 s" in content[rank][0] for rank in (0, 2))


def test_a_peer_that_left_is_named(crew: Crew) -> None:
    content = crew.run(3, deserted, 2)
    for rank in (0, 1):
        assert content[rank].startswith("worker 2: the connection failed: "), content[rank]
        assert "\n" not in content[rank]


CPU = torch.device("cpu")


def test_a_buffer_grows_when_it_must_and_only_then() -> None:
    buffer = Buffer(3, torch.float64, CPU)
    assert buffer.first(0).shape == (0, 3)
    rows = buffer.first(16)
    assert (rows.shape, rows.dtype, rows.is_contiguous()) == ((16, 3), torch.float64, True)
    rows.fill_(5.0)
    place = rows.data_ptr()
    for count in (4, 16, 18, 1):
        again = buffer.first(count)
        assert again.shape == (count, 3)
        assert again.data_ptr() == place, "an eighth of reserve"
    assert bool((buffer.first(16) == 5.0).all())
    assert buffer.first(40).shape == (40, 3)
    assert buffer.first(45).data_ptr() == buffer.first(40).data_ptr()


def test_on_a_cpu_the_wire_reads_and_writes_the_rows_themselves() -> None:
    for backend in ("gloo", "nccl"):
        staging = Staging(2, torch.float32, CPU, backend)
        assert not staging.staged
        staging.rows(5).copy_(torch.arange(10.0).view(5, 2))
        staging.to_wire(5)
        assert staging.wire(5).data_ptr() == staging.rows(5).data_ptr()
        staging.from_wire(5)
        staging.await_ready()
        staging.await_wire()
        assert staging.ready is None
        assert staging.rows(5)[4].tolist() == [8.0, 9.0]


def test_without_cuda_there_is_no_copy_stream() -> None:
    copies = CopyStream(CPU)
    mark = copies.mark()
    assert mark is None
    for block in (copies.after(mark), copies.aside(mark)):
        with block:
            assert torch.zeros(1).item() == 0.0


@pytest.fixture(scope="module")
def crew_requests(crew: Crew, options: MakeOptions) -> list[RankRequests]:
    """What three ranks asked and heard."""
    askeds: list[RankRequests] = crew.run(3, asking, options(workers=3))
    return askeds


def test_every_owner_hears_what_is_wanted_of_it_in_order(crew_requests: list[RankRequests]) -> None:
    for asker in crew_requests:
        assert sum(nodes.size for nodes in asker.wanted) > 0 or asker.rank == 1
        for owner in crew_requests:
            assert np.array_equal(owner.requested[asker.rank], asker.wanted[owner.rank])
            assert owner.misses[asker.rank] == asker.lacking[owner.rank]
        assert asker.requested[asker.rank].size == 0
    assert crew_requests[0].misses == [0, 0, 0], "what is held is not missed"
    assert any(0 < crew_requests[2].misses[m] < crew_requests[2].requested[m].size for m in range(3))


def test_ids_on_the_wire_are_four_bytes_and_a_head_of_eight_per_peer(crew_requests: list[RankRequests]) -> None:
    for asker in crew_requests:
        assert asker.bytes_out == 2 * 8 + 4 * sum(nodes.size for nodes in asker.wanted)


def test_fetched_rows_are_their_owners(crew_requests: list[RankRequests]) -> None:
    for asker in crew_requests:
        assert asker.features.shape == (asker.fetched.size, WIDTH)
        assert np.array_equal(asker.features, asker.fetched[:, None] * 10.0 + np.arange(WIDTH))


def test_swapped_norms_cover_all_local_ids(crew_requests: list[RankRequests], case: Case) -> None:
    for rank in crew_requests:
        nodes: AnyArray = np.concatenate([rank.inner, rank.boundary])
        assert rank.norms.dtype == np.float32
        assert np.array_equal(rank.norms, (nodes * 0.5).astype(np.float32))
    assert sum(rank.inner.size for rank in crew_requests) == case.graph.nodes


ROWS, RING_WIDTH = [5, 1, 12, 7], 3


ONE, TWO, WHOLE = 1, 24, 1 << 20
"""Bytes of a piece: a row, two rows, a block."""


@pytest.mark.parametrize(
    ("size", "piece"), mostly([(1, WHOLE), (2, ONE), (3, TWO), (3, WHOLE), (4, ONE)], (1, 2, 3, 4), (ONE, TWO, WHOLE))
)
def test_every_member_has_every_block(crew: Crew, size: int, piece: int) -> None:
    members = [2, 0, 3, 1][:size] if size == 4 else list(range(size))
    content = crew.run(size, passed_around, members, ROWS[:size], RING_WIDTH, piece)
    for rank, passed in enumerate(content):
        for root, count in enumerate(ROWS[:size]):
            assert np.array_equal(passed.blocks[root], values(root, count, RING_WIDTH).numpy())
        after = members[(members.index(rank) + 1) % size]
        # All blocks but that of the next member, which has it.
        nbytes = 4 * RING_WIDTH * (sum(ROWS[:size]) - ROWS[members.index(after)])
        assert passed.sent == ({(after, "rows"): nbytes} if size > 1 else {})
        spans = list(passed.timeline)
        sent = [span for span in spans if span.stream == f"f.tx{after}"]
        assert sum(span.nbytes for span in sent) == (nbytes if size > 1 else 0)
        assert len([span for span in spans if span.kind is OpKind.WIRE and ".rx" in span.stream]) == size - 1
        assert len([span for span in spans if span.kind is OpKind.WAIT]) == (size if size > 1 else 0)


@pytest.mark.parametrize("rows", [1, 7], ids=["fewer values than members", "some"])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_all_members_end_with_the_same_sum(crew: Crew, size: int, rows: int) -> None:
    width = 3 if rows > 1 else 1
    members = [2, 0, 3, 1] if size == 4 else list(range(size))
    content = crew.run(size, added_up, members, rows, width)
    wanted = size * values(0, rows, width).numpy() + 0.1 * sum(range(size))
    assert np.allclose(content[0].blocks[0], wanted, rtol=1e-6)
    assert len({item.blocks[0].tobytes() for item in content}) == 1
    assert sum(sum(item.sent.values()) for item in content) == 2 * (size - 1) * 4 * rows * width
    for rank, item in enumerate(content):
        after = members[(members.index(rank) + 1) % size]
        assert set(item.sent) <= {(after, "gradients")}
        spans = [span for span in item.timeline if span.kind is OpKind.ALLREDUCE]
        assert [(span.stream, span.iteration, span.layer) for span in spans] == [("replicas.ring", 3, 1)] * (size > 1)


class Notes:
    """A recorder whose clock counts its readings, and what it was told."""

    def __init__(self) -> None:
        self.now, self.stop_signal = 0, list[tuple[object, ...]]()

    def mark_compute(self) -> int:
        self.now += 1
        return self.now

    def add(self, kind: OpKind, stream: str, t: int, start: int, end: int, *, layer: int, direction: Direction) -> None:
        assert (stream, t) == ("compute", 7)
        self.stop_signal.append((kind, layer, direction, start < end))


@pytest.mark.parametrize("kind", [OpKind.UPDATE, OpKind.ATTENTION])
def test_maps_are_noted_forward_and_back_and_gradients_pass_unchanged(kind: OpKind) -> None:
    notes = Notes()
    watch = Stopwatch(notes, 7, kind)  # type: ignore[arg-type]
    weight = torch.tensor([2.0, 3.0], requires_grad=True)
    rows = weight
    for layer in range(2):
        watch.summed()
        rows = watch.mapped(layer, rows * weight)
    watch.backward(rows.sum(), notes.mark_compute())
    assert weight.grad is not None
    assert weight.grad.tolist() == pytest.approx([12.0, 27.0])  # of w^3
    there, back = Direction.FORWARD, Direction.BACKWARD
    first = [(kind, 0, there, True), (kind, 1, there, True), (OpKind.LOSS, -1, back, True)]
    assert notes.stop_signal[:3] == first
    assert notes.stop_signal[-1] == (kind, 0, back, True)


def test_what_needs_no_gradient_is_given_back_itself() -> None:
    rows = torch.ones(2)
    assert Stopwatch(Notes(), 7, OpKind.UPDATE).mapped(0, rows) is rows  # type: ignore[arg-type]
