"""The models: layers, their network, and the initial weights.

There is one graph convolution for each model. A layer defines its weights and its operation
on rows. It requests the sum over neighbours through `Neighbours`; the origin and the age of remote rows are hidden from
it.

Initial weights are drawn from named streams, so that all workers have the same, or read from a file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError
from gcnsim.core.fields import FINITE, check_values
from gcnsim.core.streams import stream
from gcnsim.graph.formats.arrays import opened
from gcnsim.graph.formats.source import file_start
from runtime.aggregate import Matrix, attention_sum
from runtime.options import Options


class Neighbours(Protocol):
    """The operations on the neighbours of this worker's inner nodes, in one iteration and layer."""

    def mapped_sum(self, h: Tensor, linear: nn.Linear) -> tuple[Tensor, Tensor]:
        """(z W^T + b, h'): z = P [h'; rows of others], W and b of `linear`, and the inner rows h' after dropout."""
        ...

    def gathered(self, h: Tensor) -> tuple[Tensor, Matrix]:
        """([h; boundary rows] after dropout, [I + U, d], and the pattern of inner rows over those columns)."""
        ...


class GcnLayer(nn.Module):
    """z W^T + b with z = P h (Kipf and Welling)."""

    def __init__(self, d_in: int, d_out: int, bias: bool) -> None:
        """Weights of a map from d_in to d_out values."""
        super().__init__()
        self.linear = nn.Linear(d_in, d_out, bias)

    def forward(self, h: Tensor, neighbours: Neighbours) -> Tensor:
        """[I, d_out] from h [I, d_in]."""
        out, _ = neighbours.mapped_sum(h, self.linear)
        return out

    def mapped(self, z: Tensor) -> Tensor:
        """The linear layer only."""
        result: Tensor = self.linear(z)
        return result

    def message_weight(self) -> Tensor:
        """W for the rows that neighbours send, [d_out, d_in]."""
        return self.linear.weight


class SageLayer(nn.Module):
    """h W_self^T + z W_neigh^T with z the mean over neighbours (GraphSAGE), each with its bias.

    joined: one product with the row [h; z], whose input is complete before training; it has one bias, that of
    `linear_self`.
    """

    def __init__(self, d_in: int, d_out: int, bias: bool, joined: bool = False) -> None:
        """Weights of two linear layers from d_in to d_out values."""
        super().__init__()
        self.linear_self = nn.Linear(d_in, d_out, bias)
        self.linear_neigh = nn.Linear(d_in, d_out, bias and not joined)

    def forward(self, h: Tensor, neighbours: Neighbours) -> Tensor:
        """[I, d_out] from h [I, d_in]."""
        out, own = neighbours.mapped_sum(h, self.linear_neigh)
        result: Tensor = self.linear_self(own) + out
        return result

    def mapped(self, z: Tensor, own: Tensor) -> Tensor:
        """The linear layers only."""
        result: Tensor = self.linear_self(own) + self.linear_neigh(z)
        return result

    def message_weight(self) -> Tensor:
        """W for the rows that neighbours send, [d_out, d_in]."""
        return self.linear_neigh.weight


class GatLayer(nn.Module):
    """sum_j alpha_ij g_j with g = h W^T per head (GAT); heads side by side, or averaged in the last layer."""

    def __init__(self, d_in: int, d_out: int, bias: bool, heads: int, last: bool) -> None:
        """Weights; d_out is the width of the result: concatenated heads share it, averaged heads each have it."""
        super().__init__()
        self.heads, self.last = heads, last
        self.width = d_out if last else d_out // heads
        self.linear = nn.Linear(d_in, heads * self.width, False)
        self.attn_target = nn.Parameter(torch.empty(heads, self.width))
        self.attn_source = nn.Parameter(torch.empty(heads, self.width))
        self.bias = nn.Parameter(torch.zeros(d_out)) if bias else None

    def message_weight(self) -> Tensor:
        """W for the rows that neighbours send, all heads concatenated, [heads width, d_in]."""
        return self.linear.weight

    def forward(self, h: Tensor, neighbours: Neighbours) -> Tensor:
        """[I, d_out] from h [I, d_in]."""
        rows, matrix = neighbours.gathered(h)
        g = self.linear(rows).view(-1, self.heads, self.width)
        inner = matrix.rows.indptr.size - 1
        target = (g[:inner] * self.attn_target).sum(2)
        source = (g * self.attn_source).sum(2)
        summed = attention_sum(matrix, g, target, source)
        result = summed.mean(1) if self.last else summed.flatten(1)
        return result if self.bias is None else result + self.bias


