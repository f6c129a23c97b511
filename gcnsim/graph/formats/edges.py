"""Edge lists: text with one edge per line, or Parquet; a header may name the two columns of its ends.

Three modes turn ids into nodes:

- `numbers`: ids are 0-based node numbers, so a number that appears on no line is an isolated node;

- `compact`: ids are integers; only those that occur are nodes, in ascending order;

- `names`: ids are any texts, numbered in the order in which they first occur.

If the columns number nodes of two kinds, each kind is numbered separately, and those of the source come first. Text
files may also contain counts, a spreadsheet's separator line, or JSON, depending on the program that wrote them.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.errors import FileError, GraphError, plural
from gcnsim.core.ids import AnyArray, IntArray, frozen
from gcnsim.graph.csr import Graph, build_csr
from gcnsim.graph.formats.arrays import whole_numbers
from gcnsim.graph.formats.columns import (
    CHOOSE,
    ColumnLayout,
    LineSample,
    ends_of_header,
    fields_of,
    is_number,
    layout_of,
    sample_of,
    whole_number,
)
from gcnsim.graph.formats.source import GraphSize, limits_named
from gcnsim.graph.formats.table import INT64, read_pairs

NUMBERS: Final = "numbers"
IDS: Final = (NUMBERS, "compact", "names")
"""How the ids of an edge list are read."""

_SPARSE_FROM, _SPARSE_RATIO = 1_000_000, 10

_MISSING: Final = frozenset({"NaN", "nan", "null", "NULL", "<NA>"})
"""Texts that programs write for a missing value."""

_ATTRIBUTES = re.compile(rb"[ \t]*[ \t,;|]\{[^\n]*\}[ \t]*$", re.MULTILINE)
"""An attribute dictionary after the ends, as NetworkX writes it."""


def read_edges(data: bytes, name: str, *, where: str, ids: str = NUMBERS, ends: Sequence[str] | None = None) -> Graph:
    """The graph of an edge list; ids: one of `IDS`; ends: their columns, by names in the header or numbers from 1.

    `#` and `%` start comments, in lists of names only at the beginning of a line. Separators, header and ends: see
    `gcnsim.graph.formats.columns`. `cleaning` lists the columns that were not read. Raises FileError naming the first
    bad line, and if the ends cannot be identified. Raises GraphError for an empty list, and for very sparse numbers
    (largest above a million and over ten times the number of ids).
    """
    names = ids == "names"
    data, attributes = _without_attributes(edges_only(data))
    sample = sample_of(data, trailing=not names)
    if not sample.lines:
        raise GraphError(f"{where}: empty graph: no edges")
    check_edge_list(sample, where)
    sample, counts = without_counts(sample, data)
    layout = layout_of(sample, ends, names=names, where=where)
    if counts:
        layout = replace(layout, skip=max(layout.skip, counts))
        attributes = (*attributes, f"line {counts}, which counts nodes and edges")
    if names:
        return _read_names(data, layout, name, where, attributes)
    if b"%" in data:
        data = data.replace(b"%", b"#")
    if sample.lines[-1][0] <= layout.skip:
        raise GraphError(f"{where}: empty graph: no edges")
    compact = ids == "compact"
    pairs = read_pairs(
        data,
        layout.width,
        skip=layout.skip,
        separator=layout.separator,
        ends=(layout.ends.source, layout.ends.target),
        least=INT64.min if compact else 0,
        where=where,
        names=True,
    )
    ignored = (*layout.ignored, *attributes)
    return graph_of_pairs(pairs.rows, pairs.cols, layout.ends.two_kinds, ids, name, where=where, ignored=ignored)


def graph_of_pairs(
    rows: AnyArray, cols: AnyArray, two_kinds: bool, ids: str, name: str, *, where: str, ignored: tuple[str, ...] = ()
) -> Graph:
    """The graph of the ends of its edges, integers[E] (at least 1); ids: `numbers`, from 0, or `compact`.

    two_kinds: rows and cols number nodes of two kinds separately. Raises GraphError as in `read_edges`.
    """
    if ids == "compact":
        return _compact(rows, cols, two_kinds, name, where, ignored)
    second = int(rows.max()) + 1 if two_kinds else 0
    cols = cols + second if second else cols
    nodes, unused = _node_count(rows, cols, where)
    graph = build_csr(rows, cols, nodes, name, ignored=ignored, where=where)
    return replace(graph, unused_ids=unused, cleaning=replace(graph.cleaning, second_kind_from=second))


def _without_attributes(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The lines without the dictionaries after their ends, and the keys of these."""
    first = next((line for line in data[: 2**16].splitlines() if line.strip() and line[:1] not in b"#%"), b"")
    if not _ATTRIBUTES.search(first) or len(_ATTRIBUTES.sub(b"", first).replace(b",", b" ").split()) < 2:
        return data, ()
    keys = {key for held in _ATTRIBUTES.findall(data) for key in re.findall(rb"['\"]([^'\"\n]+)['\"]\s*:", held)}
    return _ATTRIBUTES.sub(b"", data), tuple(sorted(key.decode("utf-8", "replace") for key in keys))


