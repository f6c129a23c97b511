"""Loops over rows of numbers, `LANES` at a time: vector instructions in the compiled kernel.

Here they are plain Python, one number after the other. `gcnsim.engine.kernel.vectors` compiles each to vector
instructions with the same operations on the same numbers. No loop adds across lanes, and a minimum does not depend on
the order, so the results are identical. Begin and end are a multiple of `LANES` words apart.
"""

from __future__ import annotations

from math import inf

from gcnsim.core.ids import FloatArray

LANES = 8
"""Words that a loop handles at once, to which rows are padded: a cache line, and the widest registers."""


def pitch(size: int) -> int:
    """Words from one row of `size` to the next."""
    return (size + LANES - 1) // LANES * LANES


def place_of(values: FloatArray, begin: int, value: float) -> int:
    """The first place from `begin` on that holds `value`, which must exist."""
    index = begin
    while values[index] != value:
        index += 1
    return index


def lowest(bits: int) -> int:
    """The place of the lowest bit of `bits`, which has one."""
    return int(bits & -bits).bit_length() - 1


def restart(
    left: FloatArray,
    weight: FloatArray,
    share: FloatArray,
    step: FloatArray,
    supply: FloatArray,
    crossing: FloatArray,
    begin: int,
    end: int,
) -> float:
    """Set the links from `begin` to `end` as before the first is settled: nothing is taken of what they supply.

    crossing: flows of each. Returns the least share of a flow; infinite without flows.
    """
    found = inf
    for link in range(begin, end):
        flows = crossing[link]
        left[link], weight[link], step[link] = supply[link], flows, inf
        share[link] = supply[link] / flows if flows > 0.0 else inf
        found = min(found, share[link])
    return found


def settle(share: FloatArray, begin: int, end: int, link: int) -> float:
    """Make the share of `link`, between `begin` and `end`, infinite; returns the least share of the others."""
    found = inf
    for index in range(begin, end):
        share[index] = inf if index == link else share[index]
        found = min(found, share[index])
    return found


def take(
    left: FloatArray,
    weight: FloatArray,
    begin: int,
    end: int,
    counts: FloatArray,
    at: int,
    until: int,
    level: float,
) -> None:
    """Subtract `level` per flow from the remaining capacity of the links from `begin` to `end`, row of flows by row.

    counts[at:until]: the rows, one number for each link. weight: unsettled flows of a link.
    """
    for index in range(end - begin):
        rest, flows = left[begin + index], weight[begin + index]
        for place in range(at + index, until + index, end - begin):
            count = counts[place]
            taken = level * count
            # Rounding must not leave a negative rest.
            rest = rest - taken if rest > taken else 0.0
            flows -= count
        left[begin + index], weight[begin + index] = rest, flows


def divide(left: FloatArray, weight: FloatArray, share: FloatArray, begin: int, end: int) -> float:
    """Set the share of each link from `begin` to `end` to its remaining capacity per flow, and return the least.

    It stays infinite for settled links and is infinite for links without flows.
    """
    found = inf
    for link in range(begin, end):
        rises = share[link] < inf and weight[link] > 0.0
        share[link] = left[link] / weight[link] if rises else inf
        found = min(found, share[link])
    return found


def rate_rows(
    rates: FloatArray,
    heads: FloatArray,
    service: FloatArray,
    begin: int,
    end: int,
    level: FloatArray,
    step: FloatArray,
    first: int,
    width: int,
    mine: float,
    when: float,
    limit: float,
) -> float:
    """Write the rates of a sender's flows: the level of the link of a flow that was settled first.

    begin, end: its bundles, in rows of `width` receivers; heads: infinite for those without flows. level, step: the
    levels of the receivers, from `first` on, and when they were settled; mine, when: those of the sender. Returns the
    least of the remaining units of a bundle's first flow minus what it receives in `limit`: negative if one may finish
    earlier.
    """
    found = inf
    for index in range(width):
        risen = mine if when < step[first + index] else level[first + index]
        for bundle in range(begin + index, end + index, width):
            rate = risen if heads[bundle] < inf else 0.0
            rates[bundle] = rate
            found = min(found, heads[bundle] - service[bundle] - limit * rate)
    return found


def soonest(heads: FloatArray, service: FloatArray, rates: FloatArray, begin: int, end: int) -> float:
    """The least time until the first flow of a bundle from `begin` to `end` is done; infinite for none."""
    found = inf
    for bundle in range(begin, end):
        if rates[bundle] > 0.0:
            found = min(found, (heads[bundle] - service[bundle]) / rates[bundle])
    return found


def block_within(heads: FloatArray, service: FloatArray, rates: FloatArray, begin: int, end: int, limit: float) -> int:
    """The first block of `LANES` bundles, counted from `begin`, with a first flow that is done within `limit`.

    `end` if there is none.
    """
    for bundle in range(begin, end):
        if heads[bundle] - service[bundle] <= limit * rates[bundle]:
            return bundle - (bundle - begin) % LANES
    return end


def serve(service: FloatArray, rates: FloatArray, heads: FloatArray, begin: int, end: int, elapsed: float) -> int:
    """Let the bundles from `begin` on receive data for `elapsed`, up to a block of `LANES` whose first flow is done.

    It is done if it would be after one more picosecond. Returns that block; `end` if there is none.
    """
    for block in range(begin, end, LANES):
        done = False
        for bundle in range(block, block + LANES):
            service[bundle] += rates[bundle] * elapsed
            done = done or heads[bundle] <= service[bundle] + rates[bundle]
        if done:
            return block
    return end
