"""Edge lists in Parquet files: two columns contain the ends of each edge, identified by the column names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gcnsim.core.errors import FileError, GraphError
from gcnsim.core.ids import AnyArray
from gcnsim.graph.csr import Graph, build_csr
from gcnsim.graph.formats.arrays import whole_numbers
from gcnsim.graph.formats.columns import ends_of_header
from gcnsim.graph.formats.edges import NUMBERS, graph_of_pairs
from gcnsim.graph.formats.source import GraphSize

MAGIC = b"PAR1"
SUFFIXES = (".parquet", ".pq")


def read_parquet(path: Path, name: str, *, ids: str = NUMBERS, ends: Sequence[str] | None = None) -> Graph:
    """The graph of the file at `path`; ids, ends as in `edges.read_edges`. Only the columns of the ends are read.

    Raises FileError for damage, for unidentified ends, and for ids that are missing or of a type that `ids` does not
    allow; GraphError as in `read_edges`.
    """
    from pyarrow import ArrowException

    where = str(path)
    try:
        with _opened(path) as file:
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
        with _opened(path) as file:
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
