"""Staleness: which iteration's boundary values an iteration reads, where they are buffered, and when blocks are sent
again.

Simulator and training runtime share the rule of boundary rows. At iteration t (from 0) a worker reads boundary values
of iteration t - tau, once t >= tau; before that the start-up values apply. The published listing tests t > tau, an
off-by-one from a loop that counts from 1: it would drop the values of iteration 0, so the test here is t >= tau. With
tau = 0 the values belong to the same iteration.

Blocks of rows are sent again when a test says so; until then the others use their copy (SANCUS, section 4). Flags are
per layer and worker (the text has one per worker, but tests it after every layer). All blocks are sent in iteration 0.
The three tests, k iterations after a block was sent last:

- `fixed` (Algorithm 2): sent when k > threshold, so every floor(threshold) + 1 iterations (definition 2 of the paper
says threshold, its algorithm and examples one more);

- `adaptive` (Algorithm 3): the readers find k > threshold and the block is sent in the next iteration, so one more;
`at-once`: as fixed. Collective broadcasts keep all versions equal, so the period is fixed here too;

- `gap` (Algorithm 4): sent when its rows have moved more than threshold. Training measures how far. A simulation
cannot, so it has a parameter: `drift` per iteration, lognormal over blocks (GAP_SPREAD), and k iterations move k
drifts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Final

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Iteration
from gcnsim.core.streams import stream


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
"""The most iterations of a cycle, which are all simulated."""

WHOLE: Final = 1e-3
"""The share of its rows that a block may lack in a broadcast that counts as complete: 0.1 %."""

CLOSE: Final = 0.02
"""The share of extra broadcasts that a cycle may have before a longer one is tried: 2 %."""

NEVER: Final = 1 << 20
"""The period of a block that is not sent again."""


@dataclass(frozen=True, slots=True)
class BlockRule:
    """The rule for sending blocks. threshold: iterations, or a change of rows for `gap`. drift: such a change per
    iteration.

    warmup: share of all iterations, the first ones, in which all are sent. delayed: `adaptive` sends one iteration
    after a block is found stale. skips_backward: whether a skipped block's gradient is not sent either (as in the cost
    formula; Algorithm 1 always sends it).
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
    """Whether a block is sent again, `age` iterations after the last time, after its rows moved by `moved`.

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
    """The share of a training's iterations in which a block is sent, warm-up included, float64[layers, workers]."""
    every = periods(rule, layers, workers, seed)
    later = np.where(every < NEVER, 1.0 / every, 0.0)
    return np.asarray(rule.warmup + (1.0 - rule.warmup) * later, dtype=np.float64)


def sent_blocks(rule: BlockRule, layers: int, workers: int, seed: int = 0) -> FloatArray:
    """The share of each block that is sent in each iteration of a repeating cycle, float64[T, layers, workers].

    0 is a block that is not sent, 1 a whole one. Over the cycle every block is sent as often as in a whole training on
    average. Broadcasts, including those of the warm-up, are spread evenly. If no cycle of at most `CYCLE` iterations
    has a whole number of them, each carries slightly less than its block. Broadcasts are sequential, so the mean
    iteration depends on their number, not on which coincide.
    """
    share = shares(rule, layers, workers, seed)
    cycle = _cycle(share)
    count = _broadcasts(share, cycle)
    each = np.minimum(1.0, share * cycle / np.maximum(count, 1.0))
    steps = np.arange(cycle)[:, None, None]
    falls = (steps * count) % cycle < count
    return np.where(falls, each, 0.0)


def _broadcasts(share: FloatArray, cycle: int) -> FloatArray:
    """The number of broadcasts of each block in a cycle, rounded up."""
    return np.ceil(share * cycle * (1.0 - WHOLE))


def _cycle(share: FloatArray) -> int:
    """The shortest cycle with hardly more broadcasts than the share requires; otherwise the one with the fewest extra
    ones.
    """
    wanted = float(share.sum())
    if not wanted:
        return 1
    lengths = np.arange(1, CYCLE + 1)
    over = np.array([_broadcasts(share, int(length)).sum() / (wanted * length) - 1.0 for length in lengths])
    good = np.flatnonzero(over <= CLOSE)
    return int(lengths[good[0] if good.size else np.argmin(over)])
