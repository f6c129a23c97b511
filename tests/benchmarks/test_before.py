"""The comparison of two trees runs each tree's own package, and compares the numbers of their answers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.bench_before import HERE, compared_numbers, numbers_of, ran


def copied(folder: Path, version: str) -> Path:
    """A package of another tree, whose command prints `version`."""
    (folder / "gcnsim").mkdir(parents=True)
    (folder / "gcnsim" / "__init__.py").write_text("", encoding="utf-8")
    (folder / "gcnsim" / "cli.py").write_text(
        f"def main():\n    print('[{version}]')\n    return 0\n", encoding="utf-8"
    )
    return folder


def test_each_tree_runs_its_own_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    trees = [copied(tmp_path / name, version) for name, version in (("before", "1"), ("now", "2"))]
    assert [ran(tree, ("what-if",), tmp_path).numbers for tree in trees] == [{"/0": "1.0"}, {"/0": "2.0"}]
    with pytest.raises(subprocess.CalledProcessError):
        ran(tmp_path / "nothing", ("what-if",), tmp_path)


def test_numbers_are_compared_and_texts_are_not() -> None:
    before = numbers_of({"rows": [{"s": 1.5, "best": True, "why": "old words"}], "more": None})
    now = numbers_of({"rows": [{"s": 1.5, "best": True, "why": "new words", "gib": 4}]})
    assert before == {"/rows/0/s": "1.5", "/rows/0/best": "1.0"}
    assert [figure.value for figure in compared_numbers("x", [before, now])] == [2, 1, 0]
    assert all(figure.kept for figure in compared_numbers("x", [before, now]))
    assert not all(figure.kept for figure in compared_numbers("x", [before, now | {"/rows/0/s": "1.6"}]))
    with pytest.raises(AssertionError, match="no numbers"):
        compared_numbers("x", [before, {}])
