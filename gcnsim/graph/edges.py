"""Edge lists: one `source target [weight]` per line, separated by whitespace or commas, 0-based ids."""

from __future__ import annotations

import numpy as np

from gcnsim.errors import FileError, GraphError
from gcnsim.graph.build import build_csr
from gcnsim.graph.csr import Graph
from gcnsim.graph.table import is_number, numbered_lines, read_pairs
from gcnsim.ids import AnyArray

_SPARSE_FROM, _SPARSE_RATIO = 1_000_000, 10


def read_edges(data: bytes, name: str, *, where: str, header: bool = False) -> Graph:
    """The graph of an edge list: nodes 0..largest id, so an id that no line has is a node without edges.

    `#` and `%` start comments. A third column is a weight: ignored, and `cleaning` says so. With `header` a first line
    without numbers is skipped. Raises FileError naming the first bad line; GraphError for an empty list, and for ids so
    sparse (largest above a million and over ten times the number of ids) that most nodes would not exist.
    """
    if b"%" in data:
        data = data.replace(b"%", b"#")
    lines = numbered_lines(data)
    line, first = next(lines, (0, b""))
    skip = 0
    if header and first and not any(is_number(token) for token in _tokens(first)[:2]):
        skip = line
        line, first = next(lines, (0, b""))
    if not first:
        raise GraphError(f"{where}: empty graph: no edges")
    width = len(_tokens(first))
    if width not in (2, 3):
        raise FileError(f"{where}: line {line}: {width} columns; source, target and at most a weight are allowed")
    pairs = read_pairs(data, width, skip=skip, comma=b"," in first, least=0, where=where)
    rows, cols = pairs["row"], pairs["col"]
    return build_csr(rows, cols, _node_count(rows, cols, where), name, weights_ignored=width == 3, where=where)


def _tokens(line: bytes) -> list[bytes]:
    return line.split(b",") if b"," in line else line.split()


def _node_count(rows: AnyArray, cols: AnyArray, where: str) -> int:
    largest = int(max(rows.max(), cols.max()))
    if largest > _SPARSE_FROM:
        distinct = np.unique(np.concatenate([np.unique(rows), np.unique(cols)])).size
        if largest > _SPARSE_RATIO * distinct:
            raise GraphError(
                f"{where}: node ids are too sparse: {distinct:,} ids up to {largest:,}; number the nodes from 0 first"
            )
    return largest + 1