def _compact(rows: AnyArray, cols: AnyArray, two: bool, name: str, where: str, ignored: tuple[str, ...]) -> Graph:
    """The graph of the integers that occur; two kinds are numbered separately."""
    if two:
        (first, place), (others, there) = (np.unique(ids, return_inverse=True) for ids in (rows, cols))
        known, second = np.concatenate([first, others]), first.size
        there = there + second
    else:
        known, both = np.unique(np.concatenate([rows, cols]), return_inverse=True)
        (place, there), second = both.reshape(2, -1), 0
    graph = build_csr(place, there, known.size, name, ignored=ignored, where=where)
    cleaning = replace(graph.cleaning, second_kind_from=second)
    return replace(graph, original_ids=frozen(known), cleaning=cleaning)


def _node_count(rows: AnyArray, cols: AnyArray, where: str) -> tuple[int, int]:
    """The number of nodes, and how many of them appear on no line."""
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


def _read_names(data: bytes, layout: ColumnLayout, name: str, where: str, attributes: tuple[str, ...]) -> Graph:
    places: tuple[dict[str, int], dict[str, int]] = ({}, {})
    first, second = places[0], places[1] if layout.ends.two_kinds else places[0]
    source, target = layout.ends.source, layout.ends.target
    found = array("q")
    for number, words in _words(data, layout.separator, where):
        if number <= layout.skip:
            continue
        fault = _name_fault(words, layout)
        if fault:
            raise FileError(f"{where}: line {number}: {fault}")
        found.append(first.setdefault(words[source], len(first)))
        found.append(second.setdefault(words[target], len(second)))
    if not found:
        raise GraphError(f"{where}: empty graph: no edges")
    pairs: IntArray = np.frombuffer(found, np.int64)
    begin = len(first) if layout.ends.two_kinds else 0
    ids = (*places[0], *places[1])
    ignored = (*layout.ignored, *attributes)
    graph = build_csr(pairs[0::2], pairs[1::2] + begin, len(ids), name, ignored=ignored, where=where)
    return replace(graph, original_ids=ids, cleaning=replace(graph.cleaning, second_kind_from=begin))


