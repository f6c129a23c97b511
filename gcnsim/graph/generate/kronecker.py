"""R-MAT: a Kronecker graph, whose every edge descends the quarters of the adjacency by fixed chances.

Chakrabarti, Zhan and Faloutsos, "R-MAT: A Recursive Model for Graph Mining" (2004); the default chances are Graph500's.
Its degrees are heavy-tailed and its communities weak: a graph that is harder to partition than most real ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.errors import GraphError
from gcnsim.graph.csr import Graph
from gcnsim.graph.generate.distinct import Say, blocks, distinct_edges, graph_of, keys_of, silent
from gcnsim.graph.generate.limits import check_size
from gcnsim.ids import IntArray
from gcnsim.streams import stream


@dataclass(frozen=True, slots=True)
class RMat:
    """The model's parameters.

    nodes, edges: undirected edges, exactly so many; any number of nodes (ids beyond it are drawn again). a, b, c:
    chances of the quarters first-first, first-second, second-first; second-second has what is left.
    """

    nodes: int
    edges: int
    a: float = 0.57
    b: float = 0.19
    c: float = 0.19


def rmat(
    model: RMat,
    seed: int,
    name: str = "rmat",
    *,
    max_memory: float | None = None,
    processes: int = 1,
    say: Say = silent,
) -> Graph:
    """The graph of `model` and `seed`: the same in any number of processes. Ids are shuffled; nodes may be isolated.

    Raises GraphError for chances that are none, for more edges than pairs of nodes or than the draws find, and when
    drawing would take more than `max_memory` bytes.
    """
    check_size(name, model.nodes, model.edges, max_memory)
    _check(name, model)
    order = stream(seed, "generate", "order").permutation(model.nodes)

    def draw(turn: int, count: int) -> IntArray:
        def block(begin: int, stop: int) -> IntArray:
            return _block(model, order, stream(seed, "generate", turn, begin), stop - begin)

        return blocks(count, block, processes)

    keys = distinct_edges(draw, model.edges, seed, f"{name}: {_told(model)}", say)
    say(f"building the rows of {model.nodes:,} nodes")
    return graph_of(keys, model.nodes, name)


def _told(model: RMat) -> str:
    return f"a {model.a:g}, b {model.b:g}, c {model.c:g}"


def _check(name: str, model: RMat) -> None:
    """Raises GraphError for chances that are none, and for those that join every node to itself alone."""
    for parameter in ("a", "b", "c"):
        chance = getattr(model, parameter)
        if not 0.0 <= chance <= 1.0:
            raise GraphError(f"{name}: {parameter} {chance:g} is outside 0 to 1")
    if model.a + model.b + model.c > 1.0 + 1e-12:
        raise GraphError(f"{name}: {_told(model)}; chances of sum 1 at most are allowed")
    if model.b + model.c == 0.0:
        raise GraphError(f"{name}: {_told(model)} join no two nodes; b or c above 0 is needed")


def _block(model: RMat, order: IntArray, draws: np.random.Generator, count: int) -> IntArray:
    """Keys of `count` edges; one with an id beyond the last node is a self-loop, which nobody keeps."""
    first, second = np.zeros(count, np.int32), np.zeros(count, np.int32)
    aim = np.empty(count, np.float32)
    a, upper = np.float32(model.a), np.float32(model.a + model.b)
    third = upper + np.float32(model.c)
    for _ in range((model.nodes - 1).bit_length()):
        draws.random(out=aim, dtype=np.float32)
        below = aim >= upper
        # Of the four quarters the second and the fourth lie on the right.
        right = (aim >= a) ^ below ^ (aim >= third)
        first <<= 1
        first |= below
        second <<= 1
        second |= right
    outside = (first >= model.nodes) | (second >= model.nodes)
    first[outside] = second[outside] = 0
    return keys_of(order[first], order[second])
