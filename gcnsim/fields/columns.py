"""Rules for many values at once: the columns and arrays that files hold."""

from __future__ import annotations

import numpy as np

from gcnsim.errors import FileError
from gcnsim.fields.rules import Number
from gcnsim.ids import AnyArray, BoolArray

COUNT = Number(True, 0, 10**15)
"""Of nodes, edges or iterations: more than any machine holds, and sums of millions of them fit into 64 bits."""

POSITIVE = Number(True, 1, 10**15)
SHARE = Number(False, 0, 1)
FINITE = Number(False, -1e30, 1e30)
AMOUNT = Number(False, 0, 1e30)
"""Bytes, seconds and other sizes: products of a few of them stay within the range of a double."""


def wrong_values(values: AnyArray, rule: Number) -> BoolArray:
    """Where `values` (a tensor is taken as its array) hold what `rule` does not allow."""
    found = np.asarray(values)
    above = found > rule.low if rule.low_open else found >= rule.low
    return np.asarray(~(above & (found <= rule.high)), np.bool_)


def check_values(values: AnyArray, rule: Number, path: str) -> None:
    """Refuse an array that holds what `rule` does not allow. Raises FileError: path, place, value, range."""
    found = np.asarray(values)
    wrong = np.argwhere(wrong_values(found, rule))
    if wrong.size:
        place = tuple(int(each) for each in wrong[0])
        where = "".join(f"[{each}]" for each in place)
        raise FileError(f"{path}{where} is {found[place]:.12g}; allowed: {rule.allowed}")
