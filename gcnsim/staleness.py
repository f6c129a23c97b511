"""Staleness: which iteration's boundary values an iteration reads, where they wait, and when blocks are sent anew.

Simulator and training runtime share the rule of boundary rows. At iteration t (from 0) a worker reads boundary values
of iteration t - tau, once t >= tau; before that there is none to read and the start-up values apply. The published
listing guards with t > tau, an off-by-one taken over from a loop that counts from 1: it would drop the values of
iteration 0, so the guard here is t >= tau. With tau = 0 the values are this iteration's own.

Blocks of rows are sent again when a test says so; until then the others use the copy they keep (SANCUS, section 4).
Flags are per layer and worker (the text has one per worker, but tests it after every layer). All blocks are sent in
iteration 0. Readings of the three tests, k iterations after a block was sent last:
- `fixed` (Algorithm 2): sent when k > threshold, so every floor(threshold) + 1 iterations (definition 2 of the paper
  says threshold, its algorithm and examples one more);
- `adaptive` (Algorithm 3): the readers find k > threshold and the block is sent in the iteration after, so one more
  still; `at-once`: as fixed. Collective broadcasts keep all versions equal, so the period is fixed here too;
- `gap` (Algorithm 4): sent when its rows have moved more than threshold. Training measures how far; that is no matter
  of time, so a simulation has a parameter: `drift` a iteration, lognormal from block to block (GAP_SPREAD), k
  iterations moving k drifts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Final

import numpy as np

from gcnsim.ids import FloatArray, IntArray, Iteration
from gcnsim.streams import stream


def source_iteration(t: Iteration, tau: int) -> Iteration | None:
    """The iteration whose boundary values (and boundary gradients) iteration `t` uses; None at a cold start, t < tau.

    >>> [source_iteration(t, 2) for t in range(4)]
    [None, None, 0, 1]
    """
    return t - tau if t >= tau else None


def slot(t: Iteration, tau: int) -> int:
    """The slot of a ring of `tau` buffers that receives the values of iteration `t`; needs tau >= 1.

    Iteration t + tau reads the slot just before it receives its own values, so no value is overwritten unread.

    >>> [slot(t, 3) for t in range(5)]
    [0, 1, 2, 0, 1]
    """
    if tau < 1:
        raise ValueError(f"tau {tau}: a ring needs tau >= 1")
    return t % tau


GAP_SPREAD: Final = 0.25
"""Standard deviation of the log of the drift between blocks. Assumed (range: 0 to 1)."""

CYCLE: Final = 48
"""The most iterations of a cycle: so many are simulated."""

WHOLE: Final = 1e-3
"""How much of its rows a block may lack in a broadcast that counts as whole: 0.1 %."""

CLOSE: Final = 0.02
"""How many broadcasts too many a cycle may have, as a share of them, before a longer one is looked for: 2 %."""

NEVER: Final = 1 << 20
"""The period of a block that is not sent again."""


@dataclass(frozen=True, slots=True)
class BlockRule:
    """When blocks are sent. threshold: iterations, or a change of rows for `gap`. drift: such a change per iteration.

    warmup: share of all iterations, its first ones, in which all are sent. delayed: `adaptive` sends one iteration
    after it is found stale. skips_backward: whether a skipped block's gradient is not sent either (the cost formula's
    reading; Algorithm 1 always sends it).
    """

    test: str = "fixed"
    threshold: float = 0.0
    drift: float = 0.01
    warmup: float = 0.0
    delayed: bool = True
    skips_backward: bool = False


def age_limit(rule: BlockRule) -> int:
    """Iterations from one broadcast of a block to its next by the tests of age, `fixed` and `adaptive`."""
    late = 1 if rule.test == "adaptive" and rule.delayed else 0
    return floor(rule.threshold) + 1 + late


def is_due(rule: BlockRule, age: int, moved: float) -> bool:
    """Whether a block is sent again, `age` iterations after it was sent last, its rows having moved by `moved` since.

    >>> [is_due(BlockRule("adaptive", 1.0), age, 0.0) for age in (1, 2, 3)]
    [False, False, True]
    """
    return moved > rule.threshold if rule.test == "gap" else age >= age_limit(rule)


def periods(rule: BlockRule, layers: int, workers: int, seed: int) -> IntArray:
    """Iterations from one broadcast of a block to its next, int64[layers, workers]."""
    shape = (layers, workers)
    if rule.test != "gap":
        return np.full(shape, age_limit(rule), dtype=np.int64)
    moved = rule.drift * stream(seed, "drift").lognormal(-(GAP_SPREAD**2) / 2, GAP_SPREAD, shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.floor(rule.threshold / moved) + 1
    return np.asarray(np.where(moved > 0, np.minimum(found, NEVER), NEVER), dtype=np.int64)


def shares(rule: BlockRule, layers: int, workers: int, seed: int) -> FloatArray:
    """In which share of a training's iterations a block is sent, warm-up included, float64[layers, workers]."""
    every = periods(rule, layers, workers, seed)
    later = np.where(every < NEVER, 1.0 / every, 0.0)
    return np.asarray(rule.warmup + (1.0 - rule.warmup) * later, dtype=np.float64)


def sent_blocks(rule: BlockRule, layers: int, workers: int, seed: int = 0) -> FloatArray:
    """How much of each block is sent in each iteration of a cycle that repeats for ever, float64[T, layers, workers].

    0 is a block that is not sent, 1 a whole one. Over the cycle every block is sent as often as in a whole training, in
    the mean and to the row: broadcasts are spread evenly, those of the warm-up among them, and where no cycle of at
    most `CYCLE` iterations has a whole number of them, each carries a little less than its block. Broadcasts follow
    one another, so that the mean iteration depends on how many there are, not on which fall together.
    """
    share = shares(rule, layers, workers, seed)
    cycle = _cycle(share)
    count = _broadcasts(share, cycle)
    each = np.minimum(1.0, share * cycle / np.maximum(count, 1.0))
    steps = np.arange(cycle)[:, None, None]
    falls = (steps * count) % cycle < count
    return np.where(falls, each, 0.0)


def _broadcasts(share: FloatArray, cycle: int) -> FloatArray:
    """How often each block is sent in a cycle: whole ones, rounded up."""
    return np.ceil(share * cycle * (1.0 - WHOLE))


def _cycle(share: FloatArray) -> int:
    """The shortest cycle whose broadcasts are hardly more than the share asks for; else that with the fewest more."""
    wanted = float(share.sum())
    if not wanted:
        return 1
    lengths = np.arange(1, CYCLE + 1)
    over = np.array([_broadcasts(share, int(length)).sum() / (wanted * length) - 1.0 for length in lengths])
    good = np.flatnonzero(over <= CLOSE)
    return int(lengths[good[0] if good.size else np.argmin(over)])
