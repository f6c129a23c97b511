"""No command replaces what it reads."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from gcnsim.cli import main
from gcnsim.cli.outputs import check_folder, check_outputs, show_and_write
from gcnsim.core.errors import FileError
from gcnsim.scenario.load import FILE_FIELDS, describe_schema
from tests.gcnsim.cli.conftest import RING, Refused


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of each kind that commands read."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "g.txt").write_text(RING)
    (folder / "degrees.txt").write_text("2\n2\n1\n1\n")
    (folder / "measured.json").write_text("{}")
    (folder / "s.yaml").write_text("schema: gcnsim.scenario/1\ncluster: {gpus: 2}\nworkload: {graph: g.npz}\n")
    (folder / "run").mkdir()
    (folder / "run" / "run.json").write_text("{}")
    with chdir(folder):
        for words in (
            "graph convert g.txt g.npz",
            "graph partition g.npz --parts 2 --out g.part",
            "trace record g.npz --partition g.part --iterations 2 --out g.trace",
        ):
            assert main(words.split()) == 0
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to work in, with links to its graph."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.npz").symlink_to("g.npz")
    (tmp_path / "hard.npz").hardlink_to("g.npz")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("trace record g.npz --parts 3 --iterations 2 --out g.npz", "g.npz"),
        ("trace record g.npz --parts 3 --iterations 2 --out link.npz", "link.npz"),
        ("trace record link.npz --parts 3 --iterations 2 --out g.npz", "g.npz"),
        ("trace record g.npz --parts 3 --iterations 2 --out hard.npz", "hard.npz"),
        ("trace record g.npz --partition g.part --out ./g.part", "./g.part"),
        ("trace record g.npz --partition g.part --norms g.trace --out g.trace", "g.trace"),
        ("trace profile g.npz --partition g.part --out g.part", "g.part"),
        ("trace cache-curve g.trace --csv g.trace", "g.trace"),
        ("trace cache-curve g.trace --html g.trace", "g.trace"),
        ("graph partition g.npz --parts 2 --out g.npz", "g.npz"),
        ("graph convert g.txt g.txt", "g.txt"),
        ("what-if --graph g.npz --gpus 2 --csv link.npz", "link.npz"),
        ("what-if --gpus 2 --calibration measured.json --html measured.json", "measured.json"),
        ("what-if --gpus 2 --runs run --timeline run/run.json", "run/run.json"),
        ("what-if --gpus 2 --set workload.graph='g.npz' --csv g.npz", "g.npz"),
        ("simulate s.yaml --timeline s.yaml", "s.yaml"),
        ("simulate s.yaml --timeline g.npz", "g.npz"),
        ("simulate s.yaml --set partition.file=g.part --timeline g.part", "g.part"),
        ("compare s.yaml s.yaml --json-out g.npz", "g.npz"),
        ("compare measured.json#1 s.yaml --json-out measured.json", "measured.json"),
        ("calibrate measured.json --out measured.json", "measured.json"),
        ("calibrate measured.json --runs run --out run/run.json", "run/run.json"),
        ("validate run --json-out run/run.json", "run/run.json"),
        ("reproduce --published run --csv run/run.json", "run/run.json"),
    ],
)
def test_an_input_is_never_replaced(words: str, named: str, place: Path, refused: Refused) -> None:
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    line = refused(*words.split())
    assert line.startswith(f"gcnsim: {named}: ")
    assert "which this command reads" in line or "is read by this command" in line
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_the_folder_of_a_result_keeps_its_scenario(place: Path, refused: Refused) -> None:
    (place / "out").mkdir()
    (place / "out" / "result.json").symlink_to(place / "s.yaml")
    assert "out/result.json: is read by this command" in refused("simulate", "s.yaml", "--out", "out")


def test_other_files_are_replaced_and_new_ones_go_into_a_folder_that_is_read(place: Path) -> None:
    check_outputs("g.npz", "run", None, "absent", csv="g.part", html="run/new.html")
    check_outputs("g.npz", csv="/dev/null")
    with pytest.raises(FileError, match=r"g\.part: given to both --csv and --json-out; allowed: different files"):
        check_outputs(csv="g.part", json_out="g.part")


FULL = "/dev/full"
"""A device that is always full."""


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("what-if --graph g.npz --gpus 2 --iterations 2 --method full-graph --csv", "full-graph"),
        ("what-if --graph g.npz --gpus 2 --iterations 2 --method full-graph --timeline", "full-graph"),
        ("simulate s.yaml --timeline", "psc-gcn"),
        ("compare s.yaml s.yaml --json-out", "iteration"),
        ("trace cache-curve g.trace --size 10% --csv", "hit"),
    ],
)
def test_a_disk_that_is_full_at_the_end_does_not_cost_the_answer(
    words: str, shown: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "s.yaml").write_text(
        "schema: gcnsim.scenario/1\ncluster: {gpus: 2}\nrun: {iterations: 2}\n"
        "workload: {graph: g.npz, features: 8, classes: 2}\n"
    )
    capsys.readouterr()
    assert main([*words.split(), FULL]) == 2
    captured = capsys.readouterr()
    assert shown in captured.out
    assert captured.err == f"gcnsim: {FULL}: cannot be written: No space left on device\n"


def test_every_file_is_written_though_one_cannot_be(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FileError, match="first: gone; third: gone"):
        show_and_write("shown", failing("first"), lambda: Path("second").touch(), failing("third"), notes=["mind this"])
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("shown\n", "note: mind this\n")
    assert Path("second").exists()


def failing(name: str) -> Callable[[], object]:
    def write() -> None:
        raise FileError(f"{name}: gone")

    return write


def test_files_are_written_though_standard_output_cannot_be(place: Path) -> None:
    """It is full, or its reader has left."""
    command = f"{sys.executable} -m gcnsim trace cache-curve g.trace --size 10% --csv"
    full = subprocess.run(["sh", "-c", f"{command} a.csv > {FULL}"], capture_output=True, text=True, check=False)
    assert full.returncode == 2
    assert full.stderr == "gcnsim: standard output: cannot be written: No space left on device\n"
    left = subprocess.run(["sh", "-c", f"{command} b.csv | true"], capture_output=True, text=True, check=False)
    assert (left.returncode, left.stderr) == (0, "")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes() != b""


def test_a_name_too_long_to_be_written_beside_is_found_before_the_work(place: Path) -> None:
    with pytest.raises(FileError, match="File name too long"):
        check_outputs(csv="x" * 250)


def test_a_folder_that_takes_no_files_is_found_before_the_work(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever permissions say: full, over its quota, or read-only."""

    def refused(*_: object, **__: object) -> tuple[int, str]:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(tempfile, "mkstemp", refused)
    with pytest.raises(FileError, match="cannot be written: Disk quota exceeded"):
        check_outputs(csv="new.csv")
    with pytest.raises(FileError, match="cannot be written: Disk quota exceeded"):
        check_folder("out", "run")


def test_the_folder_of_a_result_is_looked_at_before_the_work(place: Path, refused: Refused) -> None:
    (place / "run" / "result.json").mkdir()
    for out, text in (("none/there", "No such file"), ("run", "is a directory"), ("g.npz", "not a folder")):
        assert text in refused("simulate", "s.yaml", "--out", out)


def test_every_field_that_names_a_file_is_known() -> None:
    assert {path for path, _, allowed, _, _ in describe_schema() if allowed.startswith("a file name")} == {*FILE_FIELDS}
