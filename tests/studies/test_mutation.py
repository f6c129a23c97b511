"""Mutants: where they are made, where not, which tests they run, and what a killed one looks like."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from studies.mutation.equivalent import proof
from studies.mutation.kinds import KINDS, mutations
from studies.mutation.report import report
from studies.mutation.rooms import places, room_tests, sample
from studies.mutation.trial import Copy, ordered

SOURCE = b'''"""A room."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    WIDTH = 7

LIMIT = 2.0


def grown(first: int, second: int, text: "list[3]" = "") -> float:
    """Grow."""
    total = first * 2
    total += second
    if total < LIMIT:
        raise ValueError(total, first)
    assert total != 99
    return max(total, divmod(first, second)[1])


class Thing:
    size = 1e-9

    def __repr__(self) -> str:
        return str(12 + 1)
'''


def changed(source: bytes = SOURCE) -> set[tuple[str, str]]:
    """Kind of every mutation, and the changed line after it."""
    found = set()
    for mutation in mutations("room.py", source):
        line = mutation.applied(source).decode().splitlines()[mutation.line - 1]
        found.add((mutation.kind, line.strip()))
    return found


def test_every_kind_is_made_where_it_can_be() -> None:
    assert changed() == {
        ("constant", "LIMIT = 3.0"),
        ("arithmetic", "total = first / 2"),
        ("constant", "total = first * 3"),
        ("arithmetic", "total -= second"),
        ("dropped", "pass"),
        ("comparison", "if total <= LIMIT:"),
        ("swapped", "raise ValueError(first, total)"),
        ("swapped", "return max(total, divmod(second, first)[1])"),
        ("constant", "return max(total, divmod(first, second)[2])"),
        ("constant", "size = 1.000000001"),
    }
    assert {kind for kind, _ in changed()} == set(KINDS)


def test_statements_that_only_bind_a_name_stay() -> None:
    dropped = [mutation for mutation in mutations("room.py", SOURCE) if mutation.kind == "dropped"]
    assert [SOURCE.decode().splitlines()[mutation.line - 1].split()[0] for mutation in dropped] == [
        "total",
        "raise",
        "return",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a <= b", "a < b"),
        ("a == b", "a != b"),
        ("a is not b", "a is b"),
        ("a not in b", "a in b"),
        ("(a) - (b)", "(a) + (b)"),
        ("a // b", "a * b"),
        ("a ** b", "a * b"),
        ("x + 200", "x + 300"),
        ("'é' + 1.5", "'é' + 2.25"),
    ],
)
def test_operators_and_numbers(before: str, after: str) -> None:
    assert after in {line for _, line in changed(before.encode())}


def test_what_stands_in_no_function_runs_at_import() -> None:
    spans = {mutation.line: (mutation.first, mutation.last) for mutation in mutations("room.py", SOURCE)}
    assert spans[8] == (0, 0)
    assert spans[13] == (13, 13)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of one room with two tests, of which one looks."""
    root = tmp_path / "repository"
    files = {
        "gcnsim/__init__.py": "",
        "gcnsim/sums/__init__.py": "",
        "gcnsim/sums/add.py": "def add(a, b):\n    return a + b\n\n\ndef idle():\n    return 5\n",
        "tests/gcnsim/sums/test_add.py": (
            "from gcnsim.sums.add import add\n\n\ndef test_looks():\n    assert add(2, 1) == 3\n\n\n"
            "def test_looks_away():\n    assert True\n"
        ),
        "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\naddopts = '--import-mode=importlib'\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "studies").symlink_to(Path(__file__).resolve().parents[2] / "studies")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


@pytest.mark.slow  # starts pytest five times
def test_mutants_of_a_tree_are_killed_or_survive(tree: Path, tmp_path: Path) -> None:
    every = places(tree)
    assert [*every] == ["gcnsim/sums"]
    assert room_tests(tree, "gcnsim/sums") == ["tests/gcnsim/sums/test_add.py"]
    drawn = sample(every, 9, 0)
    assert sorted(drawn) == sorted(every["gcnsim/sums"])
    copy = Copy(tree, tmp_path / "copy")
    (copy.folder / "studies").symlink_to(tree / "studies")
    seen = copy.seen("gcnsim/sums", tmp_path / "store")
    results = [copy.tried(item, seen, whole=False) for item in sorted(drawn)]
    assert [(result.mutation.line, result.outcome, result.tests) for result in results] == [
        (2, "killed", 1),
        (2, "killed", 1),
        (6, "survived", 0),
        (6, "survived", 0),
    ]
    assert results[0].by == "tests/gcnsim/sums/test_add.py::test_looks"
    assert (copy.folder / "gcnsim/sums/add.py").read_bytes() == (tree / "gcnsim/sums/add.py").read_bytes()
    content = report(results)
    assert "gcnsim/sums    2 of   4 ( 50%)" in content
    assert "-    return 5\n+    return 6" in content


def test_the_quickest_files_come_first_and_failing_tests_never() -> None:
    seen = {
        "seconds": {"a.py::slow": 9.0, "b.py::quick": 1.0, "b.py::other": 0.1, "c.py::broken": 0.0},
        "failed": ["c.py::broken"],
        "lines": {"room.py": {"2": ["a.py::slow", "b.py::quick", "c.py::broken"]}},
    }
    (mutation, *_) = mutations("room.py", b"def f():\n    return 1\n")
    chosen, order = ordered(mutation, seen)
    assert chosen == {"a.py::slow", "b.py::quick"}
    assert order == ["b.py::quick", "a.py::slow", "b.py::other"]


def test_what_was_proved_to_change_nothing_is_not_counted(tmp_path: Path) -> None:
    source = b"class Thread:\n    def __init__(self):\n        self.had = 0.0\n        self.turn = 0.0\n"
    (tmp_path / "room.py").write_bytes(source)
    constants = [mutation for mutation in mutations("room.py", source) if mutation.kind == "constant"]
    assert [proof(tmp_path, constant) is None for constant in constants] == [False, True]


def test_a_function_returns_none_at_its_end_anyway(tmp_path: Path) -> None:
    source = b"def f(x):\n    if x:\n        return None\n    x.go()\n    return None\n\ndef g():\n    return 1\n"
    (tmp_path / "room.py").write_bytes(source)
    dropped = [mutation for mutation in mutations("room.py", source) if mutation.kind == "dropped"]
    assert {mutation.line: proof(tmp_path, mutation) is not None for mutation in dropped} == {
        3: False,
        4: False,
        5: True,
        8: False,
    }
