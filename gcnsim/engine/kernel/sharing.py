"""Share the links of a group among its flows: max-min fair, summed in the order of `gcnsim.engine.fairness`.

If every bundle crosses one sending and one receiving link, the group is shared as a matrix of counts (`fill_dense`),
otherwise link by link (`fill`). The sums are the same, in the same order. To settle a link, one row of the matrix (or
of its transpose) is subtracted from the other links, so that a processor handles several at a time
(`gcnsim.engine.kernel.simd_loops`). Counts and loads are whole numbers in floats. Rows begin at multiples of `LANES`
words.
"""

from __future__ import annotations

from math import inf

from gcnsim.engine.kernel.memory import Flows, Links
from gcnsim.engine.kernel.simd_loops import divide, least, pitch, place_of, rate_row, settle, soonest, take
from gcnsim.ids import FloatArray


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
            for index in range(links.route_at[bundle], links.route_at[bundle + 1]):
                link = links.route[index]
                load[link] += count if link < shared else 1
    size = 0
    for link in range(first, last):
        if load[link]:
            links.busy[size] = link
            size += 1
    while size:
        size = _settle_tightest(links, flows, shared, size)


def _settle_tightest(links: Links, flows: Flows, shared: int, size: int) -> int:
    """Settle the flows that cross the tightest of the `size` busy links; returns the number of busy links left."""
    busy, load, left, rising = links.busy, links.load, links.left, links.rising
    level, tightest = inf, busy[0]
    for index in range(size):
        each = left[busy[index]] / load[busy[index]]
        if each < level:
            level, tightest = each, busy[index]
    for crossed in range(links.crossing_at[tightest], links.crossing_at[tightest + 1]):
        bundle = links.crossing[crossed]
        count = rising[bundle]
        if count:
            rising[bundle] = 0
            flows.rates[bundle] = level
            taken = level * count
            for index in range(links.route_at[bundle], links.route_at[bundle + 1]):
                link = links.route[index]
                if link >= shared:
                    load[link] = 0
                else:
                    load[link] -= count
                    # Rounding must not leave a negative rest.
                    left[link] = left[link] - taken if left[link] > taken else 0.0
    remaining = 0
    for index in range(size):
        if load[busy[index]]:
            busy[remaining] = busy[index]
            remaining += 1
    return remaining


def first_due(links: Links, flows: Flows, group: int) -> float:
    """Picoseconds until the first flow of `group` is done; infinite without active flows.

    Division is slow and only the least quotient counts, so it is computed only if it may be the least so far.
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
    """Change the number of flows of `bundle` by `change`, in every form in which counts are stored."""
    flows.counts[bundle] += change
    if links.senders[group]:
        begin = links.route_at[bundle]
        first, rows = links.first_link[group], pitch(links.senders[group])
        one, other = links.route[begin], links.route[begin + 1]
        flows.number[bundle] += change
        flows.number[links.turned[group] + (other - first - rows) * rows + one - first] += change
    for index in range(links.route_at[bundle], links.route_at[bundle + 1]):
        flows.crossing[links.route[index]] += change


def pass_time(links: Links, flows: Flows, group: int, now: int) -> int:
    """Set the time of `group` to `now`; returns the picoseconds since the last update."""
    elapsed = now - links.last[group]
    if elapsed:
        links.last[group] = now
        flows.before[group] = flows.started[group]
    return elapsed


def advance_group(links: Links, flows: Flows, group: int, now: int) -> None:
    """Let the flows of `group` receive data until `now`."""
    elapsed = pass_time(links, flows, group, now)
    if elapsed:
        for bundle in range(links.first_bundle[group], links.first_bundle[group + 1]):
            # The rate of a bundle without flows is 0.
            flows.service[bundle] += flows.rates[bundle] * elapsed


CERTAINLY = 1.0 - 1e-6
"""A factor below the rounding error of a growing share."""


def _begin(links: Links, crossing: FloatArray, begin: int, end: int) -> float:
    """Set up the links from `begin` to `end` with nothing taken yet. crossing: their flows. Returns the least share."""
    left, weight, share, step = links.left, links.weight, links.share, links.step
    for link in range(begin, end):
        flows = crossing[link]
        divisor = flows if flows > 0.0 else 1.0
        each = links.supply[link] / divisor
        left[link] = links.supply[link]
        weight[link] = flows
        step[link] = inf
        share[link] = each if flows > 0.0 else inf
    return least(share, begin, end)


def fill_dense(links: Links, flows: Flows, group: int) -> float:
    """Write the rate of one flow of each bundle of `group`, 0 for a bundle without flows.

    Returns the picoseconds until the first flow is done; infinite without active flows (`first_due`).
    """
    settle_all(links, flows, group)
    first, middle = links.first_link[group], links.first_link[group] + pitch(links.senders[group])
    columns = pitch(links.receivers[group])
    return _rates(links, flows, first, middle, links.first_bundle[group], links.senders[group], columns)


def settle_all(links: Links, flows: Flows, group: int) -> None:
    """Settle all links of `group`, the tightest first: the level of each, and the step at which it settled
    (`Links.step`).
    """
    senders, receivers = links.senders[group], links.receivers[group]
    rows, columns = pitch(senders), pitch(receivers)
    first, begin, turned = links.first_link[group], links.first_bundle[group], links.turned[group]
    middle, end = first + rows, first + rows + columns
    left, weight, share, level, step = links.left, links.weight, links.share, links.level, links.step
    one, two = _begin(links, flows.crossing, first, middle), _begin(links, flows.crossing, middle, end)
    turn = 0.0
    while one < inf or two < inf:
        sends = one < two
        if one == two:
            sends = links.rank[place_of(share, first, one)] < links.rank[place_of(share, middle, two)]
        # Senders and receivers share this code path: a branch between them would be unpredictable for the processor.
        tightest = one if sends else two
        side, side_end = first if sends else middle, middle if sends else end
        other, other_end = middle if sends else first, end if sends else middle
        counts = begin if sends else turned
        # Shares only grow: links of one side that are tighter than all of the other follow each other.
        least_other = (two if sends else one) * CERTAINLY
        while True:
            link = place_of(share, side, tightest)
            level[link], step[link] = tightest, turn
            turn += 1.0
            at = counts + (link - side) * (other_end - other)
            take(left, weight, other, other_end, flows.number, at, tightest)
            tightest = settle(share, side, side_end, link)
            if tightest >= least_other:
                break
        theirs = divide(left, weight, share, other, other_end)
        one, two = tightest if sends else theirs, theirs if sends else tightest


def _rates(links: Links, flows: Flows, first: int, middle: int, begin: int, senders: int, columns: int) -> float:
    """Write the rates of all senders' flows; returns the picoseconds until the first one is done.

    Division is slow and only the least quotient counts, so a sender's quotients are computed only if one may be the
    least.
    """
    heads, service, rates = flows.heads, flows.service, flows.rates
    due, limit = inf, 0.0
    for sender in range(senders):
        at = begin + sender * columns
        end = at + columns
        mine, when = links.level[first + sender], links.step[first + sender]
        lacks = rate_row(
            rates, flows.number, heads, service, at, end, links.level, links.step, middle, mine, when, limit
        )
        if due == inf or lacks < 0.0:
            due = min(due, soonest(heads, service, rates, at, end))
            limit = due * (1.0 + 1e-9) if 0.0 < due < inf else 0.0
    return max(due, 0.0)
