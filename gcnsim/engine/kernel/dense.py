"""Max-min fair sharing where every bundle crosses one sending and one receiving link: a matrix of counts.

The sums are those of `gcnsim.engine.kernel.sharing`, in its order: what settling a link takes of the others is one row
of the matrix (or of its transpose), and of every other link one subtraction, so that a processor does several at a
time. Counts and loads are whole numbers in floats. Rows begin at multiples of `PITCH` words.
"""

from __future__ import annotations

from math import inf

from gcnsim.engine.kernel.memory import Flows, Links
from gcnsim.ids import FloatArray

PITCH = 8
"""Words to which rows are padded: the most that a processor handles at once."""


def pitch(size: int) -> int:
    """Words from one row of `size` to the next."""
    return (size + PITCH - 1) // PITCH * PITCH


def least(values: FloatArray, begin: int, end: int) -> float:
    """The least of values[begin:end]; infinite for none."""
    found = inf
    for place in range(begin, end):
        found = min(found, values[place])
    return found


def _place_of(values: FloatArray, begin: int, value: float) -> int:
    """The first place from `begin` on of `value`, which is there."""
    place = begin
    while values[place] != value:
        place += 1
    return place


def _take(links: Links, counts: FloatArray, at: int, begin: int, end: int, level: float) -> None:
    """Take `level` for each of the flows counts[at:] off what is left of the links from `begin` to `end`.

    share: what each link has left for one flow, infinite for links that are settled or have no flows.
    """
    left, weight, share = links.left, links.weight, links.share
    for place in range(end - begin):
        link = begin + place
        count = counts[at + place]
        taken = level * count
        remains = left[link] - taken if left[link] > taken else 0.0
        flows = weight[link] - count
        divisor = flows if flows > 0.0 else 1.0
        each = remains / divisor
        rises = share[link] < inf and flows > 0.0
        left[link] = remains
        weight[link] = flows
        share[link] = each if rises else inf


def _begin(links: Links, counts: FloatArray, at: int, rows: int, begin: int, end: int) -> None:
    """Set up the links from `begin` to `end`, of which nothing is taken yet: counts[at:] has `rows` rows of them."""
    left, weight, share, step = links.left, links.weight, links.share, links.step
    size = end - begin
    for link in range(begin, end):
        left[link] = links.capacity[link]
        weight[link] = 0.0
        step[link] = inf
    for row in range(rows):
        for place in range(size):
            weight[begin + place] += counts[at + row * size + place]
    for link in range(begin, end):
        flows = weight[link]
        divisor = flows if flows > 0.0 else 1.0
        each = left[link] / divisor
        share[link] = each if flows > 0.0 else inf


def fill_dense(links: Links, flows: Flows, group: int) -> None:
    """Write the rates of one flow of each bundle of `group`; 0 for a bundle without flows."""
    senders, receivers = links.senders[group], links.receivers[group]
    rows, columns = pitch(senders), pitch(receivers)
    first, begin, turned = links.first_link[group], links.first_bundle[group], links.turned[group]
    middle, end = first + rows, first + rows + columns
    share, level, step = links.share, links.level, links.step
    _begin(links, flows.turned, turned, receivers, first, middle)
    _begin(links, flows.number, begin, senders, middle, end)
    turn = 0.0
    while True:
        one, two = least(share, first, middle), least(share, middle, end)
        tightest = min(one, two)
        if tightest == inf:
            break
        sender = _place_of(share, first, tightest) if one == tightest else -1
        receiver = _place_of(share, middle, tightest) if two == tightest else -1
        if receiver < 0 or (sender >= 0 and links.rank[sender] < links.rank[receiver]):
            level[sender], step[sender], share[sender] = tightest, turn, inf
            _take(links, flows.number, begin + (sender - first) * columns, middle, end, tightest)
        else:
            level[receiver], step[receiver], share[receiver] = tightest, turn, inf
            _take(links, flows.turned, turned + (receiver - middle) * rows, first, middle, tightest)
        turn += 1.0
    for sender in range(senders):
        _rates(links, flows, first + sender, middle, begin + sender * columns, columns)


def _rates(links: Links, flows: Flows, sender: int, first: int, at: int, size: int) -> None:
    """The rates of a sender's flows: the level of whichever of a flow's two links was settled first.

    first: the first receiver. at: the sender's first bundle, of `size`.
    """
    mine, when = links.level[sender], links.step[sender]
    level, step, number, rates = links.level, links.step, flows.number, flows.rates
    for place in range(size):
        theirs = level[first + place]
        rate = mine if when < step[first + place] else theirs
        rates[at + place] = rate if number[at + place] > 0.0 else 0.0


def _nearest(heads: FloatArray, service: FloatArray, rates: FloatArray, begin: int, end: int, limit: float) -> float:
    """The least of units left minus `limit` times the rate: below 0 where a flow may be done before `limit`."""
    found = inf
    for bundle in range(begin, end):
        found = min(found, heads[bundle] - service[bundle] - limit * rates[bundle])
    return found


def first_due_dense(links: Links, flows: Flows, group: int) -> float:
    """Picoseconds until the first flow of `group` is done, infinite when none is under way (`sharing.first_due`)."""
    heads, service, rates = flows.heads, flows.service, flows.rates
    columns = pitch(links.receivers[group])
    due, limit = inf, 0.0
    begin = links.first_bundle[group]
    while begin < links.first_bundle[group + 1]:
        end = begin + columns
        if due == inf or _nearest(heads, service, rates, begin, end, limit) < 0.0:
            for bundle in range(begin, end):
                if rates[bundle] > 0.0:
                    due = min(due, (heads[bundle] - service[bundle]) / rates[bundle])
            if due <= 0.0:
                return 0.0
            limit = due * (1.0 + 1e-9)
        begin = end
    return due


def passed(heads: FloatArray, service: FloatArray, rates: FloatArray, begin: int, end: int) -> bool:
    """Whether the first flow of one of the bundles from `begin` to `end` is done within a picosecond."""
    found = inf
    for bundle in range(begin, end):
        found = min(found, heads[bundle] - (service[bundle] + rates[bundle]))
    return found <= 0.0
