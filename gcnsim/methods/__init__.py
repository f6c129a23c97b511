"""Published systems, one file each, and the registry that finds them."""

from gcnsim.methods.facts import FEATURES, HOST, ON_GPU, UVA, Facts, Placement
from gcnsim.methods.families.mini_batch import MiniBatch, NeighbourBatches, Plan, SubgraphBatches
from gcnsim.methods.method import CENTRAL, FULL, NO_OVERLAP, OVERLAP, STANDING, KnobStep, Method, Sampling
from gcnsim.methods.registry import (
    BASELINE,
    COMPARED,
    DEFAULT,
    all_knobs,
    broken_methods,
    create_method,
    every_method,
    has_knob,
    is_method,
    method_type,
    methods,
    named,
)

__all__ = [
    "BASELINE",
    "CENTRAL",
    "COMPARED",
    "DEFAULT",
    "FEATURES",
    "FULL",
    "HOST",
    "NO_OVERLAP",
    "ON_GPU",
    "OVERLAP",
    "STANDING",
    "UVA",
    "Facts",
    "KnobStep",
    "Method",
    "MiniBatch",
    "NeighbourBatches",
    "Placement",
    "Plan",
    "Sampling",
    "SubgraphBatches",
    "all_knobs",
    "broken_methods",
    "create_method",
    "every_method",
    "has_knob",
    "is_method",
    "method_type",
    "methods",
    "named",
]
