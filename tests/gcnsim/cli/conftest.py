"""What tests of several commands need: a small graph, recorded runs, and the line of a refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gcnsim.cli import main
from tests.gcnsim.evidence.conftest import write_run

__all__ = ["write_run"]

Refused = Callable[..., str]

RING = "".join(f"{v} {(v + step) % 60}\n" for v in range(60) for step in (1, 2, 7))
"""A ring of 60 nodes with chords, as an edge list: every part borders on others."""


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """The file ring.txt."""
    path = tmp_path / "ring.txt"
    path.write_text(RING)
    return path


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Give a command that cannot be done: it exits with 2 and prints a line on stderr, which is returned, alone."""

    def line(*words: str | Path) -> str:
        capsys.readouterr()
        assert main([str(word) for word in words]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("gcnsim: ")
        assert captured.err.count("\n") == 1
        return captured.err

    return line
