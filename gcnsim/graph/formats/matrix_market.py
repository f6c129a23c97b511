"""Graphs in the text formats of Matrix Market and METIS.

Matrix Market: a square sparse (`coordinate`) matrix, every stored entry of which is an edge. Format: "The Matrix Market
Exchange Formats" (Boisvert, Pozo, Remington, NIST 1996). It is parsed here because SciPy's reader crashes the process
on some malformed lines.

METIS: a header `n m [fmt [ncon]]`, then one line per node with its neighbours, 1-based. `fmt` has three digits: node
sizes, node weights, edge weights. A blank line is a node without edges, a line starting with `%` a comment. Format:
METIS 5 manual, "Graph file".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray, IntArray
from gcnsim.graph.csr import Graph, build_csr
from gcnsim.graph.formats.table import EdgeTable, numbered_lines, read_pairs

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
