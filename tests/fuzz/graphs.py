"""Readers of graphs, of what their nodes carry, and of what belongs to a graph: owners, degrees, norms."""

from __future__ import annotations

import gzip
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from gcnsim.core.errors import FileError
from gcnsim.graph import Graph, build_csr, load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.formats.arrays import opened
from gcnsim.graph.formats.layouts import DglFolder, layout_of
from gcnsim.graph.formats.nodes import check_features, read_nodes
from gcnsim.graph.load import memory_to_load, write_npz
from gcnsim.graph.owners import open_partition, read_partition, write_partition
from gcnsim.workload.samplers import read_norms, write_norms
from tests.fuzz.readers import Reader, put, text
from tests.gcnsim.graph.dgl_files import folder as dgl_folder
from tests.gcnsim.graph.formats.layouts.published import write_arrays

EDGES = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 3), (1, 4))
NODES = 6


@cache
def ring() -> Graph:
    """Six nodes."""
    ends = np.array(EDGES)
    return build_csr(ends[:, 0], ends[:, 1], NODES, "ring")


def _matrix() -> Any:
    ends = np.array(EDGES)
    return sp.csr_array((np.ones(len(EDGES), np.float32), (ends[:, 0], ends[:, 1])), shape=(NODES, NODES))


def _npy(array: Any) -> bytes:
    made = BytesIO()
    np.save(made, array)
    return made.getvalue()


def npz(**arrays: Any) -> bytes:
    made = BytesIO()
    np.savez(made, **arrays)
    return made.getvalue()


def _masks() -> dict[str, Any]:
    kinds = np.array([1, 1, 1, 2, 2, 3])
    return {f"{name}_mask": (kinds == kind).astype(np.uint8) for kind, name in enumerate(("train", "val", "test"), 1)}


def _archives(home: Path) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(6, 2)
    graph, labels = ring(), np.array([0, 1, 2, 0, 1, -1])
    (home / "0").mkdir()
    write_npz(home / "0" / "g.npz", graph, {"x": rows, "labels": labels, **_masks()})
    for number, matrix in enumerate((_matrix(), _matrix().tocsc(), _matrix().tocoo()), 1):
        (home / str(number)).mkdir()
        sp.save_npz(home / str(number) / "g.npz", matrix)
    sparse = sp.csr_array(rows)
    parts = {"x_data": sparse.data, "x_indices": sparse.indices, "x_indptr": sparse.indptr}
    several = np.eye(6, 3, dtype=np.float32)
    shape = np.array(sparse.shape)
    ends, ids = np.array(EDGES).T, {"train_idx": np.arange(3), "val_idx": np.array([3, 4]), "test_idx": np.array([5])}
    put(home / "5" / "g.npz", npz(edge_index=ends, feat=rows, y=labels[:, None].astype(np.float32), **ids))
    tables = {f"{name}s": np.stack([mask, mask]) for name, mask in _masks().items()}
    rows_of = {"adj_indptr": graph.indptr, "adj_indices": graph.indices, "adj_data": np.ones(graph.entries)}
    put(home / "6" / "g.npz", npz(node_labels=labels, adj_shape=np.array([6, 6]), **rows_of, **tables))
    put(home / "4" / "g.npz", npz(indptr=graph.indptr, indices=graph.indices, labels=several, x_shape=shape, **parts))


def _archive(folder: Path) -> None:
    """As training and `--max-memory` read it; what one refuses, another may take."""
    path = folder / "g.npz"
    memory_to_load(path, features=True)
    graph = load_graph(path)
    check_features(path)
    with opened(path) as archive:
        for name in sorted({"x", "labels", "edge_index"} & {*archive.names()}):
            archive.array(name)
    read_nodes(path, graph.nodes)


_LINES = "\n".join(f"{one} {other}" for one, other in EDGES)
_WEIGHTED = "\n".join(f"{one},{other},0.5" for one, other in EDGES)
_INDEXED = "\n".join(f"0,5;{one};{other}" for one, other in EDGES)


def _metis(kind: str, weighted: bool) -> str:
    rows = (ring().indices[ring().indptr[node] : ring().indptr[node + 1]] + 1 for node in range(NODES))
    lines = ("1 " * weighted + " ".join(f"{item} 1" if weighted else str(item) for item in row) for row in rows)
    return "\n".join((f"% six nodes\n{NODES} {len(EDGES)}{kind}", *lines, ""))


