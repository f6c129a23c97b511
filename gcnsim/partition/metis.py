"""Owners by METIS (k-way or by recursive bisection), through pymetis' zero-copy arrays."""

from __future__ import annotations

import signal
from typing import Final

import numpy as np

from gcnsim.errors import GraphError, plural
from gcnsim.graph import Graph
from gcnsim.ids import BoolArray, Int32Array
from gcnsim.partition.several_weights import balanced_owners

RECURSIVE: Final = "recursive"
KWAY: Final = "kway"
ALGORITHMS: Final = (KWAY, RECURSIVE)
"""All parts at once, or by bisecting, and bisecting the halves."""

NODES: Final = "nodes"
EDGES: Final = "edges"
TRAINING_NODES: Final = "training-nodes"
BALANCES: Final = (NODES, EDGES, TRAINING_NODES)
"""What parts have about equally many of: nodes; stored entries, which a worker's work goes by; nodes and also training
nodes, which the epoch of a system goes by whose workers train nodes of their own (DistDGL)."""

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
    training: BoolArray | None = None,
) -> tuple[Int32Array, int]:
    """Owner per node, int32[N], and the objective's value: edges cut for `cut`, sum over parts of |B_n| for `vol`.

    METIS, "A fast and high quality multilevel scheme for partitioning irregular graphs" (Karypis and Kumar, 1998). It
    may leave a part empty when the graph is tiny. The same graph and seed give the same owners; the C library's
    generator makes the same numbers of the seeds 0 and 1. imbalance: by how much, as a share of the mean, the largest
    part may be larger, to the nearest 0.1 %; None: METIS' own, 3 % (k-way) or 0.1 % (recursive). balance: what is to
    be balanced. training: which nodes train, bool[N], for the balance that weighs them.

    Raises GraphError for volume by recursive bisection, which METIS does not do, and where nobody is said to train.
    """
    import pymetis

    if algorithm == RECURSIVE and objective != "cut":
        raise GraphError(f"partition objective {objective!r} is not allowed with {RECURSIVE}; METIS bisects by: cut")
    if balance == TRAINING_NODES and (training is None or not training.any()):
        raise GraphError(
            f"partition balance {TRAINING_NODES!r} is not allowed; {graph.name} does not say who trains (train_mask)"
        )
    kind = pymetis.zero_copy_dtype()
    indptr, indices = graph.indptr.astype(kind, copy=False), graph.indices.astype(kind, copy=False)
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
        if balance == TRAINING_NODES and parts > 1:
            both = np.stack([np.ones(graph.nodes, kind), np.asarray(training, kind)], axis=1)
            value, found = balanced_owners(indptr, indices, both, parts, options, recursive=algorithm == RECURSIVE)
        else:
            adjacency = pymetis.CSRAdjacency(indptr, indices)
            value, listed = pymetis.part_graph(
                parts, adjacency=adjacency, vweights=weights, recursive=algorithm == RECURSIVE, options=options
            )
            found = np.asarray(listed)
    except RuntimeError as error:
        into = plural(parts, "part")
        raise GraphError(f"METIS could not cut the graph into {into}, or was asked to end: {error}") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
    return found.astype(np.int32), int(value)
