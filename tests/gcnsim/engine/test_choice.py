"""Which engine answers: the compiled one from its file, and without noise the reference wherever that cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from mmap import mmap
from pathlib import Path

import pytest

from gcnsim.cli import main
from gcnsim.core.errors import ScenarioError
from gcnsim.core.processes import parallel_map
from gcnsim.engine import choice, compile_now, engine, simulate
from gcnsim.engine.kernel import store
from tests.cases import Case, method


@pytest.fixture(scope="module")
def compiled() -> bytes:
    """The file of the compiled kernel; made first where it is not."""
    problem = compile_now()
    assert problem is None, problem
    return store.path().read_bytes()


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder, and nothing known of engines, nor simulated."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.setattr(choice, "_simulated", mmap(-1, 1))
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
    started = listened(monkeypatch)
    choice._simulated[0] = 1
    choice.compile_in_background()
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
    choice._simulated[0] = 1
    choice.compile_in_background()
    assert capsys.readouterr() == ("", "")


def listened(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of processes that are left behind from now on; none is started."""
    started: list[list[str]] = []

    class Started:
        def __init__(self, command: list[str], **options: object) -> None:
            assert options["start_new_session"] is True
            started.append(command)

    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.delenv(choice.IN_BACKGROUND)
    return started


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["doctor"], 0), (["what-if", "--help"], 0), (["what-if", "--device", "abacus"], 2)],
)
def test_a_command_that_simulates_nothing_leaves_no_process_behind(
    cache: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int
) -> None:
    started = listened(monkeypatch)
    assert main(arguments) == code
    assert started == []


def test_a_question_that_simulates_leaves_one_behind(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = listened(monkeypatch)
    assert main(["what-if", "--gpus", "2", "--method", "full-graph"]) == 0
    assert [command[1:] for command in started] == [["-m", "gcnsim.engine.kernel.background"]]


@pytest.mark.parametrize("forked", [False, True])
def test_a_process_is_left_behind_by_what_simulated_even_in_another_process(
    cache: Path, monkeypatch: pytest.MonkeyPatch, facts: Callable[..., Case], forked: bool
) -> None:
    schedule = method("full-graph")(facts())
    started = listened(monkeypatch)
    parallel_map(lambda iterations: simulate(schedule, iterations).finished_ops, [1, 2], 2 if forked else 1)
    choice.compile_in_background()
    assert [command[1:] for command in started] == [["-m", "gcnsim.engine.kernel.background"]]


def test_none_is_left_behind_where_that_is_not_wanted(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = listened(monkeypatch)
    choice._simulated[0] = 1
    monkeypatch.setenv(choice.IN_BACKGROUND, "no")
    choice.compile_in_background()
    assert started == []


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
    with pytest.raises(ScenarioError, match=r"'fast' is not an engine; .*known: auto, compiled, reference"):
        engine()


def test_a_compiled_answer_is_the_same_bytes_and_never_imports_numba(compiled: bytes) -> None:
    code = (
        "import sys; from gcnsim.cli import main; "
        "code = main(['what-if', '--gpus', '2', '--method', 'psc-gcn,full-graph', '--iterations', '4', '--json']); "
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
