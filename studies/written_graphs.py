"""One small graph in every form of a file that gcnsim reads, to compare what two versions make of each."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet
from scipy.io import mmwrite
from scipy.sparse import csr_array


def write_graphs(folder: Path) -> Path:
    """Write one graph, a ring with chords, in every form of a file that is read; return the folder."""
    folder.mkdir()
    nodes = 2_000
    one = np.repeat(np.arange(nodes), 3)
    other = (one + np.tile([1, 7, 500], nodes)) % nodes
    pairs = np.stack([one, other])
    lines = [f"{a} {b}" for a, b in pairs.T]
    both = csr_array((np.ones(2 * one.size), (np.r_[one, other], np.r_[other, one])), shape=(nodes, nodes))
    both.sum_duplicates()
    np.savez(folder / "ring.npz", indptr=both.indptr, indices=both.indices)
    np.savez(folder / "pairs.npz", edge_index=pairs, num_nodes=nodes)
    np.save(folder / "pairs.npy", pairs)
    (folder / "ring.txt").write_text("\n".join(["# a ring with chords", *lines, ""]))
    (folder / "ring.csv").write_text("\n".join(["source,target", *lines, ""]).replace(" ", ","))
    (folder / "ring.tsv.gz").write_bytes(gzip.compress("\n".join([*lines, ""]).replace(" ", "\t").encode(), mtime=0))
    parquet.write_table(pyarrow.table({"src": one, "dst": other}), folder / "ring.parquet")
    mmwrite(folder / "ring.mtx", both, field="pattern", symmetry="symmetric")
    rows = [" ".join(map(str, part + 1)) for part in np.split(both.indices, both.indptr[1:-1])]
    (folder / "ring.graph").write_text("\n".join([f"{nodes} {both.nnz // 2}", *rows, ""]))
    write_ogb(folder / "ogb_ring", pairs, nodes)
    write_dgl_parts(folder / "dgl_ring", nodes)
    return folder


def write_ogb(folder: Path, pairs: np.ndarray[Any, np.dtype[np.int64]], nodes: int) -> None:
    """Write the text files that OGB publishes for a graph of one kind of node."""
    (folder / "raw").mkdir(parents=True)
    for name, rows in (("edge", [f"{a},{b}" for a, b in pairs.T]), ("num-node-list", [str(nodes)])):
        (folder / "raw" / f"{name}.csv.gz").write_bytes(gzip.compress("\n".join([*rows, ""]).encode(), mtime=0))


def write_dgl_parts(folder: Path, nodes: int) -> None:
    """Write what DGL's partitioning says of two parts; the parts themselves are no files that are read."""
    folder.mkdir()
    half = nodes // 2
    facts = {
        "graph_name": "ring",
        "part_method": "metis",
        "num_parts": 2,
        "halo_hops": 1,
        "num_nodes": nodes,
        "num_edges": 6 * nodes,
        "node_map": {"_N": [[0, half], [half, nodes]]},
        "edge_map": {"_E": [[0, 6 * half], [6 * half, 6 * nodes]]},
        "ntypes": {"_N": 0},
        "etypes": {"_E": 0},
    }
    files = {"node_feats": "node_feat", "edge_feats": "edge_feat", "part_graph": "graph"}
    for part in range(2):
        facts[f"part-{part}"] = {key: f"part{part}/{name}.dgl" for key, name in files.items()}
    (folder / "ring.json").write_text(json.dumps(facts))
