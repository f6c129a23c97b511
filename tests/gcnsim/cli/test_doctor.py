from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gcnsim.cli import doctor, main


def test_a_working_installation_is_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert report["schema"] == "gcnsim.doctor/1"
    assert report["healthy"] is True
    assert all(entry["version"] and entry["problem"] is None for entry in report["core"].values())
    assert set(report["extras"]) == {"runtime", "dgl", "caches", "dask", "ray", "recommend", "dashboard", "dev"}


def test_extras_are_looked_up_but_never_imported() -> None:
    script = (
        "import sys; from gcnsim.cli import main; main(['doctor']);"
        "sys.exit(any(name in sys.modules for name in ('torch', 'dgl', 'dash', 'sklearn')))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "adds: training and measuring" in run.stdout


def test_a_broken_core_dependency_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken_thing.py").write_text("raise ImportError('no\\nluck')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(doctor, "CORE", {"numpy": "numpy", "broken": "broken_thing", "absent": "absent_thing"})
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "cannot be imported: no luck" in out
    assert "missing: pip install absent" in out
    assert "a core dependency is broken" in out


def test_an_old_core_dependency_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CORE", {"click": "click"})
    monkeypatch.setattr(doctor, "_minimum_versions", lambda: {"click": "999.1"})
    report = doctor.examine()
    assert report["core"]["click"]["problem"] == "too old: 999.1 or later is needed"
    assert report["healthy"] is False


def test_a_missing_extra_says_what_it_would_add(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EXTRAS", {"extra": ("more", {"absent-thing": "absent_thing"})})
    text = doctor.render(doctor.examine())
    assert "missing absent-thing; adds: more" in text
    assert "pip install 'gcnsim[extra]'" in text


def test_every_dependency_of_ours_is_looked_at() -> None:
    assert set(doctor._minimum_versions()) == set(doctor.CORE)
    assert all(importlib.util.find_spec(module) for module in doctor.CORE.values())


def test_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GCNSIM_DATA", raising=False)
    assert "not set" in doctor.examine()["data"]["state"]
    monkeypatch.setenv("GCNSIM_DATA", str(tmp_path / "absent"))
    assert "is not a folder" in doctor.examine()["data"]["state"]
    (tmp_path / "g.npz").write_bytes(b"")
    monkeypatch.setenv("GCNSIM_DATA", str(tmp_path))
    assert doctor.examine()["data"]["state"].endswith("1 graphs (g)")


def test_an_engine_whose_dependencies_are_missing_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcnsim.engine", None)
    report = doctor.examine()
    assert report["engine"]["name"] == "none"
    assert "gcnsim.engine" in report["engine"]["why"]
