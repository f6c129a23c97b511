from __future__ import annotations

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.streams import stream
from gcnsim.workload.caching import cache_policy, cached_mask

INCLUSION = np.array([0.2, 0.9, 0.5, 0.5, 0.5], np.float32)
DEGREE = np.array([50, 1, 3, 8, 8], np.uint32)


def mask(policy: str, rows: int, seed: int = 0) -> list[int]:
    return np.flatnonzero(cached_mask(policy, rows, INCLUSION, DEGREE, stream(seed, "cache", 0))).tolist()


def test_inclusion_first_then_degree_then_index() -> None:
    assert [mask("inclusion", rows) for rows in range(6)] == [
        [],
        [1],
        [1, 3],
        [1, 3, 4],
        [1, 2, 3, 4],
        [0, 1, 2, 3, 4],
    ]


def test_degree_then_index() -> None:
    assert [mask("degree", rows) for rows in (1, 2, 3)] == [[0], [0, 3], [0, 3, 4]]


def test_random_is_a_reproducible_choice() -> None:
    assert mask("random", 3) == mask("random", 3)
    assert len(mask("random", 3)) == 3
    assert len({tuple(mask("random", 2, seed)) for seed in range(20)}) > 3


def test_unknown_policy_gets_the_nearest_name() -> None:
    with pytest.raises(ScenarioError, match=r"cache policy: unknown 'degre'; did you mean 'degree'\?"):
        cache_policy("degre")


def test_no_fixed_choice_of_that_size_expects_more_hits_than_inclusion() -> None:
    rng = np.random.default_rng(0)
    best = INCLUSION[cached_mask("inclusion", 2, INCLUSION, DEGREE, rng)].sum()
    for _ in range(20):
        other = cached_mask("random", 2, INCLUSION, DEGREE, rng)
        assert INCLUSION[other].sum() <= best + 1e-12
