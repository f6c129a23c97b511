"""Cache rules: how many boundary rows a feature cache holds, and which ones a worker caches on its GPU.

Only input features (layer 0) can hit: deeper rows change every iteration. A rule has one of three kinds, which its name
determines:

- `static`: the best rows of a ranking, fetched before the first graph and kept;

- `refreshed`: the same, ranked again at regular intervals;

- `demand`: empty at first; every missed row enters.

The static cache of mini-batch loaders holds the rows of highest degree.

Demand caches are replayed by libcachesim (the extra `caches`). All rows have one size, so a cache's capacity is a
number of rows. A missed row always enters; nothing is prefetched. For lfu, the row used longest ago loses a tie. belady
evicts the row whose next request is furthest: no other demand cache of that size hits more.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from gcnsim.core.errors import ScenarioError, UnitError, nearest
from gcnsim.core.fields import shown
from gcnsim.core.ids import AnyArray, BoolArray, IntArray
from gcnsim.core.units import FRACTION, NBYTES, share_readings
from gcnsim.graph import Graph

BYTES_PER_VALUE = 4
"""Features are float32."""

_ROUNDING = 1e-9
"""0.29 * 100 is 28.999...: a share that means a whole number of rows gives that number."""


@dataclass(frozen=True, slots=True)
class CacheSize:
    """At most one of `fraction` (of a worker's boundary nodes, 0..1) and `nbytes` (per worker); neither: no cache.

    auto: as much as the GPU's memory allows. Raises ScenarioError if two are set, one is negative or not finite, or the
    fraction is above 100 %.
    """

    fraction: float | None = None
    nbytes: float | None = None
    auto: bool = False

    def __post_init__(self) -> None:
        """Refuse invalid sizes."""
        if self.fraction is not None and self.nbytes is not None:
            raise ScenarioError(f"cache: both {self.fraction:.4g} of the boundary and {self.nbytes:.4g} B; give one")
        if self.auto and (self.fraction is not None or self.nbytes is not None):
            raise ScenarioError("cache: both auto and a size; give one")
        if self.fraction is not None and not 0.0 <= self.fraction <= 1.0:
            raise ScenarioError(f"cache: {100 * self.fraction:g}% is outside 0%..100%")
        if self.nbytes is not None and not 0.0 <= self.nbytes < math.inf:
            raise ScenarioError(f"cache: {self.nbytes:g} B; allowed: 0 B or more")

    @classmethod
    def none(cls) -> CacheSize:
        """No cache at all."""
        return cls()

    @property
    def empty(self) -> bool:
        """Whether it can hold no row."""
        return not self.auto and not self.fraction and not self.nbytes

    def describe(self) -> str:
        """The size in scenario notation: `30%`, `2GiB`, `auto`; `0%` for no cache."""
        if self.auto:
            return "auto"
        return FRACTION.exact(self.fraction or 0.0) if self.nbytes is None else NBYTES.exact(self.nbytes)


def capacity(cache: CacheSize, boundary_nodes: int, feature_width: int) -> int:
    """The rows of `feature_width` float32 values in the cache of one worker, rounded down, at most `boundary_nodes`.

    Raises ScenarioError for `auto`, whose bytes the method must determine first.
    """
    if cache.auto:
        raise ScenarioError("cache: auto is not allowed; a share (30%) or bytes (2GiB) are")
    if cache.fraction is not None:
        return min(boundary_nodes, math.floor(cache.fraction * boundary_nodes + _ROUNDING))
    if cache.nbytes is not None:
        return min(boundary_nodes, math.floor(cache.nbytes / (BYTES_PER_VALUE * feature_width) + _ROUNDING))
    return 0


_NUMBER: Final = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")
_PERCENT: Final = re.compile(r"(?:%|percent|pct)\Z", re.IGNORECASE)

CACHE_SIZES: Final = "0% to 100% of the boundary nodes, or bytes with a unit (2GiB)"
STATIC_CACHE_SIZES: Final = "auto, 0% to 100% of the rows of the worker's part, or bytes with a unit (2GiB)"


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache size: `30%` of the boundary nodes, or bytes (`2GiB`); with `auto` also the free GPU memory."""

    auto: bool = False
    unit: str = "%"

    @property
    def allowed(self) -> str:
        return STATIC_CACHE_SIZES if self.auto else CACHE_SIZES

    def read(self, raw: object, path: str) -> CacheSize:
        value = parse_cache(raw, path, self.allowed)
        self.check(value, path)
        return value

    def check(self, value: Any, path: str) -> None:
        if not isinstance(value, CacheSize):
            raise ScenarioError(f"{path}: {shown(value)} is not a cache size; {self.allowed}")
        if value.auto and not self.auto:
            raise ScenarioError(f"{path}: auto is not allowed; {self.allowed}")

    def write(self, value: Any) -> object:
        return value.describe()


def parse_cache(raw: object, path: str = "cache", allowed: str = CACHE_SIZES) -> CacheSize:
    """Parse a cache size `30%`, `0.3`, `2GiB` or `auto`; 0 means no cache. allowed: the values, in words.

    Raises UnitError or ScenarioError, starting with `path`.
    """
    text = raw.strip() if isinstance(raw, str) else ""
    if text == "auto":
        return CacheSize(auto=True)
    number = not isinstance(raw, str) or _NUMBER.fullmatch(text) is not None
    quantity = FRACTION if number or _PERCENT.search(text) else NBYTES
    try:
        value = quantity.parse(raw)
    except UnitError as error:
        if not number and text[:1].isdigit():
            raise UnitError(f"{path}: {error}") from None
        allowed = " or ".join(share_readings(raw)) or "a cache size with its unit, e.g. 30% (of the boundary) or 2GiB"
        wrong = "has no unit" if number else "is not a cache size"
        raise UnitError(f"{path}: {shown(raw)} {wrong}; write {allowed}") from None
    if value == 0:
        return CacheSize.none()
    if quantity is NBYTES:
        return CacheSize(nbytes=value)
    if value > 1:
        raise ScenarioError(f"{path}: {shown(raw)} is not allowed; {allowed}")
    return CacheSize(fraction=value)


class CachePolicy(Protocol):
    """A ranking of boundary nodes in order of preference."""

    name: ClassVar[str]

    def ranking(self, inclusion: AnyArray, degree: AnyArray, generator: np.random.Generator) -> IntArray:
        """Boundary indices in order of preference, int64[B]; deterministic for a given generator state."""
        ...


class ByInclusion:
    """The most likely sampled first (PSC-GCN); ties (all nodes at epsilon 1) by degree, then by boundary index."""

    name: ClassVar[str] = "inclusion"

    def ranking(self, inclusion: AnyArray, degree: AnyArray, generator: np.random.Generator) -> IntArray:
        """Descending inclusion, then descending degree, then ascending index (lexsort is stable)."""
        return np.lexsort((-degree.astype(np.int64), -inclusion))


class ByDegree:
    """The highest degree in the whole graph first; ties by boundary index."""

    name: ClassVar[str] = "degree"

    def ranking(self, inclusion: AnyArray, degree: AnyArray, generator: np.random.Generator) -> IntArray:
        """Descending degree, then ascending index."""
        return np.argsort(-degree.astype(np.int64), kind="stable")


class AtRandom:
    """A uniform choice; the baseline."""

    name: ClassVar[str] = "random"

    def ranking(self, inclusion: AnyArray, degree: AnyArray, generator: np.random.Generator) -> IntArray:
        """A permutation from `generator`."""
        return generator.permutation(degree.size)


_POLICIES: dict[str, CachePolicy] = {rule.name: rule for rule in (ByInclusion(), ByDegree(), AtRandom())}


def cache_policy(name: str) -> CachePolicy:
    """The rule called `name` (`inclusion`, `degree`, `random`); raises ScenarioError with the nearest known name."""
    if name not in _POLICIES:
        raise ScenarioError(f"cache policy: unknown {name!r}; {nearest(name, _POLICIES)}")
    return _POLICIES[name]


def cached_mask(
    policy: str, capacity_rows: int, inclusion: AnyArray, degree: AnyArray, generator: np.random.Generator
) -> BoolArray:
    """The boundary nodes a cache of `capacity_rows` rows holds, bool[B]."""
    mask = np.zeros(degree.size, np.bool_)
    if capacity_rows:
        mask[cache_policy(policy).ranking(inclusion, degree, generator)[:capacity_rows]] = True
    return mask


_CERTAIN: Final = 1.0 - 2.0**-24
"""The largest float32 below 1, which replaces a stored probability of 1."""


class ByDegreeRatio:
    """The largest ratio of in- to out-degree first (AliGraph), estimated from a trace; ties by degree, then by index.

    Graphs here are undirected, where the ratio over the whole graph is 1 for every node. So the in-degree is counted
    within the worker: j's cross edges m_j, the rows that read j. A trace has the probability 1 - (1 - epsilon)^m_j, so
    the ratio is ln(1 - chance) / (ln(1 - epsilon) d_j): exact at the uniform rate, an estimate if rates differ by edge.
    """

    name: ClassVar[str] = "degree-ratio"

    def ranking(self, inclusion: AnyArray, degree: AnyArray, generator: np.random.Generator) -> IntArray:
        """Descending ln(1 - chance) / degree in magnitude (epsilon scales all alike), then descending degree."""
        reads = -np.log1p(-np.minimum(inclusion.astype(np.float64), _CERTAIN))
        return np.lexsort((-degree.astype(np.int64), -reads / np.maximum(degree, 1)))


RANKINGS: Final[Mapping[str, CachePolicy]] = {
    rule.name: rule for rule in (AtRandom(), ByDegree(), ByDegreeRatio(), ByInclusion())
}
REFRESHED: Final = "inclusion-refresh"
DEMAND: Final = ("fifo", "lru", "lfu", "s3-fifo", "sieve", "arc", "belady")

KINDS: Final[Mapping[str, str]] = (
    dict.fromkeys(RANKINGS, "static") | {REFRESHED: "refreshed"} | dict.fromkeys(DEMAND, "demand")
)
"""Every rule that can be compared, in the order of tables -> its kind."""

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "all": tuple(KINDS),
    "static": (*RANKINGS, REFRESHED),
    "demand": DEMAND,
}
"""Names for several rules. `static` has all that need only core packages."""


