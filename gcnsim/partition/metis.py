"""Owners by METIS (k-way), through pymetis' zero-copy arrays."""

from __future__ import annotations

import numpy as np

from gcnsim.graph import Graph
from gcnsim.ids import Int32Array


def metis_owners(graph: Graph, parts: int, objective: str, seed: int) -> tuple[Int32Array, int]:
    """Owner per node, int32[N], and the objective's value: edges cut for `cut`, sum over parts of |B_n| for `vol`.

    METIS, "A fast and high quality multilevel scheme for partitioning irregular graphs" (Karypis and Kumar, 1998). It
    may leave a part empty when the graph is tiny. The same graph and seed give the same owners.
    """
    import pymetis

    kind = pymetis.zero_copy_dtype()
    adjacency = pymetis.CSRAdjacency(graph.indptr.astype(kind, copy=False), graph.indices.astype(kind, copy=False))
    goal = pymetis.ObjType.VOL if objective == "vol" else pymetis.ObjType.CUT
    # Recursive bisection, pymetis' default up to 8 parts, cannot optimise the volume.
    options = pymetis.Options(objtype=goal, seed=seed % 2**31)
    value, owner = pymetis.part_graph(parts, adjacency=adjacency, recursive=False, options=options)
    return np.asarray(owner).astype(np.int32), int(value)
