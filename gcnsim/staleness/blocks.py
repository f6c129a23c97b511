"""When a worker sends its block of rows again, and when the others go on with the copy they keep (SANCUS, section 4).

Flags are per layer and worker (the text has one per worker, but tests it after every layer). All blocks are sent in
iteration 0. Readings of the three tests, k iterations after a block was sent last:
- `fixed` (Algorithm 2): sent when k > threshold, so every floor(threshold) + 1 iterations (definition 2 of the paper
  says threshold, its algorithm and examples one more);
- `adaptive` (Algorithm 3): the readers find k > threshold and the block is sent in the iteration after, so one more
  still; `at-once`: as fixed. Collective broadcasts keep all versions equal, so the period is fixed here too;
- `gap` (Algorithm 4): sent when its rows have moved more than threshold. How far they move is not a matter of time, so
  it is a parameter: `drift` a iteration, lognormal from block to block (GAP_SPREAD), k iterations moving k drifts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, lcm
from typing import Final, Literal

import numpy as np

from gcnsim.ids import BoolArray, IntArray
from gcnsim.streams import stream

Test = Literal["fixed", "adaptive", "gap"]

GAP_SPREAD: Final = 0.25
"""Standard deviation of the log of the drift between blocks. Assumed (range: 0 to 1)."""

CYCLE: Final = 24
"""Iterations after which the flags of blocks of unlike periods start over, at most."""

NEVER: Final = 1 << 20
"""The period of a block that is not sent again."""


@dataclass(frozen=True, slots=True)
class BlockRule:
    """When blocks are sent. threshold: iterations, or a change of rows for `gap`. drift: such a change per iteration.

    warmup: share of all iterations, the first ones, in which all are sent. delayed: `adaptive` sends one iteration
    after it is found stale. skips_backward: whether a skipped block's gradient is not sent either (the cost formula's
    reading; Algorithm 1 always sends it).
    """

    test: str = "fixed"
    threshold: float = 0.0
    drift: float = 0.01
    warmup: float = 0.0
    delayed: bool = True
    skips_backward: bool = False


def periods(rule: BlockRule, layers: int, workers: int, seed: int) -> IntArray:
    """Iterations from one broadcast of a block to its next, int64[layers, workers]."""
    shape = (layers, workers)
    if rule.test != "gap":
        late = 1 if rule.test == "adaptive" and rule.delayed else 0
        return np.full(shape, floor(rule.threshold) + 1 + late, dtype=np.int64)
    moved = rule.drift * stream(seed, "drift").lognormal(-(GAP_SPREAD**2) / 2, GAP_SPREAD, shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.floor(rule.threshold / moved) + 1
    return np.asarray(np.where(moved > 0, np.minimum(found, NEVER), NEVER), dtype=np.int64)


def sent_blocks(rule: BlockRule, layers: int, workers: int, seed: int = 0) -> BoolArray:
    """Which blocks are sent in each iteration of a cycle that repeats for ever, bool[T, layers, workers].

    The cycle holds the warm-up's iterations in their share, so that its mean is the mean of a whole training.
    """
    if rule.warmup == 1.0:
        return np.ones((1, layers, workers), dtype=np.bool_)
    every = periods(rule, layers, workers, seed)
    distinct = {int(value) for value in every.flat}
    if distinct == {NEVER}:
        steady = np.zeros((1, layers, workers), dtype=np.bool_)
    else:
        cycle = min(lcm(*(value for value in distinct if value < NEVER)), max(CYCLE, min(distinct)))
        steady = (np.arange(cycle)[:, None, None] % every == 0) & (every < NEVER)
    times, first = _shares(steady.shape[0], rule.warmup)
    return np.concatenate([np.ones((first, layers, workers), dtype=np.bool_), *([steady] * times)])


def _shares(cycle: int, warmup: float) -> tuple[int, int]:
    """How often the steady cycle, and how many iterations of the warm-up, so that these are a share `warmup`."""
    if warmup == 0.0:
        return 1, 0
    best = (1, 0)
    for times in range(1, max(1, CYCLE // cycle) + 1):
        first = max(1, round(times * cycle * warmup / (1.0 - warmup)))
        if abs(first / (first + times * cycle) - warmup) < abs(best[1] / (best[1] + best[0] * cycle) - warmup) - 1e-12:
            best = (times, first)
    return best