def expanded(names: Iterable[str]) -> tuple[str, ...]:
    """The rules behind names of rules and groups, each once, in the order of KINDS.

    Raises ScenarioError for an unknown name.
    """
    found: set[str] = set()
    for name in names:
        if name not in GROUPS and name not in KINDS:
            raise ScenarioError(f"cache policy: unknown {name!r}; {nearest(name, (*GROUPS, *KINDS))}")
        found.update(GROUPS.get(name, (name,)))
    return tuple(name for name in KINDS if name in found)


def most_connected(graph: Graph, holds: BoolArray, rows: int) -> BoolArray:
    """The `rows` nodes of highest degree in a part, ties by id, bool[N] (PaGraph's cache).

    holds: bool[N]. A degree counts neighbours in the part.
    """
    nodes = np.flatnonzero(holds)
    mask = np.zeros(graph.nodes, np.bool_)
    if rows <= 0:
        return mask
    degree = graph.degrees[nodes] if holds.all() else _degrees_within(graph, holds)[nodes]
    mask[nodes[np.argsort(-degree, kind="stable")[:rows]]] = True
    return mask


def _degrees_within(graph: Graph, holds: BoolArray) -> IntArray:
    """Neighbours of every node among the nodes of the part."""
    inside = np.concatenate([[0], np.cumsum(holds[graph.indices])])
    within: IntArray = inside[graph.indptr[1:]] - inside[graph.indptr[:-1]]
    return within


