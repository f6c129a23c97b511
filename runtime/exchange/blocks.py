"""Sums over neighbours by whole blocks of rows, and the linear layer that follows, as one differentiable step.

A worker stores the rows of its part of P. Forward, z_i = sum over j of P_ij H_j at the layer's input width, where H_j
is broadcast by j, or is the stored copy of an earlier broadcast; then z_i W^T + b. Backward, with M the gradient of
that result, S_i = sum over j of (P_ji)^T M_j at the output width, with M_j broadcast likewise. Then dW = sum over i of
S_i^T H_i and dH_i = S_i W (CAGNET, equations of the 1D algorithm; SANCUS, Algorithm 1). Without stale blocks these are
the gradients of the chain rule; with stale blocks they are SANCUS's update direction, in which H_i is fresh.

P is A between two diagonals, so (P_ji)^T = diag(1/t_i) P_ij diag(t_j) with one number t for each row. Each M_j is
multiplied by t_j before it is sent, and one matrix for each block serves both directions. Nothing overlaps: blocks that
are not sent are multiplied first, then block after block is received and multiplied.

Blocks travel around a ring of workers, pipelined: received data is forwarded piece by piece. Every member sends each
block at most once, independent of its root, so the load of all links is equal. All members take part in the same
broadcasts in the same order; a worker finishes one before its next begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import torch
from torch import Tensor, nn

from gcnsim.core.ids import Iteration, Layer, Rank
from gcnsim.timeline import Direction, OpKind
from runtime.aggregate import Matrix
from runtime.exchange.channels import Channel, Message
from runtime.exchange.exchange import TAG
from runtime.exchange.neighbours import IterationContext
from runtime.exchange.staging import Staging
from runtime.record import Mark, Recorder

PIECE: Final = 1 << 20
"""Bytes that a member receives before it forwards them, as in the simulator's broadcasts."""


