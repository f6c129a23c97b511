"""When blocks are sent: periods of the three tests, the warm-up's share, and cycles that repeat."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.staleness import BlockRule, sent_blocks


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


@pytest.mark.parametrize("warmup", [0.1, 50 / 300, 0.25, 0.5])
def test_the_warm_up_has_its_share(warmup: float) -> None:
    sent = sent_blocks(BlockRule("fixed", 1.0, warmup=warmup), 1, 2)
    first = sent.shape[0] - int((~sent[:, 0, 0]).sum()) * 2
    assert first / sent.shape[0] == pytest.approx(warmup, abs=0.02)
    assert sent[:first].all()


def test_a_training_that_only_warms_up_sends_everything() -> None:
    assert sent_blocks(BlockRule("fixed", 3.0, warmup=1.0), 2, 2).all()


def test_cycles_are_short_enough_to_simulate() -> None:
    assert sent_blocks(BlockRule("gap", 0.05, drift=0.004), 4, 8).shape[0] <= 60
