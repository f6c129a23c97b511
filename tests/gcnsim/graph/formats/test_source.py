from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gcnsim.core.errors import FileError
from gcnsim.graph.formats.source import file_start, file_text


def test_gzip_is_recognised_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_bytes(gzip.compress(b"0 1\n"))
    assert file_text(path) == b"0 1\n"


def test_missing_files_and_folders_are_one_line(tmp_path: Path) -> None:
    for read in (file_start, file_text):
        with pytest.raises(FileError, match=r"none.txt: cannot be read: No such file or directory"):
            read(tmp_path / "none.txt")
        with pytest.raises(FileError, match="cannot be read: Is a directory"):
            read(tmp_path)


def test_truncated_and_altered_gzip_are_refused(tmp_path: Path) -> None:
    whole = gzip.compress(bytes(range(256)) * 8)
    path = tmp_path / "g.txt.gz"
    for damaged in (whole[:40], whole[:-6] + b"\x00\x00" + whole[-4:], whole[:30] + b"\xff\xff\xff" + whole[33:]):
        path.write_bytes(damaged)
        with pytest.raises(FileError, match="truncated or altered gzip"):
            file_text(path)
