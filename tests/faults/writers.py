"""Every command that writes a file, killed at random moments: what is there is whole, and it can be written again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gcnsim.core.json_files import parse_json, read_text
from gcnsim.evidence.difference import read_answer
from gcnsim.graph import load_graph
from gcnsim.graph.owners import read_partition
from gcnsim.planning.sweep_folder import open_folder
from gcnsim.records.calibration import read_calibration
from gcnsim.timeline.span import read_spans
from gcnsim.trace import read_trace
from gcnsim.trace.stored_profile import read_profile
from tests.faults.training import must
from tests.gcnsim.evidence.conftest import parts_measured, runs_in
from tests.gcnsim.evidence.made_calibration import write_measurements

ROOT: Final = Path(__file__).resolve().parents[2]
GCNSIM: Final = (sys.executable, "-m", "gcnsim")
LONGEST_S: Final = 300.0

SCENARIO: Final = "schema: gcnsim.scenario/1\ncluster: {gpus: 2, gpus_per_server: 1}\nrun: {iterations: 4}\n"

Read = Callable[[Path], object]


@dataclass(frozen=True, slots=True)
class Writer:
    """A command line of two parts. reads: what it writes, by name, and what reads it. steady: the same bytes always."""

    name: str
    asked: str
    reads: Mapping[str, Read]
    steady: bool = True

    @property
    def words(self) -> list[str]:
        """What follows `gcnsim`: the same command again replaces its files, or resumes a sweep."""
        again = "" if self.name == "sweep run" else "--overwrite"
        return f"{self.name} {self.asked} {again}".split()


def _table(path: Path) -> None:
    text = read_text(path)
    must(text.endswith("\n") and text.count("\n") > 1, f"{path.name} is cut off")


def _page(path: Path) -> None:
    must(read_text(path).rstrip().endswith("</html>"), f"{path.name} is cut off")


def _json(path: Path) -> object:
    return parse_json(read_text(path), path)


def _result(path: Path) -> object:
    return read_answer(str(path / "result.json"), "a"), read_spans(path / "spans.parquet")


def _report(path: Path) -> None:
    for item in path.iterdir():
        must(item.stat().st_size > 0, f"{item.name} is empty")


def _sweep(path: Path) -> object:
    return open_folder(path).table()


WRITERS: Final = (
    Writer("graph generate", "block --nodes 3000 --edges 20000 --out o.npz", {"o.npz": load_graph}),
    Writer("graph convert", "g.npz o.csv", {"o.csv": load_graph}),
    Writer("graph partition", "g.npz --parts 2 --out o.parts", {"o.parts": read_partition}),
    Writer("trace record", "g.npz --parts 2 --epsilon 0.3 --out o.trace", {"o.trace": read_trace}),
    Writer("trace profile", "g.npz --gpus 2 --out o.profile", {"o.profile": read_profile}),
    Writer("trace cache-curve", "t.trace --csv o.csv --html o.html", {"o.csv": _table, "o.html": _page}),
    Writer("calibrate", "m.json --out o.json", {"o.json": read_calibration}, steady=False),
    Writer(
        "simulate",
        "s.yaml --out o --html o.html --timeline t.json",
        {"o": _result, "o.html": _page, "t.json": _json},
    ),
    Writer("compare", "a.json a.json --json-out o.json --html o.html", {"o.json": _json, "o.html": _page}),
    Writer(
        "timeline",
        "run --measured-compute run-compute --out o.json --html o.html",
        {"o.json": _json, "o.html": _page},
    ),
    Writer("validate", "r --measured-compute r-compute --out o --json-out o.json", {"o": _report, "o.json": _json}),
    Writer("graph info", "n.csv --ids names --ids-map o.csv", {"o.csv": _table}),
    Writer("sweep best", "w --html o.html", {"o.html": _page}),
    Writer("sweep export", "w --to o.csv", {"o.csv": _table}),
    Writer(
        "what-if",
        "--gpus 2 --method pipegcn --csv o.csv --html o.html --timeline t.json",
        {"o.csv": _table, "o.html": _page, "t.json": _json},
    ),
    Writer("reproduce", "--paper sancus --csv o.csv", {"o.csv": _table}),
    Writer("sweep run", "--axis cluster.bandwidth=5Gbps,10Gbps,20Gbps --axis method.tau=0..2 --out o", {"o": _sweep}),
    Writer(
        "recommend",
        "--dataset reddit --device t4 --gpus 2,4 --out o.json --html o.html --csv o.csv",
        {"o.json": _json, "o.html": _page, "o.csv": _table},
    ),
)
"""Commands that train are killed in `cases`."""


def kill_writer(writer: Writer, home: Path, kills: int, seed: int) -> None:
    """Kill the command so often, at moments by `seed`. Raises BrokenError or GcnsimError for what is not whole."""
    home.mkdir(parents=True)
    _inputs(home)
    _killed(writer, home, home / "0", kills, random.Random(f"{seed}/{writer.name}"))


def _inputs(home: Path) -> None:
    (home / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    write_measurements(home / "m.json")
    (home / "n.csv").write_text("src,dst\na,b\nb,c\nc,a\n", encoding="utf-8")
    runs_in(home)("r")
    _measured(home, "r")
    words = (
        ("sweep", "run", "--axis", "cluster.bandwidth=5Gbps,10Gbps", "--set", "run.iterations=2", "--out", "w"),
        ("graph", "generate", "block", "--nodes", "3000", "--edges", "20000", "--out", "g.npz"),
        ("trace", "record", "g.npz", "--parts", "2", "--epsilon", "0.3", "--out", "t.trace"),
        ("simulate", "s.yaml", "--out", "a"),
    )
    for word in words:
        subprocess.run([*GCNSIM, *word], cwd=home, env=_env(), check=True, capture_output=True)
    (home / "a" / "result.json").rename(home / "a.json")
    train = ("runtime.train", "--workers", "2", "--iterations", "6", "--hidden", "8", "--threads", "1", "--out", "run")
    subprocess.run([sys.executable, "-m", *train], cwd=home, env=_env(), check=True, capture_output=True)
    _measured(home, "run")


def _measured(home: Path, run: str) -> None:
    """Compute times of a run, which a prediction of CPU cores needs."""
    place = home / f"{run}-compute"
    place.mkdir()
    parts_measured(place, home / run)


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "GCNSIM_COMPILE": "no"}


def _killed(writer: Writer, home: Path, folder: Path, kills: int, draw: random.Random) -> None:
    alone = _folder(home, folder / "alone")
    begun = time.monotonic()
    _run(writer, alone)
    lasted = time.monotonic() - begun
    place = _folder(home, folder / "killed")
    for _ in range(kills):
        process = subprocess.Popen([*GCNSIM, *writer.words], cwd=place, env=_env(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, process_group=0)  # fmt: skip
        time.sleep(lasted * (0.3 + 0.7 * draw.random()))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for name, read in writer.reads.items():
            if (place / name).exists() and not _unfinished(place / name):
                read(place / name)
    _run(writer, place)
    for name, read in writer.reads.items():
        read(place / name)
        must(
            not writer.steady or _bytes(place / name) == _bytes(alone / name),
            f"{name}: other bytes than one left alone",
        )
    left = [str(path.relative_to(place)) for path in place.rglob(".*.part")]
    must(not left, f"left behind: {left}")


def _unfinished(path: Path) -> bool:
    """A folder that has no file of its kind yet."""
    return path.is_dir() and not any((path / name).exists() for name in ("sweep.json", "spans.parquet"))


def _folder(home: Path, path: Path) -> Path:
    path.mkdir(parents=True)
    for item in home.iterdir():
        if not item.name.isdecimal():
            (path / item.name).symlink_to(item)
    return path


def _run(writer: Writer, place: Path) -> None:
    done = subprocess.run(
        [*GCNSIM, *writer.words], cwd=place, env=_env(), capture_output=True, text=True, timeout=LONGEST_S
    )
    must(done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-300:]}")


def _bytes(path: Path) -> dict[str, bytes]:
    """Of a file, or of the files in a folder."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file() and file.name != ".lock"}
