from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError, GcnsimError
from gcnsim.graph import load_graph
from gcnsim.graph.formats.layouts import DglFolder
from gcnsim.graph.formats.layouts.layout import KNOWN
from gcnsim.graph.formats.nodes import NodeArrays, read_nodes
from gcnsim.graph.load import memory_to_load
from tests.gcnsim.graph.formats.layouts.published import (
    FEATURES,
    LABELS,
    NODES,
    SPLIT,
    ring,
    write_arrays,
    write_dgl,
    write_ogb_arrays,
    write_ogb_text,
    zipped,
)

WRITERS: dict[str, Callable[[Path], Path]] = {
    "ogb_text": write_ogb_text,
    "ogb_arrays": write_ogb_arrays,
    "arrays": write_arrays,
}


@pytest.mark.parametrize("layout", WRITERS)
def test_each_layout_holds_the_same_data_set(tmp_path: Path, layout: str) -> None:
    folder = WRITERS[layout](tmp_path / layout)
    graph, held = load_graph(folder), read_nodes(folder, NODES)
    assert (graph.name, graph.features, graph.classes) == (layout, 3, 2)
    assert graph.content_hash() == ring().content_hash()
    assert held.features is not None
    assert held.labels is not None
    assert held.masks is not None
    assert (held.features.tolist(), held.features.dtype) == (FEATURES.tolist(), np.float32)
    assert (held.labels.tolist(), held.labels.dtype) == (LABELS.tolist(), np.dtype(np.int64))
    assert [np.flatnonzero(mask).tolist() for mask in held.masks] == list(SPLIT.values())


@pytest.mark.parametrize("layout", WRITERS)
def test_what_is_not_wanted_stays_unread(tmp_path: Path, layout: str) -> None:
    held = read_nodes(WRITERS[layout](tmp_path / layout), NODES, features=False, labels=False)
    assert (held.features, held.labels) == (None, None)
    assert held.masks is not None


def test_what_a_published_folder_holds_beside_is_named(tmp_path: Path) -> None:
    assert "node_year" in load_graph(write_ogb_arrays(tmp_path / "arrays")).cleaning.ignored
    text = write_ogb_text(tmp_path / "text")
    assert load_graph(text).cleaning.ignored == ()
    zipped(text / "raw" / "edge-feat.csv.gz", "1.0\n" * NODES)
    assert load_graph(text).cleaning.ignored == ("edge-feat.csv.gz",)


def test_ogb_without_features_labels_or_split_is_a_bare_graph(tmp_path: Path) -> None:
    folder = write_ogb_text(tmp_path / "bare", node_feat=None, node_label=None)
    for part in (folder / "split" / "sales_ranking").iterdir():
        part.unlink()
    (folder / "split" / "sales_ranking").rmdir()
    graph = load_graph(folder)
    assert (graph.features, graph.classes) == (None, None)
    assert read_nodes(folder, NODES) == NodeArrays()


def test_the_last_line_of_ogb_text_may_lack_its_end(tmp_path: Path) -> None:
    rows = "\n".join(",".join(map(str, row)) for row in FEATURES.tolist())
    assert load_graph(write_ogb_text(tmp_path / "whole", node_feat=f"{rows}\n")).features == FEATURES.shape[1]
    assert load_graph(write_ogb_text(tmp_path / "open", node_feat=rows)).features == FEATURES.shape[1]


def test_ogb_labels_without_a_number_are_unknown_and_several_tasks_are_several_classes(tmp_path: Path) -> None:
    given = LABELS[:, None].astype(np.float32)
    given[3] = np.nan
    held = read_nodes(write_ogb_arrays(tmp_path / "papers", node_label=given), NODES)
    assert held.labels is not None
    assert held.labels.tolist() == [0, 1, 0, -1, 0, 1, 0, 1, 0, 1]
    folder = write_ogb_text(tmp_path / "proteins", node_label="1,0,1\n" * NODES, node_feat=None)
    several = read_nodes(folder, NODES).labels
    assert several is not None
    assert (several.shape, several[0].tolist(), load_graph(folder).classes) == ((NODES, 3), [1, 0, 1], 3)


