"""The sum over neighbours across workers: local products and transfers in one differentiable step.

Synchronous: the transfer starts first. Inner columns are summed meanwhile (`overlap: central`), boundary columns last.
In the backward pass the boundary's gradients are computed and sent first; inner ones follow meanwhile. With rows of
earlier iterations, those are summed first, which frees their slot for the transfer that then starts. Splitting the
columns overlaps at least as much as splitting central from marginal rows, and needs no reordering.

Sums over neighbours use a method's `Boundary`; a `BoundaryView` is one iteration's view of an exchange.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from gcnsim.core.ids import Iteration, Layer, Rank
from gcnsim.core.streams import stream
from gcnsim.timeline import Direction, OpKind
from runtime.aggregate import Matrix
from runtime.exchange.sampled_graph import SampledGraph
from runtime.exchange.stopwatch import Stopwatch
from runtime.record import Mark, Recorder

if TYPE_CHECKING:
    from runtime.exchange.exchange import Exchange


class Boundary(Protocol):
    """The rows and gradients of other workers, of any age, that sums over neighbours need from a method."""

    @property
    def synchronous(self) -> bool:
        """Whether an iteration reads the rows that the same iteration sent."""
        ...

    def send_rows(self, t: Iteration, layer: Layer, rows: Tensor) -> None:
        """Start to send this worker's rows H^(t,layer), [I, d], to the workers that requested them."""
        ...

    def rows(self, t: Iteration, layer: Layer) -> Tensor:
        """The boundary rows that iteration t reads, [U, d]; waits for them."""
        ...

    def gradient_buffer(self, t: Iteration, layer: Layer) -> Tensor:
        """The buffer for the gradients of iteration t's boundary rows, [U, d]."""
        ...

    def send_gradients(self, t: Iteration, layer: Layer) -> None:
        """Start to send the contents of `gradient_buffer`."""
        ...

    def await_gradients(self, t: Iteration, layer: Layer) -> None:
        """Wait for the gradients that `add_gradients` will add."""
        ...

    def add_gradients(self, t: Iteration, layer: Layer, grad: Tensor) -> None:
        """Add the other workers' gradients to those of the inner rows, [I, d]; waits for them."""
        ...


@dataclass(frozen=True)
class BoundaryView:
    """One iteration's view of an exchange: `drawn` is trained now, `upcoming` in tau iterations."""

    exchange: Exchange
    drawn: SampledGraph
    upcoming: Future[SampledGraph]

    @property
    def synchronous(self) -> bool:
        """See `Boundary`."""
        return self.exchange.synchronous

    def send_rows(self, t: Iteration, layer: Layer, rows: Tensor) -> None:
        """See `Boundary`."""
        self.exchange.send_rows(t, layer, rows, self.upcoming)

    def rows(self, t: Iteration, layer: Layer) -> Tensor:
        """See `Boundary`."""
        return self.exchange.rows(t, layer, self.drawn)

    def gradient_buffer(self, t: Iteration, layer: Layer) -> Tensor:
        """See `Boundary`."""
        return self.exchange.gradient_buffer(t, layer, self.drawn)

    def send_gradients(self, t: Iteration, layer: Layer) -> None:
        """See `Boundary`."""
        self.exchange.send_gradients(t, layer, self.drawn)

    def await_gradients(self, t: Iteration, layer: Layer) -> None:
        """See `Boundary`."""
        self.exchange.await_gradients(t, layer)

    def add_gradients(self, t: Iteration, layer: Layer, grad: Tensor) -> None:
        """See `Boundary`."""
        self.exchange.add_gradients(t, layer, grad)


@dataclass(frozen=True)
class DropoutConfig:
    """Dropout with masks from named random streams. first: the owner applies it before it sends rows."""

    rate: float
    first: bool
    seed: int
    rank: Rank

    def mask(self, like: Tensor, *names: str | int) -> Tensor:
        """A mask of 0 and 1/(1 - rate) of the shape of `like`."""
        draws, scale = stream(self.seed, "dropout", self.rank, *names), 1.0 / (1.0 - self.rate)
        if like.device.type == "cpu":
            # This takes a fifth of the time of torch's generator on one thread.
            values = torch.from_numpy(draws.random(tuple(like.shape), np.float32))
            return values.ge_(self.rate).to(like.dtype).mul_(scale)
        generator = torch.Generator(like.device)
        generator.manual_seed(int(draws.integers(2**63 - 1)))
        return torch.empty_like(like).bernoulli_(1.0 - self.rate, generator=generator).mul_(scale)


