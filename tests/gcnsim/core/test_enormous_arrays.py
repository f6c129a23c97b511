"""Files that ask for an array larger than any memory: every reader of arrays refuses them in one line."""

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

import gcnsim.trace.stored_profile
from gcnsim.cli import main
from gcnsim.core.container import ALIGN, MAGIC, read_sections
from gcnsim.core.errors import FileError
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
from gcnsim.workload.norms import read_norms, write_norms

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


def test_the_command_line_ends_in_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.trace"
    made_trace(path)
    forged(path, "edges", [0, 2**63])
    assert main(["trace", "info", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"gcnsim: {path}: header: section 'edges': shape is [0, {2**63}], more than an array of <i8 can have\n"
    )


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
