from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.container import read_sections, write_sections
from gcnsim.core.errors import FileError
from gcnsim.trace import AccessTrace, WorkerAccess, read_trace, record_trace, write_trace
from gcnsim.trace.access import OLDER, VERSION


@pytest.fixture
def trace(small: Any) -> AccessTrace:
    return record_trace(small.parts, small.owners, sampler="vr", epsilon=0.2, iterations=5, seed=3)


def test_a_trace_comes_back_as_it_was(trace: AccessTrace, tmp_path: Path) -> None:
    write_trace(tmp_path / "t", trace)
    back = read_trace(tmp_path / "t")
    assert back.origin == trace.origin
    for name in ("edges", "inner_nodes", "entries"):
        assert np.array_equal(getattr(back, name), getattr(trace, name))
    for left, right in zip(back.workers, trace.workers, strict=True):
        for field in fields(WorkerAccess):
            got, wanted = getattr(left, field.name), getattr(right, field.name)
            assert np.array_equal(got, wanted)
            assert got.dtype == wanted.dtype
            assert not got.flags.writeable


def test_a_replay_writes_the_same_bytes(small: Any, trace: AccessTrace, tmp_path: Path) -> None:
    again = record_trace(small.parts, small.owners, sampler="vr", epsilon=0.2, iterations=5, seed=3)
    assert write_trace(tmp_path / "a", trace) == write_trace(tmp_path / "b", again)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_parts_without_a_boundary_are_kept(line: Any, tmp_path: Path) -> None:
    whole = line.parts[0]
    trace = record_trace(line.parts, line.owners, sampler="uniform", epsilon=0.5, iterations=2, seed=0)
    write_trace(tmp_path / "t", trace)
    assert read_trace(tmp_path / "t").workers[0].boundary_nodes == whole.boundary_nodes == 1


def test_truncated_and_altered_files_are_refused_wherever_it_is(trace: AccessTrace, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_trace(path, trace)
    whole = path.read_bytes()
    for size in (0, 10, 100, len(whole) // 2, len(whole) - 64):
        path.write_bytes(whole[:size])
        with pytest.raises(FileError, match=str(path)):
            read_trace(path)
    stored = read_sections_bytes(whole)
    for position in stored:
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(FileError, match=r"altered|not a gcnsim file|truncated"):
            read_trace(path)


def read_sections_bytes(whole: bytes) -> list[int]:
    """Positions in the magic, the header and the payload, but not in the padding between sections."""
    header = int.from_bytes(whole[8:16], "little")
    start = -(-(48 + header) // 64) * 64
    return [0, 9, 20, 60, 48 + header // 2, start, start + 8]


def contradictions() -> list[tuple[str, Any, str]]:
    return [
        ("edges", lambda a: a[:, :2], "'edges' has shape"),
        ("edges", lambda a: a + 10**6, "more edges than"),
        ("edges", lambda a: a.astype("<i4"), "'edges' is int32"),
        ("entries", lambda a: a[:-1], "'entries' is"),
        ("worker1.bits", lambda a: a[:-1], "'worker1.bits' is"),
        ("worker1.bits", lambda a: a | 128, "beyond the last"),
        (
            "worker1.inclusion",
            lambda a: a + 1,
            "inclusion'\\[0\\] is .*; allowed: a number of at least 0",
        ),
        ("worker2.boundary_ptr", lambda a: a[::-1], "does not ascend"),
        ("inner_nodes", lambda a: -a, r"section 'inner_nodes'\[0\] is -.*; allowed: a whole number of at least 1"),
        ("inner_nodes", lambda a: a * 0, "is 0; allowed"),
        ("inner_nodes", lambda a: a * 0 + 1, "boundary_ptr' has more rows of a worker than 'inner_nodes' it has"),
        ("inner_nodes", lambda a: a + 2**62, "at most 1e\\+15"),
        ("entries", lambda a: a + 2**62, "section 'entries'"),
        ("worker3.boundary_degree", lambda a: a[1:], "'worker3.boundary_degree' is"),
    ]


@pytest.mark.parametrize(("name", "change", "message"), contradictions())
def test_a_file_that_contradicts_itself_is_refused(
    trace: AccessTrace, tmp_path: Path, name: str, change: Any, message: str
) -> None:
    path = tmp_path / "t"
    write_trace(path, trace)
    stored = read_sections(path, kind="trace", version=VERSION)
    assert trace.workers[1].boundary_nodes % 8, "the test of the last byte needs unused bits"
    arrays = dict(stored.arrays) | {name: change(stored.arrays[name])}
    write_sections(path, kind="trace", version=VERSION, meta=stored.meta, arrays=arrays)
    with pytest.raises(FileError, match=message):
        read_trace(path)


@pytest.mark.parametrize(
    "change", [{"parts": 0}, {"parts": True}, {"parts": "4"}, {"origin": None}, {"origin": {"seed": 1}}]
)
def test_incomplete_facts_are_refused(trace: AccessTrace, tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "t"
    write_trace(path, trace)
    stored = read_sections(path, kind="trace", version=VERSION)
    meta = dict(stored.meta) | change
    write_sections(path, kind="trace", version=VERSION, meta=meta, arrays=stored.arrays)
    with pytest.raises(FileError, match=next(iter(change))):
        read_trace(path)


def test_wrong_types_and_missing_sections_are_refused(trace: AccessTrace, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_trace(path, trace)
    stored = read_sections(path, kind="trace", version=VERSION)
    origin = dict(stored.meta["origin"]) | {"epsilon": "much"}
    meta = dict(stored.meta) | {"origin": origin}
    write_sections(path, kind="trace", version=VERSION, meta=meta, arrays=stored.arrays)
    with pytest.raises(FileError, match=r"origin\.epsilon is 'much', wanted float"):
        read_trace(path)
    arrays = {name: array for name, array in stored.arrays.items() if name != "worker0.bits"}
    write_sections(path, kind="trace", version=VERSION, meta=stored.meta, arrays=arrays)
    with pytest.raises(FileError, match=r"'worker0\.bits' is missing"):
        read_trace(path)


def test_a_trace_that_says_more_is_read(trace: AccessTrace, tmp_path: Path) -> None:
    write_trace(tmp_path / "new", trace)
    stored = read_sections(tmp_path / "new", kind="trace", version=VERSION)
    arrays = dict(stored.arrays) | {f"worker{rank}.reuse": np.zeros((8, 2)) for rank in range(trace.parts)}
    write_sections(tmp_path / "old", kind="trace", version=OLDER, meta=stored.meta, arrays=arrays)
    old = read_trace(tmp_path / "old")
    assert old.origin == trace.origin
    assert all(np.array_equal(a.bits, b.bits) for a, b in zip(old.workers, trace.workers, strict=True))
