from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray
from gcnsim.graph.formats.arrays import opened, read_npy


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


def test_a_single_array_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1, 2], [3, 4]], dtype=np.int16))
    found = read_npy(tmp_path / "a.npy")
    assert (found.tolist(), found.dtype) == ([[1, 2], [3, 4]], np.dtype(np.int16))
    assert not found.flags.writeable


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
