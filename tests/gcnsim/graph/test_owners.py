"""One reader for partitions that others made: the same owners in any form are the same partition."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.owners import open_partition, write_partition

OWNER = np.array([0, 1, 1, 0, 2, 2])


@pytest.fixture
def ring() -> Graph:
    nodes = np.arange(6)
    return build_csr(nodes, (nodes + 1) % 6, 6, "ring")


def _text(owner: AnyArray) -> str:
    return "".join(f"{part}\n" for part in owner)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, ">i8", np.float32])
def test_an_array_of_owners_is_a_partition(ring: Graph, tmp_path: Path, dtype: type[np.generic]) -> None:
    np.save(tmp_path / "node_map.npy", OWNER.astype(dtype))
    partitioning = open_partition(tmp_path / "node_map.npy", ring)
    assert (partitioning.owner.tolist(), str(partitioning.owner.dtype), partitioning.parts) == (
        OWNER.tolist(),
        "int32",
        3,
    )
    assert (partitioning.method, partitioning.graph_name, partitioning.graph_hash) == (
        "file",
        "ring",
        ring.content_hash(),
    )
    assert not partitioning.owner.flags.writeable


def test_a_column_of_owners_is_a_row(ring: Graph, tmp_path: Path) -> None:
    np.save(tmp_path / "owner.npy", OWNER.reshape(6, 1))
    assert open_partition(tmp_path / "owner.npy", ring).owner.tolist() == OWNER.tolist()
    np.save(tmp_path / "owner.npy", OWNER.reshape(1, 6))
    assert open_partition(tmp_path / "owner.npy", ring).owner.tolist() == OWNER.tolist()


def test_halves_are_no_parts(ring: Graph, tmp_path: Path) -> None:
    np.save(tmp_path / "owner.npy", OWNER / 2)
    with pytest.raises(FileError, match=r"owner.npy is float64\[6\] with the value 0.5; integers are needed"):
        open_partition(tmp_path / "owner.npy", ring)


@pytest.mark.parametrize("name", ["ring.part.3", "ring.txt", "assignment"])
@pytest.mark.parametrize(
    "text",
    [
        _text(OWNER),
        _text(OWNER).replace("\n", "\r\n"),
        "0 \n1\n1\n0\n2\n2",
        "% a\n0\n1\n# b\n1\n0\n2\n2\n",
        "0\r1\r1\r0\r2\r2",
    ],
)
def test_a_number_a_line_is_a_partition_whatever_its_name(ring: Graph, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    partitioning = open_partition(tmp_path / name, ring)
    assert (partitioning.owner.tolist(), partitioning.parts, partitioning.method) == (OWNER.tolist(), 3, "file")


def test_compressed_text_is_read(ring: Graph, tmp_path: Path) -> None:
    (tmp_path / "ring.part.3.gz").write_bytes(gzip.compress(_text(OWNER).encode()))
    assert open_partition(tmp_path / "ring.part.3.gz", ring).owner.tolist() == OWNER.tolist()


def test_every_form_of_one_partition_has_the_same_hash_of_owners(ring: Graph, tmp_path: Path) -> None:
    made = partition_graph(ring, 3)
    write_partition(tmp_path / "ours", made)
    np.save(tmp_path / "owner.npy", made.owner)
    (tmp_path / "text").write_text(_text(made.owner))
    found = {open_partition(tmp_path / name, ring).owner_hash for name in ("ours", "owner.npy", "text")}
    assert found == {made.owner_hash}


@pytest.mark.parametrize(
    ("owner", "message"),
    [
        (OWNER[:5], "5 owners of 6 nodes; each node of ring needs the number of its part"),
        (np.append(OWNER, 0), "7 owners of 6 nodes; each node of ring needs the number of its part"),
        (OWNER + 1, "parts 1 to 3, not 0 to 2; subtract 1 from each"),
        (OWNER + 4, "parts 4 to 6, not 0 to 2"),
        (OWNER - 1, "part -1 is not allowed; parts are numbered from 0"),
        (OWNER * 2, "part 1 of 0 to 4 has no node; each part needs one"),
        (OWNER * 10**9, "parts 0 to 2,000,000,000 of 6 nodes; each part needs a node"),
        (OWNER.astype(str), "<U21[6]; a row of integers, each node's part, is needed"),
        (OWNER > 0, "bool[6]; a row of integers, each node's part, is needed"),
        (OWNER.reshape(2, 3), "int64[2, 3]; a row of integers, each node's part, is needed"),
        (OWNER[:0], "0 owners of 6 nodes; each node of ring needs the number of its part"),
    ],
)
def test_what_is_no_partition_says_what_is_wrong(ring: Graph, tmp_path: Path, owner: AnyArray, message: str) -> None:
    path = tmp_path / "owner.npy"
    np.save(path, owner)
    with pytest.raises(FileError) as caught:
        open_partition(path, ring)
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"0\n1\n1.0\n0\n2\n2\n", "line 3: '1.0' is not the number of a part"),
        (b"0 1\n1 1\n", "line 1: '0 1' is not the number of a part"),
        (b"part\n0\n1\n", "line 1: 'part' is not the number of a part"),
        (b"0\n\n1\n1\n0\n2\n2\n", "line 2: '' is not the number of a part"),
        (b"0,1,1,0,2,2", "line 1: '0,1,1,0,2,2' is not the number of a part"),
        ("0\n1\n".encode("utf-16"), "2 owners of 6 nodes"),
        ("0\n1\n".encode("utf-16-le"), "holds NUL bytes"),
        (b"1\n2\n2\n1\n3\n3\n", "parts 1 to 3, not 0 to 2; subtract 1 from each"),
        (b"", "is empty; each node needs the number of its part, one per line"),
        (b"PK\x03\x04 an archive", "an archive; write its owners with np.save"),
        (b"\x80\x04 a pickle", "a pickle, which is never opened; write its owners with np.save"),
        (b"GCNSIM\x00\x01", "is not a gcnsim file (or is truncated before its header)"),
    ],
)
def test_other_files_are_refused_in_one_line(ring: Graph, tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "ring.part"
    path.write_bytes(data)
    with pytest.raises(FileError) as caught:
        open_partition(path, ring)
    assert str(caught.value).startswith(f"{path}: {message}")
