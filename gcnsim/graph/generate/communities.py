"""A degree-corrected block model with hierarchical communities and bridge nodes.

Every node has a (lognormal) weight, which determines its mean degree, and belongs to a community; community sizes are
lognormal too. Only a share of the nodes, the bridges, has edges to other communities. Hubs are bridges more often: the
probability is proportional to weight to the power of `hub_bias`. A bridge draws the share of its leaving edges from a
Beta distribution. A leaving edge stays within the next group of `fanout` communities, except for the share `reach`.
That share continues to the group of fanout^2, and so on to the whole graph; both ends of such an edge are bridges. Ids
are shuffled. Degree correction: Karrer and Newman, "Stochastic blockmodels and community structure in networks" (2011).

No generator draws more edges than there are pairs, more nodes than ids, or a graph that exceeds the allowed memory.

Distinct edges come from repeated draws. An edge is one int64 key: its smaller end in the upper half, its larger end in
the lower half. Sorted keys are therefore the upper triangle's rows in order. Draws come in blocks of a fixed size with
one random stream each, so the graph is the same for any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gcnsim.core.errors import GraphError
from gcnsim.core.ids import FloatArray, Int32Array, IntArray, frozen
from gcnsim.core.processes import parallel_map
from gcnsim.core.streams import stream
from gcnsim.core.units import format_bytes
from gcnsim.graph.csr import MOST_NODES, Graph

BLOCK = 1 << 20
"""Edges drawn from one random stream; another value gives another graph."""

_MOST_DRAWS = 8
"""The most draws of one round per requested edge; a model that needs more has too few possible edges."""

Draw: TypeAlias = Callable[[int, int], IntArray]
"""`draw(round, count)`: the keys of about `count` edges, including self-loops and duplicates."""

Say: TypeAlias = Callable[[str], None]
"""A callback for one line of progress."""


def silent(_: str) -> None:
    """Say nothing."""


def keys_of(first: IntArray, second: IntArray) -> IntArray:
    """The keys of edges between first[k] and second[k], int64."""
    keys: IntArray = np.minimum(first, second) << 32
    keys |= np.maximum(first, second)
    return keys


def blocks(count: int, drawn: Callable[[int, int], IntArray], processes: int) -> IntArray:
    """`drawn(start, stop)` of every block of `count` draws, joined."""
    starts = range(0, count, BLOCK)
    found = parallel_map(lambda start: drawn(start, min(start + BLOCK, count)), starts, processes)
    return np.concatenate(found) if found else np.empty(0, np.int64)


def distinct_edges(draw: Draw, edges: int, seed: int, name: str, say: Say = silent) -> IntArray:
    """The sorted keys of exactly `edges` distinct edges without self-loops, drawn in rounds; int64[edges].

    Raises GraphError if too many draws repeat to reach the number.
    """
    kept = np.empty(0, np.int64)
    accepted, turn = 1.0, 0
    while kept.size < edges:
        missing = edges - kept.size
        count = int(missing / accepted) + (64 if turn else 0)
        if count > _MOST_DRAWS * edges + BLOCK:
            raise GraphError(
                f"{name}: {edges:,} edges: only {kept.size:,} different ones were found; use fewer, or other parameters"
            )
        say(f"drawing {edges:,} edges: {kept.size:,} found")
        fresh = _fresh(draw(turn, count), kept)
        accepted = max(fresh.size / count, accepted / 4.0)
        if fresh.size > missing:
            chosen = stream(seed, "generate", "surplus", turn).choice(fresh.size, missing, replace=False, shuffle=False)
            fresh = fresh[chosen]
        kept = np.concatenate([kept, fresh]) if kept.size else fresh
        kept.sort()
        turn += 1
    return kept


def _fresh(keys: IntArray, kept: IntArray) -> IntArray:
    """Those of `keys` that are not self-loops and not in `kept`, each once, sorted. `keys` is overwritten."""
    keys.sort()
    good = keys >> 32 != keys & 0xFFFFFFFF
    good[1:] &= keys[1:] != keys[:-1]
    fresh: IntArray = keys[good]
    if kept.size:
        place = np.minimum(np.searchsorted(kept, fresh), kept.size - 1)
        fresh = fresh[kept[place] != fresh]
    return fresh


def graph_of(keys: IntArray, nodes: int, name: str, features: int | None = None, classes: int | None = None) -> Graph:
    """The graph of sorted distinct keys: in each row smaller neighbours, then larger ones, both ascending."""
    from scipy.sparse import csr_array

    above = np.searchsorted(keys, np.arange(nodes + 1, dtype=np.int64) << 32)
    upper = keys.astype(np.int32)
    # scipy converts all indices to the width of the row starts.
    starts = above.astype(np.int32) if keys.size < 2**31 else above
    rows = csr_array((np.ones(keys.size, np.bool_), upper, starts), shape=(nodes, nodes))
    columns = rows.tocsc()
    lower = columns.indices.astype(np.int32, copy=False)
    below = columns.indptr.astype(np.int64, copy=False)
    counts = np.stack([np.diff(below), np.diff(above)], axis=1).ravel()
    first = np.repeat(np.tile(np.array([True, False]), nodes), counts)
    indices = np.empty(2 * keys.size, np.int32)
    indices[first] = lower
    indices[~first] = upper
    return Graph(frozen(above + below), frozen(indices), name, features, classes)


EDGE_BYTES, NODE_BYTES, FIXED_BYTES = 48, 200, 250_000_000
"""Peak memory per undirected edge and per node, and of the interpreter with its libraries: measured, rounded up."""


def memory_needed(nodes: int, edges: int) -> int:
    """Peak resident bytes of generating a graph, an upper estimate."""
    return EDGE_BYTES * edges + NODE_BYTES * nodes + FIXED_BYTES


def check_size(name: str, nodes: int, edges: int, max_memory: float | None) -> None:
    """Raise GraphError for impossible sizes, and for a graph that would take more than `max_memory` bytes."""
    if not 2 <= nodes <= MOST_NODES:
        raise GraphError(f"{name}: {nodes:,} nodes; 2 to {MOST_NODES:,} are allowed")
    pairs = nodes * (nodes - 1) // 2
    if not 1 <= edges <= pairs:
        raise GraphError(f"{name}: {edges:,} edges; {nodes:,} nodes allow 1 to {pairs:,}")
    needed = memory_needed(nodes, edges)
    if max_memory is not None and needed > max_memory:
        raise GraphError(
            f"{name}: {nodes:,} nodes and {edges:,} edges need about {format_bytes(needed)} of memory; "
            f"allowed: {format_bytes(max_memory)}"
        )


@dataclass(frozen=True, slots=True)
class BlockModel:
    """The model's parameters.

    nodes, edges: undirected edges, exact. communities: their number. size_spread: standard deviation of the log of
    their sizes. degree_spread: standard deviation of the log of the weights. bridges: share of nodes with edges that
    leave their community. hub_bias: 0: any node may be a bridge; 1: in proportion to weight. cross_mean: mean share of
    a bridge's edges that leave. cross_concentration: a + b of the Beta distribution of that share; a small value gives
    many bridges with few such edges and some with almost only such edges. fanout: communities per group, groups per
    larger group. reach: share of the leaving edges that also leave a group, at every level of the hierarchy.
    """

    nodes: int
    edges: int
    communities: int = 64
    size_spread: float = 0.5
    degree_spread: float = 1.0
    bridges: float = 0.5
    hub_bias: float = 0.5
    cross_mean: float = 0.25
    cross_concentration: float = 2.0
    fanout: int = 4
    reach: float = 0.5


_RANGES = {
    "communities": (1, 2**31),
    "size_spread": (0.0, 3.0),
    "degree_spread": (0.0, 3.0),
    "bridges": (0.0, 1.0),
    "hub_bias": (0.0, 2.0),
    "cross_mean": (0.001, 0.999),
    "cross_concentration": (0.01, 1000.0),
    "fanout": (2, 2**31),
    "reach": (0.0, 1.0),
}


@dataclass(frozen=True, slots=True)
class ModelParameters:
    """The random properties of nodes, drawn before any edge; nodes of a community have consecutive numbers.

    start: int64[C + 1], the first node of each community. degree: float64[N], expected degrees. cross: float64[N],
    share of each node's edges that leave its community.
    """

    start: IntArray
    degree: FloatArray
    cross: FloatArray


@dataclass(frozen=True, slots=True)
class _Level:
    """Edges with both ends in one group: group of each node, bounds of each group, and the ends' cumulative weights."""

    group: Int32Array
    start: IntArray
    cumulated: FloatArray
    weight: FloatArray

    def drawn(self, seed: int, label: tuple[str | int, ...], count: int, order: IntArray, processes: int) -> IntArray:
        """Keys of `count` edges: the first end by weight, the second by weight within the first one's group."""
        total = self.weight.sum()
        ends = np.cumsum(stream(seed, *label, "firsts").multinomial(count, self.weight / total))
        low, high = self.cumulated[self.start[:-1]], self.cumulated[self.start[1:]]

        def block(begin: int, stop: int) -> IntArray:
            least, most = np.searchsorted(ends, [begin, stop - 1], side="right")
            bounds = np.clip(ends[least : most + 1], begin, stop)
            first = np.repeat(np.arange(least, most + 1), bounds - np.append(begin, bounds[:-1]))
            group = self.group[first]
            aim = stream(seed, *label, "seconds", begin).random(stop - begin)
            aim *= (high - low)[group]
            aim += low[group]
            second = np.searchsorted(self.cumulated, aim, side="right") - 1
            np.clip(second, self.start[group], self.start[group + 1] - 1, out=second)
            return keys_of(order[first], order[second])

        return blocks(count, block, processes)


