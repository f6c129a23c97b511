"""The law of sums over neighbours at its limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcnsim.cost.sums import BLUR, Product, outside, product_seconds, terms
from gcnsim.hardware.profiles import TERMS, SumFigures
from gcnsim.partition import WINDOWS, reuse_of

CACHES = (48e3, 2e6, 40e6)
ENTRIES, NODES, WIDTH = 200_000, 50_000, 64
ROW = 4.0 * WIDTH


def product(columns: Any, **changes: Any) -> Product:
    """NODES rows of four entries each, nothing in the last cache."""
    ahead, turned = reuse_of(np.arange(0, ENTRIES + 1, 4), np.asarray(columns), NODES)
    made = Product(ENTRIES, NODES, WIDTH, ahead, turned, 1e12, 1e12)
    return replace(made, **changes)


def term(name: str, product: Product) -> float:
    return float(terms(CACHES, product)[TERMS.index(name)])


def test_rows_read_again_at_once_come_from_the_first_cache() -> None:
    hot = product(np.tile(np.arange(16), ENTRIES // 16))
    assert term("first_miss", hot) == pytest.approx(16, abs=1)
    assert term("second_miss", hot) == pytest.approx(16, abs=1)
    assert term("last_miss", hot) == pytest.approx(16, abs=1)
    assert term("last_miss", replace(hot, read_since=1e3)) == pytest.approx(0, abs=1e-9)


def test_rows_in_any_order_come_from_where_all_of_them_lie() -> None:
    anywhere = product(np.random.default_rng(1).integers(NODES, size=ENTRIES))
    # Of 50,000 rows of 256 bytes (12.8 MB) the first cache holds next to none, the second a sixth, the last all.
    assert term("first_miss", anywhere) > 0.98 * ENTRIES
    assert 0.8 * ENTRIES < term("second_miss", anywhere) < 0.95 * ENTRIES
    new = ENTRIES * (1 - float(anywhere.reuse[-1]))
    assert term("last_miss", anywhere) == pytest.approx(new)
    assert term("last_miss", replace(anywhere, read_since=1e3)) == 0
    wide = replace(anywhere, width=16 * WIDTH)  # 205 MB: no cache has them
    assert term("last_miss", wide) > 0.8 * ENTRIES
    assert term("last_miss_byte", wide) == pytest.approx(16 * ROW * term("last_miss", wide))


def test_a_result_is_counted_by_rows_bytes_and_rows_with_an_entry() -> None:
    ahead, turned = reuse_of(np.array([0, *[3] * 100]), np.array([5, 6, 7]), 10)
    few = Product(3, 100, WIDTH, ahead, turned, 1e12, 1e12)
    assert [term(name, few) for name in ("call", "row", "row_byte", "far_row_byte")] == [1, 100, 100 * ROW, 100 * ROW]
    assert term("filled_row", few) == pytest.approx(1)
    assert term("far_row_byte", replace(few, written_since=1e6)) == 0
    assert (term("entry", few), term("entry_byte", few)) == (3, 3 * ROW)


def test_seconds_are_those_of_all_terms_and_none_without_entries() -> None:
    figures = SumFigures(CACHES, {name: float(index + 1) for index, name in enumerate(TERMS)})
    each = product(np.arange(ENTRIES) % 1000)
    wanted = sum((index + 1) * float(term) for index, term in enumerate(terms(CACHES, each)))
    assert float(product_seconds(figures, each)) == pytest.approx(wanted)
    drawn = product_seconds(figures, replace(each, entries=np.array([ENTRIES, 0, ENTRIES // 2])))
    assert drawn[1] == 0 < drawn[2] < drawn[0]


def test_data_leaves_the_last_cache_by_and_by() -> None:
    size = 40e6
    assert outside(size, size) == 0.5
    assert outside(0.0, size) == 0
    assert outside(size * 2**-BLUR, size) == pytest.approx(0, abs=1e-12)
    assert outside(size * 2**BLUR, size) == pytest.approx(1)
    assert len(WINDOWS) == product(np.zeros(ENTRIES, np.int64)).reuse.size
