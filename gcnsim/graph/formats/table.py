"""Text tables of node pairs, as edge lists and Matrix Market files hold them.

NumPy's compiled reader takes the whole file at once; only a file it refuses is walked line by line, to name the line.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from io import BytesIO

import numpy as np

from gcnsim.errors import FileError, plural
from gcnsim.graph.build import MOST_NODES
from gcnsim.ids import AnyArray

_INTEGER = re.compile(rb"[+-]?\d{1,25}")
_NAMES = ("row", "col", "value", "imaginary")
INT64 = np.iinfo(np.int64)


def read_pairs(
    data: bytes, width: int, *, skip: int, comma: bool, least: int, where: str, names: bool = False
) -> AnyArray:
    """The lines after the first `skip`, as fields row and col (int64, at least `least`), value, imaginary (float64).

    `#` starts a comment; width (2 to 4) is the number of columns that every line must have, split at commas or at
    whitespace. At least one line must hold data. names: whether --ids could read what is no number, for the message.
    Raises FileError naming the first bad line.
    """
    kinds = [(name, np.int64 if k < 2 else np.float64) for k, name in enumerate(_NAMES[:width])]
    delimiter = "," if comma else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an id like `1.5` is only a deprecation to NumPy
            pairs = np.loadtxt(
                BytesIO(data), np.dtype(kinds), "#", delimiter, skiprows=skip, ndmin=1, encoding="latin-1"
            )
        if min(pairs["row"].min(), pairs["col"].min()) >= least:
            return pairs
        reason = f"a node id is below {least}"
    except (ValueError, OverflowError, Warning) as error:
        reason = " ".join(str(error).split())
    raise FileError(f"{where}: {_first_fault(data, width, skip, comma, least, names) or reason}")


def numbered_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that hold something besides a comment, with their numbers from 1."""
    for number, line in enumerate(BytesIO(data), start=1):
        content = line.split(b"#", 1)[0].strip()
        if content:
            yield number, content


def is_number(token: bytes) -> bool:
    """Whether the token reads as a number."""
    try:
        float(token)
    except ValueError:
        return False
    return True


def _first_fault(data: bytes, width: int, skip: int, comma: bool, least: int, names: bool) -> str | None:
    for number, line in numbered_lines(data):
        tokens = line.split(b",") if comma else line.split()
        fault = _fault(tokens, width, least, names) if number > skip else None
        if fault:
            return f"line {number}: {fault}"
    return None


def _fault(tokens: list[bytes], width: int, least: int, names: bool) -> str | None:
    if len(tokens) != width:
        return f"{plural(len(tokens), 'column')}; {width} are needed"
    for token in tokens[:2]:
        if not _INTEGER.fullmatch(token.strip()):
            hint = "; for names use --ids names" if names else ""
            return f"node ids must be integers, not {_shown(token)}{hint}"
        most = INT64.max if least < 0 else MOST_NODES + least - 1
        if not least <= int(token) <= most:
            hint = "; --ids compact renumbers others" if names and least == 0 else ""
            return f"node id {int(token)} is out of range; {least} to {most} are allowed{hint}"
    wrong = [token for token in tokens[2:] if not is_number(token)]
    return f"the weight must be a number, not {_shown(wrong[0])}" if wrong else None


def _shown(token: bytes) -> str:
    return repr(token.strip().decode("utf-8", "replace")[:40])
