"""Loading a graph file: the format follows from the content where it says so, else from the suffix."""

from __future__ import annotations

from pathlib import Path

from gcnsim.errors import FileError, GraphError, nearest
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.edges import IDS, NUMBERS, read_edges
from gcnsim.graph.formats.matrix_market import BANNER, read_matrix_market
from gcnsim.graph.formats.metis import read_metis
from gcnsim.graph.formats.npz import read_npz
from gcnsim.graph.formats.source import file_start, file_text
from gcnsim.io.container import MAGIC, kind_of

_EDGE_LISTS = (".txt", ".tsv", ".csv", ".edges")
SUFFIXES = (".npz", ".mtx", ".graph", *_EDGE_LISTS)
"""What `load_graph` reads; all but `.npz` also with `.gz` behind."""


def load_graph(path: str | Path, ids: str = NUMBERS) -> Graph:
    """The graph in the file or folder at `path`, named after it.

    `.npz` (NumPy or SciPy), edge lists `.txt .tsv .csv .edges` (a header line in `.csv` and `.tsv`), Matrix Market
    `.mtx`, METIS `.graph`; text may be gzip. A folder holds a data set as it
    was published (`gcnsim.graph.formats.layouts`). What was changed to make it clean is in `graph.cleaning`.
    ids: how the ids of an edge list become node numbers (`graph.formats.edges`): `numbers`, `compact` or `names`; what
    the nodes were called is then in `graph.original_ids`. Other formats number their nodes themselves.
    Raises FileError or GraphError, the path first, for anything that is not a usable graph.
    """
    source = Path(path)
    if ids not in IDS:
        raise GraphError(f"ids: {ids!r} is not allowed; {nearest(ids, IDS)}")
    if ids != NUMBERS and not is_edge_list(source):
        raise FileError(f"{source}: ids: {ids} is for edge lists ({', '.join(_EDGE_LISTS)}); allowed: {NUMBERS}")
    if source.is_dir():
        from gcnsim.graph.formats.layouts import layout_of  # of use to folders alone

        return layout_of(source).graph(_folder_name(source))
    start = file_start(source, len(BANNER))
    plain = source.with_suffix("") if source.suffix.lower() == ".gz" else source
    name, suffix, where = plain.stem, plain.suffix.lower(), str(source)
    if suffix == ".npz" or start.startswith(b"PK"):
        return read_npz(source, name)
    if suffix == ".mtx" or start == BANNER:
        return read_matrix_market(file_text(source), name, where=where)
    if suffix == ".graph":
        return read_metis(file_text(source), name, where=where)
    if suffix in _EDGE_LISTS:
        return read_edges(file_text(source), name, where=where, header=suffix in (".csv", ".tsv"), ids=ids)
    if start.startswith(MAGIC):
        raise FileError(f"{source}: is a {kind_of(source)} file, not a graph; known: {', '.join(sorted(SUFFIXES))}")
    raise FileError(f"{source}: unknown graph format {plain.suffix!r}; known: {', '.join(sorted(SUFFIXES))}")


def is_edge_list(path: Path) -> bool:
    """Whether the file at `path` is an edge list by its name, or would be but for its first bytes."""
    if path.is_dir():
        return False
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    start = file_start(path, len(BANNER))
    return plain.suffix.lower() in _EDGE_LISTS and not start.startswith(b"PK") and start != BANNER


def _folder_name(folder: Path) -> str:
    """The folder's own name, of `raw/` that of the folder around it."""
    whole = folder.resolve()
    return whole.parent.name if whole.name == "raw" else whole.name
