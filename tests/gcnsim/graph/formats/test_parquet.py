from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gcnsim.core.errors import FileError, GcnsimError
from gcnsim.graph import load_graph
from gcnsim.graph.memory import memory_to_load
from tests.gcnsim.graph.formats.layouts.published import NODES, SOURCES, TARGETS, ring


def _written(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.float64])
@pytest.mark.parametrize("name", ["g.parquet", "g.pq", "g"])
def test_edges_are_read_from_the_columns_that_the_names_say(tmp_path: Path, name: str, dtype: Any) -> None:
    weight = np.full(NODES, 0.5)
    path = _written(tmp_path / name, weight=weight, dst=TARGETS.astype(dtype), src=SOURCES.astype(dtype))
    graph = load_graph(path)
    assert graph.content_hash() == ring().content_hash()
    assert graph.cleaning.ignored == ("weight",)
    assert 150_000_000 < memory_to_load(path) < 151_000_000


def test_ids_are_renumbered_as_in_other_edge_lists(tmp_path: Path) -> None:
    compact = load_graph(_written(tmp_path / "c.parquet", source=SOURCES * 7 - 3, target=TARGETS * 7 - 3), "compact")
    assert isinstance(compact.original_ids, np.ndarray)
    assert compact.original_ids.tolist() == [7 * node - 3 for node in range(NODES)]
    names = load_graph(_written(tmp_path / "n.parquet", u=["bob", "ann", "bob"], v=["ann", "carl", "carl"]), "names")
    assert names.original_ids == ("bob", "ann", "carl")
    assert names.entries == 6


def test_columns_may_be_chosen(tmp_path: Path) -> None:
    path = _written(tmp_path / "g.parquet", p=SOURCES, q=TARGETS, r=SOURCES)
    for ends in (("p", "q"), ("1", "2")):
        assert load_graph(path, ends=ends).content_hash() == ring().content_hash()
    with pytest.raises(FileError, match=r"does not say which two columns are the ends of an edge"):
        load_graph(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"src": ["ann"], "dst": ["bob"]}, "'src': node ids must be integers, not 'ann'; for names use --ids names"),
        ({"src": [0, None], "dst": [1, 2]}, "'src': 1 rows have no value; each needs one"),
        ({"src": [0.5], "dst": [1.0]}, "'src' is float64[1] with the value 0.5; integers are needed"),
        ({"src": [-1], "dst": [1]}, "'src': node id -1 is out of range; ids begin at 0"),
        ({"src": pa.array([], pa.int64()), "dst": pa.array([], pa.int64())}, "empty graph: no edges"),
    ],
)
def test_ids_that_are_none_are_refused(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    path = _written(tmp_path / "g.parquet", **columns)
    with pytest.raises(GcnsimError) as caught:
        load_graph(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_a_truncated_file_is_one_line(tmp_path: Path) -> None:
    path = _written(tmp_path / "g.parquet", src=SOURCES, dst=TARGETS)
    path.write_bytes(path.read_bytes()[:-20])
    for read in (load_graph, memory_to_load):
        with pytest.raises(FileError, match=r"g\.parquet: truncated or altered: ") as caught:
            read(path)
        assert "\n" not in str(caught.value)
