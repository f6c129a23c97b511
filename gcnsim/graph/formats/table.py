"""Text tables of node pairs, as edge lists hold them, and the text formats of Matrix Market and METIS.

NumPy's compiled reader takes the whole file at once; only a file it refuses is walked line by line, to name the line.

Matrix Market: a square sparse (`coordinate`) matrix, every stored entry of which is an edge. Format: "The Matrix Market
Exchange Formats" (Boisvert, Pozo, Remington, NIST 1996). It is parsed here because SciPy's reader crashes the process
on some malformed lines.

METIS: a header `n m [fmt [ncon]]`, then one line per node with its neighbours, 1-based. `fmt` has three digits: node
sizes, node weights, edge weights. A blank line is a node without edges, a line starting with `%` a comment. Format:
METIS 5 manual, "Graph file".
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
from gcnsim.core.ids import AnyArray, IntArray
from gcnsim.graph.csr import MOST_NODES, Graph, build_csr
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


BANNER = b"%%MatrixMarket"
_WIDTH = {b"pattern": 2, b"real": 3, b"integer": 3, b"complex": 4}
_ONE_DIRECTION = {b"general": False, b"symmetric": True, b"skew-symmetric": True, b"hermitian": True}


def read_matrix_market(data: bytes, name: str, *, where: str) -> Graph:
    """The graph of a Matrix Market file's bytes; `symmetric` files contain one direction, which counts as both.

    Raises FileError if it is not a sparse square matrix or a line is invalid (with its number); GraphError as in
    `build_csr`.
    """
    banner = data[:200].split(b"\n", 1)[0].lower().split()
    known = len(banner) == 5 and banner[:3] == [BANNER.lower(), b"matrix", b"coordinate"]
    if not known or banner[3] not in _WIDTH or banner[4] not in _ONE_DIRECTION:
        raise FileError(f"{where}: is not a sparse Matrix Market file ('%%MatrixMarket matrix coordinate ...')")
    text = data.replace(b"%", b"#")
    lines = numbered_lines(text)
    line, sizes = next(lines, (0, b""))
    nodes, count = _sizes(sizes, line, where)
    some = next(lines, None) is not None
    pairs = read_pairs(text, _WIDTH[banner[3]], skip=line, least=1, where=where) if some else None
    found = 0 if pairs is None else pairs.rows.size
    if found != count:
        raise FileError(f"{where}: line {line} says {count} entries; found {found}")
    largest = 0 if pairs is None else int(max(pairs.rows.max(), pairs.cols.max()))
    if largest > nodes:
        raise FileError(f"{where}: node id {largest} is out of range; 1 to {nodes} are allowed")
    rows, cols, ignored = _entries(pairs, _ONE_DIRECTION[banner[4]])
    return build_csr(rows, cols, nodes, name, ignored=ignored, where=where)


def _sizes(line: bytes, number: int, where: str) -> tuple[int, int]:
    """Nodes and entries, from the line `rows columns entries`."""
    words = line.split()
    if len(words) != 3 or not all(word.isdigit() and len(word) < 20 for word in words):
        shown = line.decode("utf-8", "replace")[:60]
        raise FileError(f"{where}: line {number}: sizes {shown!r}; 'rows columns entries' is needed")
    rows, columns, entries = map(int, words)
    if rows != columns:
        raise FileError(f"{where}: an adjacency matrix must be square, not {rows} x {columns}")
    return rows, entries


def _entries(pairs: EdgeTable | None, one_direction: bool) -> tuple[AnyArray, AnyArray, tuple[str, ...]]:
    if pairs is None:
        return np.empty(0, np.int64), np.empty(0, np.int64), ()
    rows, cols = pairs.rows - 1, pairs.cols - 1
    ignored = ("weights",) if pairs.values else ()
    if one_direction:
        other = rows != cols
        rows, cols = np.concatenate([rows, cols[other]]), np.concatenate([cols, rows[other]])
    return rows, cols, ignored


_MOST_DIGITS = 18
"""The most digits of a number in the header: more would exceed 64 bits."""

_COMMENT = re.compile(rb"^[ \t]*%[^\n]*(?:\n|\Z)", re.MULTILINE)
_SPACE = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class _Header:
    nodes: int
    edges: int
    leading: int
    """Numbers before the first neighbour of a line: the node's size and weights."""
    stride: int
    """Numbers per neighbour: 2 with edge weights."""


