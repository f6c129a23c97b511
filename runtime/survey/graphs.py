"""Made-up graphs, the same on every server: hubs and neighbourhoods, so that some parts have much to exchange."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from gcnsim.graph import Graph, build_csr
from gcnsim.io.atomic import atomic_write
from gcnsim.streams import stream
from runtime.survey.rule import GeneratedGraph

_REACH: Final = 1 / 60
"""Of all nodes, the mean distance of a near neighbour."""

_HUBS: Final = 3.0
"""Far ends are drawn as u to this power: degrees by a power law, node 0 the largest hub."""


def made_up(name: str, made: GeneratedGraph, device: str) -> Graph:
    """The graph `name`, drawn from its name: near edges by an exponential distance, far ones to hubs."""
    nodes = made.nodes[device]
    generator = stream(0, "survey", name)
    source = generator.integers(nodes, size=nodes * made.degree // 2)
    near = (source + 1 + generator.exponential(nodes * _REACH, source.size).astype(np.int64)) % nodes
    far = (nodes * generator.random(source.size) ** _HUBS).astype(np.int64)
    target = np.where(generator.random(source.size) < made.far, far, near)
    return build_csr(source, target, nodes, name)


def save(path: Path, graph: Graph) -> None:
    """Write the graph as training reads it; nothing where it is already. Raises FileError."""
    if path.is_file():
        return
    with atomic_write(path) as file:
        np.savez(file, allow_pickle=False, indptr=graph.indptr, indices=graph.indices)
