"""When blocks are sent: periods of the three tests, the warm-up's share, cycles whose mean is a training's."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.workload.staleness import CYCLE, BlockRule, is_due, periods, sent_blocks


@pytest.mark.parametrize("threshold", [0, 1, 2, 5])
def test_the_fixed_test_has_a_period_of_one_more_than_its_threshold(threshold: int) -> None:
    sent = sent_blocks(BlockRule("fixed", float(threshold)), 2, 3)
    assert sent.shape == (threshold + 1, 2, 3)
    assert sent[0].all()
    assert not sent[1:].any()


def test_what_readers_find_is_sent_an_iteration_later() -> None:
    """The paper's example: a block of epoch 7 is found at 9 with a threshold of 1, and sent at 10."""
    assert sent_blocks(BlockRule("adaptive", 1.0), 1, 1)[:, 0, 0].tolist() == [True, False, False]
    assert sent_blocks(BlockRule("adaptive", 1.0, delayed=False), 1, 1)[:, 0, 0].tolist() == [True, False]


def test_the_gap_test_waits_until_rows_have_moved() -> None:
    sent = sent_blocks(BlockRule("gap", 0.03, drift=0.01), 3, 8, seed=4)
    shares = sent.mean(axis=0)
    assert sent[0].all()
    assert 0.2 < shares.mean() < 0.45
    assert np.unique(shares).size > 1, "blocks drift unlike"
    assert sent_blocks(BlockRule("gap", 0.0, drift=0.01), 3, 8).all()
    assert not sent_blocks(BlockRule("gap", 0.5, drift=0.0), 3, 8).any()


def test_the_same_seed_gives_the_same_flags() -> None:
    rule = BlockRule("gap", 0.03)
    assert np.array_equal(sent_blocks(rule, 2, 4, seed=1), sent_blocks(rule, 2, 4, seed=1))
    assert not np.array_equal(sent_blocks(rule, 4, 8, seed=1), sent_blocks(rule, 4, 8, seed=2))


@pytest.mark.parametrize("threshold", [0.02, 0.1, 0.2, 0.5, 1.0, 20.0])
def test_blocks_of_unlike_periods_are_sent_as_often_as_these_say(threshold: float) -> None:
    rule = BlockRule("gap", threshold, drift=0.01)
    sent = sent_blocks(rule, 4, 6)
    assert sent.mean(axis=0) == pytest.approx(1.0 / periods(rule, 4, 6, 0), rel=1e-3)
    assert ((sent >= 0.0) & (sent <= 1.0)).all()
    assert sent.shape[0] <= CYCLE


def test_broadcasts_are_spread_evenly() -> None:
    sent = sent_blocks(BlockRule("gap", 0.05, drift=0.01), 2, 4)
    for block in sent.reshape(sent.shape[0], -1).T:
        falls = np.flatnonzero(block)
        gaps = np.diff(np.append(falls, falls[0] + sent.shape[0]))
        assert gaps.max() - gaps.min() <= 1


@pytest.mark.parametrize("threshold", [1.0, 3.0, 10.0, 1000.0])
@pytest.mark.parametrize("warmup", [0.001, 0.02, 50 / 300, 0.25, 0.5, 0.99])
def test_the_warm_up_has_its_share(threshold: float, warmup: float) -> None:
    """50 of 300 epochs with a threshold of 10: 1/6 and 5/6 of 1/11."""
    sent = sent_blocks(BlockRule("fixed", threshold, warmup=warmup), 1, 2)
    assert sent.mean() == pytest.approx(warmup + (1.0 - warmup) / (threshold + 1.0), rel=1e-3)


def test_a_training_that_only_warms_up_sends_everything() -> None:
    assert sent_blocks(BlockRule("fixed", 3.0, warmup=1.0), 2, 2).all()


def test_cycles_are_short_enough_to_simulate() -> None:
    assert sent_blocks(BlockRule("gap", 0.05, drift=0.004), 4, 8).shape[0] <= 60


@pytest.mark.parametrize("test", ["fixed", "adaptive"])
@pytest.mark.parametrize("delayed", [True, False])
@pytest.mark.parametrize("threshold", [0.0, 1.0, 1.5, 4.0])
def test_training_sends_what_the_simulation_sends(test: str, delayed: bool, threshold: float) -> None:
    """A block followed from iteration to iteration by the rule that training asks, and a cycle of the simulator's."""
    rule = BlockRule(test, threshold, delayed=delayed)
    sent, last = [], 0
    for t in range(24):
        sent.append(t == 0 or is_due(rule, t - last, 0.0))
        last = t if sent[-1] else last
    cycle = sent_blocks(rule, 1, 1)[:, 0, 0]
    assert sent == [bool(cycle[t % cycle.size]) for t in range(24)]


def test_the_gap_test_asks_how_far_rows_have_moved_and_nothing_else() -> None:
    rule = BlockRule("gap", 0.5)
    assert [is_due(rule, 100, moved) for moved in (0.0, 0.5, 0.6)] == [False, False, True]
