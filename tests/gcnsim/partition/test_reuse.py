"""How soon rows are read again, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.partition import WINDOWS, reuse_of
from gcnsim.partition import facts as module


def by_hand(stream: list[int]) -> list[float]:
    """Shares of the reads whose row was read within each window before, looking back one by one."""
    gaps = []
    for index, row in enumerate(stream):
        before = [back for back in range(1, index + 1) if stream[index - back] == row]
        gaps.append(min(before, default=None))
    return [sum(gap is not None and gap <= window for gap in gaps) / len(gaps) for window in WINDOWS]


@pytest.mark.parametrize("seed", range(4))
def test_shares_are_those_counted_one_by_one(seed: int) -> None:
    generator = np.random.default_rng(seed)
    row = np.sort(generator.integers(12, size=90))
    column = generator.permutation(90) % 17
    key = np.unique(row * 17 + column)
    row, column = np.divmod(generator.permutation(key), 17)
    order = np.argsort(row, kind="stable")  # columns of a row in any order, as with self-loops at its end
    row, column = row[order], column[order]
    found = reuse_of(np.searchsorted(row, np.arange(13)), column.astype(np.int32), 17)
    turned = row[np.argsort(column, kind="stable")]
    assert found[0] == pytest.approx(by_hand(column.tolist()), abs=1e-6)
    assert found[1] == pytest.approx(by_hand(turned.tolist()), abs=1e-6)
    first = 1 - np.array([np.unique(column).size, np.unique(row).size]) / row.size
    assert found[:, -1] == pytest.approx(first, abs=1e-6)


def test_the_ends_nothing_again_and_all_at_once() -> None:
    diagonal = reuse_of(np.arange(101), np.arange(100, dtype=np.int32), 100)
    assert not diagonal.any()
    one_column = reuse_of(np.arange(101), np.zeros(100, np.int32), 1)
    assert one_column[0] == pytest.approx(np.full(len(WINDOWS), 0.99))
    assert not reuse_of(np.zeros(4, np.int64), np.empty(0, np.int32), 3).any()


def test_a_large_matrix_is_told_by_its_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REUSE_ENTRIES", 64)
    indptr, columns = np.arange(0, 201, 2), np.tile(np.arange(2, dtype=np.int32), 100)
    assert np.array_equal(reuse_of(indptr, columns, 2), reuse_of(indptr[:33], columns[:64], 2))
    wide = np.array([0, 100])
    assert reuse_of(wide, np.arange(100, dtype=np.int32), 100).shape == (2, len(WINDOWS))
