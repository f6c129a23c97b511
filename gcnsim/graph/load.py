"""Loading a graph file: the content or else the suffix determines the format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gcnsim.errors import FileError, GraphError, nearest
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.edges import IDS, NUMBERS, read_edges
from gcnsim.graph.formats.matrix_market import BANNER, read_matrix_market
from gcnsim.graph.formats.metis import read_metis
from gcnsim.graph.formats.npz import NPY, read_edge_table, read_npz
from gcnsim.graph.formats.parquet import MAGIC as PARQUET_MAGIC
from gcnsim.graph.formats.parquet import SUFFIXES as PARQUET
from gcnsim.graph.formats.parquet import read_parquet
from gcnsim.graph.formats.source import file_start, file_text
from gcnsim.io.container import MAGIC, kind_of

_EDGE_LISTS = (".txt", ".tsv", ".csv", ".edges")
SUFFIXES = (".npz", ".npy", ".mtx", ".graph", *_EDGE_LISTS, *PARQUET)
"""What `load_graph` reads; the texts also with `.gz` behind."""


def load_graph(path: str | Path, ids: str = NUMBERS, ends: Sequence[str] | None = None) -> Graph:
    """Load the graph in a file or folder; it is named after the path.

    Formats: `.npz` (NumPy or SciPy), `.npy` (edges), edge lists `.txt .tsv .csv .edges .parquet`, Matrix Market `.mtx`,
    METIS `.graph`; text may be compressed with gzip. A folder holds a data set as it was published
    (`gcnsim.graph.formats.layouts`). `graph.cleaning` says what was changed.
    ids: how the ids of an edge list become node numbers: `numbers`, `compact` or `names`; `graph.original_ids` then has
    the old ids. ends: the two columns of an edge list that hold the ends of an edge, by name or number from 1; None:
    as the header says.
    Raises FileError or GraphError, starting with the path, for anything that is not a usable graph.
    """
    source = Path(path)
    if ids not in IDS:
        raise GraphError(f"ids: {ids!r} is not allowed; {nearest(ids, IDS)}")
    if ends is not None and len(ends) != 2:
        raise GraphError(f"ends: {','.join(ends)!r} is not allowed; two are needed, as in source,target")
    if source.is_dir():
        _refuse(source, ids, ends)
        from gcnsim.graph.formats.layouts import layout_of  # of use to folders alone

        return layout_of(source).graph(_folder_name(source))
    start = file_start(source, len(BANNER))
    plain = source.with_suffix("") if source.suffix.lower() == ".gz" else source
    name, suffix, where = plain.stem, plain.suffix.lower(), str(source)
    if suffix == ".npz" or start.startswith(b"PK"):
        _refuse(source, ids, ends)
        return read_npz(source, name)
    if suffix == ".npy" or start.startswith(NPY):
        _refuse(source, ids, ends)
        return read_edge_table(source, name)
    if suffix in PARQUET or start.startswith(PARQUET_MAGIC):
        return read_parquet(source, name, ids=ids, ends=ends)
    if suffix not in SUFFIXES and start != BANNER:
        what = (
            f"is a {kind_of(source)} file, not a graph"
            if start.startswith(MAGIC)
            else f"unknown graph format {plain.suffix!r}"
        )
        raise FileError(f"{source}: {what}; known: {', '.join(sorted(SUFFIXES))}")
    text = file_text(source)
    matrix = suffix == ".mtx" or text.startswith(BANNER)
    if not matrix and suffix in _EDGE_LISTS:
        return read_edges(text, name, where=where, ids=ids, ends=ends)
    _refuse(source, ids, ends)
    return read_matrix_market(text, name, where=where) if matrix else read_metis(text, name, where=where)


def _refuse(source: Path, ids: str, ends: Sequence[str] | None) -> None:
    """What only an edge list has."""
    lists = ", ".join((*_EDGE_LISTS, *PARQUET))
    if ids != NUMBERS:
        raise FileError(f"{source}: ids: {ids} is for edge lists ({lists}); allowed: {NUMBERS}")
    if ends is not None:
        raise FileError(f"{source}: ends: {','.join(ends)} is for edge lists ({lists}); allowed: none")


def _folder_name(folder: Path) -> str:
    """The folder's own name, of `raw/` that of the folder around it."""
    whole = folder.resolve()
    return whole.parent.name if whole.name == "raw" else whole.name