def _words(data: bytes, separator: str | None, where: str) -> Iterator[tuple[int, list[str]]]:
    """The words of every data line with its number from 1; quotes work as in CSV."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(f"{where}: line {line}: not UTF-8 text; save it as UTF-8") from None
    lines = enumerate(StringIO(text), 1)
    if separator is None or separator == "\t":
        yield from (
            (number, fields_of(line, separator)) for number, line in lines if line.strip() and line[0] not in "#%"
        )
        return
    numbers: list[int] = []
    reader = csv.reader(_noted(lines, numbers), delimiter=separator, skipinitialspace=True)
    try:
        yield from ((numbers[-1], [word.strip() for word in words]) for words in reader if words)
    except csv.Error as error:
        raise FileError(f"{where}: line {numbers[-1]}: {error}") from None


def _noted(lines: Iterator[tuple[int, str]], numbers: list[int]) -> Iterator[str]:
    """The data lines; `numbers` receives the number of the last one."""
    for number, line in lines:
        if line.strip() and line[0] not in "#%":
            numbers[:] = [number]
            yield line


def _name_fault(words: list[str], layout: ColumnLayout) -> str | None:
    if len(words) != layout.width:
        return f"{plural(len(words), 'column')}; {layout.width} are needed"
    ends = words[layout.ends.source], words[layout.ends.target]
    if not all(ends):
        return "an empty name; a node needs one"
    if not _MISSING.isdisjoint(ends):
        return f"{', '.join(ends)}: a missing value; a node needs a name"
    if ends == layout.header:
        return f"the header again ({', '.join(ends)}); it is allowed once"
    weight = "" if layout.weight is None else words[layout.weight]
    if weight and not is_number(weight):
        return f"the weight must be a number, not {weight[:40]!r}; the ends may be other columns: {CHOOSE}"
    return None


_SEPARATOR = re.compile(rb"\A\"?sep=[^\n]?\"?[ \t]*(?=\n)", re.IGNORECASE)
"""The first line that declares a spreadsheet's separator."""

_BLANK = re.compile(rb"[ \t]*[,;|][ \t,;|]*")
"""A row of empty cells."""

_DOCUMENT = re.compile(r"[\[{]|[\[{].*[\]}],?|\([^()]*,[^()]*\),?")
"""A line of JSON, or a printed Python tuple."""

_COUNT: Final = re.compile(r"\d{1,18}")
_MOST_COUNTS: Final = 3


def edges_only(data: bytes) -> bytes:
    """The text without a spreadsheet's separator line and trailing empty rows; line numbers stay the same.

    >>> edges_only(b"sep=;\\na;b\\n;\\n")
    b'#ep=;\\na;b\\n'
    """
    found = _SEPARATOR.match(data)
    data = b"#" + data[1:] if found else data
    while True:
        begin = data.rstrip(b"\n").rfind(b"\n") + 1
        if not _BLANK.fullmatch(data[begin:].rstrip(b"\n")):
            return data
        data = data[:begin]


def check_edge_list(sample: LineSample, where: str) -> None:
    """Raise FileError if the first data line is JSON or a tuple, whose parts are not ids."""
    number, line = sample.lines[0]
    text = line.strip()
    if _DOCUMENT.fullmatch(text):
        raise FileError(
            f"{where}: line {number}: {text[:40]!r} is JSON or a Python list, not an edge; an edge list has two ids "
            "per line, as in 0,1"
        )


def without_counts(sample: LineSample, data: bytes) -> tuple[LineSample, int]:
    """The sample without a first line of node and edge counts, and the number of that line; 0 without one.

    It is a count if its last number is the number of the lines after it (or half of that), and its first is above all
    ids of the sample, or equals the largest of ids from 1.
    """
    first = [word for word in re.split(r"[\s,;|]+", sample.lines[0][1].strip()) if word]
    rows = [re.split(r"[\s,;|]+", line.strip())[:2] for _, line in sample.lines[1:]]
    if not rows or not 2 <= len(first) <= _MOST_COUNTS or not all(map(_COUNT.fullmatch, first)):
        return sample, 0
    nodes, edges = int(first[0]), int(first[-1])
    numbers = [whole_number(word) for row in rows for word in row]
    ids = [-1 if number is None else number for number in numbers]
    largest = nodes - 1 if 0 in ids else nodes
    if min(ids) < 0 or max(ids) > largest or (len(first) == _MOST_COUNTS and first[0] != first[1]):
        return sample, 0
    number = sample.lines[0][0]
    lines = data.rstrip().count(b"\n") + 1 - number
    if lines not in (edges, 2 * edges):
        return sample, 0
    return replace(sample, lines=sample.lines[1:]), number


