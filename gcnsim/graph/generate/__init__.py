"""Generators: graphs drawn from a model and a seed, and the surrogates of published datasets."""

from __future__ import annotations

from gcnsim.graph.generate.communities import BlockModel, Nature, block_model, nature_of
from gcnsim.graph.generate.fitted import (
    Bordering,
    Check,
    CrossEdges,
    FitRow,
    Outline,
    Surrogate,
    outline,
    outlines,
    surrogate,
    surrogate_facts,
    surrogates,
)
from gcnsim.graph.generate.kronecker import RMat, rmat
from gcnsim.graph.generate.limits import memory_needed
from gcnsim.graph.generate.pairing import configuration, read_degrees

__all__ = [
    "BlockModel",
    "Bordering",
    "Check",
    "CrossEdges",
    "FitRow",
    "Nature",
    "Outline",
    "RMat",
    "Surrogate",
    "block_model",
    "configuration",
    "memory_needed",
    "nature_of",
    "outline",
    "outlines",
    "read_degrees",
    "rmat",
    "surrogate",
    "surrogate_facts",
    "surrogates",
]
