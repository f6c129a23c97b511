"""Loops over rows of numbers, `LANES` of them at a time: vector instructions where the kernel is compiled.

Here they stand as plain Python, one number after the other; `gcnsim.engine.kernel.vectors` compiles each to vector
instructions with the same operations on the same numbers. None adds up what several lanes hold, and a least number is
the same whatever the order it is sought in, so the bits are the same too. Begin and end are a whole number of times
`LANES` words apart.
"""

from __future__ import annotations

from math import inf

from gcnsim.ids import FloatArray

LANES = 8
"""Words that a loop handles at once, to which rows are padded: a cache line, and the widest registers there are."""


def pitch(size: int) -> int:
    """Words from one row of `size` to the next."""
    return (size + LANES - 1) // LANES * LANES


def least(values: FloatArray, begin: int, end: int) -> float:
    """The least of values[begin:end]; infinite for none."""
    found = inf
    for index in range(begin, end):
        found = min(found, values[index])
    return found


def place_of(values: FloatArray, begin: int, value: float) -> int:
    """The first place from `begin` on of `value`, which is there."""
    index = begin
    while values[index] != value:
        index += 1
    return index


def settle(share: FloatArray, begin: int, end: int, link: int) -> float:
    """Make the share of `link`, one of those from `begin` to `end`, infinite; the least of the others' then."""
    found = inf
    for index in range(begin, end):
        share[index] = inf if index == link else share[index]
        found = min(found, share[index])
    return found


def take(left: FloatArray, weight: FloatArray, begin: int, end: int, counts: FloatArray, at: int, level: float) -> None:
    """Take `level` for each of the flows counts[at:] off what is left of the links from `begin` to `end`.

    weight: flows of a link that are not settled.
    """
    for index in range(end - begin):
        link = begin + index
        count = counts[at + index]
        taken = level * count
        # Rounding must not leave less than nothing.
        left[link] = left[link] - taken if left[link] > taken else 0.0
        weight[link] -= count


def divide(left: FloatArray, weight: FloatArray, share: FloatArray, begin: int, end: int) -> float:
    """Let share be what each link from `begin` to `end` has left for one of its flows, and return the least of it.

    It stays infinite for links that are settled, and is infinite for links without flows.
    """
    found = inf
    for link in range(begin, end):
        rises = share[link] < inf and weight[link] > 0.0
        share[link] = left[link] / weight[link] if rises else inf
        found = min(found, share[link])
    return found


def rate_row(
    rates: FloatArray,
    number: FloatArray,
    heads: FloatArray,
    service: FloatArray,
    begin: int,
    end: int,
    level: FloatArray,
    step: FloatArray,
    first: int,
    mine: float,
    when: float,
    limit: float,
) -> float:
    """Write the rates of a sender's flows: the level of whichever of a flow's two links was settled first.

    begin, end: its bundles; number: of their flows. level, step: the levels of the receivers, from `first` on, and when
    they were settled; mine, when: those of the sender. Returns the least of the units left of a bundle's first flow
    minus what it receives in `limit`: below 0 where one may be done before.
    """
    found = inf
    for index in range(end - begin):
        bundle = begin + index
        rate = mine if when < step[first + index] else level[first + index]
        rate = rate if number[bundle] > 0.0 else 0.0
        rates[bundle] = rate
        found = min(found, heads[bundle] - service[bundle] - limit * rate)
    return found


def soonest(heads: FloatArray, service: FloatArray, rates: FloatArray, begin: int, end: int) -> float:
    """The least time until the first flow of one of the bundles from `begin` to `end` is done; infinite for none."""
    found = inf
    for bundle in range(begin, end):
        if rates[bundle] > 0.0:
            found = min(found, (heads[bundle] - service[bundle]) / rates[bundle])
    return found


def block_within(heads: FloatArray, service: FloatArray, rates: FloatArray, begin: int, end: int, limit: float) -> int:
    """Where the first `LANES` bundles begin, counted from `begin`, of which one's first flow is done within `limit`.

    `end` where there are none.
    """
    for bundle in range(begin, end):
        if heads[bundle] - service[bundle] <= limit * rates[bundle]:
            return bundle - (bundle - begin) % LANES
    return end


def serve(service: FloatArray, rates: FloatArray, heads: FloatArray, begin: int, end: int, elapsed: float) -> float:
    """Let the bundles from `begin` to `end` receive what they do in `elapsed`.

    Returns the least that their first flows lack when another picosecond's worth is there: at most 0 where one is done.
    """
    found = inf
    for bundle in range(begin, end):
        service[bundle] += rates[bundle] * elapsed
        found = min(found, heads[bundle] - (service[bundle] + rates[bundle]))
    return found
