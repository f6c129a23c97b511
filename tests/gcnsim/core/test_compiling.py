"""Compiled functions that are kept for other processes."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.compiling import LOCK

SOURCE = """
from gcnsim.core.compiling import compiled

@compiled()
def twice(value):
    return value + value
"""


def made(folder: Path) -> Any:
    """The function of a file in `folder`, beside which its code is kept."""
    path = folder / "twice.py"
    if not path.exists():
        path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("twice", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.twice


def kept(function: Any) -> Any:
    return function._cache._cache_file


def test_code_is_kept_and_found_again(tmp_path: Path) -> None:
    first = made(tmp_path)
    assert (first(2), first(2.5)) == (4, 5.0)
    assert Path(kept(first)._index_path).is_relative_to(tmp_path)
    again = made(tmp_path)
    assert (again(3), again(0.25)) == (6, 0.5)
    assert sum(again.stats.cache_hits.values()) == 2


def test_what_is_kept_is_changed_by_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function, seen = made(tmp_path), []
    file = kept(function)
    read = file._load_index

    def watched() -> Any:
        """While the index is read in order to be changed, nobody else can have the lock."""
        with open(file._index_path + LOCK, "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                seen.append(False)
            except BlockingIOError:
                seen.append(True)
        return read()

    monkeypatch.setattr(file, "_load_index", watched)
    function(2)
    # Once to look for the code, then to keep it.
    assert seen == [False, True]


def test_where_the_lock_cannot_be_written_nothing_is_kept_and_the_answer_is_right(tmp_path: Path) -> None:
    function = made(tmp_path)
    Path(kept(function)._index_path + LOCK).mkdir(parents=True)
    assert (function(2), function(2.5)) == (4, 5.0)
    assert not Path(kept(function)._index_path).exists()


def test_a_process_that_is_killed_while_it_keeps_code_leaves_no_name_of_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = made(tmp_path)
    function(2)
    with monkeypatch.context() as killed:
        killed.setattr(kept(function), "_save_index", _ended)
        with pytest.raises(KeyboardInterrupt):
            function(2.5)
    again = made(tmp_path)
    assert (again(2.5), again(3)) == (5.0, 6)
    # The code of the other types was never named; that of the first was.
    assert sum(again.stats.cache_hits.values()) == 1


def _ended(names: object) -> None:
    raise KeyboardInterrupt


def test_code_is_kept_beside_a_lock_that_one_may_only_read(tmp_path: Path) -> None:
    function = made(tmp_path)
    lock = Path(kept(function)._index_path + LOCK)
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch(0o444)
    assert function(2) == 4
    assert Path(kept(function)._index_path).exists()


def test_functions_work_where_numba_compiles_nothing() -> None:
    name = "from gcnsim.core.compiling import compiled; print(compiled()(lambda value: value + value)(2))"
    done = subprocess.run(
        [sys.executable, "-c", name], env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == "4\n"
