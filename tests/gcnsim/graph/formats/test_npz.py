from __future__ import annotations

import tracemalloc
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import scipy.sparse

from gcnsim.core.errors import FileError, GcnsimError
from gcnsim.core.ids import AnyArray
from gcnsim.graph import load_graph
from gcnsim.graph.csr import Cleaning

_INDPTR, _INDICES = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], dtype=np.int32)


def _saved(path: Path, **arrays: AnyArray) -> Path:
    named: dict[str, Any] = {"indptr": _INDPTR, "indices": _INDICES, **arrays}
    np.savez_compressed(path, **named)
    return path


def test_structure_widths_and_classes_are_read(tmp_path: Path) -> None:
    path = _saved(tmp_path / "path.npz", x=np.zeros((3, 7)), labels=np.array([0, -1, 4], dtype=np.int16))
    graph = load_graph(path)
    assert (graph.name, graph.nodes, graph.entries) == ("path", 3, 4)
    assert (graph.features, graph.classes, graph.cleaning) == (7, 5, Cleaning())


def test_without_features_or_labels_nothing_is_claimed(tmp_path: Path) -> None:
    graph = load_graph(_saved(tmp_path / "bare.npz"))
    assert (graph.features, graph.classes) == (None, None)
    unknown = load_graph(_saved(tmp_path / "unknown.npz", labels=np.array([-1, -1, -1])))
    assert unknown.classes is None


def test_sparse_features_and_multi_label_classes_come_from_shapes(tmp_path: Path) -> None:
    graph = load_graph(_saved(tmp_path / "g.npz", x_shape=np.array([3, 8415]), labels=np.zeros((3, 100))))
    assert (graph.features, graph.classes) == (8415, 100)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_scipy_matrices_are_read(tmp_path: Path, layout: Literal["csr", "csc", "coo"], weight: float) -> None:
    entries = (np.full(3, weight), (np.array([0, 1, 2]), np.array([1, 2, 2])))
    matrix: scipy.sparse.coo_array[np.float64] = scipy.sparse.coo_array(entries, shape=(4, 4))
    scipy.sparse.save_npz(tmp_path / "m.npz", matrix.asformat(layout))
    graph = load_graph(tmp_path / "m.npz")
    assert graph.indptr.tolist() == [0, 1, 3, 4, 4]
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert graph.cleaning == Cleaning(1, 0, 2, ignored=("weights",) * (weight != 1))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"indptr": np.array([0.0, 1.5, 3, 4])}, "'indptr' is float64[4] with the value 1.5; integers are needed"),
        (
            {"indices": np.array([[1, 0], [2, 1]])},
            "'indices' is int64[2, 2]; a 1-D array of integers is needed",
        ),
        ({"indices": np.array([1, 0, 2, 3])}, "node id 3 is out of range; 0 to 2 are allowed"),
        ({"indices": np.array([1, 0, 2])}, "indptr runs from 0 to 4; it must run from 0 to 3"),
        ({"x": np.zeros((2, 5))}, "features have shape [2, 5]; [3, width] is needed"),
        ({"x_shape": np.array([3, -5])}, "features have shape [3, -5]; [3, width] is needed"),
        ({"x_shape": np.array([3, 10**12])}, "[3, width] is needed, width 0 to 2,147,483,647"),
        ({"labels": np.zeros(4, dtype=np.int16)}, "labels have shape [4]; [3] or [3, classes] is needed"),
        ({"labels": np.full(3, 0.5)}, "'labels' is float64[3] with the value 0.5; integers are needed"),
        ({"indptr": np.array([0])}, "indptr runs from 0 to 0; it must run from 0 to 4"),
        ({"labels": np.array(["a", 1, None], dtype=object)}, "'labels' is an object array (a pickle)"),
        (
            {"format": np.array(b"bsr"), "shape": np.array([3, 3])},
            "unknown sparse format 'bsr'; supported: csr, csc, coo",
        ),
        ({"format": np.array(b"csr"), "shape": np.array([3, 4])}, "an adjacency matrix must be square, not 3 x 4"),
        ({"format": np.array(b"csr"), "shape": np.array([2, 2])}, "indptr has 4 values; 2 rows need 3"),
        ({"format": np.array(b"coo"), "shape": np.array([3, 3])}, "key 'row' is missing (found: format, indices, "),
    ],
)
def test_a_wrong_array_is_named(tmp_path: Path, arrays: dict[str, AnyArray], message: str) -> None:
    path = _saved(tmp_path / "g.npz", **arrays)
    with pytest.raises(GcnsimError) as caught:
        load_graph(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_key_and_a_foreign_file_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "half.npz", indptr=_INDPTR)
    with pytest.raises(FileError, match=r"half.npz: key 'indices' is missing \(found: indptr\)"):
        load_graph(tmp_path / "half.npz")
    (tmp_path / "text.npz").write_text("0 1\n")
    with pytest.raises(FileError, match=r"text.npz: truncated or altered: File is not a zip file"):
        load_graph(tmp_path / "text.npz")


