"""The network: graph convolutions with normalisation and activation between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn

from runtime.model.layers import GatLayer, GcnLayer, Neighbours, PoolLayer, SageLayer
from runtime.options import Options

Layer = GcnLayer | SageLayer | PoolLayer | GatLayer


class Boundaries(Protocol):
    """The neighbours of each layer."""

    def of(self, layer: int) -> Neighbours:
        """What layer `layer` may ask."""
        ...


class Network(nn.Module):
    """`layers` graph convolutions; after all but the last, LayerNorm if asked, then ReLU.

    widths: d_0 (features) ... d_L (classes). Layer l reads rows of width d_l.
    """

    def __init__(self, options: Options, features: int, classes: int) -> None:
        """Layers with weights not yet drawn (`initialise`)."""
        super().__init__()
        depth = options.layers
        self.widths = (features, *[options.hidden] * (depth - 1), classes)
        self.layers = nn.ModuleList(
            _layer(options, *self.widths[place : place + 2], first=place == 0, last=place == depth - 1)
            for place in range(depth)
        )
        self.norms = nn.ModuleList(
            nn.LayerNorm(width) if options.norm == "layer" else nn.Identity() for width in self.widths[1:-1]
        )

    def forward(
        self, x: Tensor, boundaries: Boundaries, seen: Callable[[int, Tensor, Tensor], Tensor] | None = None
    ) -> Tensor:
        """Logits [I, classes] of x [I, d_0]; `seen(l, input, output)` may mark what layer l made of its input."""
        h = x
        for place, layer in enumerate(self.layers):
            out: Tensor = layer(h, boundaries.of(place))
            if place < len(self.layers) - 1:
                out = torch.relu(self.norms[place](out))
            h = out if seen is None else seen(place, h, out)
        return h

    def row_norms(self, inputs: list[Tensor]) -> Tensor:
        """s_j = sqrt(sum over layers of ||H_j^(l) W_l||^2) of every inner row, float32[I] (PSC-GCN, Theorem 2).

        inputs: H^(l) of every layer, [I, d_l].
        """
        total = torch.zeros(inputs[0].shape[0], dtype=inputs[0].dtype, device=inputs[0].device)
        with torch.no_grad():
            for layer, h in zip(self.layers, inputs, strict=True):
                assert isinstance(layer, Layer)
                total += (h.detach() @ layer.message_weight().T).square().sum(1)
        return total.sqrt().float()

    def parameters_of(self, layer: int) -> list[nn.Parameter]:
        """The weights of one layer and of the normalisation behind it."""
        own = list(self.layers[layer].parameters())
        return own + (list(self.norms[layer].parameters()) if layer < len(self.norms) else [])


def _layer(options: Options, d_in: int, d_out: int, *, first: bool, last: bool) -> Layer:
    if options.model == "gat":
        return GatLayer(d_in, d_out, options.bias, options.heads, last)
    if options.pools:
        return PoolLayer(d_in, d_out, options.bias)
    if options.model == "graphsage":
        return SageLayer(d_in, d_out, options.bias, joined=first and options.sums_input)
    return GcnLayer(d_in, d_out, options.bias)
