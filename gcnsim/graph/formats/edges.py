"""Edge lists: one `source target [weight]` per line, separated by whitespace or commas.

How ids become nodes: `numbers` are 0-based node numbers as they stand, so one that no line has is a node without edges;
`compact` are integers of which only those that occur are nodes, in ascending order; `names` are any texts, numbered in
the order in which they first occur.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from typing import Final

import numpy as np

from gcnsim.errors import FileError, GraphError, plural
from gcnsim.graph.build import build_csr
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.table import INT64, is_number, numbered_lines, read_pairs
from gcnsim.ids import AnyArray, frozen

NUMBERS: Final = "numbers"
IDS: Final = (NUMBERS, "compact", "names")
"""How the ids of an edge list are read."""

HEADER_WORDS: Final = frozenset(
    (
        *("source", "target", "src", "dst", "from", "to", "u", "v", "start", "end", "head", "tail"),
        *(f"{word}{mark}{number}" for word in ("node", "id") for mark in ("", "_") for number in (1, 2)),
    )
)
"""Of names a header cannot be told from an edge but by its words."""

_SPARSE_FROM, _SPARSE_RATIO = 1_000_000, 10
_COLUMNS: Final = "source, target and at most a weight are allowed"


def read_edges(data: bytes, name: str, *, where: str, header: bool = False, ids: str = NUMBERS) -> Graph:
    """The graph of an edge list; ids: one of `IDS`.

    `#` and `%` start comments, of names only at the beginning of a line. A third column is a weight: ignored, and
    `cleaning` says so. With `header` a first line without numbers is skipped, of names one of two `HEADER_WORDS`.
    Raises FileError naming the first bad line; GraphError for an empty list, and for numbers so sparse (largest above a
    million and over ten times the number of ids) that most nodes would not exist.
    """
    if ids == "names":
        return _read_names(data, name, where=where, header=header)
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
        raise FileError(f"{where}: line {line}: {plural(width, 'column')}; {_COLUMNS}")
    compact = ids == "compact"
    least = INT64.min if compact else 0
    pairs = read_pairs(data, width, skip=skip, comma=b"," in first, least=least, where=where, names=True)
    rows, cols = pairs["row"], pairs["col"]
    if compact:
        known, place = np.unique(np.concatenate([rows, cols]), return_inverse=True)
        place = place.reshape(2, -1)
        graph = build_csr(place[0], place[1], known.size, name, ignored=("weights",) if width == 3 else (), where=where)
        return replace(graph, original_ids=frozen(known))
    nodes, unused = _node_count(rows, cols, where)
    graph = build_csr(rows, cols, nodes, name, ignored=("weights",) if width == 3 else (), where=where)
    return replace(graph, unused_ids=unused)


def _tokens(line: bytes) -> list[bytes]:
    return line.split(b",") if b"," in line else line.split()


def _node_count(rows: AnyArray, cols: AnyArray, where: str) -> tuple[int, int]:
    """Nodes, and how many of them no line has."""
    largest = int(max(rows.max(), cols.max()))
    if largest > _SPARSE_FROM:
        distinct = np.unique(np.concatenate([np.unique(rows), np.unique(cols)])).size
        if largest > _SPARSE_RATIO * distinct:
            raise GraphError(
                f"{where}: {distinct:,} node ids up to {largest:,}: nearly all nodes would be isolated; --ids compact "
                "renumbers them"
            )
    used = np.zeros(largest + 1, np.bool_)
    used[rows] = used[cols] = True
    return largest + 1, largest + 1 - int(np.count_nonzero(used))


def _read_names(data: bytes, name: str, *, where: str, header: bool) -> Graph:
    place: dict[str, int] = {}
    ends, width = array("q"), 0
    for number, words in _words(data, where):
        if not width:
            width = len(words)
            if width not in (2, 3):
                raise FileError(f"{where}: line {number}: {plural(width, 'column')}; {_COLUMNS}")
            if header and len({each.lower() for each in words[:2]} & HEADER_WORDS) == 2:
                continue
        fault = _name_fault(words, width)
        if fault:
            raise FileError(f"{where}: line {number}: {fault}")
        for each in words[:2]:
            ends.append(place.setdefault(each, len(place)))
    if not ends:
        raise GraphError(f"{where}: empty graph: no edges")
    pairs = np.frombuffer(ends, np.int64)
    graph = build_csr(
        pairs[0::2], pairs[1::2], len(place), name, ignored=("weights",) if width == 3 else (), where=where
    )
    return replace(graph, original_ids=tuple(place))


def _words(data: bytes, where: str) -> Iterator[tuple[int, list[str]]]:
    """The words of every line that is neither blank nor a comment, with its number from 1.

    The first such line says what separates them: a comma (with quotes, as CSV has them), else a tab, else whitespace.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(f"{where}: line {line}: not UTF-8 text") from None
    lines = ((number, line) for number, line in enumerate(StringIO(text), 1) if line.strip() and line[0] not in "#%")
    first = next(lines, (0, ""))
    separator = next((each for each in (",", "\t") if each in first[1]), None)
    if separator == ",":
        lines = ((number, line) for number, line in enumerate(StringIO(text), 1))
        numbers: list[int] = []
        reader = csv.reader(_noted(lines, numbers), skipinitialspace=True)
        try:
            yield from ((numbers[-1], [word.strip() for word in words]) for words in reader if words)
        except csv.Error as error:
            raise FileError(f"{where}: line {numbers[-1]}: {error}") from None
        return
    if first[0]:
        yield first[0], [word.strip() for word in first[1].split(separator)]
    yield from ((number, [word.strip() for word in line.split(separator)]) for number, line in lines)


def _noted(lines: Iterator[tuple[int, str]], numbers: list[int]) -> Iterator[str]:
    """The lines that are neither blank nor a comment; the number of the last one is in `numbers`."""
    for number, line in lines:
        if line.strip() and line[0] not in "#%":
            numbers[:] = [number]
            yield line


def _name_fault(words: list[str], width: int) -> str | None:
    if len(words) != width:
        return f"{plural(len(words), 'column')}; {width} are needed"
    if not (words[0] and words[1]):
        return "an empty name; a node needs one"
    if width == 3 and not is_number(words[2].encode()):
        return f"the weight must be a number, not {words[2][:40]!r}"
    return None
