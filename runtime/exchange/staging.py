"""Buffers for rows in transit: unchanged on a CPU or with NCCL; through pinned host memory for gloo with CUDA.

With CUDA, copies run on a separate stream, so that they overlap kernels and sockets.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor


class Buffer:
    """Rows of one width, preallocated; grows when a drawn graph needs more than any before."""

    def __init__(self, width: int, dtype: torch.dtype, device: torch.device, *, pinned: bool = False) -> None:
        """An empty buffer."""
        self._width, self._dtype, self._device, self._pinned = width, dtype, device, pinned
        self._rows = self._new(0)

    def first(self, rows: int) -> Tensor:
        """The first `rows` rows, [rows, width]; the old content is lost if the buffer must grow."""
        if rows > self._rows.shape[0]:
            self._rows = self._new(rows + rows // 8)
        return self._rows[:rows]

    def _new(self, rows: int) -> Tensor:
        return torch.empty(rows, self._width, dtype=self._dtype, device=self._device, pin_memory=self._pinned)


class Staging:
    """The buffers of one transfer's rows, on the device and, if the network needs it, on the host."""

    def __init__(self, width: int, dtype: torch.dtype, device: torch.device, backend: str) -> None:
        """Buffers for rows of `width` values."""
        self._cuda = device.type == "cuda"
        self._staged = self._cuda and backend == "gloo"
        host = torch.device("cpu")
        self._device_rows = Buffer(width, dtype, device)
        self._host_rows = Buffer(width, dtype, host, pinned=True) if self._staged else self._device_rows
        self.ready: Any = None
        """CUDA event: the rows are on the device."""

    def rows(self, count: int) -> Tensor:
        """The rows on the device."""
        return self._device_rows.first(count)

    def wire(self, count: int) -> Tensor:
        """The rows in the buffer that the network reads or writes."""
        return self._host_rows.first(count)

    @property
    def staged(self) -> bool:
        """Whether rows are copied between device and host."""
        return self._staged

    def to_wire(self, count: int) -> None:
        """Copy from device to host and wait for the copy; call it on the copy stream."""
        if self._staged:
            self.wire(count).copy_(self.rows(count), non_blocking=True)
        if self._cuda:
            torch.cuda.current_stream().synchronize()

    def from_wire(self, count: int) -> None:
        """Start the copy from host to device; readers wait for `ready`. Call it on the copy stream."""
        if self._staged:
            self.rows(count).copy_(self.wire(count), non_blocking=True)
        if self._cuda:
            self.ready = torch.cuda.current_stream().record_event()

    def await_ready(self) -> None:
        """Make the current stream wait until the rows are on the device."""
        if self.ready is not None:
            torch.cuda.current_stream().wait_event(self.ready)

    def await_wire(self) -> None:
        """Wait until the last copy from the host's buffer is done, so that the network may write to it again."""
        if self.ready is not None:
            self.ready.synchronize()


class CopyStream:
    """The stream for a channel's copies; no stream without CUDA."""

    def __init__(self, device: torch.device) -> None:
        """A new stream on `device`."""
        self._device = device
        self._stream = _new_stream(device) if device.type == "cuda" else None

    def mark(self) -> Any:
        """An event after all work submitted to the compute stream so far; None without CUDA."""
        return None if self._stream is None else torch.cuda.current_stream(self._device).record_event()

    def after(self, event: Any) -> AbstractContextManager[Any]:
        """Run the block's work on this stream, after `event`."""
        if self._stream is None:
            return nullcontext()
        if event is not None:
            self._stream.wait_event(event)
        return torch.cuda.stream(self._stream)

    @contextmanager
    def aside(self, event: Any = None) -> Iterator[None]:
        """As `after`, for a thread beside the main one; returns when the GPU has done the block's work."""
        with self.after(event):
            yield
        if self._stream is not None:
            self._stream.synchronize()


def _new_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream that begins after all work submitted to the compute stream so far, such as the features' copy."""
    stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))
    return stream
