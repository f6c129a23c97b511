from __future__ import annotations

import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError, GcnsimError
from gcnsim.graph import load_graph
from gcnsim.graph.formats.nodes import read_nodes
from gcnsim.graph.load import memory_to_load
from tests.gcnsim.graph.formats.layouts.published import FEATURES, LABELS, NODES, SPLIT, ring, write_ogb_text, zipped
from tests.gcnsim.graph.formats.layouts.tools import (
    write_arrays,
    write_dgl_csv,
    write_gnnlab,
    write_graphbolt,
    write_igb,
    write_pagraph,
)


def _refused(folder: Path, message: str) -> None:
    with pytest.raises(GcnsimError) as caught:
        read_nodes(folder, load_graph(folder).nodes)
    assert str(caught.value).startswith(str(folder))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def _split(folder: Path) -> list[list[int]]:
    held = read_nodes(folder, NODES)
    assert held.masks is not None
    return [np.flatnonzero(mask).tolist() for mask in held.masks]


@pytest.mark.parametrize(
    "write",
    [
        partial(write_pagraph, ids=True),
        partial(write_graphbolt, csv=True),
        partial(write_dgl_csv, first=100),
        partial(write_dgl_csv, separator=";"),
        partial(write_igb, flat=True),
    ],
)
def test_other_forms_of_a_folder_hold_the_same(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    folder = write(tmp_path / "data")
    graph, held = load_graph(folder), read_nodes(folder, NODES)
    assert graph.content_hash() == ring().content_hash()
    assert (graph.features, graph.classes) == (3, 2)
    assert held.features is not None
    assert held.labels is not None
    assert held.features.tolist() == FEATURES.tolist()
    assert held.labels.tolist() == LABELS.tolist()
    assert _split(folder) == list(SPLIT.values())


def test_what_a_folder_holds_beside_is_named(tmp_path: Path) -> None:
    folder = write_igb(tmp_path / "igb")
    np.save(folder / "processed" / "paper" / "node_label_2K.npy", LABELS)
    assert load_graph(folder).cleaning.ignored == ("node_label_2K",)
    folder = write_pagraph(tmp_path / "pagraph")
    np.save(folder / "degrees.npy", LABELS)
    assert load_graph(folder).cleaning.ignored == ("degrees",)
    folder = write_gnnlab(tmp_path / "gnnlab")
    (folder / "cache_by_degree.bin").write_bytes(bytes(40))
    assert load_graph(folder).cleaning.ignored == ("cache_by_degree.bin",)
    folder = write_dgl_csv(tmp_path / "csv")
    lines = (folder / "e.csv").read_text().splitlines()
    (folder / "e.csv").write_text("\n".join([f"{lines[0]},since", *(f"{line},7" for line in lines[1:])]) + "\n")
    assert load_graph(folder).cleaning.ignored == ("edge column since",)
    folder = write_graphbolt(tmp_path / "bolt")
    text = (folder / "metadata.yaml").read_text()
    more = "feature_data:\n  - {domain: edge, name: weight, format: numpy, path: w.npy}\n"
    (folder / "metadata.yaml").write_text(text.replace("feature_data:\n", more))
    assert load_graph(folder).cleaning.ignored == ("edge weight (numpy)",)


@pytest.mark.parametrize(
    ("write", "file", "message"),
    [
        (write_pagraph, "val.npy", "only train.npy, test.npy; all of train.npy, val.npy, test.npy are needed, or none"),
        (write_pagraph, "train.npy", "only val.npy, test.npy; all of train.npy, val.npy, test.npy are needed, or none"),
        (write_arrays, "test_idx.npy", "only train_idx.npy, val_idx.npy; all of train_idx.npy, val_idx.npy, test_idx"),
    ],
)
def test_a_folder_with_two_parts_of_the_split_is_refused(
    tmp_path: Path, write: Callable[[Path], Path], file: str, message: str
) -> None:
    folder = write(tmp_path / "data")
    (folder / file).rename(folder / "odd_one.npy")
    _refused(folder, f"{message}")
    _refused(folder, "; not understood: odd_one.npy")


def test_papers_of_igb_may_lack_features_or_call_them_otherwise(tmp_path: Path) -> None:
    papers = write_igb(tmp_path / "igb") / "processed" / "paper"
    (papers / "node_feat.npy").rename(papers / "feature.npy")
    assert load_graph(tmp_path / "igb").features == FEATURES.shape[1]
    (papers / "feature.npy").unlink()
    graph = load_graph(tmp_path / "igb")
    assert (graph.nodes, graph.features, graph.classes) == (NODES, None, 2)


def test_a_split_beside_the_papers_of_igb_goes_before_its_rule(tmp_path: Path) -> None:
    papers = write_igb(tmp_path / "igb") / "processed" / "paper"
    np.save(papers / "paper_id_index_mapping.npy", np.zeros(3))
    for name, nodes in zip(("test", "train", "val"), SPLIT.values(), strict=True):
        np.save(papers / f"{name}_mask.npy", np.isin(np.arange(NODES), nodes))
    held = read_nodes(tmp_path / "igb", NODES)
    assert held.masks is not None
    assert [np.flatnonzero(mask).tolist() for mask in held.masks] == [
        SPLIT[part] for part in ("valid", "test", "train")
    ]
    assert held.notes == ()
    assert load_graph(tmp_path / "igb").cleaning.ignored == ("paper_id_index_mapping",)


def test_sets_of_graphbolt_may_be_masks_but_name_no_node_twice(tmp_path: Path) -> None:
    folder = write_graphbolt(tmp_path / "bolt")
    ids = np.load(folder / "set" / "train.npy")
    plain = read_nodes(folder, NODES)
    np.save(folder / "set" / "train.npy", np.isin(np.arange(NODES), ids))
    masks = read_nodes(folder, NODES)
    assert plain.masks is not None
    assert masks.masks is not None
    assert plain.labels is not None
    assert masks.labels is not None
    assert np.array_equal(plain.masks[0], masks.masks[0])
    assert np.array_equal(plain.labels, masks.labels)
    np.save(folder / "set" / "train.npy", np.isin(np.arange(NODES), ids).astype(int))
    _refused(folder, "train.npy holds a node number more than once; each is allowed once (a mask has bool values")
    np.save(folder / "set" / "train.npy", np.append(ids[1:], ids[1]))
    _refused(folder, "train.npy holds a node number more than once; each is allowed once")
    np.save(folder / "set" / "train.npy", np.ones(NODES + 1, bool))
    _refused(folder, f"train.npy is bool[{NODES + 1}]; a mask needs [{NODES}]")


def test_labels_of_graphbolt_beside_those_of_its_task_are_named(tmp_path: Path) -> None:
    folder = write_graphbolt(tmp_path / "bolt")
    text = (folder / "metadata.yaml").read_text()
    more = "feature_data:\n  - {domain: node, name: label, format: numpy, path: data/label.npy}\n"
    (folder / "metadata.yaml").write_text(text.replace("feature_data:\n", more))
    np.save(folder / "data" / "label.npy", LABELS)
    assert load_graph(folder).cleaning.ignored == ("label",)


def test_a_rule_of_the_split_that_no_file_holds_is_a_note(tmp_path: Path) -> None:
    held = read_nodes(write_igb(tmp_path / "igb"), NODES)
    assert held.notes == (
        "split by IGB's own rule: the first 60 % of the nodes train, the next 20 % validate, the rest test",
    )


def test_graphbolt_without_tasks_takes_the_files_of_set(tmp_path: Path) -> None:
    folder = write_graphbolt(tmp_path / "bolt")
    text = (folder / "metadata.yaml").read_text()
    (folder / "metadata.yaml").write_text(text[: text.index("tasks:")] + "tasks: []\n")
    for part in ("train", "val", "test"):
        (folder / "set" / f"{part}.npy").rename(folder / "set" / f"{part}_nodes.npy")
        (folder / "set" / f"{part}_y.npy").rename(folder / "set" / f"{part}_labels.npy")
    held = read_nodes(folder, NODES)
    assert held.labels is not None
    assert (held.labels.tolist(), _split(folder)) == (LABELS.tolist(), list(SPLIT.values()))
    assert held.notes == ("split and labels are the files in set/, which metadata.yaml does not name",)


def _ogb_of_kinds(folder: Path) -> Path:
    (folder / "raw" / "relations" / "author___writes___paper").mkdir(parents=True)
    zipped(folder / "raw" / "num-node-dict.csv.gz", "author,paper\n4,2\n")
    return folder


def _mag240m(folder: Path) -> Path:
    place = folder / "processed" / "author___writes___paper"
    place.mkdir(parents=True)
    np.save(place / "edge_index.npy", np.zeros((2, 3), np.int64))
    return folder


def _igb_of_kinds(folder: Path) -> Path:
    write_igb(folder)
    place = folder / "processed" / "paper__written_by__author"
    place.mkdir()
    np.save(place / "edge_index.npy", np.zeros((3, 2), np.int32))
    return folder


def _graphbolt_of_kinds(folder: Path) -> Path:
    write_graphbolt(folder)
    text = (folder / "metadata.yaml").read_text()
    kinds = "    - {type: author, num: 4}\n    - {type: paper, num: 6}\n"
    (folder / "metadata.yaml").write_text(text.replace("    - num: 10\n", kinds))
    return folder


def _csv_of_kinds(folder: Path) -> Path:
    write_dgl_csv(folder)
    kinds = "node_data:\n- {file_name: n.csv, ntype: author}\n- {file_name: n.csv, ntype: paper}\n"
    text = (folder / "meta.yaml").read_text().partition("node_data:")[0]
    (folder / "meta.yaml").write_text(text + kinds)
    return folder


@pytest.mark.parametrize("write", [_ogb_of_kinds, _mag240m, _igb_of_kinds, _graphbolt_of_kinds, _csv_of_kinds])
def test_several_kinds_of_nodes_are_named_and_refused(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    _refused(write(tmp_path / "kinds"), "with several kinds of nodes (author, paper), which is not read; ")


@pytest.mark.parametrize(
    ("write", "file", "old", "new", "message"),
    [
        (write_graphbolt, "metadata.yaml", "num: 10", "num: 9", "features have shape [10, 3]; [9, width]"),
        (write_graphbolt, "metadata.yaml", "edges/e.npy", "edges/f.npy", "names 'edges/f.npy', which is not there"),
        (write_graphbolt, "metadata.yaml", "edges/e.npy", "../e.npy", "'../e.npy'; a path inside the folder"),
        (write_graphbolt, "metadata.yaml", "numpy", "torch", "graph.edges[0].format is 'torch'; numpy or csv"),
        (write_graphbolt, "metadata.yaml", "graph:", "graph_topology: {}\ngraph:", "GraphBolt's preprocessed dataset"),
        (write_dgl_csv, "e.csv", "src_id", "from", "column 'src_id' is missing (found: from, dst_id)"),
        (write_dgl_csv, "e.csv", "0,1\n", "0,77\n", "77 is not a node id"),
        (write_dgl_csv, "n.csv", "9,1,", "8,1,", "node_id 8 stands on 2 lines; 1 is allowed"),
        (write_dgl_csv, "n.csv", "6.75,", "", "rows of different lengths; each needs 3 numbers"),
        (write_gnnlab, "meta.txt", "NUM_EDGE\t20", "NUM_EDGE\t21", "80 bytes; uint32[21] needs 84"),
        (write_gnnlab, "meta.txt", "FEAT_DIM\t3\n", "", "FEAT_DIM is missing; a .bin file does not say its own size"),
        (write_gnnlab, "meta.txt", "FEAT_DIM\t3", "FEAT_DIM\tthree", "line 3: 'FEAT_DIM\\tthree'; a name and a whole"),
    ],
)
def test_a_wrong_description_is_named(
    tmp_path: Path, write: Callable[[Path], Path], file: str, old: str, new: str, message: str
) -> None:
    folder = write(tmp_path / "data")
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    _refused(folder, message)


def test_an_archive_that_is_a_packed_folder_is_named_with_what_to_do(tmp_path: Path) -> None:
    write_ogb_text(tmp_path / "arxiv")
    packed = tmp_path / "arxiv.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for item in sorted((tmp_path / "arxiv").rglob("*.gz")):
            archive.write(item, item.relative_to(tmp_path))
    with pytest.raises(
        FileError, match=r"OGB's download, not unpacked \(arxiv/raw/edge\.csv\.gz is in it\); unpack it"
    ):
        load_graph(packed)
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("archive/data.pkl", b"")
    with pytest.raises(FileError, match=r"a file of PyTorch, a pickle, which runs code when it is read"):
        load_graph(packed)
    write_arrays(tmp_path / "ring")
    with zipfile.ZipFile(packed, "w") as archive:
        for item in sorted((tmp_path / "ring").iterdir()):
            archive.write(item, item.relative_to(tmp_path))
    with pytest.raises(FileError, match=r"a zipped folder \(it holds ring/edge_index, .*\); unpack it and give"):
        load_graph(packed)


def test_an_unknown_folder_is_answered_with_what_it_holds_and_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("none")
    (tmp_path / "plots").mkdir()
    with pytest.raises(FileError) as caught:
        load_graph(tmp_path)
    line = str(caught.value)
    assert line.startswith(f"{tmp_path}: no graph in this folder, which holds notes.md, plots/; looked for: ")
    for name in ("OGB", "Reddit", "GraphSAINT", "PaGraph", "GraphBolt", "DGL", "IGB", "GNNLab", "edge_index.npy"):
        assert name in line


@pytest.mark.parametrize(
    "write", [write_pagraph, write_graphbolt, write_dgl_csv, write_igb, write_gnnlab, write_arrays]
)
def test_memory_is_estimated_from_what_is_there(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    folder = write(tmp_path / "data")
    assert 150_000_000 < memory_to_load(folder, features=True) < 151_000_000