Layer = GcnLayer | SageLayer | GatLayer


class Boundaries(Protocol):
    """The neighbours of each layer."""

    def of(self, layer: int) -> Neighbours:
        """The neighbours of `layer`."""
        ...


class Network(nn.Module):
    """`layers` graph convolutions; after all but the last, LayerNorm if requested, then ReLU.

    widths: d_0 (features) ... d_L (classes). Layer l reads rows of width d_l.
    """

    def __init__(self, options: Options, features: int, classes: int) -> None:
        """Layers with weights that are not initialised yet (`initialise`)."""
        super().__init__()
        depth = options.layers
        self.widths = (features, *[options.hidden] * (depth - 1), classes)
        self.layers = nn.ModuleList(
            _layer(options, *self.widths[index : index + 2], first=index == 0, last=index == depth - 1)
            for index in range(depth)
        )
        self.norms = nn.ModuleList(
            nn.LayerNorm(width) if options.norm == "layer" else nn.Identity() for width in self.widths[1:-1]
        )

    def forward(
        self, x: Tensor, boundaries: Boundaries, seen: Callable[[int, Tensor, Tensor], Tensor] | None = None
    ) -> Tensor:
        """Logits [I, classes] of x [I, d_0]; `seen(l, input, output)` is called for every layer."""
        h = x
        for index, layer in enumerate(self.layers):
            out: Tensor = layer(h, boundaries.of(index))
            if index < len(self.layers) - 1:
                out = torch.relu(self.norms[index](out))
            h = out if seen is None else seen(index, h, out)
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
        """The weights of one layer and of its normalisation."""
        own = list(self.layers[layer].parameters())
        return own + (list(self.norms[layer].parameters()) if layer < len(self.norms) else [])


def _layer(options: Options, d_in: int, d_out: int, *, first: bool, last: bool) -> Layer:
    if options.model == "gat":
        return GatLayer(d_in, d_out, options.bias, options.heads, last)
    if options.model == "graphsage":
        return SageLayer(d_in, d_out, options.bias, joined=first and options.sums_input)
    return GcnLayer(d_in, d_out, options.bias)


def initialise(network: Network, seed: int) -> None:
    """Draw every weight from a separate stream ("weights", name) of `seed`.

    Matrices and biases of a linear layer with d_in inputs: uniform in +-1/sqrt(d_in). Attention vectors: Glorot's
    uniform range. Normalisation: scale 1, shift 0.
    """
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name.startswith("norms.") or (name.endswith(".bias") and name.count(".") == 2):
                weight.fill_(1.0 if name.endswith(".weight") else 0.0)
                continue
            bound = _bound(network, name, weight)
            values = stream(seed, "weights", name).uniform(-bound, bound, tuple(weight.shape))
            weight.copy_(torch.from_numpy(values))


def _bound(network: Network, name: str, weight: Tensor) -> float:
    if ".attn_" in name:
        return float(np.sqrt(6.0 / (weight.shape[1] + 1)))
    matrix = weight if weight.dim() == 2 else network.get_parameter(name.replace(".bias", ".weight"))
    return float(1.0 / np.sqrt(matrix.shape[1]))


def save_weights(path: str | Path, network: Network) -> None:
    """Write every weight under its name into an .npz archive, atomically; FileError if it cannot be written."""
    arrays = {name: weight.detach().cpu().numpy() for name, weight in network.named_parameters()}
    with atomic_write(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def load_weights(path: str | Path, network: Network) -> None:
    """Set every weight from an .npz archive of arrays by name.

    Raises FileError if the archive is missing or damaged, or if a weight is missing, unknown or of another shape.
    """
    source = Path(path)
    file_start(source)
    with opened(source) as archive:
        names = [item.removesuffix(".npy") for item in archive.zip.namelist()]
        arrays = {name: archive.array(name) for name in names}
    want = dict(network.named_parameters())
    missing, extra = sorted(want.keys() - arrays.keys()), sorted(arrays.keys() - want.keys())
    if missing or extra:
        problems = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has unknown {', '.join(extra)}"] * bool(extra)
        raise FileError(f"{path}: {'; '.join(problems)}; this model has {', '.join(want)}")
    with torch.no_grad():
        for name, weight in want.items():
            array = arrays[name]
            if array.shape != tuple(weight.shape) or array.dtype.kind not in "fiu":
                raise FileError(f"{path}: {name} is {array.dtype}{list(array.shape)}; {list(weight.shape)} is needed")
            check_values(array, FINITE, f"{path}: {name}")
            weight.copy_(torch.from_numpy(array.astype(array.dtype.newbyteorder("="))))
