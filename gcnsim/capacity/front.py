"""The Pareto front of time against cost, as far as the assumptions tell options apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gcnsim.capacity.dominance import SURE, dominated, times_as_dear
from gcnsim.capacity.search import Option


@dataclass(frozen=True, slots=True)
class Place:
    """An option that nothing surely dominates. at_values: whether it is on the front at the stated values, where
    nothing beats it; share: of the draws in which the option that beats it most often does."""

    option: Option
    at_values: bool
    share: float


def front(options: Sequence[Option]) -> list[Place]:
    """The options that no other one beats in nearly every joint draw, the fastest first."""
    found = []
    for each in options:
        others = [one for one in options if one is not each]
        share = max((dominance(one, each) for one in others), default=0.0)
        if share < SURE:
            found.append(Place(each, not any(_at_values(one, each) for one in others), share))
    return sorted(found, key=lambda place: (place.option.seconds, place.option.price))


def dominance(one: Option, other: Option) -> float:
    """The share of the joint draws, in pairs, in which `one` is no slower and no dearer, and not the same in both; 0 or
    1, by the stated values, where draws do not say how far a time may be off."""
    if not (one.candidate.ranged and other.candidate.ranged):
        return float(_at_values(one, other))
    work = one.work.compared / other.work.compared
    return float(
        dominated(
            one.candidate.over(other.candidate) * work, times_as_dear(one.setting.rate, other.setting.rate)
        ).mean()
    )


def _at_values(one: Option, other: Option) -> bool:
    return bool(
        dominated(np.array([one.seconds / other.seconds]), times_as_dear(one.setting.rate, other.setting.rate))[0]
    )
