"""Generators: graphs drawn from a model and a seed, and the surrogates of published datasets."""

from __future__ import annotations

from gcnsim.graph.generate.communities import BlockModel, block_model, memory_needed, nature_of
from gcnsim.graph.generate.fitted import (
    Bordering,
    FitRow,
    Outline,
    Surrogate,
    outline,
    outlines,
    surrogate,
    surrogate_facts,
    surrogates,
)

__all__ = [
    "BlockModel",
    "Bordering",
    "FitRow",
    "Outline",
    "Surrogate",
    "block_model",
    "memory_needed",
    "nature_of",
    "outline",
    "outlines",
    "surrogate",
    "surrogate_facts",
    "surrogates",
]
