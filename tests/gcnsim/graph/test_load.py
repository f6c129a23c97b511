from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.core.errors import FileError
from gcnsim.graph import load_graph
from gcnsim.graph.csr import Cleaning

_FACTS = [
    ("amazon_cs", 13_752, 245_861, 767, 10),
    ("coauthor_phy", 34_493, 247_962, 8_415, 5),
    ("tolokers", 11_758, 519_000, 10, 2),
    ("acl_papers", 102_797, 4_368_967, 4_096, 40),
    ("cnr-2000", 325_557, 2_738_969, None, None),
]
_UNUSED = {
    "tolokers": ("train_masks_all", "val_masks_all", "test_masks_all"),
    "acl_papers": ("labels_year7", "year7_starts", "label_names", "year", "vocab"),
}


@pytest.mark.parametrize(("name", "nodes", "edges", "features", "classes"), _FACTS)
def test_the_real_graphs_have_their_published_counts(
    data_dir: Path, name: str, nodes: int, edges: int, features: int | None, classes: int | None
) -> None:
    graph = load_graph(data_dir / f"{name}.npz")
    assert (graph.name, graph.nodes, graph.entries) == (name, nodes, 2 * edges)
    assert (graph.features, graph.classes) == (features, classes)
    assert graph.cleaning == Cleaning(ignored=_UNUSED.get(name, ()))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(FileError, match=r"^none/where\.npz: cannot be read: No such file or directory$"):
        load_graph("none/where.npz")


@pytest.mark.parametrize("name", ["g.pkl", "g", "g.gz", "g.txt.zip"])
def test_an_unknown_format_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("0 1\n")
    with pytest.raises(
        FileError, match=r"unknown graph format '.*'; known: \.csv, \.edges, \.graph, \.mtx, \.npy, \.npz"
    ):
        load_graph(tmp_path / name)


def test_upper_case_suffixes_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "G.TXT").write_text("0 1\n")
    assert load_graph(tmp_path / "G.TXT").entries == 2
