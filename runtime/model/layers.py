"""One graph convolution each of GCN, GraphSAGE (two) and GAT, as what is learnt and how it turns rows into rows.

A layer asks for the sum over neighbours through `Neighbours`: which rows come from other workers, and how old they are,
is not its business.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from runtime.aggregate import Matrix, attention_sum, neighbour_max


class Neighbours(Protocol):
    """What a layer may ask about the neighbours of this worker's inner nodes, in one iteration and layer."""

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
        """The learnt map alone."""
        result: Tensor = self.linear(z)
        return result

    def message_weight(self) -> Tensor:
        """W of the rows that neighbours send, [d_out, d_in]."""
        return self.linear.weight


class SageLayer(nn.Module):
    """h W_self^T + z W_neigh^T with z the mean over neighbours (GraphSAGE), each with its bias.

    joined: one map of the row [h; z], whose input is complete before training: it has one bias, that of `linear_self`.
    """

    def __init__(self, d_in: int, d_out: int, bias: bool, joined: bool = False) -> None:
        """Weights of two maps from d_in to d_out values."""
        super().__init__()
        self.linear_self = nn.Linear(d_in, d_out, bias)
        self.linear_neigh = nn.Linear(d_in, d_out, bias and not joined)

    def forward(self, h: Tensor, neighbours: Neighbours) -> Tensor:
        """[I, d_out] from h [I, d_in]."""
        out, own = neighbours.mapped_sum(h, self.linear_neigh)
        result: Tensor = self.linear_self(own) + out
        return result

    def mapped(self, z: Tensor, own: Tensor) -> Tensor:
        """The learnt maps alone."""
        result: Tensor = self.linear_self(own) + self.linear_neigh(z)
        return result

    def message_weight(self) -> Tensor:
        """W of the rows that neighbours send, [d_out, d_in]."""
        return self.linear_neigh.weight


class PoolLayer(nn.Module):
    """h W_self^T + z W_neigh^T, each with its bias, with z_i the largest values of ReLU(h_j W_pool^T + b) over the
    neighbours j of i, each column by itself (GraphSAGE, Equation 3)."""

    def __init__(self, d_in: int, d_out: int, bias: bool) -> None:
        """Weights of a map from d_in to d_in values and of two from d_in to d_out."""
        super().__init__()
        self.linear_pool = nn.Linear(d_in, d_in, bias)
        self.linear_self = nn.Linear(d_in, d_out, bias)
        self.linear_neigh = nn.Linear(d_in, d_out, bias)

    def forward(self, h: Tensor, neighbours: Neighbours) -> Tensor:
        """[I, d_out] from h [I, d_in]."""
        rows, matrix = neighbours.gathered(h)
        z = neighbour_max(matrix, torch.relu(self.linear_pool(rows)))
        result: Tensor = self.linear_self(rows[: z.shape[0]]) + self.linear_neigh(z)
        return result

    def message_weight(self) -> Tensor:
        """W of the rows that neighbours send, [d_in, d_in]."""
        return self.linear_pool.weight


class GatLayer(nn.Module):
    """sum_j alpha_ij g_j with g = h W^T per head (GAT); heads side by side, or averaged in the last layer."""

    def __init__(self, d_in: int, d_out: int, bias: bool, heads: int, last: bool) -> None:
        """Weights; d_out is the width of the result: heads side by side share it, averaged heads each have it."""
        super().__init__()
        self.heads, self.last = heads, last
        self.width = d_out if last else d_out // heads
        self.linear = nn.Linear(d_in, heads * self.width, False)
        self.attn_target = nn.Parameter(torch.empty(heads, self.width))
        self.attn_source = nn.Parameter(torch.empty(heads, self.width))
        self.bias = nn.Parameter(torch.zeros(d_out)) if bias else None

    def message_weight(self) -> Tensor:
        """W of the rows that neighbours send, all heads side by side, [heads width, d_in]."""
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
