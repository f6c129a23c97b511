"""Files that are written whole or not at all, and what killed writers leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gcnsim.core.atomic import atomic_write, probe
from gcnsim.core.errors import FileError

WRITER = """
import sys
from gcnsim.core.atomic import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    print("writing", flush=True)
    sys.stdin.read()
"""


def writer(path: Path) -> subprocess.Popen[bytes]:
    """A process that has begun to write `path` and waits."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    return process


def written(path: Path, data: bytes) -> None:
    with atomic_write(path) as file:
        file.write(data)


def test_what_a_killed_writer_left_goes_with_the_next_write_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a[1]"
    killed = writer(path)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    others = {".a[1].mine", ".a1.x.part", "a[1].x.part", ".a[1]-.x.part"}
    for name in others:
        (tmp_path / name).touch()
    assert len(os.listdir(tmp_path)) == len(others) + 1
    written(path, b"whole")
    assert set(os.listdir(tmp_path)) == {"a[1]", *others}
    assert path.read_bytes() == b"whole"


def test_what_somebody_is_writing_stays(tmp_path: Path) -> None:
    path = tmp_path / "a"
    other = writer(path)
    written(path, b"first")
    probe(path)
    assert len(os.listdir(tmp_path)) == 2
    other.communicate(b"")
    assert other.returncode == 0
    assert os.listdir(tmp_path) == ["a"]
    assert path.read_bytes() == b"half"


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError), atomic_write(tmp_path / "a") as file:
        file.writelines([b"half", 1])
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileError, match="none/a: cannot be written"):
        written(tmp_path / "none" / "a", b"")
