"""Text tables of node pairs, as edge lists and Matrix Market files hold them.

NumPy's compiled reader takes the whole file at once; only a file it refuses is walked line by line, to name the line.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import DTypeLike

from gcnsim.core.errors import FileError, plural
from gcnsim.core.ids import AnyArray
from gcnsim.graph.csr import MOST_NODES
from gcnsim.graph.formats.columns import EXACT, fields_of, whole_number

INT64 = np.iinfo(np.int64)
_MISSING = re.compile(r"<?na>?|n/a|nan|null|none|[+-]?inf", re.IGNORECASE)
"""What stands for a value that is not there."""

_SPACES = re.compile(r"[^\S\t\n\r ]|[\u200b-\u200f\u2060\ufeff]")
"""Other kinds of white space, and invisible characters, which text editors show as nothing or as a space."""

_ODD = "\ufffd"
"""What stands for such a character where it is looked for."""

_ATTEMPTS: tuple[tuple[DTypeLike, DTypeLike], ...] = ((np.int64, np.float64), (np.int64, "S1"), (np.float64, "S1"))
"""Types of ends and of other columns, in the order tried. A column that is not read may hold anything."""


@dataclass(frozen=True, slots=True)
class EdgeTable:
    """Both ends of every line, int64[E], and what stands in the column after them.

    values: whether there is one and it holds anything but the number 1.
    """

    rows: AnyArray
    cols: AnyArray
    values: bool


def read_pairs(
    data: bytes,
    width: int,
    *,
    skip: int,
    least: int,
    where: str,
    separator: str | None = None,
    ends: tuple[int, int] = (0, 1),
    names: bool = False,
) -> EdgeTable:
    """The lines after the first `skip`: whole numbers of at least `least` in the columns `ends`, anything in others.

    `#` starts a comment; width is the number of columns that every line must have, split at `separator`, None:
    whitespace. At least one line must hold data. names: whether --ids could read what is not a number, for the message.
    Raises FileError naming the first bad line.
    """
    reason = ""
    for whole, other in _ATTEMPTS:
        kinds = [(f"c{k}", whole if k in ends else other) for k in range(width)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # an id like `1.5` is only a deprecation to NumPy
                table = np.loadtxt(
                    BytesIO(data),
                    np.dtype(kinds),
                    "#",
                    separator,
                    skiprows=skip,
                    ndmin=1,
                    encoding="latin-1",
                    quotechar='"' if b'"' in data else None,
                )
        except (ValueError, OverflowError, Warning) as error:
            reason = reason or " ".join(str(error).split())
            continue
        rows, cols = (_whole(table[f"c{place}"]) for place in ends)
        if rows is not None and cols is not None and min(rows.min(), cols.min()) >= least:
            more = [index for index in range(width) if index not in ends]
            return EdgeTable(rows, cols, any(_not_one(table[f"c{place}"]) for place in more[:1]))
        reason = reason or f"a node id is below {least}"
        break
    raise FileError(f"{where}: {_first_fault(data, width, skip, separator, ends, least, names) or reason}")


def numbered_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that are not only a comment, with their numbers from 1."""
    for number, line in enumerate(BytesIO(data), start=1):
        content = line.split(b"#", 1)[0].rstrip()
        if content:
            yield number, content


def _whole(ends: AnyArray) -> AnyArray | None:
    """As int64; None where a number with decimals is not whole, or may not be the one that was written."""
    if ends.dtype.kind == "i":
        return ends
    exact = np.isfinite(ends).all() and bool(np.all((np.abs(ends) <= EXACT) & (ends % 1 == 0)))
    return ends.astype(np.int64) if exact else None


def _not_one(values: AnyArray) -> bool:
    return values.dtype.kind != "f" or bool(np.any(values != 1))


def _first_fault(
    data: bytes, width: int, skip: int, separator: str | None, ends: tuple[int, int], least: int, names: bool
) -> str | None:
    for number, line in numbered_lines(data):
        if number > skip:
            text = line.decode("utf-8", "replace")
            read, plain = (
                _fault(fields_of(_SPACES.sub(word, text), separator), width, ends, least, names) for word in (_ODD, " ")
            )
            if read and not plain:
                return f"line {number}: {_odd_space(text)}"
            if read:
                return f"line {number}: {_fault(fields_of(text, separator), width, ends, least, names) or read}"
    return None


def _odd_space(text: str) -> str:
    """What to say of a line in which only such a character is wrong."""
    found = next(_SPACES.finditer(text))
    name = unicodedata.name(found[0], "control character").lower()
    return (
        f"character {found.start() + 1} is U+{ord(found[0]):04X} ({name}), which separates no columns; allowed: a "
        "space, a tab or a comma in its place"
    )


def _fault(fields: list[str], width: int, ends: tuple[int, int], least: int, names: bool) -> str | None:
    if len(fields) != width:
        return f"{plural(len(fields), 'column')}; {width} are needed"
    for text in (fields[place] for place in ends):
        number = whole_number(text)
        if number is None:
            # Only what reads like a name is one: the hint must not send anybody in a circle.
            named = text.isprintable() and re.search(r"[^\W\d_]", text) and not _MISSING.fullmatch(text)
            hint = "; for names use --ids names" if names and named else ""
            return f"node ids must be integers, not {text[:40]!r}{hint}"
        most = INT64.max if least < 0 else MOST_NODES + least - 1
        if not least <= number <= most:
            hint = "; --ids compact renumbers others" if names and least == 0 else ""
            return f"node id {number} is out of range; {least} to {most} are allowed{hint}"
    return None
