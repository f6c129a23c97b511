"""One iteration of a worker on a device, as waits: the order of kernels and transfers on its compute stream.

It is the order of the published algorithms as `gcnsim.methods.families.gpu_workers` reads them: received rows are taken
in, neighbours summed, rows updated, layer by layer and back again; then gradients are summed over all workers.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from gcnsim.ids import FloatArray, Iteration, Layer
from gcnsim.timeline import Direction, OpKind
from runtime.accelerator.clock import Lane, ScaledRecorder, now
from runtime.accelerator.exchange import WaitingExchange
from runtime.accelerator.lengths import Lengths
from runtime.accelerator.machine import WaitMachine
from runtime.accelerator.sampling import Sampler
from runtime.emulation.spec import AHEAD

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


@dataclass
class DeviceIteration:
    """The compute stream of one worker. exchange: None of a single worker. central: inner columns are summed beneath
    transfers of the same iteration. nbytes: of all gradients."""

    machine: WaitMachine
    recorder: ScaledRecorder
    lengths: Lengths
    exchange: WaitingExchange | None
    sampler: Sampler
    graphs: int
    central: bool
    nbytes: int

    def __post_init__(self) -> None:
        self._compute = Lane()
        self._compute.free = now()
        self.tau = 0 if self.exchange is None else self.exchange.tau

    def run(self, t: Iteration, reduce: Callable[[], None]) -> int:
        """Iteration t; how long it took, in ns of what the waits stand for. reduce: sums all workers' gradients."""
        begun = self._compute.free
        if self.exchange is not None and not self.tau and self.machine.accelerator.receives == AHEAD:
            self.exchange.expect(t, len(self.lengths.layers))
        told = self.sampler.begin(t, begun)
        self._await_graph(t)
        for layer in range(len(self.lengths.layers)):
            self._forward(t, layer, told if layer == 0 else None)
        self._kernel(OpKind.LOSS, t, self.lengths.loss)
        for layer in reversed(range(len(self.lengths.layers))):
            self._backward(t, layer)
        if self.exchange is not None:
            self._reduce(t, reduce)
        self._kernel(OpKind.STEP, t, self.lengths.step)
        return self.recorder.at(self._compute.free) - self.recorder.at(begun)

    def _await_graph(self, t: Iteration) -> None:
        for kind, until in self.sampler.wait(t):
            self._blocked(kind, t, until)
        if self.sampler.picks:
            self._kernel(OpKind.INDEX, t, self._of(self.lengths.pick(), t))

    def _forward(self, t: Iteration, layer: Layer, told: Future[int] | None) -> None:
        own, exchange = self.lengths.layers[layer], self.exchange
        beneath = self.central and not self.tau and exchange is not None
        if exchange is not None and not self.tau:
            exchange.send(t, layer, FORWARD, self._compute.free, told)
        if beneath:
            self._kernel(OpKind.AGGREGATE, t, self._of(own.inner_sum, t), layer, FORWARD)
        if exchange is not None:
            self._take_in(exchange, t, layer, FORWARD, self._of(own.unpack, t))
            if self.tau:
                exchange.send(t, layer, FORWARD, self._compute.free, told)
        if layer == 0:
            self._kernel(OpKind.LOOKUP, t, self._of(self.lengths.lookup, t), layer, FORWARD)
        summed = own.cross_sum if beneath else own.cost.aggregate
        self._kernel(OpKind.AGGREGATE, t, self._of(summed, t), layer, FORWARD)
        self._kernel(OpKind.UPDATE, t, self._of(own.cost.update, t), layer, FORWARD)

    def _backward(self, t: Iteration, layer: Layer) -> None:
        own, exchange = self.lengths.layers[layer], self.exchange
        self._kernel(OpKind.UPDATE, t, self._of(own.cost.update_backward, t), layer, BACKWARD)
        if layer == 0:
            return
        beneath = self.central and not self.tau and exchange is not None
        summed = own.cross_sum_back if beneath else own.cost.aggregate_backward
        self._kernel(OpKind.AGGREGATE, t, self._of(summed, t), layer, BACKWARD)
        if exchange is None:
            return
        if not self.tau:
            exchange.send(t, layer, BACKWARD, self._compute.free)
        if beneath:
            self._kernel(OpKind.AGGREGATE, t, self._of(own.inner_sum, t), layer, BACKWARD)
        self._take_in(exchange, t, layer, BACKWARD, self._of(own.unpack_back, t - self.tau))
        if self.tau:
            exchange.send(t, layer, BACKWARD, self._compute.free)

    def _take_in(
        self, exchange: WaitingExchange, t: Iteration, layer: Layer, direction: Direction, seconds: float
    ) -> None:
        """Wait for received rows, and for the kernel that puts them where they belong."""
        self._blocked(OpKind.WAIT, t, exchange.receive(t, layer, direction), layer, direction)
        if t >= self.tau:
            self._kernel(OpKind.SCATTER, t, seconds, layer, direction)

    def _reduce(self, t: Iteration, reduce: Callable[[], None]) -> None:
        """Gradients to the host, once around all workers, and back."""
        machine, start = self.machine, self._compute.free
        machine.copy(machine.to_host, machine.reducing, start, self.nbytes)
        reduce()
        _, end = machine.copy(machine.to_device, machine.reducing, now(), self.nbytes)
        at = self.recorder.at
        self.recorder.add(OpKind.ALLREDUCE, "reduce", t, at(start), at(end))
        self._blocked(OpKind.WAIT, t, end)

    def _blocked(
        self, kind: OpKind, t: Iteration, until: int, layer: Layer = -1, direction: Direction = Direction.NONE
    ) -> None:
        """The compute stream has stood still until the instant `until`, for work of this kind."""
        start = self._compute.free
        if until <= start:
            return
        at = self.recorder.at
        self.recorder.add(kind, "compute", t, at(start), at(until), layer=layer, direction=direction)
        self._compute.free = until

    def _kernel(
        self, kind: OpKind, t: Iteration, seconds: float, layer: Layer = -1, direction: Direction = Direction.NONE
    ) -> None:
        length = self.machine.ns(seconds)
        if length:
            start, end = self._compute.work(0, length)
            at = self.recorder.at
            self.recorder.add(kind, "compute", t, at(start), at(end), layer=layer, direction=direction)

    def _of(self, seconds: FloatArray, number: int) -> float:
        """Of the graph that iteration `number` trains."""
        return float(seconds[number % self.graphs]) if seconds.ndim else float(seconds)
