"""The binary container, also of enormous arrays."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gcnsim.trace.stored_profile
from gcnsim.core.atomic import atomic_write
from gcnsim.core.container import ALIGN, MAGIC, kind_of, read_sections, write_sections
from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray
from gcnsim.graph import build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.formats.arrays import npy_shape, opened, read_npy
from gcnsim.graph.owners import read_partition, write_partition
from gcnsim.graph.parts import split
from gcnsim.trace import (
    BatchOrigin,
    BatchTrace,
    packed,
    read_batch_trace,
    read_trace,
    record_trace,
    write_batch_trace,
    write_trace,
)
from gcnsim.trace.stored_profile import read_profile
from gcnsim.workload.samplers import read_norms, write_norms

ARRAYS: dict[str, AnyArray] = {
    "bytes": np.arange(5, dtype=np.uint8),
    "table": np.arange(6, dtype=np.float64).reshape(2, 3),
    "none": np.zeros((0, 4), dtype=np.int64),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "some.gcnsim"
    write_sections(found, kind="test", version=3, meta={"seed": 7}, arrays=ARRAYS)
    return found


def refused(path: Path, *, kind: str = "test", version: int = 3) -> str:
    with pytest.raises(FileError) as error:
        read_sections(path, kind=kind, version=version)
    text = str(error.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text


def test_what_is_written_comes_back(path: Path) -> None:
    sections = read_sections(path, kind="test", version=3)
    assert (sections.kind, sections.version, sections.meta) == ("test", 3, {"seed": 7})
    for name, array in ARRAYS.items():
        assert sections.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(sections.arrays[name], array)
        assert not sections.arrays[name].flags.writeable


def test_the_hash_names_the_content(path: Path, tmp_path: Path) -> None:
    again = write_sections(tmp_path / "again", kind="test", version=3, meta={"seed": 7}, arrays=ARRAYS)
    other = write_sections(tmp_path / "other", kind="test", version=3, meta={"seed": 8}, arrays=ARRAYS)
    assert read_sections(path, kind="test", version=3).content_hash == again != other
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize("order", ["<", ">"])
def test_any_layout_in_memory_gives_the_same_file(tmp_path: Path, order: str) -> None:
    plain = np.arange(12, dtype="<i4").reshape(3, 4)
    turned = plain.T.copy().T.astype(f"{order}i4")
    one = write_sections(tmp_path / "one", kind="test", version=1, meta={}, arrays={"a": plain})
    two = write_sections(tmp_path / "two", kind="test", version=1, meta={}, arrays={"a": turned})
    assert one == two


@pytest.mark.parametrize("dtype", [np.bool_, np.complex128, np.float16, object])
def test_types_without_a_place_in_the_format_are_refused(tmp_path: Path, dtype: type) -> None:
    with pytest.raises(ValueError, match="section 'a': dtype"):
        write_sections(tmp_path / "x", kind="test", version=1, meta={}, arrays={"a": np.zeros(2, dtype=dtype)})
    assert list(tmp_path.iterdir()) == []


def test_missing_empty_and_foreign_files(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path / "missing")
    assert "cannot be read" in refused(tmp_path)
    for content in (b"", b"PK\x03\x04" * 40):
        (tmp_path / "foreign").write_bytes(content)
        assert "not a gcnsim file" in refused(tmp_path / "foreign")


def test_other_kinds_and_versions_are_refused(path: Path) -> None:
    assert "is a test file, wanted a trace file" in refused(path, kind="trace")
    assert "test version 3, this gcnsim reads version 4" in refused(path, version=4)


def test_every_truncation_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    last = whole.rindex(ARRAYS["table"].tobytes()) + ARRAYS["table"].nbytes
    for size in {*range(0, last, 41), last - 1}:
        path.write_bytes(whole[:size])
        refused(path)


@settings(deadline=None, max_examples=150)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_no_altered_bit_reaches_the_arrays(place: float, bit: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "altered.gcnsim"
    write_sections(path, kind="test", version=3, meta={"seed": 7}, arrays=ARRAYS)
    raw = bytearray(path.read_bytes())
    raw[int(place * len(raw))] ^= 1 << bit
    path.write_bytes(raw)
    try:
        sections = read_sections(path, kind="test", version=3)
    except FileError:
        return
    assert sections.meta == {"seed": 7}  # the bit was in the padding
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(sections.arrays[name], array)


def test_a_failed_write_leaves_the_old_file_and_no_other(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(TypeError), atomic_write(path) as file:
        file.write("text where bytes belong")
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="nowhere/x: cannot be written"), atomic_write(tmp_path / "nowhere" / "x"):
        pass
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(FileError, match="folder: is a directory"), atomic_write(folder) as file:
        file.write(b"x")
    assert list(tmp_path.iterdir()) == [folder]


def _with_header(path: Path, header: bytes) -> None:
    """Put another header, with its right checksum, before the same sections."""
    whole = path.read_bytes()
    length = int.from_bytes(whole[8:16], "little")
    body = whole[-(-(48 + length) // ALIGN) * ALIGN :]
    start = MAGIC + len(header).to_bytes(8, "little") + hashlib.sha256(header).digest() + header
    path.write_bytes(start + b"\0" * (-len(start) % ALIGN) + body)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"not json", "the header is not JSON"),
        (b"\xff", "the header is not JSON"),
        (b"[" * 100_000, "the header is not JSON"),
        (b'{"kind": NaN}', "the header is not JSON: NaN is not a number"),
        (b"[]", "the header is a list; allowed: an object"),
    ],
)
def test_a_header_that_is_no_object_is_refused(path: Path, header: bytes, message: str) -> None:
    _with_header(path, header)
    assert message in refused(path)
    with pytest.raises(FileError, match="header"):
        kind_of(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": None}, "header: kind is None; allowed: text"),
        ({"version": True}, "header: version is True; allowed: a whole number"),
        ({"meta": [1]}, "header: meta is [1]; allowed: an object"),
        ({"sections": None}, "header: sections is None; allowed: an object"),
        ({"sections": {"table": 5}}, "header: section 'table': 5; allowed: an object"),
    ],
)
def test_a_header_of_other_types_is_refused(path: Path, change: dict[str, Any], message: str) -> None:
    _with_header(path, json.dumps(_header(path) | change).encode())
    assert message in refused(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "O"}, "dtype is 'O'; allowed: <f4"),
        ({"dtype": ["<f8"]}, "dtype is ['<f8']"),
        ({"shape": [77]}, "bytes is 48; shape [77] of <f8 has 616"),
        ({"shape": [-2, -3]}, "shape is [-2, -3]; allowed: a list of whole numbers from 0"),
        ({"shape": "23"}, "shape is '23'"),
        ({"shape": [2, 3, *[1] * 69]}, "shape has 71 dimensions; at most 8 are allowed"),
        ({"bytes": "48"}, "bytes is '48'"),
        ({"offset": -64}, "offset is -64; allowed: multiples of 64 from 0"),
        ({"offset": 1.0}, "offset is 1.0"),
        ({"sha256": None}, "sha256 is None; allowed: text"),
    ],
)
def test_a_section_told_wrongly_is_refused(path: Path, change: dict[str, Any], message: str) -> None:
    header = _header(path)
    header["sections"]["table"] |= change
    _with_header(path, json.dumps(header).encode())
    assert f"header: section 'table': {message}" in refused(path)


def _header(path: Path) -> dict[str, Any]:
    whole = path.read_bytes()
    found: dict[str, Any] = json.loads(whole[48 : 48 + int.from_bytes(whole[8:16], "little")])
    return found


ENORMOUS = ([0, 2**62], [2**63, 0], [0, 2**64], [2**31, 0, 2**32], [0, *[10**4000] * 7], [2**62], [10**4000])
GRAPH = build_csr(np.arange(11), np.arange(1, 12), 12, "line")
PROFILES = Path(gcnsim.trace.stored_profile.__file__).parents[1] / "data" / "profiles"
PREFIX = len(MAGIC) + 8 + 32


def made_trace(path: Path) -> None:
    owners = partition_graph(GRAPH, 2, "block")
    write_trace(path, record_trace(split(GRAPH, owners), owners, sampler="uniform", epsilon=0.5, iterations=2, seed=0))


def made_batches(path: Path) -> None:
    levels = np.tile(np.array([4, 3, 2], np.int64), (3, 2, 1))
    inputs = np.zeros((3, 10), np.bool_)
    inputs[:, :4] = True
    origin, held = BatchOrigin("ring", "ab12", "distdgl", 0, 2), packed(np.zeros(10, np.bool_))
    counts = levels, levels[:, :, :2] * 2, levels[:, :, 0] * 3
    rows = (packed(inputs),) * 2, (held,) * 2
    write_batch_trace(path, BatchTrace(origin, 10, *counts, *rows, np.full(2, 10, np.int64)))


def _size(path: Path) -> int:
    return path.stat().st_size


KINDS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "trace": (made_trace, read_trace),
    "batches": (made_batches, read_batch_trace),
    "profile": (lambda path: shutil.copy(min(PROFILES.glob("*.profile"), key=_size), path), read_profile),
    "partition": (lambda path: write_partition(path, partition_graph(GRAPH, 2, "block")), read_partition),
    "norms": (
        lambda path: write_norms(path, np.ones(GRAPH.nodes, np.float32), GRAPH.content_hash()),
        lambda path: read_norms(path, GRAPH),
    ),
}


def forged(path: Path, name: str, shape: list[int]) -> None:
    """Give a section another shape, in a header whose checksum is right."""
    whole = path.read_bytes()
    length = int.from_bytes(whole[len(MAGIC) : len(MAGIC) + 8], "little")
    header = json.loads(whole[PREFIX : PREFIX + length])
    header["sections"][name] |= {"shape": shape, "bytes": 0, "sha256": hashlib.sha256(b"").hexdigest()}
    raw = json.dumps(header, sort_keys=True).encode()
    start = MAGIC + len(raw).to_bytes(8, "little") + hashlib.sha256(raw).digest() + raw
    body = whole[-(-(PREFIX + length) // ALIGN) * ALIGN :]
    path.write_bytes(start + bytes(-len(start) % ALIGN) + body)


def one_line(path: Path, read: Callable[[Path], Any]) -> str:
    with pytest.raises(FileError) as caught:
        read(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text


@pytest.mark.parametrize("kind", KINDS)
def test_a_section_of_any_file_of_ours_that_no_array_can_be_is_refused(tmp_path: Path, kind: str) -> None:
    write, read = KINDS[kind]
    path = tmp_path / "file"
    write(path)
    whole = path.read_bytes()
    names = json.loads(whole[PREFIX : PREFIX + int.from_bytes(whole[8:16], "little")])["sections"]
    for name in names:
        for shape in ENORMOUS:
            path.write_bytes(whole)
            forged(path, name, shape)
            one_line(path, read)


@pytest.mark.parametrize("shape", [[0, 2, 2], [0, 2**50, 2], [2**40, 0, 2]])
def test_a_section_without_elements_is_refused_where_some_are_needed(tmp_path: Path, shape: list[int]) -> None:
    path = tmp_path / "file"
    made_trace(path)
    forged(path, "edges", shape)
    assert read_sections(path, kind="trace", version=(1, 2)).arrays["edges"].shape == tuple(shape)
    assert "section 'edges' has shape" in one_line(path, read_trace)


def npy(shape: str, dtype: str = "<i8") -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


@pytest.mark.parametrize(
    "shape",
    [
        f"({2**62},)",
        f"(0, {2**62})",
        f"({2**63},)",
        f"(0, {2**64})",
        f"({2**40}, {2**40}, 0)",
        f"(0, {2**60}, 4)",
        "(-1,)",
        "(-2, -3)",
    ],
)
@pytest.mark.parametrize("dtype", ["<i8", "<U400000000"])
def test_a_numpy_file_that_no_array_can_be_is_refused(tmp_path: Path, shape: str, dtype: str) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy(shape, dtype))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", npy(shape, dtype))

    def unpacked(file: Path) -> object:
        with opened(file) as archive:
            return archive.array("a")

    for file, read in ((path, read_npy), (path, npy_shape), (tmp_path / "a.npz", unpacked)):
        assert "truncated or altered: no array can have the shape [" in one_line(file, read)


def test_a_numpy_file_of_more_than_its_bytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy(f"({2**59},)"))
    assert "0 bytes are not int64[" in one_line(path, read_npy)
