"""Assign owners to nodes: METIS, balanced random, contiguous blocks, or PaGraph's partition.

METIS (k-way or recursive bisection) is called through pymetis' zero-copy arrays. pymetis does not support several
balanced weights per node, so the C function is then called directly. It is that of the library bundled with pymetis,
declared as in `metis.h`, with the options that pymetis made. With one weight the owners equal those of pymetis, which a
test checks.

PaGraph assigns training nodes one by one, each to the part that contains most of its neighbourhood. Every part keeps
copies of all nodes within L hops of its training nodes, so that no batch needs another part. Source: PaGraph, section
on partitioning, after linear deterministic greedy (LDG). As in its released code, overlap and size of a part count one
more, so that empty parts have a score. Ties go to the part with fewer training nodes. The time is proportional to the
total size of all neighbourhoods.
"""

from __future__ import annotations

import ctypes
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gcnsim.core.errors import GraphError, nearest, plural
from gcnsim.core.ids import AnyArray, BoolArray, Int32Array, IntArray, frozen
from gcnsim.core.streams import stream
from gcnsim.graph.csr import Graph
from gcnsim.graph.parts import Partitioning

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RECURSIVE: Final = "recursive"
KWAY: Final = "kway"
ALGORITHMS: Final = (KWAY, RECURSIVE)
"""K-way partitioning, or recursive bisection."""

NODES: Final = "nodes"
EDGES: Final = "edges"
TRAINING_NODES: Final = "training-nodes"
BALANCES: Final = (NODES, EDGES, TRAINING_NODES)
"""The balanced quantity of the parts: nodes; stored entries, which determine a worker's work; or nodes and also
training nodes, which determine an epoch if workers train the nodes of their part (DistDGL).
"""

METHODS = ("metis", "random", "block")
OBJECTIVES = ("vol", "cut")


def partition_graph(
    graph: Graph,
    parts: int,
    method: str = "metis",
    objective: str = "vol",
    seed: int = 0,
    *,
    algorithm: str = KWAY,
    imbalance: float | None = None,
    balance: str = NODES,
    training: BoolArray | None = None,
) -> Partitioning:
    """Every node's owner, each of the `parts` parts non-empty.

    metis: minimises the communication volume (`vol`) or the entries cut (`cut`), parts of about equal node count.
    random: a permutation cut into parts whose sizes differ by at most 1. block: contiguous ids, likewise.
    `objective`, `algorithm`, `imbalance`, `balance` and `training` matter to METIS alone (`metis_owners`); `seed` does
    not matter to blocks.
    Raises GraphError for fewer than 1 part, fewer nodes than parts, an unknown method, objective, algorithm or balance,
    for volume by recursive bisection, and for a balance of training nodes without a split.
    """
    if method not in METHODS:
        raise GraphError(f"partition method {method!r} is unknown: {nearest(method, METHODS)}")
    if objective not in OBJECTIVES:
        raise GraphError(f"partition objective {objective!r} is unknown: {nearest(objective, OBJECTIVES)}")
    for noun, word, known in (("algorithm", algorithm, ALGORITHMS), ("balance", balance, BALANCES)):
        if word not in known:
            raise GraphError(f"partition {noun} {word!r} is unknown: {nearest(word, known)}")
    if parts < 1:
        raise GraphError(f"{graph.name}: {plural(parts, 'part')}; at least 1 is needed")
    if graph.nodes < parts:
        raise GraphError(f"{graph.name}: {graph.nodes} nodes cannot make {plural(parts, 'part')}; each needs a node")
    if method != "metis":
        return _labelled(graph, _dealt(graph, parts, method, seed), parts, method, seed)
    owner = np.zeros(graph.nodes, dtype=np.int32)
    if parts > 1:
        owner, _ = metis_owners(
            graph,
            parts,
            objective,
            seed,
            algorithm=algorithm,
            imbalance=imbalance,
            balance=balance,
            training=training,
        )
    owner = _without_empty(owner, parts)
    return _labelled(graph, owner, parts, metis_label(objective, algorithm, imbalance, balance), seed)


def metis_label(objective: str, algorithm: str, imbalance: float | None, balance: str) -> str:
    """METIS' settings in a word: the objective, and further options."""
    words = ["metis", objective]
    words += [algorithm] * (algorithm != KWAY)
    words += [] if imbalance is None else [f"{100 * imbalance:g}%"]
    words += [f"by-{balance}"] * (balance != NODES)
    return "-".join(words)


def _labelled(graph: Graph, owner: Int32Array, parts: int, label: str, seed: int) -> Partitioning:
    return Partitioning(frozen(owner), parts, label, seed, graph.name, graph.content_hash())


