"""What a sum over neighbours costs a core: the law that knows what the order of a matrix does to the caches.

A row that an entry reads lies in the first cache that has room for all that was read since it was read before. How much
that is follows from how soon rows are read again (`gcnsim.partition.facts`): w entries touch on average
fp(w) = sum over v < w of the share of entries that come back only after more than v (Xiang, Ding, Luo and Bao, HOTL,
ASPLOS 2013, the steady case). A cache of C bytes answers the entries that come back within the w that fills it.
Rows read for the first time, and the result, come from where the last pass over them left them: from the last cache
where what lay between fits it, else from memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gcnsim.cost.device import INDEX, VALUE, Size
from gcnsim.hardware.profiles import TERMS, SumFigures
from gcnsim.ids import AnyArray, FloatArray
from gcnsim.partition import WINDOWS

BLUR: Final = 0.5
"""Of what lies between two uses, a factor of 2 to this power either way of the last cache's size is half in it."""


@dataclass(frozen=True, slots=True)
class Product:
    """A sparse matrix times rows of `width` values.

    entries: stored ones, a number or one for each drawn graph. rows: of the result. reuse, turned: float[W], how soon
    the product and that of the transposed matrix read a row again. read_since, written_since: bytes touched since the
    rows it reads, and its result, were used before.
    """

    entries: Size
    rows: Size
    width: int
    reuse: AnyArray
    turned: AnyArray
    read_since: float
    written_since: float


def product_seconds(figures: SumFigures, product: Product) -> FloatArray:
    """Seconds on a core that nothing else uses, float64 of the entries' shape; 0 without entries."""
    seconds = np.zeros(np.shape(product.entries))
    for name, term in zip(TERMS, terms(figures.caches, product), strict=True):
        seconds = seconds + figures.seconds[name] * term
    return np.where(np.asarray(product.entries) > 0, seconds, 0.0)


def terms(caches: tuple[float, ...], product: Product) -> list[FloatArray]:
    """How much of each of TERMS a product has."""
    last = caches[-1]
    entries = np.asarray(product.entries, np.float64)
    rows = np.asarray(product.rows, np.float64) + np.zeros(entries.shape)
    row_bytes = float(VALUE * product.width)
    new = 1.0 - float(product.reuse[-1])
    filled = entries * (1.0 - float(product.turned[-1]))
    kept = [_held(product, row_bytes, float(entries.mean()), cache) for cache in caches]
    far = outside(product.read_since, last)
    lacking = [entries * (1.0 - kept[0]), entries * (1.0 - kept[1])]
    lacking.append(entries * (max(1.0 - new - kept[2], 0.0) + new * far))
    gone = outside(product.written_since, last)
    size = rows * row_bytes
    made = [np.ones(entries.shape), rows, size, size * gone, filled, entries, entries * row_bytes]
    return [*made, *(item for missed in lacking for item in (missed, missed * row_bytes))]


def outside(since: float, cache: float) -> float:
    """Share of data that has left a cache of `cache` bytes after `since` bytes of others."""
    return float(np.clip(0.5 + np.log2(max(since, 1.0) / cache) / (2.0 * BLUR), 0.0, 1.0))


def _held(product: Product, row_bytes: float, entries: float, cache: float) -> float:
    """Share of the entries whose row a cache of `cache` bytes still has."""
    if not entries:
        return 0.0
    shares, windows = np.asarray(product.reuse, np.float64), np.asarray(WINDOWS, np.float64)
    later = 1.0 - shares
    touched = 1.0 + np.concatenate([[0.0], np.cumsum(np.diff(windows) * (later[1:] + later[:-1]) / 2)])
    touched = np.minimum(touched, max(entries * later[-1], 1.0))
    # Beside the rows read pass the entries themselves and the rows written.
    passing = INDEX + VALUE + row_bytes * (1.0 - float(product.turned[-1]))
    held = touched * row_bytes + np.minimum(windows, max(entries, 1.0)) * passing
    return float(np.interp(np.log2(cache), np.log2(held), shares, left=0.0))