def block_model(
    model: BlockModel,
    seed: int,
    name: str = "block",
    *,
    features: int | None = None,
    classes: int | None = None,
    max_memory: float | None = None,
    processes: int = 1,
    say: Say = silent,
) -> Graph:
    """The graph of `model` and `seed`, the same for any number of processes.

    Raises GraphError for parameters out of range, for more edges than pairs of nodes or than the communities allow, and
    if generating it would take more than `max_memory` bytes.
    """
    check_size(name, model.nodes, model.edges, max_memory)
    _check(name, model)
    nature = model_parameters(model, seed)
    levels = _levels(model, nature)
    shares = np.array([level.weight.sum() for level in levels])
    order = stream(seed, "generate", "order").permutation(model.nodes)

    def draw(turn: int, count: int) -> IntArray:
        split = stream(seed, "generate", "levels", turn).multinomial(count, shares / shares.sum())
        block_keys = [
            level.drawn(seed, ("generate", turn, k), int(split[k]), order, processes) for k, level in enumerate(levels)
        ]
        return np.concatenate(block_keys)

    keys = distinct_edges(draw, model.edges, seed, name, say)
    say(f"building the rows of {model.nodes:,} nodes")
    return graph_of(keys, model.nodes, name, features, classes)


def model_parameters(model: BlockModel, seed: int) -> ModelParameters:
    """The nodes of `model`: communities, expected degrees, shares of leaving edges."""
    draws = stream(seed, "generate", "nodes")
    sizes = np.exp(model.size_spread * draws.standard_normal(model.communities))
    start = np.rint(np.cumsum(sizes) / sizes.sum() * model.nodes).astype(np.int64)
    weight = np.exp(model.degree_spread * draws.standard_normal(model.nodes))
    chance = _bridge_chance(weight, model.bridges, model.hub_bias)
    bridge = draws.random(model.nodes) < chance
    a = model.cross_mean * model.cross_concentration
    cross = np.where(bridge, draws.beta(a, model.cross_concentration - a, model.nodes), 0.0)
    return ModelParameters(np.concatenate([[0], start]), weight * (2.0 * model.edges / weight.sum()), cross)


