"""What settings are known to lose in accuracy, and in which order that puts them."""

from __future__ import annotations

import pytest

from gcnsim.methods import create_method
from gcnsim.methods.known_loss import NOTHING, KnownLoss, known_loss, loss_rank
from gcnsim.workload.caching import CacheSize


def test_a_loss_within_the_spread_of_seeds_counts_as_none() -> None:
    lost = KnownLoss({"a": (0.5, 1.4), "b": (0.9, 0.3)}, "a model")
    assert lost.worst == 0.9
    assert lost.text == (
        "measured loss against full-graph: none on a beyond the spread of seeds, 0.9 points on b (a model)"
    )
    assert KnownLoss({"a": (0.5, 1.4), "b": (-0.2, 0.1)}, "").worst == 0.0


def test_training_without_sampling_or_waiting_loses_nothing() -> None:
    assert known_loss(create_method("full-graph")) is NOTHING
    assert known_loss(create_method("sancus")) is None
    assert known_loss(create_method("dgl")) is None


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_cache_changes_no_value(share: float) -> None:
    loss = known_loss(create_method("psc-gcn", tau=2, epsilon=0.1, cache=CacheSize(fraction=share)))
    assert loss is not None
    assert loss.worst == 3.96


def test_small_losses_come_first_then_unknown_ones_then_large_ones() -> None:
    settings = [
        create_method("psc-gcn", tau=2, epsilon=0.1),
        create_method("pipegcn-g"),
        create_method("bns-gcn", rate=0.1),
        create_method("pipegcn"),
    ]
    ranked = [method.name for method in sorted(settings, key=loss_rank)]
    assert ranked == ["bns-gcn", "pipegcn-g", "pipegcn", "psc-gcn"]
    assert loss_rank(settings[1]) == (1, 0.0)


def test_a_coarser_setting_loses_as_much_at_least_and_a_finer_one_as_little_at_most() -> None:
    assert loss_rank(create_method("psc-gcn", tau=3, epsilon=0.05)) == (2, 3.96)
    assert loss_rank(create_method("bns-gcn", rate=0.5)) == (0, 0.0)
    assert loss_rank(create_method("bns-gcn", rate=0.01)) == (2, 1.05)
