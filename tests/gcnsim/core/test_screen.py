"""Text on its way to the screen: nothing in a name commands the terminal."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gcnsim.cli import main
from gcnsim.core.terminal import Screen, aligned, raw_of, screened, shown

NAME = "g\x1b[2J\x1b]0;title\x07\x9b1m\u202egpz"


def test_commands_are_written_out_and_text_is_not() -> None:
    assert shown(NAME) == r"g\x1b[2J\x1b]0;title\x07\x9b1m\u202egpz"
    assert shown("a\tb\nc \u00e4 \u4f60") == "a\tb\nc \u00e4 \u4f60"
    assert shown("\udcff\r\x08") == r"\udcff\r\x08"


def test_colours_pass_only_where_they_are_ours() -> None:
    held = io.StringIO()
    Screen(held, coloured=True).writelines(["\x1b[1mbold\x1b[0m", "\x1b[2J"])
    Screen(held).write("\x1b[1m")
    assert held.getvalue() == "\x1b[1mbold\x1b[0m" + r"\x1b[2J" + r"\x1b[1m"


def test_both_streams_are_screens_within_the_block_alone() -> None:
    before = sys.stdout, sys.stderr
    with screened(), screened():
        assert isinstance(sys.stdout, Screen)
        assert raw_of(sys.stderr) is before[1]
    assert (sys.stdout, sys.stderr) == before


def test_a_table_shows_them_and_stays_aligned() -> None:
    assert aligned([("\x1b[1mx", "1"), ("y", "2")]) == [r"\x1b[1mx  1", "y         2"]


def test_a_command_prints_no_sequence_of_a_file_or_of_a_member(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{NAME}.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a\x1b]52;c;eA==\x07.npy", b"x")
    assert main(["graph", "info", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.err.endswith("\n")
    assert captured.err[:-1].isprintable()
    assert r"\x1b]0;title\x07" in captured.err
    assert "52;c;eA==" in captured.err


def test_a_terminal_gets_none_either(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.txt"
    path.write_text("0 1\n1 2\n")
    reader, terminal = pty.openpty()
    command = [sys.executable, "-m", "gcnsim", "graph", "info", str(path)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal)
    os.close(terminal)
    content = b""
    with contextlib.suppress(OSError):  # which is how Linux ends a terminal
        while chunk := os.read(reader, 4096):
            content += chunk
    os.close(reader)
    assert process.wait() == 0
    assert rb"g\x1b[2J\x1b]0;title\x07" in content
    # On a slow machine the live line was drawn, which has sequences of its own; none of these.
    for sequence in (b"\x1b[2J", b"\x1b]", b"\x07", "\x9b".encode()):
        assert sequence not in content
