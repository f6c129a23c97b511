"""Max-min fair sharing where every bundle crosses one sending and one receiving link: a matrix of counts.

The sums are those of `gcnsim.engine.kernel.sharing`, in its order: what settling a link takes of the others is one row
of the matrix (or of its transpose), and of every other link one subtraction, so that a processor does several at a
time. Counts and loads are whole numbers in floats. Rows begin at multiples of `pitch` words.
"""

from __future__ import annotations

from math import inf

from gcnsim.engine.kernel.memory import Flows, Links
from gcnsim.ids import FloatArray

PITCH = 8
"""Words to which rows are padded: the widest that a processor handles at once."""


def pitch(size: int) -> int:
    """Words from one row of `size` to the next."""
    return (size + PITCH - 1) // PITCH * PITCH


def least(values: FloatArray) -> float:
    """The least of `values`; infinite for none."""
    found = inf
    for place in range(values.size):
        found = min(found, values[place])
    return found


def _place_of(values: FloatArray, value: float) -> int:
    """The first place of `value`, which is among `values`."""
    place = 0
    while values[place] != value:
        place += 1
    return place


def _take(counts: FloatArray, level: float, left: FloatArray, weight: FloatArray, share: FloatArray) -> None:
    """Take `level` for each of `counts` flows off what is left of each link, and the flows off its weight.

    share: what each link has left for one flow, infinite for links that are settled or have no flows.
    """
    for link in range(counts.size):
        taken = level * counts[link]
        left[link] = left[link] - taken if left[link] > taken else 0.0
        weight[link] -= counts[link]
        divisor = weight[link] if weight[link] > 0.0 else 1.0
        each = left[link] / divisor
        share[link] = each if share[link] < inf and weight[link] > 0.0 else inf


def _begin(
    counts: FloatArray,
    row: int,
    capacity: FloatArray,
    left: FloatArray,
    weight: FloatArray,
    share: FloatArray,
    step: FloatArray,
) -> None:
    """Set up one side of a group: nothing taken yet; counts: its matrix, rows of `row` links of the other side."""
    for link in range(capacity.size):
        left[link] = capacity[link]
        weight[link] = 0.0
        step[link] = inf
    for begin in range(0, counts.size, row):
        line = counts[begin : begin + row]
        for link in range(capacity.size):
            weight[link] += line[link]
    for link in range(capacity.size):
        divisor = weight[link] if weight[link] > 0.0 else 1.0
        share[link] = left[link] / divisor if weight[link] > 0.0 else inf


def fill_dense(links: Links, flows: Flows, group: int) -> None:
    """Write the rates of one flow of each bundle of `group`; 0 for a bundle without flows."""
    senders, receivers = links.senders[group], links.receivers[group]
    rows, columns = pitch(senders), pitch(receivers)
    first, begin, turned = links.first_link[group], links.first_bundle[group], links.turned[group]
    middle, end = first + rows, first + rows + columns
    number = flows.number[begin : begin + senders * columns]
    other = flows.turned[turned : turned + receivers * rows]
    left, weight, share = links.left, links.weight, links.share
    level, step = links.level, links.step
    _begin(other, rows, links.capacity[first:middle], left[first:middle], weight[first:middle], share[first:middle],
           step[first:middle])  # fmt: skip
    _begin(number, columns, links.capacity[middle:end], left[middle:end], weight[middle:end], share[middle:end],
           step[middle:end])  # fmt: skip
    sending, receiving = share[first:middle], share[middle:end]
    turn = 0.0
    while True:
        one, two = least(sending), least(receiving)
        tightest = min(one, two)
        if tightest == inf:
            break
        sender = _place_of(sending, tightest) if one == tightest else -1
        receiver = _place_of(receiving, tightest) if two == tightest else -1
        if receiver < 0 or (sender >= 0 and links.rank[first + sender] < links.rank[middle + receiver]):
            level[first + sender], step[first + sender], sending[sender] = tightest, turn, inf
            _take(number[sender * columns : (sender + 1) * columns], tightest, left[middle:end], weight[middle:end],
                  receiving)  # fmt: skip
        else:
            level[middle + receiver], step[middle + receiver], receiving[receiver] = tightest, turn, inf
            _take(other[receiver * rows : (receiver + 1) * rows], tightest, left[first:middle], weight[first:middle],
                  sending)  # fmt: skip
        turn += 1.0
    for sender in range(senders):
        at = begin + sender * columns
        _rates(number[sender * columns : (sender + 1) * columns], level[first + sender], step[first + sender],
               level[middle:end], step[middle:end], flows.rates[at : at + columns])  # fmt: skip


def _rates(
    counts: FloatArray, mine: float, when: float, level: FloatArray, step: FloatArray, rates: FloatArray
) -> None:
    """The rates of a sender's flows: the level of whichever of a flow's two links was settled first."""
    for link in range(counts.size):
        rate = mine if when < step[link] else level[link]
        rates[link] = rate if counts[link] > 0.0 else 0.0


def _nearest(heads: FloatArray, service: FloatArray, rates: FloatArray, limit: float) -> float:
    """The least of units left minus `limit` times the rate: below 0 where a flow may be done before `limit`."""
    found = inf
    for bundle in range(heads.size):
        found = min(found, heads[bundle] - service[bundle] - limit * rates[bundle])
    return found


def first_due_dense(links: Links, flows: Flows, group: int) -> float:
    """Picoseconds until the first flow of `group` is done, infinite when none is under way (`sharing.first_due`)."""
    columns = pitch(links.receivers[group])
    due, limit = inf, 0.0
    for begin in range(links.first_bundle[group], links.first_bundle[group + 1], columns):
        heads, service, rates = (
            flows.heads[begin : begin + columns],
            flows.service[begin : begin + columns],
            flows.rates[begin : begin + columns],
        )
        if due == inf or _nearest(heads, service, rates, limit) < 0.0:
            for bundle in range(columns):
                if rates[bundle] > 0.0:
                    due = min(due, (heads[bundle] - service[bundle]) / rates[bundle])
            if due <= 0.0:
                return 0.0
            limit = due * (1.0 + 1e-9)
    return due


def passed(heads: FloatArray, service: FloatArray, rates: FloatArray) -> bool:
    """Whether the first flow of one of these bundles is done within a picosecond."""
    found = inf
    for bundle in range(heads.size):
        found = min(found, heads[bundle] - (service[bundle] + rates[bundle]))
    return found <= 0.0
