"""Arrays and tables in files: sources, what is written, Parquet, NumPy."""

from __future__ import annotations

import errno
import gzip
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gcnsim.core.errors import FileError, GcnsimError
from gcnsim.core.ids import AnyArray
from gcnsim.graph import build_csr, load_graph
from gcnsim.graph.csr import Cleaning
from gcnsim.graph.formats import edges
from gcnsim.graph.formats.arrays import opened, read_npy
from gcnsim.graph.formats.source import file_text
from gcnsim.graph.load import memory_to_load, write_edges, write_npz
from tests.gcnsim.graph.formats.layouts.published import NODES, SOURCES, TARGETS, ring


def array(path: Path, name: str = "a") -> AnyArray:
    with opened(path) as archive:
        return archive.array(name)


def test_only_the_named_arrays_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", small=np.arange(3), order=np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("broken.npy", b"no array")
    assert array(tmp_path / "a.npz", "order").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    small = array(tmp_path / "a.npz", "small")
    assert (small.tolist(), small.flags.writeable) == ([0, 1, 2], False)
    with pytest.raises(FileError, match=r"a.npz: truncated or altered: "):
        array(tmp_path / "a.npz", "broken")


def test_missing_files_and_pickles_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none.npy: cannot be read: No such file or directory"):
        read_npy(tmp_path / "none.npy")
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object))
    with pytest.raises(FileError, match=r"o.npy is an object array \(a pickle\), which is never opened"):
        read_npy(tmp_path / "o.npy")


