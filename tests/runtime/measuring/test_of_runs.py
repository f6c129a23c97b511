"""`python -m runtime.measure --runs`: what recorded runs trained is measured, each part once."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcnsim.core.parquet import read_parquet_table
from runtime.measure import main
from runtime.measuring.document import KEY
from tests.runtime.conftest import Case
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import worked


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """In a folder of its own; memory and signals of the tests' process stay as they are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("runtime.measuring.workload.disable_malloc_trim", lambda: False)
    old = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, old)


def test_what_recorded_runs_trained_is_measured_once(crew: Crew, case: Case, tmp_path: Path) -> None:
    given = ["--graph", str(case.path), "--partition-method", "random", "--hidden", "8", "--threads", "1"]
    given += ["--iterations", "8", "--workers", "2", "--quiet"]
    for name, words in {"a": [], "b": ["--seed", "0"], "c": ["--method", "pipegcn"]}.items():
        trace = str(tmp_path / "runs" / name / "access.trace")
        crew.run(2, worked, [*given, "--out", f"runs/{name}", "--save-trace", trace, *words], str(tmp_path))
    assert main(["--runs", "runs", "--seconds", "0.4", "--quiet"]) == 0
    (path,) = (tmp_path / "measured").iterdir()
    head = json.loads(read_parquet_table(path).schema.metadata[KEY.encode()])
    assert [setting["method"] for setting in head["settings"]] == ["full-graph", "pipegcn"]
    before = path.stat().st_mtime_ns
    assert main(["--runs", "runs/a", "--runs", "runs/b", "--runs", "runs/c", "--seconds", "0.4", "--quiet"]) == 0
    assert path.stat().st_mtime_ns == before, "what is there is not measured again"