def _mtx(field: str, value: str) -> str:
    head = f"%%MatrixMarket matrix coordinate {field} symmetric\n% six\n6 6 8\n"
    return head + "".join(f"{max(pair) + 1} {min(pair) + 1}{value}\n" for pair in EDGES)


def _texts(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        load_graph(path)
        memory_to_load(path)


def _edges(ids: str, folder: Path) -> object:
    return load_graph(folder / "g.csv", ids)


def _packed(name: str, *contents: str) -> Callable[[Path], None]:
    def make(home: Path) -> None:
        for number, content in enumerate(contents):
            put(home / str(number) / name, gzip.compress(content.encode(), mtime=0))

    return make


def _layout(folder: Path) -> None:
    """A folder as training reads it."""
    memory_to_load(folder, features=True)
    graph = load_graph(folder)
    read_nodes(folder, graph.nodes)


def _ogb(home: Path) -> None:
    edges = "\n".join(f"{one},{other}" for one, other in EDGES)
    texts = {
        "raw/edge.csv.gz": edges,
        "raw/num-node-list.csv.gz": "6\n",
        "raw/node-feat.csv.gz": "\n".join(f"{node}.5,1.0" for node in range(6)),
        "raw/node-label.csv.gz": "0\n1\n2\n0\n1\n2\n",
        "split/time/train.csv.gz": "0\n1\n2\n",
        "split/time/valid.csv.gz": "3\n4\n",
        "split/time/test.csv.gz": "5\n",
    }
    for name, content in texts.items():
        put(home / "0" / name, gzip.compress(content.encode(), mtime=0))
        if name.startswith("split/"):
            put(home / "1" / name.removesuffix(".gz"), content)
    ends = np.array(EDGES).T
    rows = np.ones((6, 2), np.float32)
    put(home / "1" / "raw/data.npz", npz(edge_index=ends, num_nodes_list=np.array([6]), node_feat=rows))
    labels = np.array([[0.0], [1.0], [2.0], [0.0], [np.nan], [2.0]])
    put(home / "1" / "raw/node-label.npz", npz(node_label=labels))


def _array_folder(home: Path) -> None:
    write_arrays(home / "0")


def _parquet(home: Path) -> None:
    ends, names = np.array(EDGES), np.array(list("abcdef"))
    for index, one in enumerate((ends, names[ends])):
        (home / str(index)).mkdir()
        made = pa.table({"src": one[:, 0], "dst": one[:, 1], "weight": np.ones(len(EDGES))})
        pq.write_table(made, home / str(index) / "g.parquet")


def _parquet_file(folder: Path) -> None:
    memory_to_load(folder / "g.parquet")
    load_graph(folder / "g.parquet", "names")
    with suppress(FileError):
        load_graph(folder / "g.parquet", "compact")


def _several_kinds(home: Path) -> None:
    put(home / "0" / "raw/num-node-dict.csv.gz", gzip.compress(b"author,paper\n4,2\n", mtime=0))
    put(home / "0" / "raw/relations/author___writes___paper/edge.csv.gz", gzip.compress(b"0,0\n", mtime=0))


def _foreign(home: Path) -> None:
    """Archives of an edge list."""
    for number, (name, kind) in enumerate((("g.tar", "w"), ("g.tar.gz", "w:gz"))):
        made = BytesIO()
        with tarfile.open(fileobj=made, mode=kind) as archive:  # type: ignore[call-overload]
            entry = tarfile.TarInfo("net/out.net")
            entry.size = len(_LINES)
            archive.addfile(entry, BytesIO(_LINES.encode()))
        put(home / str(number) / name, made.getvalue())
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as members:
        members.writestr("edges.csv", _LINES)
    put(home / "2" / "g.zip", packed.getvalue())


def _refused_files(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        with suppress(FileError):
            load_graph(path)


def _refused(folder: Path) -> None:
    """A folder that is never a graph: what matters is how it is refused."""
    with suppress(FileError):
        layout_of(folder)


def _edge_tables(home: Path) -> None:
    put(home / "0" / "edge_index.npy", _npy(np.array(EDGES).T))
    put(home / "1" / "edges.npy", _npy(np.array(EDGES, np.float32)))


def _dgl(home: Path) -> None:
    parts = {
        f"part-{part}": {name: f"part{part}/{name}.dgl" for name in ("node_feats", "edge_feats", "part_graph")}
        for part in range(2)
    }
    about: dict[str, Any] = {
        "graph_name": "ring", "part_method": "metis", "num_parts": 2, "halo_hops": 1, "num_nodes": 6, "num_edges": 16,
        "node_map": {"_N": [[0, 3], [3, 6]]}, "edge_map": {"_N:_E:_N": [[0, 8], [8, 16]]}, "ntypes": {"_N": 0},
    }  # fmt: skip
    put(home / "0" / "ring.json", json.dumps(about | parts))
    put(home / "0" / "part0/part_graph.dgl", b"\x01")
    put(home / "1" / "ring.json", json.dumps(about | parts | {"node_map": "node_map.npy", "edge_map": "edge_map.npy"}))


def _dgl_facts(folder: Path) -> None:
    layout = layout_of(folder)
    assert isinstance(layout, DglFolder)
    layout.facts()


def _partition(home: Path) -> None:
    (home / "0").mkdir()
    write_partition(home / "0" / "g.partition", partition_graph(ring(), 2, "block"))


def _owners(home: Path) -> None:
    """As `.npy`, as text, and folders of DGL, older and newer."""
    owner = np.array([0, 0, 0, 1, 1, 1])
    for index in range(4):
        (home / str(index)).mkdir()
    (home / "0" / "owners").write_bytes(_npy(owner))
    (home / "1" / "owners").write_text("".join(f"{part}\n" for part in owner))
    dgl_folder(home / "2", "node_map.npy")
    (home / "2" / "node_map.npy").write_bytes(_npy(owner))
    dgl_folder(home / "3", {"_N": [[0, 3], [3, 6]]}, [np.array([5, 0, 1]), np.array([2, 3, 4])])


def _open_owners(given: Path) -> None:
    single = given / "owners"
    for path in [single] if single.exists() else [given, given / "ring.json"]:
        open_partition(path, ring())


def _norms(home: Path) -> None:
    (home / "0").mkdir()
    write_norms(home / "0" / "g.norms", np.arange(6, dtype=np.float32), ring().content_hash())


def readers() -> Iterator[Reader]:
    """All of this file."""
    yield Reader("graph archive", _archives, _archive)
    lists = {
        "g.txt": (_LINES, f"# six\n{_LINES}"),
        "g.csv": (f"source,target,weight\n{_WEIGHTED}", _WEIGHTED, f"w;Src;Dst\n{_INDEXED}"),
    }
    for name, contents in lists.items():
        yield Reader(f"edge list {name[2:]}", text(name, *contents), _texts)
    yield Reader("edge list packed", _packed("g.tsv.gz", _LINES.replace(" ", "\t")), _texts)
    for ids in ("compact", "names"):
        content = _LINES if ids == "compact" else 'src,dst\n"a, b",c\nc,d\nd,"a, b"\n'
        yield Reader(f"edge list of {ids}", text("g.csv", content), partial(_edges, ids))
    yield Reader("Matrix Market", text("g.mtx", _mtx("pattern", ""), _mtx("real", " 1.5")), _texts)
    yield Reader("METIS", text("g.graph", _metis("", False), _metis(" 011 1", True)), _texts)
    yield Reader("OGB folder", _ogb, _layout)
    yield Reader("array folder", _array_folder, _layout)
    yield Reader("OGB of several kinds", _several_kinds, _refused)
    yield Reader("archives of graphs", _foreign, _refused_files)
    yield Reader("edge list Parquet", _parquet, _parquet_file)
    yield Reader("edge table", _edge_tables, _texts)
    yield Reader("DGL partition", _dgl, _dgl_facts, frozenset({"part0/part_graph.dgl"}))
    yield Reader("partition", _partition, lambda folder: read_partition(folder / "g.partition"))
    yield Reader("owners of others", _owners, _open_owners, frozenset({"part0/graph.dgl", "part1/graph.dgl"}))
    yield Reader("norms", _norms, lambda folder: read_norms(folder / "g.norms", ring()))
