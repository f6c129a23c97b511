"""Share the links of a group among its flows: max-min fair, summed in the order of `gcnsim.engine.fairness`.

A group is shared as a matrix of counts (`gcnsim.engine.kernel.matrix`) if it can be, otherwise link by link
(`gcnsim.engine.kernel.filling`).
"""

from __future__ import annotations

from gcnsim.engine.kernel.filling import fill, first_due
from gcnsim.engine.kernel.matrix import COUNTED, beside_from, fill_dense, matrix_rates, planes_in_use
from gcnsim.engine.kernel.memory import MOST, PACKED, Flows, Known, Links
from gcnsim.engine.kernel.simd_loops import LANES, pitch, serve


def share(links: Links, flows: Flows, known: Known, group: int) -> float:
    """Write the rates of one flow of each bundle of `group`, 0 for a bundle without flows.

    Returns the picoseconds until the first flow is done, infinite when none is under way. Rates depend on nothing but
    the counts, which recur: those that were found lately are remembered with their counts.
    """
    slots = links.slots[group]
    first, width = links.word_at[group], links.word_at[group + 1] - links.word_at[group]
    mark = flows.mark[group]
    slot = (mark ^ (mark >> 17)) & (slots - 1) if slots else 0
    key = links.key_at[group] + slot * width
    kept = links.rate_at[group] + slot * links.kept[group]
    alike = 0
    while slots and alike < width and known.words[key + alike] == flows.words[first + alike] + 1:
        alike += 1
    met = slots > 0 and alike == width
    if links.senders[group]:
        due = _share_matrix(links, flows, known, group, kept, met, slots > 0)
        if due >= 0.0:
            if slots and not met:
                _note_counts(flows, known, key, first, width)
            return due
    begin, end = links.first_bundle[group], links.first_bundle[group + 1]
    if met:
        for index in range(end - begin):
            flows.rates[begin + index] = known.rates[kept + index]
        return first_due(flows, begin, end)
    fill(links, flows, group)
    # Flows of a matrix that are shared link by link are rare, and not remembered.
    if slots and links.senders[group] == 0:
        _note_counts(flows, known, key, first, width)
        for index in range(end - begin):
            known.rates[kept + index] = flows.rates[begin + index]
    return first_due(flows, begin, end)


def _note_counts(flows: Flows, known: Known, key: int, first: int, width: int) -> None:
    """Remember that what is kept belongs to the present counts."""
    for index in range(width):
        known.words[key + index] = flows.words[first + index] + 1


def _share_matrix(links: Links, flows: Flows, known: Known, group: int, kept: int, met: bool, remember: bool) -> float:
    """As `fill_dense`, with the levels and steps of its links, and the rates beside it, from `kept` on in
    `Known.rates`: read if these counts were `met` before, else written if they are to be remembered.
    """
    first = links.first_link[group]
    width = pitch(links.senders[group]) + pitch(links.receivers[group])
    beside, end = beside_from(links, group), links.first_bundle[group + 1]
    if met:
        for index in range(width):
            links.level[first + index] = known.rates[kept + index]
            links.step[first + index] = known.rates[kept + width + index]
        for index in range(end - beside):
            flows.rates[beside + index] = known.rates[kept + 2 * width + index]
        return matrix_rates(links, flows, group)
    due = fill_dense(links, flows, group)
    if remember and due >= 0.0:
        for index in range(width):
            known.rates[kept + index] = links.level[first + index]
            known.rates[kept + width + index] = links.step[first + index]
        for index in range(end - beside):
            known.rates[kept + 2 * width + index] = flows.rates[beside + index]
    return due


def count(links: Links, flows: Flows, group: int, bundle: int, change: int) -> None:
    """Change the number of flows of `bundle` by `change`, in every form in which counts are stored."""
    flows.counts[bundle] += change
    shared, place = links.shared[group], bundle - links.first_bundle[group]
    flows.words[links.word_at[group] + place // PACKED] += change << (4 * (place % PACKED))
    flows.mark[group] += change * links.token[bundle]
    word, bit = links.word[bundle], links.bit[bundle]
    flows.live[word] = flows.live[word] | bit if flows.counts[bundle] else flows.live[word] & ~bit
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