def read_metis(data: bytes, name: str, *, where: str) -> Graph:
    """The graph of a METIS file's bytes; sizes and weights are ignored and listed in `cleaning`.

    Raises FileError if the header and the lines disagree or a line is invalid (with its number); GraphError as in
    `build_csr`.
    """
    text = _COMMENT.sub(b"", data) if b"%" in data else data
    first, _, body = text.partition(b"\n")
    header = _header(first, where)
    if body.translate(None, b"0123456789" + _SPACE):
        raise FileError(f"{where}: {_first_word(data)}")
    counts = _counts(body, header, where)
    short = np.flatnonzero((counts < header.leading) | ((counts - header.leading) % header.stride != 0))
    if short.size:
        line = _line_number(data, int(short[0]) + 1)
        raise FileError(f"{where}: line {line}: {counts[short[0]]} numbers do not fit the header's format")
    rows, cols = _neighbours(body, counts, header)
    outside = np.flatnonzero((cols < 0) | (cols >= header.nodes))
    if outside.size:
        line = _line_number(data, int(rows[outside[0]]) + 1)
        found = cols[outside[0]] + 1
        raise FileError(f"{where}: line {line}: neighbour {found} is out of range; 1 to {header.nodes} are allowed")
    if rows.size != 2 * header.edges:
        raise FileError(
            f"{where}: the header says {header.edges} edges, so {2 * header.edges} neighbours; found {rows.size}"
        )
    ignored = ("weights",) if header.leading > 0 or header.stride > 1 else ()
    return build_csr(rows, cols, header.nodes, name, ignored=ignored, where=where)


def _header(line: bytes, where: str) -> _Header:
    words = line.split()
    shown = line.decode("utf-8", "replace").strip()[:60]
    if not 2 <= len(words) <= 4 or not all(word.isdigit() and len(word) <= _MOST_DIGITS for word in words):
        raise FileError(f"{where}: header {shown!r}; 'nodes edges [fmt [ncon]]' is needed")
    flags = words[2].zfill(3) if len(words) > 2 else b"000"
    if len(flags) > 3 or flags.translate(None, b"01"):
        raise FileError(f"{where}: header {shown!r}: fmt must be up to three digits 0 or 1")
    weights = int(words[3]) if len(words) > 3 else 1
    leading = (flags[0] == ord("1")) + weights * (flags[1] == ord("1"))
    return _Header(int(words[0]), int(words[1]), leading, 1 + (flags[2] == ord("1")))


def _counts(body: bytes, header: _Header, where: str) -> IntArray:
    """Numbers per node line, int64[n]; blank lines after the last node do not count."""
    text = np.frombuffer(body if body.endswith(b"\n") or not body else body + b"\n", dtype=np.uint8)
    blank = text <= ord(" ")
    starts = ~blank
    starts[1:] &= blank[:-1]
    ends = np.flatnonzero(text == ord("\n"))
    counts = np.diff(np.searchsorted(np.flatnonzero(starts), ends), prepend=0)
    if counts.size < header.nodes or counts[header.nodes :].any():
        found = counts.size if counts.size < header.nodes else int(np.flatnonzero(counts)[-1]) + 1
        raise FileError(f"{where}: the header says {header.nodes} nodes, so as many lines follow it; found {found}")
    return counts[: header.nodes].astype(np.int64, copy=False)


def _neighbours(body: bytes, counts: IntArray, header: _Header) -> tuple[IntArray, IntArray]:
    """Both ends of every entry, 0-based: the numbers that are neither a node's nor an edge's weight."""
    values = np.fromstring(body.decode("ascii"), dtype=np.int64, sep=" ") if counts.any() else np.empty(0, np.int64)
    place = np.arange(values.size) - np.repeat(np.cumsum(counts) - counts, counts) - header.leading
    chosen = (place >= 0) & (place % header.stride == 0)
    return np.repeat(np.arange(header.nodes), counts)[chosen], values[chosen] - 1


def _first_word(data: bytes) -> str:
    """The first token that is not a number, and its line."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        bad = next((word for word in line.split() if not word.isdigit()), None)
        if bad is not None and not line.lstrip().startswith(b"%"):
            return f"line {number}: numbers must be whole, from 1, not {bad.decode('utf-8', 'replace')[:40]!r}"
    return "unreadable characters"


def _line_number(data: bytes, ordinal: int) -> int:
    """The line number, from 1, of the ordinal-th line (from 0) that is not a comment."""
    kept = [number for number, line in enumerate(data.split(b"\n"), 1) if not line.lstrip().startswith(b"%")]
    return kept[ordinal]
