"""Published datasets, their boundary tables, and the layer shapes of the models trained on them."""

from __future__ import annotations

from gcnsim.workload.boundary import boundary_at, leave_one_out
from gcnsim.workload.datasets import BoundaryRow, DatasetFacts, dataset, datasets
from gcnsim.workload.shapes import MODELS, PAYLOADS, LayerShape, layer_shapes

__all__ = [
    "MODELS",
    "PAYLOADS",
    "BoundaryRow",
    "DatasetFacts",
    "LayerShape",
    "boundary_at",
    "dataset",
    "datasets",
    "layer_shapes",
    "leave_one_out",
]
