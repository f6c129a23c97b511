"""Loading a graph file: the format follows from the content where it says so, else from the suffix."""

from __future__ import annotations

from pathlib import Path

from gcnsim.errors import FileError
from gcnsim.graph.csr import Graph
from gcnsim.graph.edges import read_edges
from gcnsim.graph.matrix_market import BANNER, read_matrix_market
from gcnsim.graph.metis import read_metis
from gcnsim.graph.npz import read_npz
from gcnsim.graph.source import file_start, file_text
from gcnsim.sections import MAGIC, kind_of

_EDGE_LISTS = (".txt", ".tsv", ".csv", ".edges")
SUFFIXES = (".npz", ".mtx", ".graph", *_EDGE_LISTS)
"""What `load_graph` reads; all but `.npz` also with `.gz` behind."""


def load_graph(path: str | Path) -> Graph:
    """The graph in the file or folder at `path`, named after it.

    `.npz` (NumPy or SciPy), edge lists `.txt .tsv .csv .edges` (a header line in `.csv` and `.tsv`), Matrix Market
    `.mtx`, METIS `.graph`; text may be gzip. A folder holds a data set as it
    was published (`gcnsim.graph.layouts`). What was changed to make it clean is in `graph.cleaning`.
    Raises FileError or GraphError, the path first, for anything that is not a usable graph.
    """
    source = Path(path)
    if source.is_dir():
        from gcnsim.graph.layouts import layout_of  # of use to folders alone

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
        return read_edges(file_text(source), name, where=where, header=suffix in (".csv", ".tsv"))
    if start.startswith(MAGIC):
        raise FileError(f"{source}: is a {kind_of(source)} file, no graph; known: {', '.join(sorted(SUFFIXES))}")
    raise FileError(f"{source}: unknown graph format {plain.suffix!r}; known: {', '.join(sorted(SUFFIXES))}")


def _folder_name(folder: Path) -> str:
    """The folder's own name, of `raw/` that of the folder around it."""
    whole = folder.resolve()
    return whole.parent.name if whole.name == "raw" else whole.name
