"""What is trained, by which rules: model, dataset, sampling, caches, staleness and the knobs of methods."""

from gcnsim.workload.cuts import (
    FAR,
    assumed_ratio,
    assumed_spread,
    boundary_at,
    crossing_fraction,
    growth_between,
    largest_of,
    left_open,
    open_growth,
)
from gcnsim.workload.datasets import OTHER_DATASET, BoundaryRow, DatasetFacts, dataset, datasets
from gcnsim.workload.shapes import (
    AGGREGATOR,
    CONCATENATED,
    DROPOUT_FIRST,
    DROPOUTS,
    EXCHANGE_FIRST,
    HEADS_JOINED,
    MODELS,
    NO_DROPOUT,
    PAYLOADS,
    LayerShape,
    layer_shapes,
    wrong_aggregator,
)