class BlockRing:
    """The ring of the workers `members`, including this one. A ring of one sends nothing."""

    def __init__(self, channel: Channel, recorder: Recorder, members: Sequence[Rank]) -> None:
        """channel: for blocks."""
        self._channel, self._recorder = channel, recorder
        self._members, self._place = tuple(members), members.index(channel.rank)
        self.size = len(self._members)
        self.bytes_sent: dict[tuple[int, str], int] = {}
        """Bytes sent so far per peer and kind (rows, gradients)."""

    def broadcast(self, t: Iteration, layer: Layer, direction: Direction, root: int, block: Tensor) -> None:
        """Broadcast the `block` of the member at index `root`, [rows, d]: contiguous, filled on the other members.

        Returns when this worker has received and forwarded it.
        """
        size = self.size
        if size == 1:
            return
        hops, begun = (self._place - root) % size, self._begin(block)
        source, target = self._members[self._place - 1], self._members[(self._place + 1) % size]
        row = block.shape[1] * block.element_size()
        pieces = torch.split(block, max(1, PIECE // row) if size > 2 else block.shape[0])
        start = self._recorder.mark()
        coming = [self._channel.post([Message(source, piece, False)]) for piece in pieces] if hops else []
        leaving = []
        for number, piece in enumerate(pieces):
            if hops:
                self._channel.await_all(coming[number])
            if hops < size - 1:
                leaving.append(self._channel.post([Message(target, piece, True)]))
        if hops:
            self._span(OpKind.WIRE, f"{TAG[direction]}.rx{source}", t, layer, direction, start, source)
        for posted in leaving:
            self._channel.await_all(posted)
        if leaving:
            nbytes = block.shape[0] * row
            self._count(target, direction, nbytes)
            self._span(OpKind.WIRE, f"{TAG[direction]}.tx{target}", t, layer, direction, start, target, nbytes)
        self._span(OpKind.WAIT, "compute", t, layer, direction, begun)

    def add_up(self, t: Iteration, layer: Layer, direction: Direction, rows: Tensor) -> None:
        """Add the `rows` of all members, contiguous and of equal shape, into each member's: around the ring and back.

        Every value is summed once and sent to all, so all members have identical results.
        """
        size, place = self.size, self._place
        if size == 1:
            return
        begun = self._begin(rows)
        source, target = self._members[place - 1], self._members[(place + 1) % size]
        pieces = torch.tensor_split(rows.view(-1), size)
        start, nbytes = self._recorder.mark(), 0
        for step in range(2 * (size - 1)):
            leaving, coming = pieces[(place - step) % size], pieces[(place - step - 1) % size]
            got = torch.empty_like(coming) if step < size - 1 else coming
            self._channel.exchange([Message(source, got, False), Message(target, leaving, True)])
            nbytes += leaving.numel() * leaving.element_size()
            if got is not coming:
                coming += got
        self._count(target, direction, nbytes)
        self._span(OpKind.ALLREDUCE, "replicas.ring", t, layer, direction, start, target, nbytes)
        self._span(OpKind.WAIT, "compute", t, layer, direction, begun)

    def _begin(self, rows: Tensor) -> Mark:
        """The beginning of a wait, once rows that the network reads from a GPU are there."""
        mark = self._recorder.mark_compute()
        if rows.is_cuda:
            torch.cuda.current_stream().synchronize()
        return mark

    def _count(self, peer: Rank, direction: Direction, nbytes: int) -> None:
        key = peer, "rows" if direction is Direction.FORWARD else "gradients"
        self.bytes_sent[key] = self.bytes_sent.get(key, 0) + nbytes

    def _span(
        self,
        kind: OpKind,
        stream: str,
        t: Iteration,
        layer: Layer,
        direction: Direction,
        start: Mark,
        peer: int = -1,
        nbytes: float = 0.0,
    ) -> None:
        end = self._recorder.mark_compute() if kind is OpKind.WAIT else self._recorder.mark()
        self._recorder.add(kind, stream, t, start, end, layer=layer, direction=direction, peer=peer, nbytes=nbytes)


FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD

Key = TypeVar("Key")


class Policy(Protocol):
    """The rule for sending blocks, the same on every worker."""

    def keeps(self, direction: Direction) -> bool:
        """Whether some blocks are skipped in this direction, so that copies of all others are stored."""
        ...

    def test(self, t: Iteration, layer: Layer, rows: Tensor) -> None:
        """Decide for iteration t which input blocks of `layer` are sent. rows: of this worker, before dropout."""
        ...

    def sent(self, layer: Layer, direction: Direction) -> Sequence[bool]:
        """For each block, whether it is sent; `test` has decided."""
        ...


@dataclass(frozen=True)
class SendAll:
    """Sends all of `blocks` blocks in every iteration."""

    blocks: int

    def keeps(self, direction: Direction) -> bool:
        """See `Policy`."""
        return False

    def test(self, t: Iteration, layer: Layer, rows: Tensor) -> None:
        """Nothing to decide."""

    def sent(self, layer: Layer, direction: Direction) -> Sequence[bool]:
        """See `Policy`."""
        return (True,) * self.blocks


@dataclass(frozen=True)
class BlockPlace:
    """This worker's place among the blocks. own: the block whose rows it stores. sizes: rows of every block.

    matrices: P_ij for every block j that it multiplies, [rows of i, rows of j]; a subset if other workers store the
    same rows and multiply the rest. scale: t of this worker's rows, [I, 1]; None if all are equal. clip: the largest
    norm of this worker's gradient M; 0: none.
    """

    own: int
    sizes: tuple[int, ...]
    matrices: Mapping[int, Matrix]
    scale: Tensor | None
    device: torch.device
    clip: float = 0.0


class BlockSums:
    """One worker's sums of blocks, with the received blocks."""

    def __init__(
        self, grid: BlockPlace, ring: BlockRing, holders: BlockRing, policy: Policy, recorder: Recorder, backend: str
    ) -> None:
        """ring: of the workers that multiply the same blocks. holders: of the workers that store the same rows.
        backend: of both.
        """
        self._grid, self._ring, self._holders, self.policy = grid, ring, holders, policy
        self._recorder, self._backend = recorder, backend
        self._received: dict[tuple[Direction, Layer, int], Staging] = {}
        self._shared: dict[int, Staging] = {}
        self._outgoing: dict[int, Staging] = {}

    def summed(self, t: Iteration, layer: Layer, direction: Direction, own: Tensor) -> Tensor:
        """sum over j of P_ij (block j), [I, d]; own: this worker's block, [I, d]."""
        sent, grid = self.policy.sent(layer, direction), self._grid
        out = torch.empty_like(own) if grid.matrices else torch.zeros_like(own)
        done = False
        for wanted in (False, True):
            for block in grid.matrices:
                if sent[block] is wanted:
                    rows = self.block(t, layer, direction, block, own, fetch=wanted)
                    self._multiply(t, layer, direction, grid.matrices[block], rows, out, done)
                    done = True
        self._add_up(t, layer, direction, out)
        return out

    def block(
        self, t: Iteration, layer: Layer, direction: Direction, block: int, own: Tensor, *, fetch: bool
    ) -> Tensor:
        """The rows of `block` as this worker multiplies them, [rows, d]. fetch: whether it is broadcast now."""
        if block == self._grid.own:
            if fetch and self._ring.size > 1:
                self._ring.broadcast(t, layer, direction, block, self._leaving(t, layer, direction, own))
            return own
        place = self._place(layer, direction, block, own)
        count = self._grid.sizes[block]
        if fetch:
            place.await_wire()
            self._ring.broadcast(t, layer, direction, block, place.wire(count))
            start = self._recorder.mark_compute()
            place.from_wire(count)
            self._copied(OpKind.H2D, t, layer, direction, place, start)
        place.await_ready()
        return place.rows(count)

    def clipped(self, gradient: Tensor) -> Tensor:
        """M, with a norm of at most `clip`."""
        clip = self._grid.clip
        return gradient * (clip / gradient.norm().clamp_min(clip)) if clip else gradient

    def scaled(self, gradient: Tensor) -> Tensor:
        """M as it is sent: its rows times t."""
        scale = self._grid.scale
        return (gradient if scale is None else gradient * scale).contiguous()

    def unscaled(self, summed: Tensor) -> Tensor:
        """S from the result of `summed` on scaled gradients."""
        return summed if self._grid.scale is None else summed.div_(self._grid.scale)

    def bytes_sent(self) -> dict[tuple[int, str], int]:
        """Bytes sent so far per peer and kind; no worker is a peer in both rings."""
        return self._ring.bytes_sent | self._holders.bytes_sent

    def kept(self) -> dict[str, Tensor]:
        """Stored copies of other workers' blocks, by name."""
        found = {}
        for (direction, layer, block), place in self._received.items():
            place.await_ready()
            rows = place.rows(self._grid.sizes[block])
            found[f"block.{direction.name.lower()}.{layer}.{block}"] = rows.detach().cpu().clone()
        return found

    def put_back(self, state: dict[str, Tensor]) -> None:
        """Restore the result of `kept`."""
        for name, rows in state.items():
            what, *rest = name.split(".")
            if what == "block":
                layer, block = int(rest[1]), int(rest[2])
                on_device = rows.to(self._grid.device)
                place = self._place(layer, Direction[rest[0].upper()], block, on_device)
                place.rows(rows.shape[0]).copy_(rows)

    def _leaving(self, t: Iteration, layer: Layer, direction: Direction, own: Tensor) -> Tensor:
        """This worker's block in the buffer that the network reads."""
        place, count = self._staging(self._outgoing, own.shape[1], own), own.shape[0]
        if not place.staged:
            return own
        start = self._recorder.mark_compute()
        place.rows(count).copy_(own)
        place.to_wire(count)
        self._copied(OpKind.D2H, t, layer, direction, place, start)
        return place.wire(count)

    def _add_up(self, t: Iteration, layer: Layer, direction: Direction, out: Tensor) -> None:
        """Add to `out` the sums of the other workers that store the same rows."""
        if self._holders.size == 1:
            return
        summed = self._leaving(t, layer, direction, out)
        self._holders.add_up(t, layer, direction, summed)
        if summed is not out:
            out.copy_(summed)

    def _copied(
        self, kind: OpKind, t: Iteration, layer: Layer, direction: Direction, place: Staging, start: Mark
    ) -> None:
        """The span of a copy between device and host, if there was one."""
        if place.staged:
            end = self._recorder.mark_compute()
            self._recorder.add(kind, "compute", t, start, end, layer=layer, direction=direction)

    def _place(self, layer: Layer, direction: Direction, block: int, like: Tensor) -> Staging:
        """The receive buffer of another worker's block; stored blocks have a permanent one."""
        if not self.policy.keeps(direction):
            return self._staging(self._shared, like.shape[1], like)
        return self._staging(self._received, (direction, layer, block), like)

    def _staging(self, among: dict[Key, Staging], key: Key, like: Tensor) -> Staging:
        if key not in among:
            among[key] = Staging(like.shape[1], like.dtype, like.device, self._backend)
        return among[key]

    def _multiply(
        self, t: Iteration, layer: Layer, direction: Direction, matrix: Matrix, rows: Tensor, out: Tensor, add: bool
    ) -> None:
        start = self._recorder.mark_compute()
        matrix.multiply(rows, out, add=add)
        end = self._recorder.mark_compute()
        self._recorder.add(OpKind.AGGREGATE, "compute", t, start, end, layer=layer, direction=direction)


@dataclass(frozen=True)
class BlockNeighbours:
    """The neighbours of each layer in one step. fixed: layer 0's sum if it was computed once for all iterations."""

    sums: BlockSums
    step: IterationContext
    fixed: Tensor | None = None

    def of(self, layer: Layer) -> LayerBlocks:
        """The neighbours of `layer`."""
        return LayerBlocks(self.sums, self.step, layer, self.fixed if layer == 0 else None)


@dataclass(frozen=True)
class LayerBlocks:
    """See `runtime.model.Neighbours`; attention has no sum of blocks."""

    sums: BlockSums
    step: IterationContext
    layer: Layer
    fixed: Tensor | None

    def mapped_sum(self, h: Tensor, linear: nn.Linear) -> tuple[Tensor, Tensor]:
        """(P h') W^T + b and h', the inner rows after dropout."""
        step = self.step
        own = step.dropped(self.layer, h)
        if self.fixed is not None:
            fixed = step.dropped(self.layer, self.fixed, "sum")
            step.watch.summed()
            return linear(fixed), own
        self.sums.policy.test(step.t, self.layer, h.detach())
        out: Tensor = _BlockMap.apply(own, linear.weight, linear.bias, self)  # type: ignore[no-untyped-call]
        return out, own

    def gathered(self, h: Tensor) -> tuple[Tensor, Matrix]:
        """Not supported: methods that sum blocks refuse attention."""
        raise AssertionError("attention has no sum of blocks")


class _BlockMap(torch.autograd.Function):
    """The sum of blocks and its linear layer W, b."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, weight: Tensor, bias: Tensor | None, at: LayerBlocks) -> Tensor:
        ctx.at = at
        ctx.save_for_backward(own, weight)
        z = at.sums.summed(at.step.t, at.layer, FORWARD, own.contiguous())
        at.step.watch.summed()
        return torch.nn.functional.linear(z, weight, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None, None]:
        at: LayerBlocks = ctx.at
        own, weight = ctx.saved_tensors
        sums, step = at.sums, at.step
        below, with_bias = ctx.needs_input_grad[0], ctx.needs_input_grad[2]
        m = sums.clipped(grads[0])
        leaving = sums.scaled(m)
        step.watch.undone()
        s = sums.unscaled(sums.summed(step.t, at.layer, BACKWARD, leaving))
        start = step.recorder.mark_compute()
        result = s @ weight if below else None, s.T @ own, m.sum(0) if with_bias else None, None
        step.watch.resumed(start, at.layer)
        return result
