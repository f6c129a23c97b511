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
    open_bundles = [bundle for bundle, count in enumerate(counts) if count]
    left = list(capacity)
    while open_bundles:
        load = [0] * len(left)
        for bundle in open_bundles:
            for link in routes[bundle]:
                load[link] += counts[bundle]
        share = [left[link] / load[link] if load[link] else float("inf") for link in range(len(left))]
        limits = []
        for bundle in open_bundles:
            cap = caps[bundle]
            limit = min(share[link] for link in routes[bundle])
            limits.append(limit if cap is None else min(limit, cap))
        level = min(limits)
        still_open = []
        for bundle, limit in zip(open_bundles, limits, strict=True):
            if limit > level:
                still_open.append(bundle)
                continue
            rates[bundle] = level
            for link in routes[bundle]:
                left[link] = max(0.0, left[link] - level * counts[bundle])
        open_bundles = still_open
    return rates