_NEVER: Final = np.iinfo(np.int64).max
_REQUEST: Final = np.dtype([("clock", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
"""libcachesim's oracleGeneral record, 24 B; next: the position of the row's next request."""

_CLASSES: Final = {
    "fifo": "FIFO",
    "lru": "LRU",
    "lfu": "LFU",
    "s3-fifo": "S3FIFO",
    "sieve": "Sieve",
    "arc": "ARC",
    "belady": "Belady",
}
_LEAST_SMALL: Final = 2
"""libcachesim's S3-FIFO admits a row only if its small queue is larger than the row."""


@dataclass(frozen=True, slots=True)
class RequestStream:
    """Requests in a file for libcachesim; path: a file that exists as long as the stream is open."""

    requests: int
    path: str

    def hits(self, policy: str, rows: int, after: int = 0) -> int:
        """Hits of an initially empty cache of `rows` rows; the first `after` requests fill it but are not counted.

        Raises ScenarioError for an unknown policy, or without libcachesim.
        """
        cache = _cache(_library(policy), policy, rows) if rows else None
        if cache is None or after >= self.requests:
            return 0
        reader = self._reader()
        if after:
            cache.process_trace(reader, 0, after)
        counted = self.requests - after
        missed = float(cache.process_trace(reader, after, counted)[0])
        return counted - round(missed * counted)

    def _reader(self) -> Any:
        import libcachesim

        as_written = libcachesim.ReaderInitParam(ignore_obj_size=True)
        return libcachesim.TraceReader(self.path, libcachesim.TraceType.ORACLE_GENERAL_TRACE, as_written)


@contextmanager
def request_stream(ids: IntArray) -> Iterator[RequestStream]:
    """A stream of requests for the rows `ids`, int64[n] >= 0, in order."""
    records = np.zeros(ids.size, _REQUEST)
    records["id"] = ids + 1
    records["size"] = 1
    records["next"] = next_request(ids)
    with tempfile.TemporaryDirectory(prefix="gcnsim-") as folder:
        path = Path(folder) / "requests"
        path.write_bytes(records.tobytes())
        yield RequestStream(ids.size, str(path))


def next_request(ids: IntArray) -> IntArray:
    """The index in `ids` of the next request for each row, int64[n]; the largest int64 if there is none."""
    order = np.argsort(ids, kind="stable")
    again = ids[order[1:]] == ids[order[:-1]]
    following = np.full(ids.size, _NEVER, np.int64)
    following[order[:-1][again]] = order[1:][again]
    return following


def need_library(policy: str) -> None:
    """Refuse a demand policy that cannot be replayed, before any work. Raises ScenarioError."""
    _library(policy)


def _library(policy: str) -> Any:
    if policy not in DEMAND:
        raise ScenarioError(f"cache policy: unknown {policy!r}; {nearest(policy, DEMAND)}")
    try:
        import libcachesim
    except ImportError:
        raise ScenarioError(
            f"cache policy: {policy} is replayed by libcachesim, which is not installed; pip install 'gcnsim[caches]'"
        ) from None
    return libcachesim


def _cache(library: Any, policy: str, rows: int) -> Any:
    """An empty cache of `rows` rows. S3-FIFO with fewer than 3 rows has no room for two queues, so it is FIFO."""
    bits = rows.bit_length() + 1
    if policy != "s3-fifo":
        return getattr(library, _CLASSES[policy])(rows, hashpower=bits)
    if rows <= _LEAST_SMALL:
        return library.FIFO(rows, hashpower=bits)
    small = max(_LEAST_SMALL, rows // 10)
    # Half a row more, so that the library's rounding cannot lose a row.
    return library.S3FIFO(rows, hashpower=bits, small_size_ratio=(small + 0.5) / rows)
