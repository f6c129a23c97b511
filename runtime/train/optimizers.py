"""Updates of the weights: torch's own arithmetic without its classes of optimizers, which import torch's compiler.

That import takes 1.6 s of processor time at the start of every worker, and nothing here compiles. What an optimizer
remembers of each weight has the names that torch's classes give it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.autograd.profiler import record_function
from torch.nn import Parameter
from torch.optim.adam import adam
from torch.optim.sgd import sgd


class Optimizer(ABC):
    """Changes weights by their gradients. state: what it remembers of each weight, by name."""

    def __init__(self, parameters: Iterable[Parameter], lr: float, weight_decay: float) -> None:
        """lr: the learning rate; weight_decay: the share of a weight that is added to its gradient."""
        self.state: defaultdict[Tensor, dict[str, Tensor]] = defaultdict(dict)
        self._parameters: list[Tensor] = list(parameters)
        self._lr, self._weight_decay = lr, weight_decay

    @torch.no_grad()
    def step(self) -> None:
        """Change every weight that has a gradient, under the name by which profiles of training know it."""
        weights = [weight for weight in self._parameters if weight.grad is not None]
        with record_function(f"Optimizer.step#{type(self).__name__}.step"):
            self._change(weights, [weight.grad for weight in weights if weight.grad is not None])

    @abstractmethod
    def _change(self, weights: list[Tensor], gradients: list[Tensor]) -> None:
        """Change each of `weights` by its gradient."""


class Sgd(Optimizer):
    """Plain gradient descent; it remembers nothing."""

    def _change(self, weights: list[Tensor], gradients: list[Tensor]) -> None:
        sgd(
            weights,
            gradients,
            [None] * len(weights),
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
                # Steps are counted on the host: no kernel is launched for them.
                both = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
                self.state[weight] |= {"step": torch.tensor(0.0)} | both
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
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self._lr,
            weight_decay=self._weight_decay,
            eps=1e-8,
            maximize=False,
        )
