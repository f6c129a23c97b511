"""Max-min fair rates by progressive filling.

All flows' rates rise together until a link is full or a flow reaches its cap; those flows are settled and the rest rise
on. The result is the only allocation in which no flow can gain without taking from one that has no more (Bertsekas and
Gallager, Data Networks, section 6.5). Flows of equal route and cap always get equal rates, so they are handled as one
bundle with a count.
"""

from __future__ import annotations

from collections.abc import Sequence


def max_min_rates(
    capacity: Sequence[float],
    routes: Sequence[tuple[int, ...]],
    counts: Sequence[int],
    caps: Sequence[float | None],
) -> list[float]:
    """Rate of one flow of each bundle, in units per second; 0 for a bundle without flows.

    capacity: per link. routes: per bundle, the links it crosses. counts: flows in each bundle. caps: per bundle, the
    most that one of its flows can use, None for no limit.
    """
    rates = [0.0] * len(routes)
    rising = [bundle for bundle, count in enumerate(counts) if count]
    left = list(capacity)
    load = [0] * len(left)
    for bundle in rising:
        for link in routes[bundle]:
            load[link] += counts[bundle]
    while rising:
        limits = [_limit(left, load, routes[bundle], caps[bundle]) for bundle in rising]
        level = min(limits)
        settled = [bundle for bundle, limit in zip(rising, limits, strict=True) if limit <= level]
        rising = [bundle for bundle, limit in zip(rising, limits, strict=True) if limit > level]
        for bundle in settled:
            rates[bundle] = level
            for link in routes[bundle]:
                left[link] = max(0.0, left[link] - level * counts[bundle])
                load[link] -= counts[bundle]
    return rates


def _limit(left: Sequence[float], load: Sequence[int], route: tuple[int, ...], cap: float | None) -> float:
    """The equal share of the tightest link of `route`, or the cap where that is less."""
    limit = min([left[link] / load[link] for link in route])
    return limit if cap is None or limit < cap else cap
