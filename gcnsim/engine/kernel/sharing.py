"""Share the links of a group among its flows: max-min fair, summed in the order of `gcnsim.engine.fairness`.

If every bundle crosses one sending and one receiving link that may be full, the group is shared as a matrix of counts
(`fill_dense`), otherwise link by link (`fill`). The sums are the same, in the same order. To settle a link, its rows of
the matrix (or of its transpose) are subtracted from the other links, so that a processor handles several at a time
(`gcnsim.engine.kernel.simd_loops`). Bundles that cross no such link are beside the matrix: while one of them has flows,
the group is shared link by link. Counts and loads are whole numbers in floats. Rows begin at multiples of `LANES`
words.
"""

from __future__ import annotations

from math import inf

from gcnsim.core.ids import FloatArray
from gcnsim.engine.kernel.memory import MOST, PACKED, Flows, Known, Links
from gcnsim.engine.kernel.simd_loops import (
    LANES,
    block_within,
    divide,
    pitch,
    place_of,
    rate_rows,
    restart,
    serve,
    settle,
    soonest,
    take,
)


def share(links: Links, flows: Flows, known: Known, group: int) -> float:
    """Write the rates of one flow of each bundle of `group`, 0 for a bundle without flows.

    Returns the picoseconds until the first flow is done, infinite when none is under way. Rates depend on nothing but
    the counts, which recur: those that were found lately are remembered with their counts.
    """
    if links.slots[group] == 0:
        return _found(links, flows, group)
    begin, end = links.first_bundle[group], links.first_bundle[group + 1]
    first, width = links.word_at[group], links.word_at[group + 1] - links.word_at[group]
    mark = flows.mark[group]
    slot = (mark ^ (mark >> 17)) & (links.slots[group] - 1)
    key, kept = links.key_at[group] + slot * width, links.rate_at[group] + slot * (end - begin)
    alike = 0
    while alike < width and known.words[key + alike] == flows.words[first + alike] + 1:
        alike += 1
    if alike == width:
        for index in range(end - begin):
            flows.rates[begin + index] = known.rates[kept + index]
        return first_due(flows, begin, end)
    due = _found(links, flows, group)
    for index in range(width):
        known.words[key + index] = flows.words[first + index] + 1
    for index in range(end - begin):
        known.rates[kept + index] = flows.rates[begin + index]
    return due


def _found(links: Links, flows: Flows, group: int) -> float:
    """As `share`, found anew."""
    # The last row of counts says how many flows are beside the matrix.
    if links.senders[group] and flows.number[links.turned[group + 1] - LANES] == 0.0:
        return fill_dense(links, flows, group)
    fill(links, flows, group)
    return first_due(flows, links.first_bundle[group], links.first_bundle[group + 1])


def first_due(flows: Flows, begin: int, end: int) -> float:
    """The picoseconds until the first flow of the bundles from `begin` to `end` is done, infinite for none.

    Division is slow: of many bundles, only quotients of blocks that may contain the least are computed.
    """
    if end - begin <= MANY:
        return soonest(flows.heads, flows.service, flows.rates, begin, end)
    return _sooner(flows, begin, end, inf)


def _sooner(flows: Flows, begin: int, end: int, due: float) -> float:
    """The least of `due` and the picoseconds until the first flow of the bundles from `begin` to `end` is done."""
    heads, service, rates = flows.heads, flows.service, flows.rates
    at = block_within(heads, service, rates, begin, end, _limit(due))
    while at < end:
        due = min(due, soonest(heads, service, rates, at, at + LANES))
        at = block_within(heads, service, rates, at + LANES, end, _limit(due))
    return due


def _limit(due: float) -> float:
    """Picoseconds that whatever is done before `due` takes, however it is rounded."""
    return LONGEST if due == inf else max(0.0, due * (1.0 + 1e-9))


MANY = 8 * LANES
"""Bundles beyond which blocks are looked at one by one."""

LONGEST = 1e300
"""Picoseconds that no flow takes."""


