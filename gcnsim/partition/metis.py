"""Owners by METIS (k-way or by recursive bisection), through pymetis' zero-copy arrays."""

from __future__ import annotations

import signal
from typing import Final

import numpy as np

from gcnsim.errors import GraphError
from gcnsim.graph import Graph
from gcnsim.ids import Int32Array

RECURSIVE: Final = "recursive"
KWAY: Final = "kway"
ALGORITHMS: Final = (KWAY, RECURSIVE)
"""All parts at once, or by bisecting, and bisecting the halves."""

NODES: Final = "nodes"
EDGES: Final = "edges"
BALANCES: Final = (NODES, EDGES)
"""What parts have about equally many of: nodes, or stored entries, which a worker's work goes by."""

PER_MILLE: Final = 1000
"""METIS takes the imbalance allowed, `ufactor`, in thousandths; its own is 30 (k-way) or 1 (recursive)."""


def metis_owners(
    graph: Graph,
    parts: int,
    objective: str,
    seed: int,
    *,
    algorithm: str = KWAY,
    imbalance: float | None = None,
    balance: str = NODES,
) -> tuple[Int32Array, int]:
    """Owner per node, int32[N], and the objective's value: edges cut for `cut`, sum over parts of |B_n| for `vol`.

    METIS, "A fast and high quality multilevel scheme for partitioning irregular graphs" (Karypis and Kumar, 1998). It
    may leave a part empty when the graph is tiny. The same graph and seed give the same owners; the C library's
    generator makes the same numbers of the seeds 0 and 1. imbalance: by how much, as a share of the mean, the largest
    part may be larger, to the nearest 0.1 %; None: METIS' own, 3 % (k-way) or 0.1 % (recursive). balance: what is to
    be balanced.

    Raises GraphError for volume by recursive bisection, which METIS does not do.
    """
    import pymetis

    if algorithm == RECURSIVE and objective != "cut":
        raise GraphError(f"partition objective {objective!r} is not allowed with {RECURSIVE}; METIS bisects by: cut")

    kind = pymetis.zero_copy_dtype()
    adjacency = pymetis.CSRAdjacency(graph.indptr.astype(kind, copy=False), graph.indices.astype(kind, copy=False))
    goal = pymetis.ObjType.VOL if objective == "vol" else pymetis.ObjType.CUT
    options = pymetis.Options(objtype=goal, seed=seed % 2**31)
    if imbalance is not None:
        options.ufactor = max(1, round(imbalance * PER_MILLE))
    # A node without edges weighs as much as one with one: METIS wants weights above 0 somewhere.
    weights = np.maximum(graph.degrees, 1).astype(kind) if balance == EDGES else None
    # METIS catches SIGTERM for its own errors and jumps out of its handler: the signal would stay blocked, here and in
    # every process begun later, and whoever waits for these to end would wait for ever.
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        value, owner = pymetis.part_graph(
            parts, adjacency=adjacency, vweights=weights, recursive=algorithm == RECURSIVE, options=options
        )
    except RuntimeError as error:
        raise GraphError(f"METIS could not cut the graph into {parts} parts, or was asked to end: {error}") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
    return np.asarray(owner).astype(np.int32), int(value)
