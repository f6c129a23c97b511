"""Where rows wait: buffers that grow, and no copy at all on a CPU."""

from __future__ import annotations

import torch

from runtime.exchange.staging import Buffer, CopyStream, Staging

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