def test_no_damage_changes_the_graph_or_escapes_as_a_traceback(tmp_path: Path) -> None:
    whole = _saved(tmp_path / "g.npz", x=np.zeros((3, 7)), labels=np.array([0, 1, 2])).read_bytes()
    expected = load_graph(tmp_path / "g.npz").content_hash()
    damaged = tmp_path / "damaged.npz"
    generator = np.random.default_rng(0)
    refusals = []
    for trial in range(400):
        raw = bytearray(whole)
        if trial % 4 == 0:
            del raw[int(generator.integers(len(raw))) :]
        else:
            raw[int(generator.integers(len(raw)))] = int(generator.integers(256))
        damaged.write_bytes(raw)
        try:
            assert load_graph(damaged).content_hash() == expected
        except GcnsimError as error:
            refusals.append(str(error))
    assert len(refusals) > 100
    assert all(line.startswith(f"{damaged}: ") and "\n" not in line for line in refusals)


def test_a_label_that_is_no_class_is_refused(tmp_path: Path) -> None:
    path = _saved(tmp_path / "g.npz", labels=np.array([0, 2**64 - 1, 0], np.uint64))
    with pytest.raises(FileError, match=r"'labels' run up to 18446744073709551615; at most 1000000 classes"):
        load_graph(path)


def _header(shape: tuple[int, ...]) -> bytes:
    file = BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": shape})
    return file.getvalue()


def _unpacking(path: Path, key: str, start: bytes, **arrays: AnyArray) -> Path:
    """A file of some 300 KB, of which one member unpacks to 300 MB behind `start`."""
    _saved(path, **arrays)
    with zipfile.ZipFile(path) as whole:
        members = {name: whole.read(name) for name in whole.namelist() if name != f"{key}.npy"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, raw in members.items():
            packed.writestr(name, raw)
        with packed.open(f"{key}.npy", "w") as member:
            member.write(start)
            for _ in range(30):
                member.write(bytes(10**7))
    return path


@pytest.mark.parametrize(
    ("key", "start", "message"),
    [
        ("indptr", _header((4,)), r"300000000 bytes are not int64\[4\]"),
        ("x_shape", _header((37_500_000,)), r"has shape \[37500000\]; 2 integers are needed"),
        ("indptr", b"\x93NUMPY\x02\x00" + (3 * 10**8).to_bytes(4, "little"), r"a header of 300,000,000 bytes"),
    ],
)
def test_what_unpacks_to_more_than_it_says_is_refused_before_it_is_held(
    tmp_path: Path, key: str, start: bytes, message: str
) -> None:
    path = _unpacking(tmp_path / "g.npz", key, start)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=message):
            load_graph(path)
        assert tracemalloc.get_traced_memory()[1] < 5e7
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("key", ["shape", "format"])
def test_a_matrix_of_endless_shape_or_format_is_refused_before_it_is_held(tmp_path: Path, key: str) -> None:
    matrix = {"format": np.array(b"csr"), "shape": np.array([3, 3]), "data": np.ones(4)}
    path = _unpacking(tmp_path / "m.npz", key, _header((37_500_000,)), **matrix)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=r"has shape \[37500000\]"):
            load_graph(path)
        assert tracemalloc.get_traced_memory()[1] < 5e7
    finally:
        tracemalloc.stop()