def _bridge_chance(weight: FloatArray, share: float, bias: float) -> FloatArray:
    """In proportion to weight ** bias, at most 1, with mean `share`."""
    odds = weight**bias
    low, high = 0.0, 1.0 / float(odds.min())
    for _ in range(60):
        scale = (low + high) / 2.0
        low, high = (scale, high) if float(np.minimum(1.0, scale * odds).mean()) < share else (low, scale)
    return np.minimum(1.0, high * odds)


def _levels(model: BlockModel, nature: ModelParameters) -> list[_Level]:
    """The communities, then groups of fanout, fanout^2, ... communities, and finally the whole graph."""
    group = np.repeat(np.arange(model.communities, dtype=np.int32), np.diff(nature.start))
    inner, leaving = nature.degree * (1.0 - nature.cross), nature.degree * nature.cross
    levels = [_level(group, nature.start, inner)]
    span, left = 1, 1.0
    while span < model.communities and leaving.any():
        span *= model.fanout
        last = span >= model.communities
        share = left if last else left * (1.0 - model.reach)
        left -= share
        if share > 0.0:
            start = np.append(nature.start[:-1][::span], model.nodes)
            levels.append(_level((group // span).astype(np.int32), start, leaving * share))
    return levels


def _level(group: Int32Array, start: IntArray, weight: FloatArray) -> _Level:
    return _Level(group, start, np.concatenate([[0.0], np.cumsum(weight)]), weight)


def _check(name: str, model: BlockModel) -> None:
    for field, (least, most) in _RANGES.items():
        found = getattr(model, field)
        if not least <= found <= most:
            raise GraphError(f"{name}: {field} {found:g} is outside [{least:g}, {most:g}]")
    if model.communities > model.nodes:
        raise GraphError(f"{name}: {model.communities:,} communities for {model.nodes:,} nodes; each needs a node")
