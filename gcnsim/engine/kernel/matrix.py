"""Share a group whose bundles cross one sending and one receiving link that may be full each: a matrix of counts.

To settle a link, its rows of the matrix (or of its transpose) are subtracted from the other links, so that a processor
handles several at a time (`gcnsim.engine.kernel.simd_loops`). Bundles that cross no such link are beside the matrix.
They settle after it, or else the group is shared link by link (`gcnsim.engine.kernel.filling`). The sums are the same,
in the same order. Counts and loads are whole numbers in floats. Rows begin at multiples of `LANES` words.
"""

from __future__ import annotations

from math import inf

from gcnsim.engine.kernel.filling import begin_links, fill_rising, limit_of, sooner
from gcnsim.engine.kernel.memory import BITS, Flows, Links
from gcnsim.engine.kernel.simd_loops import LANES, divide, lowest, pitch, place_of, rate_rows, settle, take

COUNTED = LANES - 1
"""The planes of a matrix whose flows are counted."""

UNCERTAIN = -1.0
"""In place of a time: which links settle first is not certain."""


CERTAINLY = 1.0 - 1e-6
"""A factor below the rounding error of a growing share."""


def fill_dense(links: Links, flows: Flows, group: int) -> float:
    """Write the rate of one flow of each bundle of `group`, 0 for a bundle without flows.

    Returns the picoseconds until the first flow is done; infinite without active flows (`first_due`). UNCERTAIN if a
    flow beside the matrix may settle before one of it; then nothing is written.
    """
    settled = settle_all(links, flows, group)
    if _any_beside(links, flows, group):
        beside = beside_from(links, group)
        if not _settle_later(links, flows, group, settled, beside):
            return UNCERTAIN
        _fill_beside(links, flows, group, settled, beside)
    return matrix_rates(links, flows, group)


def _any_beside(links: Links, flows: Flows, group: int) -> bool:
    """Whether flows beside the matrix are under way: the last row of counts says how many."""
    return flows.number[links.turned[group + 1] - LANES] > 0.0


def beside_from(links: Links, group: int) -> int:
    """The first bundle of `group` that is beside its matrix."""
    return links.first_bundle[group] + links.senders[group] * links.planes[group] * pitch(links.receivers[group])


def _settle_later(links: Links, flows: Flows, group: int, settled: int, beside: int) -> bool:
    """Whether all flows beside the matrix, of the bundles from `beside` on, settle after the `settled` links of it.

    Shares only grow: the links of those flows are later if their first shares exceed the last level.
    """
    first, end = links.first_link[group], links.first_bundle[group + 1]
    top = links.level[int(links.waiting[first + settled - 1])] if settled else 0.0
    third = first + pitch(links.senders[group]) + pitch(links.receivers[group])
    for bundle in range(beside, end):
        if flows.counts[bundle]:
            for index in range(links.route_at[bundle], links.route_at[bundle + 1]):
                link = links.route[index]
                if link < third or links.supply[link] * CERTAINLY <= top * flows.crossing[link]:
                    return False
    return True


def _fill_beside(links: Links, flows: Flows, group: int, settled: int, beside: int) -> None:
    """Write the rates of the flows beside a matrix whose links are settled."""
    first, last = links.first_link[group], links.first_link[group + 1]
    third = first + pitch(links.senders[group]) + pitch(links.receivers[group])
    for link in range(third, last):
        links.weight[link], links.share[link] = 0.0, 0.0
    for word in range(links.live_at[group], links.live_at[group + 1]):
        links.rising[word] = 0
    for bundle in range(beside, links.first_bundle[group + 1]):
        flows_here = flows.counts[bundle]
        if flows_here:
            links.rising[links.word[bundle]] |= links.bit[bundle]
            for index in range(links.route_at[bundle], links.route_at[bundle + 1]):
                link = links.route[index]
                if links.weight[link] == 0.0:
                    links.left[link] = _left_by_matrix(links, flows, link, first, settled, beside)
                links.weight[link] += flows_here
    fill_rising(links, flows, group, third, last, divide(links.left, links.weight, links.share, third, last))


def _left_by_matrix(links: Links, flows: Flows, link: int, first: int, settled: int, beside: int) -> float:
    """What the flows of a matrix with `settled` links leave of a link that is never full. first: its first link.

    The flows, of the bundles before `beside`, are taken off in the order in which they settle: those of a step are a
    ring (`Links.following`), whose last one is in `Links.ring`.
    """
    ring, following = links.ring, links.following
    for step in range(first, first + settled):
        ring[step] = -1
    for crossed in range(links.crossing_at[link], links.crossing_at[link + 1]):
        word = links.crossing[crossed]
        bits = flows.live[word] & links.crossing_bits[crossed]
        while bits:
            bundle = links.ordered[word * BITS + lowest(bits)]
            bits &= bits - 1
            if bundle < beside:
                settles = first + int(links.step[_tightest(links, bundle)])
                last = ring[settles]
                following[bundle] = following[last] if last >= 0 else bundle
                if last >= 0:
                    following[last] = bundle
                ring[settles] = bundle
    left = links.supply[link]
    for step in range(first, first + settled):
        bundle = last = ring[step]
        while last >= 0:
            bundle = following[bundle]
            taken = links.level[_tightest(links, bundle)] * flows.counts[bundle]
            left = left - taken if left > taken else 0.0
            last = -1 if bundle == last else last
    return left


def _tightest(links: Links, bundle: int) -> int:
    """The link of a bundle of a matrix that settles first."""
    sender, receiver = links.route[links.route_at[bundle]], links.route[links.route_at[bundle] + 1]
    return sender if links.step[sender] < links.step[receiver] else receiver


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
    one, two = begin_links(links, flows.crossing, first, middle), begin_links(links, flows.crossing, middle, end)
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


def matrix_rates(links: Links, flows: Flows, group: int) -> float:
    """Write the rates of all senders' flows; returns the picoseconds until the first flow of the group is done.

    Division is slow and only the least quotient counts, so a sender's quotients are computed only if one may be the
    least.
    """
    heads, service, rates = flows.heads, flows.service, flows.rates
    first, columns = links.first_link[group], pitch(links.receivers[group])
    middle = first + pitch(links.senders[group])
    at, planes, used = links.first_bundle[group], links.planes[group], planes_in_use(links, flows, group)
    due = inf
    for sender in range(links.senders[group]):
        mine, when, end = links.level[first + sender], links.step[first + sender], at + used * columns
        lacks = rate_rows(
            rates, heads, service, at, end, links.level, links.step, middle, columns, mine, when, limit_of(due)
        )  # fmt: skip
        if lacks < 0.0:
            due = sooner(flows, at, end, due)
        at += planes * columns
    if _any_beside(links, flows, group):
        due = sooner(flows, at, links.first_bundle[group + 1], due)
    return max(due, 0.0)


def planes_in_use(links: Links, flows: Flows, group: int) -> int:
    """How many planes of a matrix there are up to the last one with flows, at least 1."""
    planes, last = links.planes[group], links.turned[group + 1] - LANES
    while 1 < planes <= COUNTED and flows.number[last + planes] == 0.0:
        planes -= 1
    return planes