PARQUET_MAGIC = b"PAR1"
PARQUET_SUFFIXES = (".parquet", ".pq")


def read_parquet(path: Path, name: str, *, ids: str = NUMBERS, ends: Sequence[str] | None = None) -> Graph:
    """The graph of the file at `path`; ids, ends as in `edges.read_edges`. Only the columns of the ends are read.

    Raises FileError for damage, for unidentified ends, and for ids that are missing or of a type that `ids` does not
    allow; GraphError as in `read_edges`.
    """
    from pyarrow import ArrowException

    where = str(path)
    try:
        with limits_named(path), _opened(path) as file:
            header = list(file.schema_arrow.names)
            found = ends_of_header(header, ends, where)
            chosen = [header[found.source], header[found.target]]
            if len({*header}) < len(header):
                raise FileError(f"{where}: two columns of one name; each name is allowed once")
            table = file.read(columns=chosen, use_threads=False)
        columns = [_column(f"{where}: {column!r}", table.column(column), ids) for column in chosen]
    except (ArrowException, OSError, ValueError) as error:
        raise FileError(f"{where}: truncated or altered: {' '.join(str(error).split())}") from None
    ignored = tuple(column for column in header if column not in chosen)
    if not table.num_rows:
        raise GraphError(f"{where}: empty graph: no edges")
    if ids != "names":
        return graph_of_pairs(columns[0], columns[1], found.two_kinds, ids, name, where=where, ignored=ignored)
    return _of_names(columns, found.two_kinds, name, where, ignored)


def parquet_size(path: Path) -> GraphSize:
    """The memory that `read_parquet` needs, from the file's row count. Raises FileError for damage."""
    from pyarrow import ArrowException

    try:
        with limits_named(path), _opened(path) as file:
            rows = int(file.metadata.num_rows)
    except (ArrowException, OSError, ValueError) as error:
        raise FileError(f"{path}: truncated or altered: {' '.join(str(error).split())}") from None
    return GraphSize(2 * rows, 2 * rows, 16 * rows)


def _opened(path: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(path, pre_buffer=False)


def _column(where: str, column: Any, ids: str) -> AnyArray:
    """One end of every edge: integers, or texts where ids are names."""
    from pyarrow import string, types

    if column.null_count:
        raise FileError(f"{where}: {column.null_count} rows have no value; each needs one")
    if ids == "names":
        return np.asarray(column.cast(string()).to_numpy(zero_copy_only=False), np.str_)
    if not (types.is_integer(column.type) or types.is_floating(column.type)):
        shown = str(column[0])[:40] if len(column) else ""
        raise FileError(f"{where}: node ids must be integers, not {shown!r}; for names use --ids names")
    found = whole_numbers(where, column.to_numpy(zero_copy_only=False))
    if ids == NUMBERS and found.size and found.min() < 0:
        raise FileError(
            f"{where}: node id {found.min()} is out of range; ids begin at 0; --ids compact renumbers others"
        )
    return found


def _of_names(columns: list[AnyArray], two: bool, name: str, where: str, ignored: tuple[str, ...]) -> Graph:
    """Texts numbered in the order in which they first occur; two kinds are numbered separately."""
    if two:
        (first, sources), (second, targets) = (_numbered(column) for column in columns)
        known, begin = np.concatenate([first, second]), first.size
    else:
        known, both = _numbered(np.stack(columns, axis=1).ravel())
        (sources, targets), begin = both.reshape(-1, 2).T, 0
    graph = build_csr(sources, targets + begin, known.size, name, ignored=ignored, where=where)
    cleaning = replace(graph.cleaning, second_kind_from=begin)
    return replace(graph, original_ids=tuple(known.tolist()), cleaning=cleaning)


def _numbered(texts: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The distinct texts in the order in which they first occur, and the number of each."""
    known, first, places = np.unique(texts, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return known[order], rank[places.ravel()]
