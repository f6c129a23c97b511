"""The folder of a survey: whole runs only, hashes that hold, and no second survey of something else in it."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.records.run_files import Cluster, read_cluster
from runtime.survey import SurveyRequest, read_rule
from runtime.survey.folder import SurveyFolder, commands, note_failure

RULE = read_rule(Path(__file__).with_name("tiny.yaml"))
SERVER = {"cpu": "Xeon", "cores": 8, "memory_bytes": 2**35, "gpus": ["T4", "T4"]}
SURVEYED: dict[str, Any] = {
    "rule": RULE.sha256,
    "device": "cuda",
    "workers": 4,
    "servers": [SERVER, SERVER],
    "versions": {"gcnsim": "0.1.0", "torch": "2.13.0", "cuda": "12.4"},
    "bandwidth": None,
    "emulated": None,
}
CLUSTER = Cluster(2, 2, 1.25e9, 1.1e9)


def begun(path: Path, **changes: Any) -> SurveyFolder:
    return SurveyFolder(SurveyRequest(path, RULE, "cuda"), SURVEYED | changes)


def trained(folder: SurveyFolder, count: int) -> None:
    """Pretend that the first runs were."""
    for run in RULE.planned()[:count]:
        folder.begin(run)
        (folder.path / "unfinished" / run.name / "run.json").write_text("{}", encoding="utf-8")
        folder.admit(run, 2.5)


def test_runs_are_moved_in_as_a_whole_with_their_cluster(tmp_path: Path) -> None:
    folder = begun(tmp_path / "s")
    folder.measured(CLUSTER)
    run = RULE.planned()[0]
    folder.begin(run)
    assert not list((tmp_path / "s" / "runs").iterdir())
    trained(folder, 1)
    assert read_cluster(tmp_path / "s" / "runs" / run.name / "cluster.json") == CLUSTER
    assert folder.took == {run.name: 2.5}
    assert folder.dropped() == [item.name for item in RULE.planned()[1:]]


def test_a_closed_folder_says_all_and_its_hashes_hold(tmp_path: Path) -> None:
    path = tmp_path / "s"
    folder = begun(path)
    folder.measured(CLUSTER)
    trained(folder, 2)
    (path / "profile.json").write_text("{}", encoding="utf-8")
    (path / "graphs").mkdir()
    (path / "graphs" / "near.npz").write_bytes(b"made up")
    (path / "report.txt").write_text("not of the survey", encoding="utf-8")
    folder.begin(RULE.planned()[2])
    assert folder.close(90.0) == 1.5
    assert not (path / "unfinished").exists()
    lines = (path / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    assert sums == {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in sums}
    assert {"README.md", "survey.json", "rule.yaml", "profile.json", "runs/calibration-0/run.json"} < set(sums)
    assert "report.txt" not in sums
    assert not any(name.startswith("graphs/") for name in sums), "they stay, and what is sent can be checked"
    state = json.loads((path / "survey.json").read_text(encoding="utf-8"))
    assert (state["schema"], state["finished"], state["minutes"]) == ("gcnsim.survey/1", True, 1.5)
    assert state["dropped"] == ["held-out-0-m0-r1"]
    assert state["cluster"] == {
        "hosts": 2, "workers_per_host": 2, "bandwidth": 1.25e9, "measured": 1.1e9, "latency_s": 0.0,
    }  # fmt: skip


def test_the_readme_has_the_two_commands(tmp_path: Path) -> None:
    folder = begun(tmp_path / "s")
    folder.measured(CLUSTER)
    trained(folder, 2)
    folder.close(60.0)
    text = (tmp_path / "s" / "README.md").read_text(encoding="utf-8")
    lines = [shlex.split(line) for line in text.split("```sh\n")[1].split("```")[0].splitlines()]
    assert lines[0] == ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
    assert lines[1] == shlex.split("gcnsim calibrate profile.json --runs runs/calibration-0 --out calibration.json")
    assert lines[2] == shlex.split("gcnsim validate runs/held-out-* --calibration calibration.json --out report")
    assert "2 x 2 workers on cuda" in text
    assert "| 1 | Xeon | 8 | 32 GiB | T4, T4 |" in text
    assert "1.10 GB/s of payload were measured" in text
    assert "the link counts as 10000 Mbit/s" in text
    assert "held-out-0-m0-r1" in text.split("## Left out")[1]
    assert str(tmp_path) not in text
    assert text.split("```sh\n")[2].startswith("tar -czf s.tar.gz --exclude=graphs s\n```\n")
    assert "It does not contain names of servers, users and networks" in text


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("s", "(cd .. && python -m runtime.measure --runs s/runs --out s/measured)"),
        ("a/s", "(cd ../.. && python -m runtime.measure --runs a/s/runs --out a/s/measured)"),
        (".", "python -m runtime.measure --runs runs --out measured"),
        ("/somewhere/s", "python -m runtime.measure --runs runs --out measured"),
    ],
)
def test_parts_of_runs_on_cores_are_measured_where_the_survey_was_started(typed: str, line: str) -> None:
    found = commands(["calibration-0", "held-out-0-m0-r0"], Path(typed), "cpu")
    assert found[1] == line
    assert [command.endswith(" --measured-compute measured") for command in found[2:4]] == [True, True]
    assert not any("measure" in command for command in commands(["calibration-0"], Path(typed), "cuda"))


def test_a_run_that_failed_is_told_by_the_kind_of_its_error(tmp_path: Path) -> None:
    folder = begun(tmp_path / "s")
    folder.begin(RULE.planned()[1])
    # The cause, then what another worker saw of it.
    note_failure(tmp_path / "s", RULE.planned()[1], MemoryError("/home/somebody"))
    note_failure(tmp_path / "s", RULE.planned()[1], TimeoutError())
    again = begun(tmp_path / "s")
    assert again.failed == {"held-out-0-m0-r0": "MemoryError"}
    again.close(60.0)
    assert begun(tmp_path / "s").failed == again.failed
    assert "somebody" not in (tmp_path / "s" / "survey.json").read_text(encoding="utf-8")
    left = (tmp_path / "s" / "README.md").read_text(encoding="utf-8").split("## Left out")[1]
    assert left.strip().split("\n\n") == [
        "2 runs of the rule, because time was short or the survey was stopped: calibration-0, held-out-0-m0-r1.",
        "Failed: held-out-0-m0-r0 (MemoryError).",
    ]


def test_a_survey_that_knew_of_no_failures_goes_on(tmp_path: Path) -> None:
    begun(tmp_path / "s")
    path = tmp_path / "s" / "survey.json"
    state = json.loads(path.read_text(encoding="utf-8"))
    del state["failed"]
    path.write_text(json.dumps(state), encoding="utf-8")
    assert begun(tmp_path / "s").failed == {}


def test_a_survey_goes_on_where_it_was(tmp_path: Path) -> None:
    first = begun(tmp_path / "s")
    first.measured(CLUSTER)
    trained(first, 1)
    first.close(60.0)
    again = SurveyFolder(SurveyRequest(tmp_path / "s", RULE, "cuda"), SURVEYED)
    assert again.took == {"calibration-0": 2.5}
    assert (again.cluster, again.has_microbench) == (CLUSTER, False)
    assert again.close(60.0) == 2.0


@pytest.mark.parametrize(
    "changes", [{"rule": "0" * 64}, {"device": "cpu"}, {"servers": [SERVER]}, {"versions": {"gcnsim": "0.2.0"}}]
)
def test_a_survey_of_something_else_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    begun(tmp_path / "s")
    (name,) = changes
    with pytest.raises(ScenarioError, match=rf"^--out: .*/s: {name} was .*; allowed: the same, or a new folder$"):
        begun(tmp_path / "s", **changes)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "survey.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileError, match=r"json: has no schema; allowed: a new folder, or one that a survey wrote"):
        begun(tmp_path)
    (tmp_path / "survey.json").unlink()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(FileError, match=r"^--out: .*: holds files but no survey"):
        SurveyRequest(tmp_path, RULE).refuse()
    with pytest.raises(FileError, match=r"^--out: .*/file: cannot be used as a folder: Not a directory"):
        SurveyRequest(tmp_path / "file", RULE).refuse()
