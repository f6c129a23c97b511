"""Writes one small dataset in each layout it could be published in: ten nodes in a ring, three features, two classes.

Nodes 0-5 train, 6 and 7 validate, 8 and 9 test; every layout must give the same graph and the same arrays.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gcnsim.core.ids import AnyArray
from gcnsim.graph import Graph, build_csr

NODES = 10
SOURCES = np.arange(NODES)
TARGETS = (SOURCES + 1) % NODES
FEATURES = np.arange(3.0 * NODES, dtype=np.float32).reshape(NODES, 3) / 4
LABELS = SOURCES % 2
SPLIT: dict[str, list[int]] = {"train": [0, 1, 2, 3, 4, 5], "valid": [6, 7], "test": [8, 9]}


def ring() -> Graph:
    """The graph that every layout holds."""
    return build_csr(SOURCES, TARGETS, NODES, "ring", features=3, classes=2)


def write_ogb_text(folder: Path, **changed: str | None) -> Path:
    """An ogbn folder of text: one direction of each edge, no headers, gzip. changed: by file, `-` written `_`."""
    texts: dict[str, str | None] = {
        "edge": _lines(np.column_stack([SOURCES, TARGETS])),
        "num_node_list": f"{NODES}\n",
        "num_edge_list": f"{NODES}\n",
        "node_feat": _lines(FEATURES),
        "node_label": _lines(LABELS[:, None]),
    }
    (folder / "raw").mkdir(parents=True, exist_ok=True)
    for name, text in {**texts, **changed}.items():
        if text is not None and name not in SPLIT:
            zipped(folder / "raw" / f"{name.replace('_', '-')}.csv.gz", text)
    _write_split(folder, changed)
    return folder


def write_ogb_arrays(folder: Path, **changed: AnyArray | None) -> Path:
    """An ogbn folder of archives, as ogbn-papers100M: labels are floats, nan where unknown."""
    (folder / "raw").mkdir(parents=True, exist_ok=True)
    arrays: dict[str, AnyArray | None] = {
        "edge_index": np.stack([SOURCES, TARGETS]),
        "node_feat": FEATURES,
        "node_year": SOURCES[:, None],
        "num_nodes_list": np.array([NODES]),
        "num_edges_list": np.array([NODES]),
        **{key: array for key, array in changed.items() if key != "node_label"},
    }
    np.savez(folder / "raw" / "data.npz", allow_pickle=False, **_given(arrays))
    labels = changed.get("node_label", LABELS[:, None].astype(np.float32))
    np.savez(folder / "raw" / "node-label.npz", allow_pickle=False, **_given({"node_label": labels}))
    _write_split(folder, {})
    return folder


def write_arrays(folder: Path, **changed: AnyArray) -> Path:
    """An array a file, edges as a table."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, AnyArray] = {"edge_index": np.stack([SOURCES, TARGETS]), "x": FEATURES, "y": LABELS[:, None]}
    arrays |= {
        f"{part}_idx": np.array(nodes) for part, nodes in zip(("train", "val", "test"), SPLIT.values(), strict=True)
    }
    for name, array in (arrays | changed).items():
        np.save(folder / f"{name}.npy", array)
    return folder


def write_dgl(folder: Path, **changed: object) -> Path:
    """The JSON that `dgl.distributed.partition_graph` leaves, and files where its binaries are."""
    document: dict[str, object] = {
        "graph_name": "ring",
        "num_nodes": NODES,
        "num_edges": 2 * NODES,
        "part_method": "metis",
        "num_parts": 2,
        "halo_hops": 1,
        "node_map": {"_N": [[0, 6], [6, 10]]},
        "edge_map": {"_N:_E:_N": [[0, 12], [12, 20]]},
        "ntypes": {"_N": 0},
        "etypes": {"_N:_E:_N": 0},
    }
    for part in range(2):
        (folder / f"part{part}").mkdir(parents=True, exist_ok=True)
        files = {"node_feats": "node_feat.dgl", "edge_feats": "edge_feat.dgl", "part_graph": "graph.dgl"}
        for name in files.values():
            (folder / f"part{part}" / name).write_bytes(bytes.fromhex("3fa1b446f04f2edd0200000000000000"))
        document[f"part-{part}"] = {key: f"part{part}/{name}" for key, name in files.items()}
    (folder / "ring.json").write_text(json.dumps({**document, **changed}, indent=4))
    return folder


def zipped(path: Path, text: str) -> None:
    """Text as gzip."""
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _write_split(folder: Path, changed: Mapping[str, str | None]) -> None:
    place = folder / "split" / "sales_ranking"
    place.mkdir(parents=True, exist_ok=True)
    for part, nodes in SPLIT.items():
        zipped(place / f"{part}.csv.gz", changed.get(part) or _lines(np.array(nodes)[:, None]))


def _given(arrays: Mapping[str, AnyArray | None]) -> dict[str, Any]:
    return {key: array for key, array in arrays.items() if array is not None}


def _lines(table: AnyArray) -> str:
    return "".join(",".join(f"{value:g}" for value in row) + "\n" for row in table)
