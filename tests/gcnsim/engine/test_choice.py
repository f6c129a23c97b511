"""Which engine answers: the compiled one from its file, and without noise the reference wherever that cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcnsim.cli import main
from gcnsim.engine import choice, compile_now, engine
from gcnsim.engine.kernel import store
from gcnsim.errors import ScenarioError


@pytest.fixture(scope="module")
def compiled() -> bytes:
    """The file of the compiled kernel; made first where it is not."""
    problem = compile_now()
    assert problem is None, problem
    return store.path().read_bytes()


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder, and nothing known of engines."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    choice._found.cache_clear()
    yield tmp_path / "gcnsim"
    choice._found.cache_clear()


def put(folder: Path, data: bytes) -> None:
    folder.mkdir()
    store.path().write_bytes(data)


def test_a_kept_kernel_is_used(compiled: bytes, cache: Path) -> None:
    put(cache, compiled)
    assert engine().name == "compiled"
    assert engine().why == str(store.path())


def test_without_one_the_reference_answers_and_says_how_to_compile(cache: Path) -> None:
    assert engine().kernel is None
    assert engine().why == "none is compiled yet; now: gcnsim doctor --compile"
    assert not cache.exists(), "looking writes nothing"


@pytest.mark.parametrize("damage", ["byte", "short", "empty", "foreign"])
def test_a_file_that_is_damaged_or_not_ours_is_ignored_and_made_again(
    compiled: bytes, cache: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    middle = len(compiled) // 2
    put(cache, {
        "byte": compiled[:middle] + bytes([compiled[middle] ^ 1]) + compiled[middle + 1 :],
        "short": compiled[:-9],
        "empty": b"",
        "foreign": b"something else" * 100,
    }[damage])  # fmt: skip
    assert engine().name == "reference"
    assert store.usable(store.path()) is not None
    monkeypatch.setattr("gcnsim.engine.kernel.machine_code.object_code", lambda: _parts(compiled, cache))
    assert compile_now() is None
    assert engine().name == "compiled"


def _parts(compiled: bytes, folder: Path) -> tuple[str, bytes]:
    """What compiling gives, of a kernel that is compiled."""
    good = folder / "good.bin"
    good.write_bytes(compiled)
    return store.read(good)


def test_a_kernel_for_another_processor_or_source_is_not_used(
    compiled: bytes, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cache, compiled)
    place = store.path()
    monkeypatch.setattr(store, "key", lambda: "0" * 64)
    with pytest.raises(store.UnusableError, match="compiled for something else"):
        store.read(place)


def test_a_kernel_that_gives_other_results_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcnsim.engine.kernel.machine_code.object_code", lambda: ("run", b"no object file"))
    problem = compile_now()
    assert problem is not None
    assert "does not work here" in problem
    assert [file.suffix for file in cache.iterdir() if file.name.startswith("kernel-")] == [".failed"]
    assert engine().name == "reference"
    assert "does not work here" in engine().why
    started: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **options: started.append(given))
    monkeypatch.delenv(choice.IN_BACKGROUND)
    choice.compile_later()
    assert started == [], "what failed is not tried again and again"


def test_a_compiler_that_fails_is_told(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> tuple[str, bytes]:
        raise ValueError("no such\ninstruction")

    monkeypatch.setattr("gcnsim.engine.kernel.machine_code.object_code", fails)
    assert compile_now() == "ValueError: no such instruction"


def test_where_nothing_can_be_kept_the_reference_answers(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.parent.joinpath("gcnsim").write_text("a file where the folder should be")
    problem = compile_now()
    assert problem is not None
    assert "cannot be written" in problem
    assert engine().name == "reference"
    choice.compile_later()
    assert capsys.readouterr() == ("", "")


def test_a_process_is_started_once_after_a_question_and_not_waited_for(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    class Started:
        def __init__(self, command: list[str], **options: object) -> None:
            assert options["start_new_session"] is True
            started.append(command)

    monkeypatch.setattr(subprocess, "Popen", Started)
    choice.compile_later()
    assert started == [], "tests are told not to"
    monkeypatch.delenv(choice.IN_BACKGROUND)
    choice.compile_later()
    assert [command[1:] for command in started] == [["-m", "gcnsim.engine.kernel.background"]]


def test_two_do_not_compile_at_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fcntl")
    cache.mkdir()
    monkeypatch.setattr(store, "_made", lambda: pytest.fail("a second one"))
    with store._alone(wait=False) as first:
        assert first
        assert store.make(wait=False) is None


def test_an_engine_may_be_chosen(compiled: bytes, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(cache, compiled)
    monkeypatch.setenv(choice.VARIABLE, "reference")
    assert engine() == (None, "GCNSIM_ENGINE is reference")
    monkeypatch.setenv(choice.VARIABLE, "compiled")
    assert engine().name == "compiled"
    monkeypatch.setenv(choice.VARIABLE, "fast")
    with pytest.raises(ScenarioError, match=r"'fast' is no engine; .*known: auto, compiled, reference"):
        engine()


def test_the_doctor_names_the_engine(compiled: bytes, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "engine: reference (none is compiled yet; now: gcnsim doctor --compile)" in capsys.readouterr().out
    put(cache, compiled)
    choice._found.cache_clear()
    assert main(["doctor", "--compile", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["engine"] == {"name": "compiled", "why": str(store.path())}


def test_a_compiled_answer_is_the_same_bytes_and_never_imports_numba(compiled: bytes) -> None:
    code = (
        "import sys; from gcnsim.cli import main; "
        "code = main(['what-if', '--gpus', '4', '--method', 'psc-gcn,full-graph', '--json']); "
        "sys.exit(code or 'numba' in sys.modules)"
    )
    answers = []
    for name in ("compiled", "reference"):
        environment = {**os.environ, choice.VARIABLE: name}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr.decode()
        answers.append(done.stdout)
    assert answers[0] == answers[1]
    assert len(answers[0]) > 1000
