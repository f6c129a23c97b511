"""Reduce gradients over the workers, then update the weights.

Gradients and run-wide sums share one flat buffer, which is reduced layer by layer during the backward pass. A
parameter's gradient is a view of the buffer, so nothing is copied. A layer's part starts its all-reduce when the last
of its gradients has been accumulated. A hook after accumulation starts it, so it never sees an incomplete gradient. All
workers get identical results, because each element is summed once and then sent to all.

Updates use torch's arithmetic without its optimizer classes, which import torch's compiler. That import takes 1.6 s of
processor time at the start of every worker, and nothing here compiles. The optimizer's state of each weight has the
names of torch's classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.profiler import record_function
from torch.nn import Parameter
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from gcnsim.core.ids import Iteration
from gcnsim.timeline import OpKind
from runtime.exchange import Channel
from runtime.model import Network
from runtime.record import Recorder

EXTRAS = ("loss", "correct", "stop", "bytes_high", "bytes_low", "hits", "asked", "trained")
"""Run-wide sums that are reduced with the gradients of layer 0.

They are: loss, correct training nodes, workers asked to stop, bytes sent in two parts (float32 counts exactly to 2^24),
cached rows and requested rows, nodes in the loss.
"""

_PART = 1 << 16


@dataclass(frozen=True)
class LocalSums:
    """One worker's part of the extras. nbytes: sent since the previous iteration."""

    stop: bool = False
    nbytes: int = 0
    hits: int = 0
    lookups: int = 0
    trained: int = 0


@dataclass(frozen=True)
class GlobalSums:
    """The extras over all workers. loss: None if nothing is computed. stop: whether at least one worker was asked to
    stop.
    """

    loss: float | None
    correct: int
    stop: bool
    nbytes: int
    hits: float
    lookups: float
    trained: int = 0


class FlatGradients:
    """All gradients of a network and the extras, reduced over `channel` (None: a single worker)."""

    def __init__(self, network: Network, channel: Channel | None, recorder: Recorder) -> None:
        """Put layer L-1 first, layer 0 and the extras last: the order in which they are finished."""
        self._channel, self._recorder = channel, recorder
        groups = [network.parameters_of(layer) for layer in reversed(range(len(network.layers)))]
        some = groups[0][0]
        total = sum(weight.numel() for group in groups for weight in group) + len(EXTRAS)
        self.flat = torch.zeros(total, dtype=some.dtype, device=some.device)
        self._extras = self.flat[-len(EXTRAS) :]
        self._computed, self._told = (self._extras[0], self._extras[1]), self._extras[2:]
        # Pinned, since a copy from other memory would wait for the GPU in the middle of the iteration.
        self._own = torch.zeros(self._told.numel(), dtype=some.dtype, pin_memory=self.flat.is_cuda)
        self._pieces: list[Tensor] = []
        self._left: list[int] = []
        self._sizes = [len(group) for group in groups]
        self._works: list[tuple[Any, Any]] = []
        self._t: Iteration = 0
        first = 0
        for index, group in enumerate(groups):
            last = first
            for weight in group:
                weight.grad = self.flat[last : last + weight.numel()].view_as(weight)
                weight.register_post_accumulate_grad_hook(self._hook(index))  # type: ignore[no-untyped-call]
                last += weight.numel()
            self._pieces.append(self.flat[first : total if index == len(groups) - 1 else last])
            first = last

    def begin(self, t: Iteration, loss: Tensor, correct: Tensor, own: LocalSums) -> None:
        """Zero the gradients of iteration t and set this worker's extras; call it before the backward pass."""
        self.flat.zero_()
        for place, value in zip(self._computed, (loss.detach(), correct), strict=True):
            place.copy_(value)
        high, low = divmod(own.nbytes, _PART)
        # The last iteration's copy is over: its sums have been read.
        self._own.numpy()[:] = [float(own.stop), high, low, own.hits, own.lookups, own.trained]
        self._told.copy_(self._own, non_blocking=True)
        self._left = list(self._sizes)
        self._works, self._t = [], t

    def finish(self) -> GlobalSums:
        """Wait for the sums over all workers; returns the extras."""
        if self._channel is not None:
            while len(self._works) < len(self._pieces):
                self._start()
            for work, start in self._works:
                blocked = self._recorder.mark_compute()
                self._channel.wait(work)
                end = self._recorder.mark_compute()
                self._recorder.add(OpKind.ALLREDUCE, "reduce", self._t, start, end)
                self._recorder.add(OpKind.WAIT, "compute", self._t, blocked, end)
        return self.sums()

    def sums(self) -> GlobalSums:
        """The extras now in the buffer."""
        loss, correct, stop, high, low, hits, lookups, trained = self._extras.tolist()
        nbytes = round(high) * _PART + round(low)
        return GlobalSums(loss, round(correct), stop > 0, nbytes, hits, lookups, round(trained))

    def divide(self, count: int) -> None:
        """Divide the summed gradients and the summed loss by `count`."""
        self.flat[: -len(EXTRAS) + 1] /= count

    def _hook(self, place: int) -> Any:
        def accumulated(_: nn.Parameter) -> None:
            self._left[place] -= 1
            # The same order on every worker, also if one of them has no gradient for some weight.
            while self._channel is not None and self._left[len(self._works) :][:1] == [0]:
                self._start()

        return accumulated

    def _start(self) -> None:
        """Start the all-reduce of the next part."""
        assert self._channel is not None
        start = self._recorder.mark_compute()
        self._works.append((self._channel.all_reduce(self._pieces[len(self._works)]), start))