@dataclass(frozen=True)
class IterationContext:
    """The inputs of one iteration: its graph, the source of boundary rows, and dropout (None: none)."""

    t: Iteration
    drawn: SampledGraph
    boundary: Boundary | None
    recorder: Recorder
    watch: Stopwatch
    dropping: DropoutConfig | None = None
    overlap: bool = True

    def multiply(self, layer: Layer, direction: Direction, matrix: Matrix, x: Tensor, out: Tensor, add: bool) -> None:
        """One product and its span; transposed in the backward direction."""
        start = self.recorder.mark_compute()
        if direction is Direction.FORWARD:
            matrix.multiply(x, out, add=add)
        else:
            matrix.multiply_transposed(x, out, add=add)
        end = self.recorder.mark_compute()
        self.recorder.add(OpKind.AGGREGATE, "compute", self.t, start, end, layer=layer, direction=direction)

    def boundary_rows(self, layer: Layer) -> tuple[Tensor, Tensor | None]:
        """Boundary rows as the layer reads them, and their dropout mask."""
        assert self.boundary is not None
        rows = self.boundary.rows(self.t, layer)
        if self.dropping is None or self.dropping.first:
            return rows, None
        start = self.recorder.mark_compute()
        mask = self.dropping.mask(rows, self.t, layer, "boundary")
        masked = rows * mask
        self.dropped_since(start, layer, Direction.FORWARD)
        return masked, mask

    def dropped(self, layer: Layer, h: Tensor, name: str = "inner") -> Tensor:
        """`h` after dropout with the mask called `name`."""
        if self.dropping is None:
            return h
        dropped: Tensor = _Dropped.apply(h, self, layer, name)  # type: ignore[no-untyped-call]
        return dropped

    def dropped_since(self, start: Mark, layer: Layer, direction: Direction) -> None:
        """The span of a dropout. It belongs to the layer's linear part, which the sum over neighbours interrupts."""
        end = self.recorder.mark_compute()
        self.recorder.add(OpKind.UPDATE, "compute", self.t, start, end, layer=layer, direction=direction)


@dataclass(frozen=True)
class StepBoundaries:
    """The neighbours of each layer in one step. fixed: layer 0's sum if it was computed once for all iterations."""

    step: IterationContext
    fixed: Tensor | None = None

    def of(self, layer: Layer) -> LayerNeighbours:
        """The neighbours of `layer`."""
        return LayerNeighbours(self.step, layer, self.fixed if layer == 0 else None)


