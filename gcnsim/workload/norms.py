"""The norms file: one s_j per node from a training run, which the variance-reduction sampler needs.

s_j = sqrt(sum over layers of ||H_j^(l) W^(l+1)||^2) (PSC-GCN, Theorem 2), so that ||y_ij|| = |P_ij| s_j.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gcnsim.core.container import read_sections, write_sections
from gcnsim.core.errors import FileError
from gcnsim.core.fields import AMOUNT, wrong_values
from gcnsim.core.ids import Float32Array, frozen
from gcnsim.graph import Graph

KIND = "norms"
VERSION = 1


def write_norms(path: str | Path, norms: Float32Array, graph_hash: str) -> str:
    """Write s_j of every node, float32[N], for the graph of this content hash; return the file's content hash.

    Raises ValueError for norms that are negative or not finite, FileError when the file cannot be written.
    """
    values = np.asarray(norms, np.float32)
    wrong = _wrong(values)
    if wrong:
        raise ValueError(wrong)
    return write_sections(path, kind=KIND, version=VERSION, meta={"graph_hash": graph_hash}, arrays={"norms": values})


def read_norms(path: str | Path, graph: Graph) -> Float32Array:
    """s_j of every node of `graph`, float32[N], read-only.

    Raises FileError when the file is missing, altered, made for another graph, or holds NaN, infinite or negative
    values.
    """
    stored = read_sections(path, kind=KIND, version=VERSION)
    values = stored.arrays.get("norms")
    if values is None or values.dtype != np.float32 or values.ndim != 1:
        raise FileError(f"{path}: has no float32 section 'norms'")
    if values.size != graph.nodes:
        raise FileError(f"{path}: norms of {values.size:,} nodes, graph {graph.name} has {graph.nodes:,}")
    if stored.meta.get("graph_hash") != graph.content_hash():
        raise FileError(f"{path}: norms of another graph than {graph.name} (content hashes differ)")
    wrong = _wrong(values)
    if wrong:
        raise FileError(f"{path}: {wrong}")
    return frozen(values)


def _wrong(values: Float32Array) -> str | None:
    """What is wrong with the norms, naming the first bad node; None when all are finite and not negative."""
    bad = np.flatnonzero(wrong_values(values, AMOUNT))
    if not bad.size:
        return None
    return f"norm of node {bad[0]} is {values[bad[0]]}; allowed: {AMOUNT.allowed} ({bad.size:,} such values)"
