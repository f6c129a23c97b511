"""The registry is whole, the same seed makes the same inputs, and what was once found stays mended."""

from __future__ import annotations

import json
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from tests.fuzz.__main__ import CRASHERS
from tests.fuzz.doors import EXEMPT, ROOT, doors
from tests.fuzz.loop import HungError, _late, attempt, made, write
from tests.fuzz.readers import Files, Reader, registry

KEPT = sorted(path.parent for path in CRASHERS.glob("*/what.json"))


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Files]]:
    """The valid inputs of every reader."""
    home = tmp_path_factory.mktemp("seeds")
    return {reader.name: reader.seeds(home / str(index)) for index, reader in enumerate(registry().values())}


@pytest.fixture
def alarmed() -> Iterator[None]:
    """The alarm of the attack; warnings are errors as in every test."""
    old = signal.signal(signal.SIGALRM, _late)
    yield
    signal.signal(signal.SIGALRM, old)


def test_every_function_that_opens_or_parses_is_run_by_a_reader(seeds: dict[str, list[Files]], tmp_path: Path) -> None:
    """One that is not fails here: add a reader to `tests/fuzz`, or a reason to `tests/fuzz/doors.py`."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        codes.add(frame.f_code)

    for name, inputs in seeds.items():
        for index, files in enumerate(inputs):
            folder = tmp_path / name / str(index)
            folder.mkdir(parents=True)
            write(folder, files)
            usual = sys.gettrace()
            sys.settrace(note)
            try:
                registry()[name].read(folder)
            finally:
                sys.settrace(usual)
    ours = {code for code in codes if code.co_filename.startswith(f"{ROOT}/")}
    ran = {f"{code.co_filename.removeprefix(f'{ROOT}/')}:{code.co_qualname.replace('.<locals>', '')}" for code in ours}
    known = set(doors())
    assert known - ran - EXEMPT.keys() == set(), "neither run by a reader nor exempt"
    assert EXEMPT.keys() - known == set(), "exempt, but opens nothing any more"
    assert len(ran & known) > 70


def test_the_same_number_is_the_same_input_whatever_came_before(seeds: dict[str, list[Files]]) -> None:
    for name, reader in registry().items():
        first = [made(reader, seeds[name], 0, number) for number in range(3)]
        assert first == [made(reader, seeds[name], 0, number) for number in range(3)]
        assert len({str(item) for item in first}) > 1, name
        assert str(made(reader, seeds[name], 1, 0)) != str(first[0]), name


@pytest.mark.usefixtures("alarmed")
@pytest.mark.parametrize("name", sorted(registry()))
def test_some_inputs_are_read_or_refused_in_one_line(name: str, seeds: dict[str, list[Files]], tmp_path: Path) -> None:
    reader, place = registry()[name], tmp_path / "input"
    for number in range(12):
        which, files = made(reader, seeds[name], 7, number)
        place.mkdir(exist_ok=True)
        write(place, {**seeds[name][which], **files})
        assert attempt(reader, place) is None, number
        for path in sorted(place.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.usefixtures("alarmed")
@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.name)
def test_what_was_once_found_stays_mended(kept: Path, seeds: dict[str, list[Files]], tmp_path: Path) -> None:
    about = json.loads((kept / "what.json").read_text(encoding="utf-8"))
    reader = registry()[about["reader"]]
    write(tmp_path, seeds[reader.name][about["input"]])
    files = {
        path.relative_to(kept / "files").as_posix(): path for path in (kept / "files").rglob("*") if path.is_file()
    }
    assert files
    write(tmp_path, {name: path.read_bytes() for name, path in files.items()})
    assert attempt(reader, tmp_path) is None, about["was"]


def _reader(read: Any) -> Reader:
    return Reader("toy", lambda home: None, read)


def _raises(error: BaseException) -> Any:
    def read(folder: Path) -> None:
        raise error

    return read


@pytest.mark.usefixtures("alarmed")
def test_whatever_is_not_one_line_of_ours_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gcnsim.core.errors import FileError

    assert attempt(_reader(lambda folder: 1), tmp_path) is None
    assert attempt(_reader(_raises(FileError("x: is wrong"))), tmp_path) is None
    for error in (ValueError("x"), MemoryError(), RecursionError(), KeyError("x"), HungError()):
        assert str(attempt(_reader(_raises(error)), tmp_path)).startswith(type(error).__name__)
    assert "not one line" in str(attempt(_reader(_raises(FileError(""))), tmp_path))
    assert str(attempt(_reader(lambda folder: warnings.warn("x", stacklevel=1)), tmp_path)).startswith("UserWarning")
    monkeypatch.setattr("tests.fuzz.loop.ALARM_S", 0.05)

    def hangs(folder: Path) -> None:
        while True:
            pass

    assert str(attempt(_reader(hangs), tmp_path)).startswith("HungError")
