"""Published datasets, their boundary tables, and the layer shapes of the models trained on them."""

from __future__ import annotations

from gcnsim.workload.cuts import (
    FAR,
    assumed_ratio,
    boundary_at,
    crossing_fraction,
    growth_between,
    largest_of,
    leave_one_out,
    left_open,
    open_growth,
)
from gcnsim.workload.datasets import OTHER_DATASET, BoundaryRow, DatasetFacts, dataset, datasets
from gcnsim.workload.shapes import (
    CONCATENATED,
    DROPOUT_FIRST,
    DROPOUTS,
    EXCHANGE_FIRST,
    HEADS_JOINED,
    MEAN,
    MODELS,
    NO_DROPOUT,
    PAYLOADS,
    POOL,
    SAGE_AGGREGATORS,
    LayerShape,
    layer_shapes,
)

__all__ = [
    "CONCATENATED",
    "DROPOUTS",
    "DROPOUT_FIRST",
    "EXCHANGE_FIRST",
    "FAR",
    "HEADS_JOINED",
    "MEAN",
    "MODELS",
    "NO_DROPOUT",
    "OTHER_DATASET",
    "PAYLOADS",
    "POOL",
    "SAGE_AGGREGATORS",
    "BoundaryRow",
    "DatasetFacts",
    "LayerShape",
    "assumed_ratio",
    "boundary_at",
    "crossing_fraction",
    "dataset",
    "datasets",
    "growth_between",
    "largest_of",
    "layer_shapes",
    "leave_one_out",
    "left_open",
    "open_growth",
]
