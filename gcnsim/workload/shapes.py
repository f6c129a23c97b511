"""The operations of one layer of each model: widths and weights."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from gcnsim.core.errors import ScenarioError, nearest

PAYLOADS: Final = MappingProxyType({"fp32": 32, "fp16": 16, "bf16": 16, "int8": 8, "int4": 4, "int2": 2})
"""Number formats of boundary rows in messages: bits of a value."""

MODELS: Final = ("gcn", "graphsage", "gat")

MEAN, POOL = "mean", "pool"

SAGE_AGGREGATORS: Final = (MEAN, POOL)
"""GraphSAGE's aggregation of a node's neighbours: their mean, or the maximum of a linear layer of them."""

CONCATENATED, AVERAGED = "concatenated", "averaged"

HEADS_JOINED: Final = (CONCATENATED, AVERAGED)
"""How the heads of a hidden attention layer are combined: concatenated heads share the width, averaged heads each have
it.
"""


NO_DROPOUT, EXCHANGE_FIRST, DROPOUT_FIRST = "none", "exchange-first", "dropout-first"

DROPOUTS = (NO_DROPOUT, EXCHANGE_FIRST, DROPOUT_FIRST)
"""Where a layer's input is dropped: nowhere; all its rows after the exchange (PipeGCN); each worker's inner rows before
the exchange (BNS-GCN).
"""


@dataclass(frozen=True, slots=True)
class LayerShape:
    """One graph convolution: rows of width d_in in, of width d_out out, `weights` parameters (bias included).

    gathers: whether every iteration sums rows of neighbours; a dense layer does not, nor a first layer whose input was
    aggregated before training. Such a layer exchanges nothing. heads: of attention; 0 without attention. keeps: its
    boundary rows were fetched once and stay on the workers that need them, so it exchanges nothing. pooled: the part of
    `weights` in the linear layer before the maximum; 0 without pooling.
    """

    d_in: int
    d_out: int
    weights: int
    gathers: bool = True
    heads: int = 0
    keeps: bool = False
    pooled: int = 0

    @property
    def exchanges(self) -> bool:
        """Whether its rows are exchanged in every iteration."""
        return self.gathers and not self.keeps

    @property
    def joins(self) -> bool:
        """Whether inner and boundary rows are read together, so that the layer can only begin when all have arrived."""
        return self.heads > 0 or self.pooled > 0

    @property
    def projected(self) -> int:
        """Width of a row after the weights of all attention heads, or after the linear layer before pooling."""
        return self.d_in if self.pooled else (self.weights - self.d_out) // (self.d_in + 2)

    @property
    def update_in(self) -> int:
        """Width of the rows that are multiplied by the weights: d_in, or 2 d_in for GraphSAGE."""
        return (self.weights - self.pooled - self.d_out) // self.d_out


def layer_shapes(
    model: str,
    features: int,
    hidden: int,
    layers: int,
    classes: int,
    *,
    preaggregate: bool = False,
    dense: int = 0,
    heads: int = 1,
    heads_joined: str = CONCATENATED,
    keep_inputs: bool = False,
    sage_aggregator: str = MEAN,
) -> tuple[LayerShape, ...]:
    """The shapes of the `layers` layers of `model`, layer 0 first: features -> hidden -> ... -> classes.

    GCN multiplies the aggregated row by d_in x d_out weights (Kipf and Welling, eq. 2). GraphSAGE-mean multiplies the
    row next to its neighbours' mean, so 2 d_in x d_out (Hamilton et al., Algorithm 1). Both add d_out biases.
    sage_aggregator `pool`: next to the maximum of ReLU(h_j W^T + b), W of d_in x d_in (ibid., Equation 3). A GAT has a
    linear layer and two vectors for each of its `heads`. Heads are concatenated in hidden layers, where they share the
    width, and averaged in the last (Velickovic et al., eqs. 5 and 6); heads_joined `averaged`: in all, each of full
    width. preaggregate: the input is aggregated once, before training. keep_inputs: a GAT's input boundary rows stay on
    the workers that need them. dense: the number of last layers that are plain linear layers.

    Raises ScenarioError for an unknown model, a count below one, no graph convolution, heads that do not divide the
    shared hidden width, or pre-aggregation of an input that attention or pooling reads.
    """
    if model not in MODELS:
        raise ScenarioError(f"workload.model: unknown model {model!r}; {nearest(model, MODELS)}")
    for name, count in (("layers", layers), ("features", features), ("hidden", hidden), ("classes", classes)):
        if count < 1:
            raise ScenarioError(f"workload.{name}: {count} is not allowed; {name} is a whole number of at least 1")
    if not 0 <= dense < layers:
        raise ScenarioError(
            f"workload.dense_layers: {dense} is not allowed; of {layers} layers 0 to {layers - 1} can be"
        )
    widths = [features, *([hidden] * (layers - 1)), classes]
    inputs = 2 if model == "graphsage" else 1
    pairs = list(itertools.pairwise(widths))
    if model == "gat":
        _refuse_heads(hidden, heads, heads_joined, preaggregate=preaggregate)
        shapes = [
            _attention(*pair, heads, full=heads_joined == AVERAGED or layer == layers - 1)
            for layer, pair in enumerate(pairs[: layers - dense])
        ]
        shapes[0] = replace(shapes[0], keeps=keep_inputs)
    else:
        pools = sage_aggregator == POOL
        _refuse_pooling(model, pools=pools, preaggregate=preaggregate)
        shapes = [_sums(*pair, inputs, pools=pools) for pair in pairs[: layers - dense]]
    shapes += [LayerShape(d_in, d_out, d_in * d_out + d_out, gathers=False) for d_in, d_out in pairs[layers - dense :]]
    if preaggregate:
        shapes[0] = replace(shapes[0], gathers=False)
    return tuple(shapes)


def _refuse_heads(hidden: int, heads: int, joined: str, *, preaggregate: bool) -> None:
    """Raise ScenarioError for impossible attention settings."""
    if joined == CONCATENATED and hidden % heads:
        raise ScenarioError(f"workload.heads: {heads} does not divide the hidden width {hidden}")
    if preaggregate:
        raise ScenarioError("workload.preaggregate: true is not allowed with gat: its weights change every iteration")


def _refuse_pooling(model: str, *, pools: bool, preaggregate: bool) -> None:
    """Raise ScenarioError for impossible pooling settings."""
    if pools and model != "graphsage":
        raise ScenarioError(f"workload.sage_aggregator: {POOL} is not allowed; only graphsage pools, not {model}")
    if pools and preaggregate:
        raise ScenarioError(
            "workload.preaggregate: true is not allowed with sage_aggregator: pool, whose map changes every iteration"
        )


def _sums(d_in: int, d_out: int, inputs: int, *, pools: bool) -> LayerShape:
    """One layer of GCN or GraphSAGE. inputs: rows of d_in values that are concatenated before the linear layer."""
    pooled = d_in * d_in + d_in if pools else 0
    return LayerShape(d_in, d_out, inputs * d_in * d_out + d_out + pooled, pooled=pooled)


def _attention(d_in: int, d_out: int, heads: int, *, full: bool) -> LayerShape:
    """One layer of attention: a linear layer and two score vectors for each head, and a bias. full: each head is d_out
    wide.
    """
    width = d_out * heads if full else d_out
    return LayerShape(d_in, d_out, (d_in + 2) * width + d_out, heads=heads)
