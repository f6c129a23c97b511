"""Demand caches replayed over a stream of requests, by libcachesim (the extra `caches`).

Rows are all of one size, so a cache is so many rows. A row that was missed always enters; nothing is brought in ahead.
Ties of lfu fall to the row used longest ago. belady evicts the row whose next request is furthest: no other demand
cache of that size hits more.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.caching.policies import DEMAND
from gcnsim.errors import ScenarioError, nearest
from gcnsim.ids import IntArray

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
"""libcachesim's S3-FIFO admits a row only where its small queue is larger than the row."""


@dataclass(frozen=True, slots=True)
class RequestStream:
    """Requests written where libcachesim reads them; path: of a file that lives as long as the stream is open."""

    requests: int
    path: str

    def hits(self, policy: str, rows: int, after: int = 0) -> int:
        """Hits of an at first empty cache of `rows` rows; the first `after` requests fill it but are not counted.

        Raises ScenarioError for an unknown policy, or where libcachesim is not installed.
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
    """A stream that asks for the rows `ids`, int64[n] >= 0, in their order."""
    records = np.zeros(ids.size, _REQUEST)
    records["id"] = ids + 1
    records["size"] = 1
    records["next"] = next_request(ids)
    with tempfile.TemporaryDirectory(prefix="gcnsim-") as folder:
        path = Path(folder) / "requests"
        path.write_bytes(records.tobytes())
        yield RequestStream(ids.size, str(path))


def next_request(ids: IntArray) -> IntArray:
    """Where in `ids` each one's row is asked for next, int64[n]; the largest int64 where never again."""
    order = np.argsort(ids, kind="stable")
    again = ids[order[1:]] == ids[order[:-1]]
    following = np.full(ids.size, _NEVER, np.int64)
    following[order[:-1][again]] = order[1:][again]
    return following


def need_library(policy: str) -> None:
    """Refuse a demand policy where it cannot be replayed, before any work. Raises ScenarioError."""
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
    """An empty cache of `rows` rows. S3-FIFO with fewer than 3 has no room for two queues: it is FIFO."""
    bits = rows.bit_length() + 1
    if policy != "s3-fifo":
        return getattr(library, _CLASSES[policy])(rows, hashpower=bits)
    if rows <= _LEAST_SMALL:
        return library.FIFO(rows, hashpower=bits)
    small = max(_LEAST_SMALL, rows // 10)
    # Half a row more, or the library's rounding down could take a row away.
    return library.S3FIFO(rows, hashpower=bits, small_size_ratio=(small + 0.5) / rows)
