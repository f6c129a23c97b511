"""The files for those who carry the project on say the same as the project itself."""

from __future__ import annotations

import re
import tarfile
import tomllib
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

import gcnsim
from gcnsim.report.page.templates import BUNDLE
from tests.building import ROOT, built, tracked


def _yaml(name: str) -> dict[Any, Any]:
    found = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def _recipe(target: str) -> list[str]:
    """The commands of a target of the Makefile, as they are run."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    search = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    assert search is not None
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in search[1].splitlines()]


def test_a_release_has_one_version_and_one_date() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, second = re.findall(r"^## (.+)$", changes, re.MULTILINE)[:2]
    citation = _yaml("CITATION.cff")
    assert first == "[Unreleased]"
    assert second == f"[{citation['version']}] - {citation['date-released']}"
    assert project["version"] == gcnsim.__version__ == citation["version"]
    assert isinstance(citation["date-released"], date)
    assert citation["license"] == project["license"].partition(" AND ")[0], "the project's own, before its parts'"


def test_the_licence_names_those_of_the_bundle() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == BUNDLE.licence
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in project["license-files"]]
    for title in ("MIT License", "BSD 3-Clause License", "ISC License"):
        assert any(title in text for text in texts)


def test_the_citation_names_the_project_and_no_people() -> None:
    citation = _yaml("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert [set(author) for author in citation["authors"]] == [{"name"}]


def test_a_commit_is_checked_by_what_make_check_runs() -> None:
    (local,) = _yaml(".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    assert [hook["entry"] for hook in local["hooks"]] == _recipe("check")
    assert all(hook["language"] == "system" and hook["always_run"] for hook in local["hooks"])
    assert not any(hook["pass_filenames"] for hook in local["hooks"])


def test_hosted_ci_runs_what_everybody_can_run_and_may_only_read() -> None:
    workflow = _yaml(".github/workflows/ci.yml")
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert [step["run"] for step in steps if "run" in step] == [".ci/run"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert workflow["permissions"] == {"contents": "read"}
    python = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    assert [step["with"]["python-version"] for step in steps if "setup-python" in step.get("uses", "")] == [
        python.removeprefix(">=")
    ]


@pytest.mark.slow  # copies and packs everything: some 10 s each
def test_the_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    with zipfile.ZipFile(built(tmp_path, "build_wheel")) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == {name for name in tracked() if name.split("/")[0] in ("gcnsim", "runtime")}


@pytest.mark.slow
def test_the_source_archive_is_a_checkout(tmp_path: Path) -> None:
    with tarfile.open(built(tmp_path, "build_sdist")) as archive:
        held = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert tracked() - held == {".gitignore"}