def _dealt(graph: Graph, parts: int, method: str, seed: int) -> Int32Array:
    blocks = (np.arange(graph.nodes, dtype=np.int64) * parts // graph.nodes).astype(np.int32)
    return stream(seed, "partition", "random").permutation(blocks) if method == "random" else blocks


def _without_empty(owner: Int32Array, parts: int) -> Int32Array:
    """`owner`, with the last node of the largest part (lowest rank on ties) given to each empty part, in rank order."""
    counts = np.bincount(owner, minlength=parts)
    for empty in np.flatnonzero(counts == 0):
        donor = int(counts.argmax())
        owner[np.flatnonzero(owner == donor)[-1]] = empty
        counts[donor] -= 1
        counts[empty] += 1
    return owner


PER_MILLE: Final = 1000
"""METIS takes the allowed imbalance, `ufactor`, in thousandths; its default is 30 (k-way) or 1 (recursive)."""


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

    Raises GraphError for volume by recursive bisection, which METIS does not do, and without a split.
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
    # A node without edges weighs as much as one with one edge, because METIS needs some weights above 0.
    weights = np.maximum(graph.degrees, 1).astype(kind) if balance == EDGES else None
    # METIS catches SIGTERM for its errors and jumps out of its handler. The signal would stay blocked, here and in
    # every later process, and nothing could end these.
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


_DONE: Final = 1
"""METIS_OK."""


def balanced_owners(
    indptr: AnyArray, indices: AnyArray, weights: AnyArray, parts: int, options: Any, *, recursive: bool
) -> tuple[int, AnyArray]:
    """The objective's value, and the part of each node, so that each column of `weights` [N, C] is balanced.

    indptr, indices: the graph in pymetis' integers. options: of pymetis. recursive: by bisection. Raises GraphError
    where pymetis hides the library's function, RuntimeError where METIS fails.
    """
    from pymetis import _internal

    name = "METIS_PartGraphRecursive" if recursive else "METIS_PartGraphKway"
    try:
        cut = getattr(ctypes.CDLL(_internal.__file__), name)
        chosen = [options._get(index) for index in range(type(options)._len())]
    except (OSError, AttributeError) as error:
        raise GraphError(
            f"this pymetis does not balance two things at a time ({error}); partition balance: nodes or edges"
        ) from None
    kind = indptr.dtype
    nodes, columns = weights.shape
    value, owner = np.zeros(1, kind), np.zeros(nodes, kind)
    # Arrays have names so that they live as long as the call. None: METIS' default sizes, shares and tolerances.
    numbers = [np.array([number], kind) for number in (nodes, columns, parts)]
    rows, columns_of, flat = (np.ascontiguousarray(array, kind) for array in (indptr, indices, weights))
    options_array = np.array(chosen, kind)
    found = cut(
        *map(_address, (numbers[0], numbers[1], rows, columns_of, flat)),
        *(None, None, _address(numbers[2]), None, None),
        *map(_address, (options_array, value, owner)),
    )
    if found != _DONE:
        raise RuntimeError(f"METIS returned {found}")
    return int(value[0]), owner


def _address(array: AnyArray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


BLOCK = 128
"""Training nodes whose neighbourhoods are computed together."""


@dataclass(frozen=True, slots=True)
class TrainingParts:
    """Per part: its training nodes, int64, in the order of assignment; whether it contains each node, bool[N]."""

    training: tuple[IntArray, ...]
    holds: tuple[BoolArray, ...]


def training_parts(graph: Graph, train: IntArray, parts: int, hops: int) -> TrainingParts:
    """Assign the training nodes `train` (distinct, in this order) to `parts` parts; hops: layers of the model.

    Score of a part with training nodes TV and nodes PV for a node with neighbourhood IN (PaGraph, eq. 1): |TV and IN|
    (mean |TV| - |TV|) / |PV|.
    """
    part_of = np.full(graph.nodes, -1, np.int64)
    holds = np.zeros((parts, graph.nodes), np.bool_)
    sizes, trained = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
    mean = train.size / parts
    for node, near in _neighbourhoods(graph, train, hops):
        where = part_of[near]
        overlap = np.bincount(where[where >= 0], minlength=parts) + 1
        score = overlap * (mean - trained) / (sizes + 1)
        best = int(np.lexsort((trained, -score))[0])
        part_of[node] = best
        trained[best] += 1
        sizes[best] += near.size - int(np.count_nonzero(holds[best, near]))
        holds[best, near] = True
    return TrainingParts(
        tuple(frozen(train[part_of[train] == part]) for part in range(parts)), tuple(frozen(item) for item in holds)
    )


def _neighbourhoods(graph: Graph, train: IntArray, hops: int) -> Any:
    """Each training node with the nodes within `hops` hops of it, including itself."""
    from scipy.sparse import csr_array, identity

    shape = (graph.nodes, graph.nodes)
    ones = np.ones(graph.entries, np.float32)
    adjacency: csr_array = csr_array((ones, graph.indices, graph.indptr), shape=shape)
    step = csr_array(adjacency + identity(graph.nodes, np.float32, format="csr"))
    for first in range(0, train.size, BLOCK):
        nodes = train[first : first + BLOCK]
        reach: csr_array = step[nodes]
        for _ in range(hops - 1):
            reach = csr_array(reach @ step)
            reach.data[:] = 1.0
        for index, node in enumerate(nodes.tolist()):
            yield node, reach.indices[reach.indptr[index] : reach.indptr[index + 1]]