def test_damage_of_a_single_array_is_one_line(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.save(file, np.arange(40))
    whole, path = file.getvalue(), tmp_path / "d.npy"
    generator = np.random.default_rng(0)
    for size in range(len(whole)):
        raw = bytearray(whole[:size])
        if size > 10:
            raw[int(generator.integers(10))] ^= 0x55
        path.write_bytes(raw)
        with pytest.raises(FileError) as caught:
            read_npy(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
    path.write_bytes(whole[:-1])
    with pytest.raises(FileError, match=r"d.npy: truncated or altered: 319 bytes are not int64\[40\]"):
        read_npy(path)


def stored(path: Path, raw: bytes) -> Path:
    """An archive whose array `a` is these bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", raw)
    return path


def test_an_array_of_an_archive_is_whole_or_refused(tmp_path: Path) -> None:
    """Unpacked by chunks: an array of several, an empty one, and such as are not what their header says."""
    file = io.BytesIO()
    values = np.random.default_rng(0).integers(0, 1 << 40, 100_001)
    np.save(file, values)
    whole = file.getvalue()
    found = array(stored(tmp_path / "a.npz", whole))
    assert np.array_equal(found, values)
    assert not found.flags.writeable
    for raw, size in ((whole[:-8], 800_000), (whole + b"\0", 800_009), (whole[: -values.nbytes], 0)):
        with pytest.raises(FileError, match=rf"'a': truncated or altered: {size} bytes are not int64\[100001\]"):
            array(stored(tmp_path / "b.npz", raw))
    np.savez(tmp_path / "c.npz", a=np.zeros((0, 3)), text=np.array(["x", "yz"]))
    assert array(tmp_path / "c.npz").shape == (0, 3)
    assert array(tmp_path / "c.npz", "text").tolist() == ["x", "yz"]


def test_an_altered_array_fails_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, a=np.arange(200_000))
    raw = bytearray(path.read_bytes())
    raw[1_000_000] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FileError, match=r"a.npz: truncated or altered: Bad CRC-32"):
        array(path)


def test_a_size_that_the_archive_only_claims_is_refused(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.save(file, np.arange(1000))
    claimed = file.getvalue().replace(b"(1000,)", b"(9000,)")
    path = stored(tmp_path / "a.npz", claimed)
    raw, size = path.read_bytes(), len(claimed).to_bytes(4, "little")
    assert raw.count(size) == 2, "in the entry and in the directory"
    path.write_bytes(raw.replace(size, (len(claimed) + 64_000).to_bytes(4, "little")))
    with pytest.raises(FileError, match=r"a.npz.*truncated or altered"):
        array(path)


def test_gzip_is_recognised_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_bytes(gzip.compress(b"0 1\n"))
    assert file_text(path) == b"0 1\n"


def test_truncated_and_altered_gzip_are_refused(tmp_path: Path) -> None:
    whole = gzip.compress(bytes(range(256)) * 8)
    path = tmp_path / "g.txt.gz"
    for damaged in (whole[:40], whole[:-6] + b"\x00\x00" + whole[-4:], whole[:30] + b"\xff\xff\xff" + whole[33:]):
        path.write_bytes(damaged)
        with pytest.raises(FileError, match="truncated or altered gzip"):
            file_text(path)


def test_a_written_graph_is_read_back_and_its_bytes_are_the_same_each_time(tmp_path: Path) -> None:
    graph = build_csr(np.array([0, 1, 2]), np.array([1, 2, 3]), 5, "path", features=7)
    for name in ("a.npz", "b.npz"):
        write_npz(tmp_path / name, graph)
    found = load_graph(tmp_path / "a.npz")
    assert found.content_hash() == graph.content_hash()
    assert (found.nodes, found.features, found.classes, found.cleaning) == (5, 7, None, Cleaning())
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_arrays_of_the_nodes_go_with_the_graph(tmp_path: Path) -> None:
    graph = build_csr(np.array([0]), np.array([1]), 3, "edge", features=2)
    write_npz(tmp_path / "g.npz", graph, {"x": np.ones((3, 2), np.float32), "labels": np.array([0, 1, -1])})
    found = load_graph(tmp_path / "g.npz")
    assert (found.features, found.classes) == (2, 2)
    assert sorted(np.load(tmp_path / "g.npz", allow_pickle=False)) == ["indices", "indptr", "labels", "x"]


@pytest.mark.parametrize(("name", "separator"), [("g.txt", " "), ("g.tsv", "\t"), ("g.csv", ",")])
def test_an_edge_list_holds_each_edge_once_and_every_node(tmp_path: Path, name: str, separator: str) -> None:
    graph = build_csr(np.array([0, 1, 2]), np.array([1, 2, 0]), 5, "triangle")
    write_edges(tmp_path / name, graph, separator=separator)
    lines = [line.split(separator) for line in (tmp_path / name).read_text().splitlines()]
    assert lines == [["0", "1"], ["0", "2"], ["1", "2"], ["4", "4"]]
    found = load_graph(tmp_path / name)
    assert (found.nodes, found.content_hash()) == (5, graph.content_hash())


def _written(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("name", ["g.parquet", "g.pq", "g"])
def test_edges_are_read_from_the_columns_that_the_names_say(tmp_path: Path, name: str, dtype: Any) -> None:
    weight = np.full(NODES, 0.5)
    path = _written(tmp_path / name, weight=weight, dst=TARGETS.astype(dtype), src=SOURCES.astype(dtype))
    graph = load_graph(path)
    assert graph.content_hash() == ring().content_hash()
    assert graph.cleaning.ignored == ("weight",)
    assert 150_000_000 < memory_to_load(path) < 151_000_000


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


def test_ids_are_renumbered_as_in_other_edge_lists(tmp_path: Path) -> None:
    compact = load_graph(_written(tmp_path / "c.parquet", source=SOURCES * 7 - 3, target=TARGETS * 7 - 3), "compact")
    assert isinstance(compact.original_ids, np.ndarray)
    assert compact.original_ids.tolist() == [7 * node - 3 for node in range(NODES)]
    names = load_graph(_written(tmp_path / "n.parquet", u=["bob", "ann", "bob"], v=["ann", "carl", "carl"]), "names")
    assert names.original_ids == ("bob", "ann", "carl")
    assert names.entries == 6


def _no_memory(*_: object, **__: object) -> AnyArray:
    raise MemoryError


def test_too_little_memory_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "x.npy", np.zeros(2**18))
    np.savez(tmp_path / "a.npz", a=np.zeros(2**18))
    pq.write_table(pa.table({"src": [0, 1], "dst": [1, 2]}), tmp_path / "e.parquet")
    with monkeypatch.context() as inside:
        inside.setattr(np, "empty", _no_memory)
        for read, name in ((read_npy, "x.npy"), (array, "a.npz")):
            with pytest.raises(FileError) as caught:
                read(tmp_path / name)
            assert str(caught.value) == f"{tmp_path / name}: 2.00 MiB do not fit into memory"
    monkeypatch.setattr(edges, "_opened", _no_memory)
    for read_too in (load_graph, memory_to_load):
        with pytest.raises(FileError, match=r"e\.parquet: .* do not fit into memory"):
            read_too(tmp_path / "e.parquet")


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOSPC, errno.ENOMEM])
def test_a_limit_of_the_system_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refused(*_: object, **__: object) -> Any:
        raise OSError(code, os.strerror(code))

    np.savez(tmp_path / "a.npz", a=np.zeros(3))
    monkeypatch.setattr(zipfile, "ZipFile", refused)
    with pytest.raises(FileError) as caught:
        array(tmp_path / "a.npz")
    assert str(caught.value) == f"{tmp_path / 'a.npz'}: cannot be read: {os.strerror(code)}"


def test_a_header_that_asks_for_more_than_the_file_holds_reserves_nothing(tmp_path: Path) -> None:
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (2**20, 2**20)})
        file.write(bytes(64))
    with pytest.raises(FileError, match=r"x\.npy: truncated or altered: 64 bytes are not float32\[1048576, 1048576\]"):
        read_npy(tmp_path / "x.npy")