class Optimizer(ABC):
    """Changes weights by their gradients. state: the optimizer's state of each weight, by name."""

    def __init__(self, parameters: Iterable[Parameter], lr: float, weight_decay: float) -> None:
        """lr: the learning rate; weight_decay: the share of a weight that is added to its gradient."""
        self.state: defaultdict[Tensor, dict[str, Tensor]] = defaultdict(dict)
        self._parameters: list[Tensor] = list(parameters)
        self._lr, self._weight_decay = lr, weight_decay
        self.fused = all(weight.is_cuda for weight in self._parameters)
        """Whether one kernel changes all weights; on a CPU each is changed by itself."""

    @torch.no_grad()
    def step(self) -> None:
        """Update every weight with a gradient, under the name that training profiles use."""
        weights = [weight for weight in self._parameters if weight.grad is not None]
        with record_function(f"Optimizer.step#{type(self).__name__}.step"):
            self._change(weights, [weight.grad for weight in weights if weight.grad is not None])

    @abstractmethod
    def _change(self, weights: list[Tensor], gradients: list[Tensor]) -> None:
        """Update each of `weights` by its gradient."""


class Sgd(Optimizer):
    """Plain gradient descent without state."""

    def _change(self, weights: list[Tensor], gradients: list[Tensor]) -> None:
        sgd(
            weights,
            gradients,
            [None] * len(weights),
            foreach=False,
            fused=self.fused,
            weight_decay=self._weight_decay,
            momentum=0.0,
            lr=self._lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )


class Adam(Optimizer):
    """Adam with torch's usual rates."""

    def _change(self, weights: list[Tensor], gradients: list[Tensor]) -> None:
        for weight in weights:
            if not self.state[weight]:
                both = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
                self.state[weight] |= {"step": torch.zeros((), device=weight.device)} | both
        means, squares, steps = (
            [self.state[weight][name] for weight in weights] for name in ("exp_avg", "exp_avg_sq", "step")
        )
        adam(
            weights,
            gradients,
            means,
            squares,
            [],
            steps,
            foreach=False,
            fused=self.fused,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self._lr,
            weight_decay=self._weight_decay,
            eps=1e-8,
            maximize=False,
        )
