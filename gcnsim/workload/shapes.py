"""The operations of one layer of each model: widths and weights."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.fields import shown

PAYLOADS: Final = MappingProxyType({"fp32": 32, "fp16": 16, "bf16": 16, "int8": 8, "int4": 4, "int2": 2})
"""Number formats of boundary rows in messages: bits of a value."""

MODELS: Final = ("gcn", "graphsage", "gat")

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


AGGREGATOR, MEAN = "sage_aggregator", "mean"


def wrong_aggregator(options: Mapping[str, Any], name: str = AGGREGATOR) -> str | None:
    """What is wrong with GraphSAGE's aggregator in `options` of a file of an earlier version; None: nothing.

    name: of the option.
    """
    found = options.get(name, MEAN)
    said = found if isinstance(found, str) else shown(found)
    return None if found == MEAN else f"{name}: {said} is not allowed; GraphSAGE takes the mean; allowed: {MEAN}"


@dataclass(frozen=True, slots=True)
class LayerShape:
    """One graph convolution: rows of width d_in in, of width d_out out, `weights` parameters (bias included).

    gathers: whether every iteration sums rows of neighbours; a dense layer does not, nor a first layer whose input was
    aggregated before training. Such a layer exchanges nothing. heads: of attention; 0 without attention. keeps: its
    boundary rows were fetched once and stay on the workers that need them, so it exchanges nothing.
    """

    d_in: int
    d_out: int
    weights: int
    gathers: bool = True
    heads: int = 0
    keeps: bool = False

    @property
    def exchanges(self) -> bool:
        """Whether its rows are exchanged in every iteration."""
        return self.gathers and not self.keeps

    @property
    def projected(self) -> int:
        """Width of a row after the weights of all attention heads."""
        return (self.weights - self.d_out) // (self.d_in + 2)

    @property
    def update_in(self) -> int:
        """Width of the rows that are multiplied by the weights: d_in, or 2 d_in for GraphSAGE."""
        return (self.weights - self.d_out) // self.d_out


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
) -> tuple[LayerShape, ...]:
    """The shapes of the `layers` layers of `model`, layer 0 first: features -> hidden -> ... -> classes.

    GCN multiplies the aggregated row by d_in x d_out weights (Kipf and Welling, eq. 2). GraphSAGE-mean multiplies the
    row next to its neighbours' mean, so 2 d_in x d_out (Hamilton et al., Algorithm 1). Both add d_out biases. A GAT has
    a linear layer and two vectors for each of its `heads`. Heads are concatenated in hidden layers, where they share
    the width, and averaged in the last (Velickovic et al., eqs. 5 and 6); heads_joined `averaged`: in all, each of full
    width. preaggregate: the input is aggregated once, before training. keep_inputs: a GAT's input boundary rows stay on
    the workers that need them. dense: the number of last layers that are plain linear layers.

    Raises ScenarioError for an unknown model, a count below one, no graph convolution, heads that do not divide the
    shared hidden width, or pre-aggregation of an input that attention reads.
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
        shapes = [LayerShape(d_in, d_out, inputs * d_in * d_out + d_out) for d_in, d_out in pairs[: layers - dense]]
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


def _attention(d_in: int, d_out: int, heads: int, *, full: bool) -> LayerShape:
    """One layer of attention: a linear layer and two score vectors for each head, and a bias. full: each head is d_out
    wide.
    """
    width = d_out * heads if full else d_out
    return LayerShape(d_in, d_out, (d_in + 2) * width + d_out, heads=heads)
