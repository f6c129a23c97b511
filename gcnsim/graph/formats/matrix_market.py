"""Graphs in Matrix Market files: a square sparse (`coordinate`) matrix, of which every stored entry is an edge.

Format: "The Matrix Market Exchange Formats" (Boisvert, Pozo, Remington, NIST 1996). Read here, since SciPy's reader
brings the process down on some malformed lines.
"""

from __future__ import annotations

import numpy as np

from gcnsim.errors import FileError
from gcnsim.graph.csr import Graph, build_csr
from gcnsim.graph.formats.table import Pairs, numbered_lines, read_pairs
from gcnsim.ids import AnyArray

BANNER = b"%%MatrixMarket"
_WIDTH = {b"pattern": 2, b"real": 3, b"integer": 3, b"complex": 4}
_ONE_DIRECTION = {b"general": False, b"symmetric": True, b"skew-symmetric": True, b"hermitian": True}


def read_matrix_market(data: bytes, name: str, *, where: str) -> Graph:
    """The graph of a Matrix Market file's bytes; `symmetric` files hold one direction, which counts as both.

    Raises FileError when it is not a sparse square matrix or a line cannot be read (with its number); GraphError as
    `build_csr` does.
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


def _entries(pairs: Pairs | None, one_direction: bool) -> tuple[AnyArray, AnyArray, tuple[str, ...]]:
    if pairs is None:
        return np.empty(0, np.int64), np.empty(0, np.int64), ()
    rows, cols = pairs.rows - 1, pairs.cols - 1
    ignored = ("weights",) if pairs.values else ()
    if one_direction:
        other = rows != cols
        rows, cols = np.concatenate([rows, cols[other]]), np.concatenate([cols, rows[other]])
    return rows, cols, ignored
