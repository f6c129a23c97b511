from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gcnsim.core.errors import GcnsimError
from gcnsim.graph import load_graph
from gcnsim.graph.csr import Cleaning

_HEAD = "%%MatrixMarket matrix coordinate "


def test_a_symmetric_pattern_is_clean(tmp_path: Path) -> None:
    path = tmp_path / "g.mtx.gz"
    path.write_bytes(gzip.compress(f"{_HEAD}pattern symmetric\n% c\n4 4 2\n2 1\n3 2\n".encode()))
    graph = load_graph(path)
    assert graph.name == "g"
    assert graph.indptr.tolist() == [0, 1, 3, 4, 4]
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert graph.cleaning == Cleaning()


def test_a_general_real_matrix_is_symmetrised_and_its_values_ignored(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"  # the content says what it is
    path.write_text(f"{_HEAD}real general\n3 3 3\n1 2 0.5\n2 1 0.5\n3 3 1\n")
    assert load_graph(path).cleaning == Cleaning(1, 0, 0, ignored=("weights",))


def test_complex_and_skew_symmetric_files_and_a_tab_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "g.mtx"
    for text in ("complex hermitian\n3 3 2\n2 1 1 0\n3 2 1 0", "real skew-symmetric\n3 3 2\n2 1 1\n3 2 1\t"):
        path.write_text(_HEAD + text)
        graph = load_graph(path)
        assert graph.indices.tolist() == [1, 0, 2, 1]
        assert graph.cleaning == Cleaning()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n", "is not a sparse Matrix Market file"),
        ("%%MatrixMarket matrix array real general\n1 1\n1.0\n", "is not a sparse Matrix Market file"),
        (f"{_HEAD}pattern general\n3 4 1\n1 2\n", "an adjacency matrix must be square, not 3 x 4"),
        (f"{_HEAD}pattern sideways\n3 3 1\n1 2\n", "is not a sparse Matrix Market file"),
        (f"{_HEAD}pattern general\n3 3\n1 2\n", "line 2: sizes '3 3'; 'rows columns entries' is needed"),
        (f"{_HEAD}pattern general\n", "line 0: sizes ''; 'rows columns entries' is needed"),
        (f"{_HEAD}pattern general\n3 3 2\n1 2\n", "line 2 says 2 entries; found 1"),
        (f"{_HEAD}pattern general\n3 3 2\n", "line 2 says 2 entries; found 0"),
        (f"{_HEAD}pattern general\n3 3 0\n", "empty graph"),
        (f"{_HEAD}pattern general\n% c\n3 3 1\n1 x\n", "line 4: node ids must be integers, not 'x'"),
        (f"{_HEAD}pattern general\n3 3 1\n0 2\n", "line 3: node id 0 is out of range; 1 to 2147483647 are allowed"),
        (f"{_HEAD}pattern general\n3 3 1\n1 9\n", "node id 9 is out of range; 1 to 3 are allowed"),
        (f"{_HEAD}pattern general\n3 3 1\n2 2\n", "empty graph"),
        (f"{_HEAD}pattern general\n1000000000 1000000000 1\n1 2\n", "1,000,000,000 nodes for 1 entries"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "g.mtx"
    path.write_text(text)
    with pytest.raises(GcnsimError) as caught:
        load_graph(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message.lower() in str(caught.value).lower()
    assert "\n" not in str(caught.value)