@dataclass(frozen=True)
class LayerNeighbours:
    """See `runtime.model.Neighbours`."""

    step: IterationContext
    layer: Layer
    fixed: Tensor | None

    def mapped_sum(self, h: Tensor, linear: nn.Linear) -> tuple[Tensor, Tensor]:
        """z W^T + b of the weighted sum z, and h'."""
        z, own = self.weighted_sum(h)
        return linear(z), own

    def weighted_sum(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """z = P [h'; boundary rows] and h', the inner rows after dropout."""
        step = self.step
        own = step.dropped(self.layer, h)
        if self.fixed is not None:
            fixed = step.dropped(self.layer, self.fixed, "sum")
            step.watch.summed()
            return fixed, own
        raw = own if step.dropping is not None and step.dropping.first else h
        z: Tensor = _NeighbourSum.apply(raw, own, step, self.layer)  # type: ignore[no-untyped-call]
        step.watch.summed()
        return z, own

    def gathered(self, h: Tensor) -> tuple[Tensor, Matrix]:
        """[h; boundary rows] after dropout, and the pattern of the kept entries."""
        step = self.step
        first = step.dropping is not None and step.dropping.first
        raw = step.dropped(self.layer, h) if first else h
        rows: Tensor = _Gathered.apply(raw, step, self.layer)  # type: ignore[no-untyped-call]
        masked = rows if first else step.dropped(self.layer, rows)
        step.watch.summed()
        return masked, step.drawn.pattern


class _Dropped(torch.autograd.Function):
    """Rows after dropout, and the gradients of the kept values: a timed product with a mask."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, step: IterationContext, layer: Layer, name: str) -> Tensor:
        assert step.dropping is not None
        start = step.recorder.mark_compute()
        mask = step.dropping.mask(h, step.t, layer, name)
        masked = h * mask
        step.dropped_since(start, layer, Direction.FORWARD)
        ctx.step, ctx.layer = step, layer
        ctx.save_for_backward(mask)
        return masked

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None, None]:
        if not ctx.needs_input_grad[0]:
            return None, None, None, None
        start = ctx.step.recorder.mark_compute()
        (mask,) = ctx.saved_tensors
        back = grads[0] * mask
        ctx.step.dropped_since(start, ctx.layer, Direction.BACKWARD)
        return back, None, None, None


class _NeighbourSum(torch.autograd.Function):
    """z = P_inner own + P_boundary rows; `raw` are the inner rows as they are sent."""

    @staticmethod
    def forward(ctx: Any, raw: Tensor, own: Tensor, step: IterationContext, layer: Layer) -> Tensor:
        graph, ahead = step.drawn, step.boundary
        ctx.step, ctx.layer, ctx.same, ctx.mask = step, layer, raw is own, None
        z = own.new_empty(own.shape)
        if ahead is None:
            step.multiply(layer, Direction.FORWARD, graph.inner, own, z, False)
            return z
        if ahead.synchronous:
            ahead.send_rows(step.t, layer, raw)
            if not step.overlap:
                ahead.rows(step.t, layer)
            step.multiply(layer, Direction.FORWARD, graph.inner, own, z, False)
        rows, ctx.mask = step.boundary_rows(layer)
        if graph.boundary is not None:
            step.multiply(layer, Direction.FORWARD, graph.boundary, rows, z, ahead.synchronous)
        if not ahead.synchronous:
            ahead.send_rows(step.t, layer, raw)
            step.multiply(layer, Direction.FORWARD, graph.inner, own, z, graph.boundary is not None)
        return z

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        step: IterationContext = ctx.step
        step.watch.undone()
        layer, graph, ahead = ctx.layer, step.drawn, step.boundary
        g = grads[0].contiguous()
        if ahead is not None:
            out = ahead.gradient_buffer(step.t, layer)
            if graph.boundary is not None:
                step.multiply(layer, Direction.BACKWARD, graph.boundary, g, out, False)
                if ctx.mask is not None:
                    start = step.recorder.mark_compute()
                    out *= ctx.mask
                    step.dropped_since(start, layer, Direction.BACKWARD)
            if ahead.synchronous:
                ahead.send_gradients(step.t, layer)
                if not step.overlap:
                    ahead.await_gradients(step.t, layer)
        inner = torch.empty_like(g)
        step.multiply(layer, Direction.BACKWARD, graph.inner, g, inner, False)
        if ahead is None:
            return (None, inner, None, None) if not ctx.same else (inner, None, None, None)
        arrived = inner if ctx.same else torch.zeros_like(inner)
        ahead.add_gradients(step.t, layer, arrived)
        if not ahead.synchronous:
            ahead.send_gradients(step.t, layer)
        return (arrived, None, None, None) if ctx.same else (arrived, inner, None, None)


class _Gathered(torch.autograd.Function):
    """[own rows; boundary rows], for models that need every row separately."""

    @staticmethod
    def forward(ctx: Any, raw: Tensor, step: IterationContext, layer: Layer) -> Tensor:
        ctx.step, ctx.layer = step, layer
        ahead = step.boundary
        if ahead is None:
            return raw.clone()
        if ahead.synchronous:
            ahead.send_rows(step.t, layer, raw)
        count = raw.shape[0]
        result = raw.new_empty(count + step.drawn.rows, raw.shape[1])
        result[:count] = raw
        result[count:] = ahead.rows(step.t, layer)
        if not ahead.synchronous:
            ahead.send_rows(step.t, layer, raw)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        step: IterationContext = ctx.step
        step.watch.undone()
        ahead, g = step.boundary, grads[0]
        count = g.shape[0] - step.drawn.rows
        inner = g[:count].clone()
        if ahead is None:
            return inner, None, None
        ahead.gradient_buffer(step.t, ctx.layer).copy_(g[count:])
        if ahead.synchronous:
            ahead.send_gradients(step.t, ctx.layer)
        ahead.add_gradients(step.t, ctx.layer, inner)
        if not ahead.synchronous:
            ahead.send_gradients(step.t, ctx.layer)
        return inner, None, None
