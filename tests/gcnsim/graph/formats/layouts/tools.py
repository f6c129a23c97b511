"""Writes the ring of `published` as the tools of the trade keep a dataset on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse

from tests.gcnsim.graph.formats.layouts.published import FEATURES, LABELS, NODES, SOURCES, SPLIT, TARGETS, matrix

_PARTS = dict(zip(("train", "val", "test"), SPLIT.values(), strict=True))


def write_pagraph(folder: Path, *, ids: bool = False) -> Path:
    """PaGraph's `adj.npz` and arrays. ids: the split as node numbers, not as masks."""
    folder.mkdir(parents=True, exist_ok=True)
    scipy.sparse.save_npz(folder / "adj.npz", matrix())
    np.save(folder / "feat.npy", FEATURES)
    np.save(folder / "labels.npy", LABELS)
    for part, nodes in _PARTS.items():
        np.save(folder / f"{part}.npy", np.array(nodes) if ids else np.isin(SOURCES, nodes))
    return folder


GRAPHBOLT = """dataset_name: ring
graph:
  nodes:
    - num: 10
  edges:
    - format: {form}
      path: edges/{edges}
feature_data:
  - {{domain: node, name: feat, format: numpy, in_memory: true, path: data/feat.npy}}
tasks:
  - name: node_classification
    num_classes: 2
    train_set:
      - data:
          - {{name: seeds, format: numpy, path: set/train.npy}}
          - {{name: labels, format: numpy, path: set/train_y.npy}}
    validation_set:
      - data:
          - {{name: seeds, format: numpy, path: set/val.npy}}
          - {{name: labels, format: numpy, path: set/val_y.npy}}
    test_set:
      - data:
          - {{name: seeds, format: numpy, path: set/test.npy}}
          - {{name: labels, format: numpy, path: set/test_y.npy}}
"""


def write_graphbolt(folder: Path, *, csv: bool = False) -> Path:
    """GraphBolt's `metadata.yaml` and the files that it names. csv: the edges as CSV."""
    for name in ("edges", "data", "set"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    if csv:
        (folder / "edges" / "e.csv").write_text("".join(f"{a},{b}\n" for a, b in zip(SOURCES, TARGETS, strict=True)))
    else:
        np.save(folder / "edges" / "e.npy", np.stack([SOURCES, TARGETS]))
    np.save(folder / "data" / "feat.npy", FEATURES)
    for part, nodes in _PARTS.items():
        np.save(folder / "set" / f"{part}.npy", np.array(nodes))
        np.save(folder / "set" / f"{part}_y.npy", LABELS[nodes])
    text = GRAPHBOLT.format(form="csv" if csv else "numpy", edges="e.csv" if csv else "e.npy")
    (folder / "metadata.yaml").write_text(text)
    return folder


def write_dgl_csv(folder: Path, *, first: int = 0, separator: str = ",") -> Path:
    """DGL's CSV dataset, its nodes numbered from `first` and listed backwards."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "dataset_name: ring\nedge_data:\n- file_name: e.csv\nnode_data:\n- file_name: n.csv\n"
    (folder / "meta.yaml").write_text(text + (f"separator: '{separator}'\n" if separator != "," else ""))
    edges = [f"{a + first}{separator}{b + first}" for a, b in zip(SOURCES, TARGETS, strict=True)]
    (folder / "e.csv").write_text("\n".join([separator.join(["src_id", "dst_id"]), *edges]) + "\n")
    lines = [separator.join(["node_id", "label", "train_mask", "val_mask", "test_mask", "feat"])]
    for node in range(NODES)[::-1]:
        inside = [str(node in nodes) for nodes in _PARTS.values()]
        feat = '"' + ",".join(f"{value:g}" for value in FEATURES[node]) + '"'
        lines.append(separator.join([str(node + first), str(LABELS[node]), *inside, feat]))
    (folder / "n.csv").write_text("\n".join(lines) + "\n")
    return folder


def write_igb(folder: Path, *, flat: bool = False) -> Path:
    """The Illinois Graph Benchmark's papers; its rule of the split is that of the ring."""
    cites = folder if flat else folder / "processed" / "paper__cites__paper"
    papers = folder if flat else folder / "processed" / "paper"
    for place in (cites, papers):
        place.mkdir(parents=True, exist_ok=True)
    np.save(cites / "edge_index.npy", np.column_stack([SOURCES, TARGETS]).astype(np.int32))
    np.save(papers / "node_feat.npy", FEATURES)
    np.save(papers / "node_label_19.npy", LABELS.astype(np.float32))
    return folder


def write_gnnlab(folder: Path) -> Path:
    """GNNLab's `meta.txt` and plain numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = matrix().tocsr()
    rows.indptr.astype(np.uint32).tofile(folder / "indptr.bin")
    rows.indices.astype(np.uint32).tofile(folder / "indices.bin")
    FEATURES.tofile(folder / "feat.bin")
    LABELS.astype(np.uint64).tofile(folder / "label.bin")
    for part, nodes in SPLIT.items():
        np.array(nodes, np.uint32).tofile(folder / f"{part}_set.bin")
    counts = {"NUM_NODE": NODES, "NUM_EDGE": 2 * NODES, "FEAT_DIM": 3, "NUM_CLASS": 2}
    counts |= {f"NUM_{part.upper()}_SET": len(nodes) for part, nodes in SPLIT.items()}
    (folder / "meta.txt").write_text("".join(f"{name}\t{count}\n" for name, count in counts.items()))
    return folder


def write_arrays(folder: Path) -> Path:
    """An array a file, edges as a table."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {"edge_index": np.stack([SOURCES, TARGETS]), "x": FEATURES, "y": LABELS[:, None]}
    arrays |= {f"{part}_idx": np.array(nodes) for part, nodes in _PARTS.items()}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder
