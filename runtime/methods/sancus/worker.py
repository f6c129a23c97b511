"""The worker of SANCUS (Algorithm 1): its stale tests, and the copies of blocks that were sent before.

There is one flag for each layer and worker. All blocks of a layer are sent in the first iteration and during
`warm_iterations`; then those that the test selects. Age is the same on every worker, so each worker knows what all
others send. Only the owner of rows knows how far they have moved since they were last sent: the largest absolute change
of a value, before dropout. Before each layer every worker sends every other one its flag. The features of layer 0 never
move. A worker's own block is always fresh, and a worker that sends nothing still receives. With `skip_backward`, a
block whose rows are not sent does not send its gradient either, and the others reuse the last one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import Iteration, Layer
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload.staleness import BlockRule, is_due
from runtime.exchange.channels import Message, TimedChannel
from runtime.methods.worker import BlockWorker, Context

NEVER = -1
"""The iteration of a block that has not been sent yet."""


class SancusWorker(BlockWorker):
    """The worker of SANCUS; see the module."""

    def __init__(self, context: Context, rule: BlockRule, *, warm: int, clip: float) -> None:
        """A worker that has sent nothing yet. warm, clip: its knobs `warm_iterations` and `clip`."""
        self._blocks = StaleBlocks(context, rule, warm)
        super().__init__(context, self._blocks, clip / math.sqrt(context.world))

    def state(self) -> dict[str, Tensor]:
        """The stored copies of others' blocks, and the data of the tests."""
        return super().state() | self._blocks.state()

    def restore(self, done: Iteration, state: dict[str, Tensor]) -> None:
        """Continue from `state`."""
        super().restore(done, state)
        self._blocks.restore(state)

    def bytes_sent(self) -> dict[tuple[int, str], int]:
        """Bytes sent, including the flags."""
        return super().bytes_sent() | self._blocks.flags_sent


class StaleBlocks:
    """The rule for sending blocks; see `runtime.exchange.blocks.Policy`."""

    def __init__(self, context: Context, rule: BlockRule, warm: int) -> None:
        """Open the channel of the flags, if flags are sent. warm: iterations in which everything is sent."""
        self._context, self._rule, self._warm = context, rule, warm
        layers = len(context.widths) - 1
        self._sent_in = np.full((layers, context.world), NEVER, np.int64)
        self._flags = np.ones((layers, context.world), np.bool_)
        self._copies: dict[Layer, Tensor] = {}
        self._moves = self._rule.test == "gap"
        self._channel = context.channels.open("ids")
        self.flags_sent: dict[tuple[int, str], int] = {}

    def keeps(self, direction: Direction) -> bool:
        """Rows are stored; gradients only if some are skipped."""
        return direction is Direction.FORWARD or self._rule.skips_backward

    def test(self, t: Iteration, layer: Layer, rows: Tensor) -> None:
        """See `Policy`."""
        rank, world = self._context.channels.rank, self._context.world
        flags = self._flags[layer]
        if t < max(self._warm, 1):
            flags[:] = True
        elif self._moves:
            flags[:] = self._all_flags(t, layer, self._due(t, layer, rank, self._moved(t, layer, rows)))
        else:
            flags[:] = [self._due(t, layer, block, 0.0) for block in range(world)]
        self._sent_in[layer][flags] = t
        if self._moves and layer > 0 and flags[rank]:
            self._keep(t, layer, rows)

    def sent(self, layer: Layer, direction: Direction) -> Sequence[bool]:
        """See `Policy`."""
        if direction is Direction.BACKWARD and not self._rule.skips_backward:
            return (True,) * self._context.world
        return [bool(flag) for flag in self._flags[layer]]

    def state(self) -> dict[str, Tensor]:
        """When each block was sent last, and the copies of this worker's rows."""
        copies = {f"copy.{layer}": rows.cpu().clone() for layer, rows in self._copies.items()}
        return {"sent_in": torch.from_numpy(self._sent_in.copy())} | copies

    def restore(self, state: dict[str, Tensor]) -> None:
        """The reverse of `state`."""
        self._sent_in[:] = state["sent_in"].numpy()
        for name, rows in state.items():
            if name.startswith("copy."):
                self._copies[int(name.removeprefix("copy."))] = rows.to(self._context.device)

    def _due(self, t: Iteration, layer: Layer, block: int, moved: float) -> bool:
        return is_due(self._rule, t - int(self._sent_in[layer, block]), moved)

    def _moved(self, t: Iteration, layer: Layer, rows: Tensor) -> float:
        """The largest change of a value since this worker's rows were sent last; features never change."""
        if layer == 0:
            return 0.0
        start = self._context.recorder.mark_compute()
        moved = float((rows - self._copies[layer]).abs().max())
        self._tested(t, layer, start)
        return moved

    def _keep(self, t: Iteration, layer: Layer, rows: Tensor) -> None:
        start = self._context.recorder.mark_compute()
        if layer in self._copies:
            self._copies[layer].copy_(rows)
        else:
            self._copies[layer] = rows.clone()
        self._tested(t, layer, start)

    def _tested(self, t: Iteration, layer: Layer, start: object) -> None:
        """The span of a test of rows that the previous layer computed."""
        recorder = self._context.recorder
        end = recorder.mark_compute()
        recorder.add(OpKind.UPDATE, "compute", t, start, end, layer=layer - 1, direction=Direction.FORWARD)  # type: ignore[arg-type]

    def _all_flags(self, t: Iteration, layer: Layer, own: bool) -> list[bool]:
        """All workers' flags of a layer."""
        world, rank = self._context.world, self._context.channels.rank
        if world == 1:
            return [own]
        channel = TimedChannel.over(self._channel, self._context.recorder, "compute", t, OpKind.INDEX)
        mine = torch.tensor([own], dtype=torch.int32)
        heard = [mine.clone() for _ in range(world)]
        peers = [peer for peer in range(world) if peer != rank]
        channel.exchange([Message(m, heard[m], False) for m in peers] + [Message(m, mine, True) for m in peers])
        channel.close()
        for peer in peers:
            key = peer, "ids"
            self.flags_sent[key] = self.flags_sent.get(key, 0) + mine.numel() * mine.element_size()
        return [bool(flag) for flag in heard]
