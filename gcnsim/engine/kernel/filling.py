"""Share the links of a group link by link: the tightest is settled first, and its flows with it."""

from __future__ import annotations

from math import inf

from gcnsim.core.ids import FloatArray
from gcnsim.engine.kernel.memory import BITS, Flows, Links
from gcnsim.engine.kernel.simd_loops import LANES, block_within, divide, lowest, place_of, restart, soonest


def fill(links: Links, flows: Flows, group: int) -> None:
    """Write the rates of one flow of each bundle of `group`; 0 for a bundle without flows.

    Those without flows have it already.
    """
    for word in range(links.live_at[group], links.live_at[group + 1]):
        links.rising[word] = flows.live[word]
    first, last = links.first_link[group], links.first_link[group + 1]
    fill_rising(links, flows, group, first, last, begin_links(links, flows.crossing, first, last))


def fill_rising(links: Links, flows: Flows, group: int, first: int, last: int, level: float) -> None:
    """Settle the links from `first` to `last`, the least share of which is `level`, and the rising flows."""
    while level < inf:
        tightest = place_of(links.share, first, level)
        if links.senders[group]:
            for link in range(tightest + 1, last):
                if links.share[link] == level and links.rank[link] < links.rank[tightest]:
                    tightest = link
        _settle_all_of(links, flows, links.shared[group], tightest, level)
        level = divide(links.left, links.weight, links.share, first, last)


def _settle_all_of(links: Links, flows: Flows, shared: int, tightest: int, level: float) -> None:
    """Settle the rising flows that cross the link `tightest` at `level`."""
    left, weight, rising = links.left, links.weight, links.rising
    for crossed in range(links.crossing_at[tightest], links.crossing_at[tightest + 1]):
        word = links.crossing[crossed]
        bits = rising[word] & links.crossing_bits[crossed]
        rising[word] -= bits
        while bits:
            bundle = links.ordered[word * BITS + lowest(bits)]
            bits &= bits - 1
            count = flows.counts[bundle]
            flows.rates[bundle] = level
            taken = level * count
            for index in range(links.route_at[bundle], links.route_at[bundle + 1]):
                link = links.route[index]
                if link >= shared:
                    weight[link] = 0.0
                else:
                    weight[link] -= count
                    # Rounding must not leave less than nothing.
                    left[link] = left[link] - taken if left[link] > taken else 0.0


def begin_links(links: Links, crossing: FloatArray, begin: int, end: int) -> float:
    """Set up the links from `begin` to `end` with nothing taken yet. crossing: their flows. Returns the least share."""
    return restart(links.left, links.weight, links.share, links.step, links.supply, crossing, begin, end)


def first_due(flows: Flows, begin: int, end: int) -> float:
    """The picoseconds until the first flow of the bundles from `begin` to `end` is done, infinite for none.

    Division is slow: of many bundles, only quotients of blocks that may contain the least are computed.
    """
    if end - begin <= MANY:
        return soonest(flows.heads, flows.service, flows.rates, begin, end)
    return sooner(flows, begin, end, inf)


def sooner(flows: Flows, begin: int, end: int, due: float) -> float:
    """The least of `due` and the picoseconds until the first flow of the bundles from `begin` to `end` is done."""
    heads, service, rates = flows.heads, flows.service, flows.rates
    at = block_within(heads, service, rates, begin, end, limit_of(due))
    while at < end:
        due = min(due, soonest(heads, service, rates, at, at + LANES))
        at = block_within(heads, service, rates, at + LANES, end, limit_of(due))
    return due


def limit_of(due: float) -> float:
    """Picoseconds that whatever is done before `due` takes, however it is rounded."""
    return LONGEST if due == inf else max(0.0, due * (1.0 + 1e-9))


MANY = 8 * LANES
"""Bundles beyond which blocks are looked at one by one."""


LONGEST = 1e300
"""Picoseconds that no flow takes."""
