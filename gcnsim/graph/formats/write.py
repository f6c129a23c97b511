"""Writing a graph: as a NumPy archive with what its nodes carry, or as an edge list; `load_graph` reads both."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gcnsim.core.atomic import atomic_write
from gcnsim.core.ids import AnyArray, IntArray
from gcnsim.graph.csr import Graph

_ROWS = 2**16


def write_npz(path: str | Path, graph: Graph, arrays: Mapping[str, AnyArray] | None = None) -> None:
    """Write `indptr`, `indices` and `arrays` to `path`, atomically: the same graph, the same bytes.

    arrays: of the nodes, named as in `gcnsim.graph.formats.nodes`. Without features among them, `x_shape` says their
    width where it is known. The class count is not kept, for the format has it only as labels. Raises FileError when it
    cannot be written.
    """
    every: dict[str, AnyArray] = {"indptr": graph.indptr, "indices": graph.indices, **(arrays or {})}
    if graph.features is not None and "x" not in every and "x_shape" not in every:
        every["x_shape"] = np.array([graph.nodes, graph.features], np.int64)
    with atomic_write(path) as stream, zipfile.ZipFile(stream, "w", allowZip64=True) as archive:
        for key, array in every.items():
            # A ZipInfo of its own carries a fixed date, where a bare name would carry today's.
            with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def write_ids(path: str | Path, ids: Sequence[str] | IntArray) -> None:
    """Write what each node was called, a CSV line `node,id` each, to `path`, atomically. Raises FileError."""
    with atomic_write(path, text=True) as stream:
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerow(["node", "id"])
        lines.writerows(enumerate(ids.tolist() if isinstance(ids, np.ndarray) else ids))


def write_edges(path: str | Path, graph: Graph, *, separator: str = " ") -> None:
    """Write each edge once, smaller id first, a line each, to `path`, atomically.

    Where the last node has no edge it is written as a self-loop: dropped on loading, but the number of nodes stays.
    Raises FileError when it cannot be written.
    """
    from pyarrow import table
    from pyarrow.csv import WriteOptions, write_csv

    options = WriteOptions(include_header=False, delimiter=separator)
    last = np.array([graph.nodes - 1] * (not graph.degrees[-1]))
    with atomic_write(path) as stream:
        for begin in range(0, graph.nodes, _ROWS):
            end = min(begin + _ROWS, graph.nodes)
            rows = np.repeat(np.arange(begin, end), np.diff(graph.indptr[begin : end + 1]))
            columns = graph.indices[graph.indptr[begin] : graph.indptr[end]]
            once = rows < columns
            write_csv(table({"row": rows[once], "column": columns[once]}), stream, options)
        write_csv(table({"row": last, "column": last}), stream, options)