def fill(links: Links, flows: Flows, group: int) -> None:
    """Write the rates of one flow of each bundle of `group`; 0 for a bundle without flows."""
    first, last, shared = links.first_link[group], links.first_link[group + 1], links.shared[group]
    known = _known_ahead(links, flows, group) if links.senders[group] else 0
    for bundle in range(links.first_bundle[group], links.first_bundle[group + 1]):
        links.rising[bundle] = flows.counts[bundle]
        flows.rates[bundle] = 0.0
    level = _begin(links, flows.crossing, first, last)
    for turn in range(known):
        link = int(links.waiting[first + turn])
        _settle_all_of(links, flows, shared, link, links.level[link])
    if known:
        level = divide(links.left, links.weight, links.share, first, last)
    while level < inf:
        tightest = place_of(links.share, first, level)
        if links.senders[group]:
            for link in range(tightest + 1, last):
                if links.share[link] == level and links.rank[link] < links.rank[tightest]:
                    tightest = link
        _settle_all_of(links, flows, shared, tightest, level)
        level = divide(links.left, links.weight, links.share, first, last)


def _known_ahead(links: Links, flows: Flows, group: int) -> int:
    """Settle the links of a matrix with flows beside it. Returns how many (in `Links.waiting`) are settled before any
    other link of the group; 0 where that is not certain.

    Shares only grow: the links of the flows beside it are later if their first shares exceed the last level.
    """
    first, rows, columns = links.first_link[group], pitch(links.senders[group]), pitch(links.receivers[group])
    settled = settle_all(links, flows, group)
    top = links.level[int(links.waiting[first + settled - 1])] if settled else inf
    beside = links.first_bundle[group] + links.senders[group] * links.planes[group] * columns
    for bundle in range(beside, links.first_bundle[group + 1]):
        if flows.counts[bundle]:
            for index in range(links.route_at[bundle], links.route_at[bundle + 1]):
                link = links.route[index]
                if link < first + rows + columns or links.supply[link] * CERTAINLY <= top * flows.crossing[link]:
                    return 0
    return settled


def _settle_all_of(links: Links, flows: Flows, shared: int, tightest: int, level: float) -> None:
    """Settle the flows that cross the link `tightest` at `level`."""
    left, weight, rising = links.left, links.weight, links.rising
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
                    weight[link] = 0.0
                else:
                    weight[link] -= count
                    # Rounding must not leave less than nothing.
                    left[link] = left[link] - taken if left[link] > taken else 0.0


