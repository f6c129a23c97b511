"""Generators: random graphs from a model and a seed, and the surrogates of published datasets."""

from __future__ import annotations

from gcnsim.graph.generate.communities import BlockModel, block_model, memory_needed, model_parameters
from gcnsim.graph.generate.fitted import (
    Bordering,
    FitRow,
    SizeOnlyDataset,
    Surrogate,
    outline,
    outlines,
    surrogate,
    surrogate_facts,
    surrogates,
)
