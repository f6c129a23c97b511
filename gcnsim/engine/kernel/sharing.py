"""How the flows of a group share its links: max-min fair, summed in the order of `gcnsim.engine.fairness`.

A group in which every bundle goes from one of a few senders to one of a few receivers is shared as a matrix of counts
(`gcnsim.engine.kernel.dense`), every other one here.
"""

from __future__ import annotations

from math import inf

from gcnsim.engine.kernel.lanes import pitch
from gcnsim.engine.kernel.memory import Flows, Links


def fill(links: Links, flows: Flows, group: int) -> None:
    """Write the rates of one flow of each bundle of `group`; 0 for a bundle without flows."""
    begin, end = links.first_bundle[group], links.first_bundle[group + 1]
    first, last, shared = links.first_link[group], links.first_link[group + 1], links.shared[group]
    load, left, rising, rates = links.load, links.left, links.rising, flows.rates
    for link in range(first, last):
        left[link] = links.supply[link]
        load[link] = 0
    for bundle in range(begin, end):
        count = flows.counts[bundle]
        rising[bundle] = count
        rates[bundle] = 0.0
        if count:
            for place in range(links.route_at[bundle], links.route_at[bundle + 1]):
                link = links.route[place]
                load[link] += count if link < shared else 1
    size = 0
    for link in range(first, last):
        if load[link]:
            links.busy[size] = link
            size += 1
    while size:
        size = _settle_tightest(links, flows, shared, size)


def _settle_tightest(links: Links, flows: Flows, shared: int, size: int) -> int:
    """Settle the flows that cross the tightest of the `size` busy links; how many are busy then."""
    busy, load, left, rising = links.busy, links.load, links.left, links.rising
    level, tightest = inf, busy[0]
    for place in range(size):
        each = left[busy[place]] / load[busy[place]]
        if each < level:
            level, tightest = each, busy[place]
    for crossed in range(links.crossing_at[tightest], links.crossing_at[tightest + 1]):
        bundle = links.crossing[crossed]
        count = rising[bundle]
        if count:
            rising[bundle] = 0
            flows.rates[bundle] = level
            taken = level * count
            for place in range(links.route_at[bundle], links.route_at[bundle + 1]):
                link = links.route[place]
                if link >= shared:
                    load[link] = 0
                else:
                    load[link] -= count
                    # Rounding must not leave less than nothing.
                    left[link] = left[link] - taken if left[link] > taken else 0.0
    kept = 0
    for place in range(size):
        if load[busy[place]]:
            busy[kept] = busy[place]
            kept += 1
    return kept


def first_due(links: Links, flows: Flows, group: int) -> float:
    """Picoseconds until the first flow of `group` is done, infinite when none is under way.

    Division is slow and only the least quotient counts: one is taken only where it may be the least so far.
    """
    due = inf
    limit = inf
    for bundle in range(links.first_bundle[group], links.first_bundle[group + 1]):
        if flows.counts[bundle]:
            units = flows.heads[bundle] - flows.service[bundle]
            if units < limit * flows.rates[bundle]:
                due = min(due, units / flows.rates[bundle])
                if due <= 0.0:
                    return 0.0
                limit = due * (1.0 + 1e-9)
    return due


def count(links: Links, flows: Flows, group: int, bundle: int, change: int) -> None:
    """One flow of `bundle` more, or less, in every form that the counts are kept in."""
    flows.counts[bundle] += change
    if links.senders[group]:
        begin = links.route_at[bundle]
        first, rows = links.first_link[group], pitch(links.senders[group])
        one, other = links.route[begin], links.route[begin + 1]
        flows.number[bundle] += change
        flows.number[links.turned[group] + (other - first - rows) * rows + one - first] += change
    for place in range(links.route_at[bundle], links.route_at[bundle + 1]):
        flows.crossing[links.route[place]] += change


def pass_time(links: Links, flows: Flows, group: int, now: int) -> int:
    """Note that it is `now` for the flows of `group`: the picoseconds for which they have received nothing yet."""
    elapsed = now - links.last[group]
    if elapsed:
        links.last[group] = now
        flows.before[group] = flows.started[group]
    return elapsed


def advance_group(links: Links, flows: Flows, group: int, now: int) -> None:
    """Let the flows of `group` receive what they do until `now`."""
    elapsed = pass_time(links, flows, group, now)
    if elapsed:
        for bundle in range(links.first_bundle[group], links.first_bundle[group + 1]):
            # The rate of a bundle without flows is 0.
            flows.service[bundle] += flows.rates[bundle] * elapsed