class _Trap:
    """A pickle that leaves a file behind when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return (open, (str(self.path), "w"))


def test_planetoid_is_named_as_pickles_and_never_opened(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for part in ("x", "tx", "allx", "y", "ty", "ally", "graph"):
        (tmp_path / "raw" / f"ind.cora.{part}").write_bytes(pickle.dumps(_Trap(tmp_path / "sprung")))
    (tmp_path / "raw" / "ind.cora.test.index").write_text("8\n9\n")
    for read in (load_graph, lambda folder: read_nodes(folder, NODES)):
        with pytest.raises(FileError, match=r"raw: ind\.cora\.\* are pickles, .* docs/files\.md shows$"):
            read(tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_processed_files_and_foreign_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no graph in this folder, which holds nothing; looked for: OGB "):
        load_graph(tmp_path)
    (tmp_path / "processed").mkdir()
    (tmp_path / "processed" / "data.pt").write_bytes(pickle.dumps(_Trap(tmp_path / "sprung")))
    with pytest.raises(FileError, match=r"data\.pt: a pickle of PyTorch"):
        load_graph(tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_dgl_partitions_say_what_their_json_says(tmp_path: Path) -> None:
    folder = write_dgl(tmp_path)
    found = DglFolder.found(folder)
    assert found is not None
    facts = found.facts()
    assert (facts.name, facts.method, facts.parts, facts.halo_hops) == ("ring", "metis", 2, 1)
    assert (facts.nodes, facts.edges, facts.missing) == (10, 20, ())
    assert (facts.inner_nodes, facts.inner_edges) == ((6, 4), (12, 8))
    for read in (load_graph, lambda path: read_nodes(path, NODES)):
        with pytest.raises(FileError, match=r"ring\.json: the edges are in part\*/graph\.dgl, a binary that only DGL"):
            read(folder)


def test_dgl_maps_may_be_files_and_parts_may_lie_elsewhere(tmp_path: Path) -> None:
    folder = write_dgl(tmp_path, node_map="node_map.npy")
    (folder / "part1" / "graph.dgl").unlink()
    found = DglFolder.found(folder)
    assert found is not None
    assert (found.facts().inner_nodes, found.facts().missing) == (None, ("part1/graph.dgl",))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"num_nodes": 11}, "node_map does not give 2 parts ranges of 11 ids"),
        ({"num_nodes": 8, "node_map": {"_N": [[0, 4], [0, 4]]}}, "node_map: range [0, 4] begins at 0; 4 is needed"),
        ({"node_map": {"_N": [[0, 4], [6, 12]]}}, "node_map: range [6, 12] begins at 6; 4 is needed"),
        ({"node_map": {"_N": [[0, 10]]}}, "node_map does not give 2 parts ranges of 10 ids"),
        ({"edge_map": {"_N:_E:_N": [[0, 12], "x"]}}, "edge_map does not give 2 parts ranges of 20 ids"),
        ({"num_parts": "2"}, "num_parts is '2'; a whole number of at least 1 is needed"),
        ({"num_parts": 10**9}, "num_parts is 1000000000, but not all of part-0"),
        ({"part-1": {}}, "part-1 names no file of its edges; allowed: part_graph, part_graph_graphbolt"),
        ({"graph_name": None}, "graph_name is None; a name is needed"),
    ],
)
def test_a_wrong_dgl_json_is_named(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    found = DglFolder.found(write_dgl(tmp_path, **changed))
    assert found is not None
    with pytest.raises(FileError) as caught:
        found.facts()
    assert str(caught.value).startswith(f"{tmp_path / 'ring.json'}: ")
    assert message in str(caught.value)


def test_links_to_nothing_beside_a_dgl_json_are_passed_over(tmp_path: Path) -> None:
    folder = write_dgl(tmp_path)
    (folder / "a.json").symlink_to(tmp_path / "gone")
    dgl_folder = DglFolder.found(folder)
    assert dgl_folder is not None
    assert dgl_folder.config.name == "ring.json"
    # A part whose file is a link to nothing is not there.
    (folder / "part1" / "graph.dgl").unlink()
    (folder / "part1" / "graph.dgl").symlink_to(tmp_path / "gone")
    assert dgl_folder.facts().missing == ("part1/graph.dgl",)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"node_feat": "1,2\n" * 9}, "features have shape [9, 2]; 10 rows"),
        ({"node_feat": "1,2\n" * 9 + "3\n"}, "node-feat.csv.gz: the "),
        ({"node_feat": "1,x\n" * 10}, "node-feat.csv.gz: could not convert string 'x' to float32"),
        ({"node_feat": "1,inf\n" * 10}, "the features hold values that are not finite"),
        ({"node_label": "1.5\n" * 10}, "class labels must be whole numbers from 0, or nan, not 1.5"),
        ({"node_label": "1e99\n" * 10}, "class labels must be whole numbers from 0, or nan, not 1e+99"),
        ({"node_label": "2,0\n" * 10}, "'labels' of several classes per node must be 0 to 1"),
        ({"edge": "0,1\n1,10\n"}, "node id 10 is out of range; 0 to 9 are allowed"),
        ({"edge": "0,1,2\n"}, "edges have 3 ends; 2 are needed"),
        ({"edge": ""}, "edge.csv.gz: empty graph"),
        ({"num_node_list": "5\n5\n"}, "2 graphs; 1 is allowed"),
        ({"train": "0\n10\n"}, "train.csv.gz: node ids run from 0 to 10; 0 to 9 are allowed"),
        ({"train": "0\n6\n"}, "train_mask and val_mask have 1 node in common"),
    ],
)
def test_wrong_ogb_text_is_named(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    _refused(write_ogb_text(tmp_path, **changed), message)


def _refused(folder: Path, message: str) -> None:
    with pytest.raises(GcnsimError) as caught:
        read_nodes(folder, load_graph(folder).nodes)
    assert str(caught.value).startswith(str(folder))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("layout", WRITERS)
def test_every_truncated_file_is_one_line(tmp_path: Path, layout: str) -> None:
    folder = WRITERS[layout](tmp_path / layout)
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("num-edge-list")]
    assert len(files) >= 2
    for path in files:
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) * 2 // 3])
        with pytest.raises(GcnsimError) as caught:
            read_nodes(folder, load_graph(folder).nodes)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
        path.write_bytes(whole)


def test_several_splits_are_refused(tmp_path: Path) -> None:
    folder = write_ogb_text(tmp_path)
    (folder / "split" / "time").mkdir()
    zipped(folder / "split" / "time" / "train.csv.gz", "0\n")
    _refused(folder, "2 splits (sales_ranking, time); 1 is allowed")


def test_a_truncated_dgl_json_is_named(tmp_path: Path) -> None:
    path = write_dgl(tmp_path) / "ring.json"
    path.write_text(path.read_text()[:100])
    with pytest.raises(FileError, match=r"ring\.json: truncated or altered: "):
        load_graph(tmp_path)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_a_part_of_an_impossible_name_is_refused(tmp_path: Path, name: str) -> None:
    found = DglFolder.found(write_dgl(tmp_path, **{"part-1": {"part_graph": name}}))
    assert found is not None
    with pytest.raises(FileError, match=r"ring\.json: part-1: '.*; the name of a file is needed"):
        found.facts()


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("home", [".", "raw", "processed"])
def test_a_layout_that_is_known_but_not_read_points_to_the_recipe(tmp_path: Path, name: str, home: str) -> None:
    (tmp_path / home).mkdir(exist_ok=True)
    (tmp_path / home / name).write_bytes(b"")
    for read in (load_graph, memory_to_load, lambda folder: read_nodes(folder, NODES)):
        with pytest.raises(FileError) as caught:
            read(tmp_path)
        assert str(caught.value) == (
            f"{tmp_path / home}: {KNOWN[name]} ({name}), not read; convert it to .npz as docs/files.md shows"
        )


def test_arrays_of_common_names_are_read_before_a_layout_is_refused(tmp_path: Path) -> None:
    (write_arrays(tmp_path) / "meta.yaml").write_text("made by hand")
    assert load_graph(tmp_path).content_hash() == ring().content_hash()


def test_an_array_folder_names_what_it_holds_beside(tmp_path: Path) -> None:
    folder = write_arrays(tmp_path, degrees=LABELS)
    assert load_graph(folder).cleaning.ignored == ("degrees",)
    (folder / "test_idx.npy").rename(folder / "odd_one.npy")
    _refused(folder, "only train_idx.npy, val_idx.npy; all of train_idx.npy, val_idx.npy, test_idx")
    _refused(folder, "; not understood: degrees.npy, odd_one.npy")


def _ogb_of_kinds(folder: Path) -> Path:
    (folder / "raw" / "relations" / "author___writes___paper").mkdir(parents=True)
    zipped(folder / "raw" / "num-node-dict.csv.gz", "author,paper\n4,2\n")
    return folder


def _mag240m(folder: Path) -> Path:
    place = folder / "processed" / "author___writes___paper"
    place.mkdir(parents=True)
    np.save(place / "edge_index.npy", np.zeros((2, 3), np.int64))
    return folder


@pytest.mark.parametrize("write", [_ogb_of_kinds, _mag240m])
def test_several_kinds_of_nodes_are_named_and_refused(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    _refused(write(tmp_path / "kinds"), "with several kinds of nodes (author, paper), which is not read; ")


def test_an_archive_that_is_a_packed_folder_is_named_with_what_to_do(tmp_path: Path) -> None:
    write_ogb_text(tmp_path / "arxiv")
    packed = tmp_path / "arxiv.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for item in sorted((tmp_path / "arxiv").rglob("*.gz")):
            archive.write(item, item.relative_to(tmp_path))
    with pytest.raises(
        FileError, match=r"an archive of arxiv/raw/.* unpack it first \(.*\) and give the folder arxiv$"
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
    for name in ("OGB", "DGL", "edge_index.npy"):
        assert name in line


def _graphbolt(**beside: str) -> dict[str, object]:
    files = {"node_feats": "node_feat.dgl", "part_graph_graphbolt": "fused_csc_sampling_graph.pt", **beside}
    return {f"part-{part}": {key: f"part{part}/{name}" for key, name in files.items()} for part in range(2)}


def test_partitions_that_newer_dgl_writes_say_the_same_and_name_their_pickle(tmp_path: Path) -> None:
    folder = write_dgl(tmp_path, graphbolt_format=True, **_graphbolt())
    found = DglFolder.found(folder)
    assert found is not None
    facts = found.facts()
    assert (facts.parts, facts.inner_nodes, facts.inner_edges) == (2, (6, 4), (12, 8))
    assert facts.missing == ("part0/fused_csc_sampling_graph.pt", "part1/fused_csc_sampling_graph.pt")
    for read in (load_graph, lambda path: read_nodes(path, NODES)):
        with pytest.raises(FileError) as caught:
            read(folder)
        assert "the edges are in part*/fused_csc_sampling_graph.pt, a pickle, which runs code" in str(caught.value)
        assert "convert it with DGL as docs/files.md shows" in str(caught.value)


def test_a_dgl_part_that_names_both_forms_is_of_the_older_one(tmp_path: Path) -> None:
    found = DglFolder.found(write_dgl(tmp_path, **_graphbolt(part_graph="graph.dgl")))
    assert found is not None
    assert (found.facts().missing, found.facts().edges_in) == ((), "part*/graph.dgl, a binary that only DGL reads")
