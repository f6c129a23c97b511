"""Writing a graph as a NumPy archive that `load_graph` reads."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from gcnsim.graph.csr import Graph
from gcnsim.ids import AnyArray
from gcnsim.sections import replacing


def write_npz(path: str | Path, graph: Graph) -> None:
    """Write `indptr`, `indices` and, where known, `x_shape` to `path`, atomically: the same graph, the same bytes.

    The class count is not kept, for the format has it only as labels. Raises FileError when it cannot be written.
    """
    arrays: dict[str, AnyArray] = {"indptr": graph.indptr, "indices": graph.indices}
    if graph.features is not None:
        arrays["x_shape"] = np.array([graph.nodes, graph.features], np.int64)
    with replacing(path) as stream, zipfile.ZipFile(stream, "w", allowZip64=True) as archive:
        for key, array in arrays.items():
            # A ZipInfo of its own carries a fixed date, where a bare name would carry today's.
            with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
