"""Made-up matrices: what was asked for, and numbers that tell them apart."""

from __future__ import annotations

import numpy as np
import torch

from runtime.aggregate import Rows
from runtime.microbench.inputs import Shape, facts_of, made_part, made_rows, matrix_of


def test_a_matrix_is_the_same_every_time() -> None:
    one, other = Shape(2_000, 200, 150, skewed=True).made(), Shape(2_000, 200, 150, skewed=True).made()
    assert np.array_equal(one.columns, other.columns)
    assert np.array_equal(one.values, other.values)


def test_rows_are_sorted_and_within_the_columns() -> None:
    for skewed in (False, True):
        for local in (False, True):
            rows = Shape(3_000, 300, 1_200, skewed=skewed, local=local).made()
            row, column = rows.places
            assert np.all(np.diff(row * rows.width + column) > 0)
            assert column.min() >= 0
            assert column.max() < 1_200
            assert 800 < column.size <= 3_300


def test_facts_tell_skewed_from_even_and_local_from_far() -> None:
    even = facts_of(Shape(20_000, 2_000, 2_000).made())
    skewed = facts_of(Shape(20_000, 2_000, 2_000, skewed=True).made())
    local = facts_of(Shape(20_000, 2_000, 2_000, local=True).made())
    assert even["skew"] < 0.1 < 0.8 < skewed["skew"]
    assert even["column_skew"] < 0.5 < 0.8 < skewed["column_skew"]
    assert abs(even["locality"]) < 0.05 < 0.9 < local["locality"]


def test_facts_count_entries_rows_and_columns() -> None:
    facts = facts_of(Rows(np.array([0, 2, 4, 5]), np.array([0, 1, 0, 2, 1], np.int32), np.ones(5), 3))
    assert (facts["entries"], facts["rows"], facts["columns"]) == (5, 3, 3)


def test_a_matrix_multiplies_as_training_does() -> None:
    rows = Shape(500, 50, 40).made()
    x, out = made_rows(40, 8, torch.device("cpu"), "test"), torch.zeros(50, 8)
    matrix_of(rows, torch.device("cpu")).multiply(x, out)
    dense = np.zeros((50, 40))
    dense[rows.places] = rows.values
    assert np.allclose(out.numpy(), dense @ x.numpy(), atol=1e-4)


def test_a_part_has_inner_and_boundary_nodes() -> None:
    part = made_part(400, 4_000)
    assert part.inner_nodes == 100
    assert part.boundary_nodes > 0
    assert np.any(part.columns < 100)