def count(links: Links, flows: Flows, group: int, bundle: int, change: int) -> None:
    """Change the number of flows of `bundle` by `change`, in every form in which counts are stored."""
    flows.counts[bundle] += change
    shared, place = links.shared[group], bundle - links.first_bundle[group]
    flows.words[links.word_at[group] + place // PACKED] += change << (4 * (place % PACKED))
    flows.mark[group] += change * links.token[bundle]
    if flows.counts[bundle] > MOST:
        links.slots[group] = 0
    if links.senders[group]:
        flows.number[bundle] += change
        _count_matrix(links, flows, group, bundle, change)
    for index in range(links.route_at[bundle], links.route_at[bundle + 1]):
        link = links.route[index]
        # However many flows of a bundle there are, its cap is that of each.
        flows.crossing[link] = flows.crossing[link] + change if link < shared else min(1.0, flows.counts[bundle])


def _count_matrix(links: Links, flows: Flows, group: int, bundle: int, change: int) -> None:
    """Change the count of a bundle in the transposed matrix and in that of its plane, or in that beside the matrix."""
    rows, columns, planes = pitch(links.senders[group]), pitch(links.receivers[group]), links.planes[group]
    place, last = bundle - links.first_bundle[group], links.turned[group + 1] - LANES
    if place >= links.senders[group] * planes * columns:
        flows.number[last] += change
        return
    begin, first = links.route_at[bundle], links.first_link[group]
    sender, receiver = links.route[begin] - first, links.route[begin + 1] - first - rows
    plane = place // columns - sender * planes
    flows.number[links.turned[group] + (receiver * planes + plane) * rows + sender] += change
    if plane < COUNTED:
        flows.number[last + 1 + plane] += change


COUNTED = LANES - 1
"""The planes of a matrix whose flows are counted."""


def planes_in_use(links: Links, flows: Flows, group: int) -> int:
    """How many planes of a matrix there are up to the last one with flows, at least 1."""
    planes, last = links.planes[group], links.turned[group + 1] - LANES
    while 1 < planes <= COUNTED and flows.number[last + planes] == 0.0:
        planes -= 1
    return planes


def pass_time(links: Links, flows: Flows, group: int, now: int) -> int:
    """Set the time of `group` to `now`; returns the picoseconds since the last update."""
    elapsed = now - links.last[group]
    if elapsed:
        links.last[group] = now
        flows.before[group] = flows.started[group]
    return elapsed


def advance_group(links: Links, flows: Flows, group: int, now: int) -> None:
    """Let the flows of `group` receive data until `now`."""
    elapsed = float(pass_time(links, flows, group, now))
    if elapsed:
        # The rate of a bundle without flows is 0.
        at, columns = links.first_bundle[group], pitch(links.receivers[group])
        width, used = columns * links.planes[group], columns * planes_in_use(links, flows, group)
        for _ in range(links.senders[group]):
            _serve_all(flows, at, at + used, elapsed)
            at += width
        _serve_all(flows, at, links.first_bundle[group + 1], elapsed)


def _serve_all(flows: Flows, begin: int, end: int, elapsed: float) -> None:
    """Let the bundles from `begin` to `end` receive data for `elapsed`."""
    while begin < end:
        begin = serve(flows.service, flows.rates, flows.heads, begin, end, elapsed) + LANES


CERTAINLY = 1.0 - 1e-6
"""A factor below the rounding error of a growing share."""


def _begin(links: Links, crossing: FloatArray, begin: int, end: int) -> float:
    """Set up the links from `begin` to `end` with nothing taken yet. crossing: their flows. Returns the least share."""
    return restart(links.left, links.weight, links.share, links.step, links.supply, crossing, begin, end)


def fill_dense(links: Links, flows: Flows, group: int) -> float:
    """Write the rate of one flow of each bundle of `group`, 0 for a bundle without flows.

    Returns the picoseconds until the first flow is done; infinite without active flows (`first_due`).
    """
    settle_all(links, flows, group)
    first, middle = links.first_link[group], links.first_link[group] + pitch(links.senders[group])
    columns, begin, planes = pitch(links.receivers[group]), links.first_bundle[group], links.planes[group]
    for beside in range(begin + links.senders[group] * planes * columns, links.first_bundle[group + 1]):
        flows.rates[beside] = 0.0
    return _rates(links, flows, first, middle, group, columns)


def settle_all(links: Links, flows: Flows, group: int) -> int:
    """Settle all links of `group`, the tightest first: the level of each, and the step at which it settled
    (`Links.step`). Returns how many, which are listed in `Links.waiting`.
    """
    senders, receivers = links.senders[group], links.receivers[group]
    rows, columns = pitch(senders), pitch(receivers)
    first, begin, turned = links.first_link[group], links.first_bundle[group], links.turned[group]
    middle, end = first + rows, first + rows + columns
    left, weight, share, level, step = links.left, links.weight, links.share, links.level, links.step
    planes, used = links.planes[group], planes_in_use(links, flows, group)
    one, two = _begin(links, flows.crossing, first, middle), _begin(links, flows.crossing, middle, end)
    turn = 0
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
            level[link], step[link], links.waiting[first + turn] = tightest, turn, link
            turn += 1
            at, width = counts + (link - side) * planes * (other_end - other), other_end - other
            take(left, weight, other, other_end, flows.number, at, at + used * width, tightest)
            tightest = settle(share, side, side_end, link)
            if tightest >= least_other:
                break
        theirs = divide(left, weight, share, other, other_end)
        one, two = tightest if sends else theirs, theirs if sends else tightest
    return turn


def _rates(links: Links, flows: Flows, first: int, middle: int, group: int, columns: int) -> float:
    """Write the rates of all senders' flows; returns the picoseconds until the first one is done.

    Division is slow and only the least quotient counts, so a sender's quotients are computed only if one may be the
    least.
    """
    heads, service, rates = flows.heads, flows.service, flows.rates
    at, planes, used = links.first_bundle[group], links.planes[group], planes_in_use(links, flows, group)
    due = inf
    for sender in range(links.senders[group]):
        mine, when, end = links.level[first + sender], links.step[first + sender], at + used * columns
        lacks = rate_rows(
            rates,
            flows.number,
            heads,
            service,
            at,
            end,
            links.level,
            links.step,
            middle,
            columns,
            mine,
            when,
            _limit(due),
        )
        if lacks < 0.0:
            due = _sooner(flows, at, end, due)
        at += planes * columns
        for unused in range(end, at):
            rates[unused] = 0.0
    return max(due, 0.0)
