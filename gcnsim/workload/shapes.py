"""What one layer of each model multiplies: widths and weights."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Final

from gcnsim.errors import ScenarioError, nearest

MODELS: Final = ("gcn", "graphsage")


@dataclass(frozen=True, slots=True)
class LayerShape:
    """One graph convolution: rows of width d_in in, of width d_out out, `weights` parameters (bias included).

    gathers: whether every iteration sums rows of neighbours; a dense layer does not, nor a first layer whose input was
    aggregated once before training. Such a layer exchanges nothing.
    """

    d_in: int
    d_out: int
    weights: int
    gathers: bool = True

    @property
    def update_in(self) -> int:
        """Width of the rows that meet the weights: d_in, or 2 d_in where a row stands beside its neighbours' mean."""
        return (self.weights - self.d_out) // self.d_out


def layer_shapes(
    model: str, features: int, hidden: int, layers: int, classes: int, *, preaggregate: bool = False, dense: int = 0
) -> tuple[LayerShape, ...]:
    """The shapes of the `layers` layers of `model`, layer 0 first: features -> hidden -> ... -> classes.

    GCN multiplies the aggregated row by d_in x d_out weights (Kipf and Welling, eq. 2); GraphSAGE-mean multiplies the
    row beside its neighbours' mean, so 2 d_in x d_out (Hamilton et al., Algorithm 1); both add d_out biases.
    preaggregate: the input is aggregated once, before training. dense: the last so many layers are plain linear maps.

    Raises ScenarioError for an unknown model, a count below one, or no graph convolution.
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
    shapes = [LayerShape(d_in, d_out, inputs * d_in * d_out + d_out) for d_in, d_out in pairs[: layers - dense]]
    shapes += [LayerShape(d_in, d_out, d_in * d_out + d_out, gathers=False) for d_in, d_out in pairs[layers - dense :]]
    if preaggregate:
        shapes[0] = replace(shapes[0], gathers=False)
    return tuple(shapes)
