"""Which measured times an emulated run takes, and what is refused in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.records.compute_facts import STEP, OpKey, placed
from gcnsim.timeline import Direction, OpKind
from runtime.accelerator.measured_file import measured_setting, refuse_other_graph
from runtime.emulate.command import main
from runtime.methods import method_type
from runtime.options import Options
from tests.measured_files import measured_file, write_graph


def options(method: str = "full-graph", workers: int = 2, hidden: int = 8, **knobs: Any) -> Options:
    """Of the run that is waited for."""
    settled = method_type(method).settled(knobs)
    return Options(method=method, knobs=settled, workers=workers, hidden=hidden)


def knobs(method: str, **given: Any) -> dict[str, Any]:
    """As a measurement writes them."""
    found: dict[str, Any] = options(method, **given).asdict()["knobs"]
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rates = [("psc-gcn", knobs("psc-gcn", epsilon=rate, cache=cache)) for rate, cache in ((0.1, "0%"), (0.3, "20%"))]
    settings = [("full-graph", knobs("full-graph")), *rates, ("psc-gcn", knobs("psc-gcn", epsilon=0.3))]
    return measured_file(tmp_path, write_graph(tmp_path), 2, settings)


def test_staleness_and_cache_are_free_and_the_nearest_cache_is_taken(file: Path) -> None:
    found = measured_setting(str(file), "t4", options("psc-gcn", epsilon=0.3, tau=2, cache="20%"))
    assert (found.method, found.knobs["epsilon"], found.knobs["cache"]) == ("psc-gcn", 0.3, "20%")
    assert measured_setting(str(file), "t4", options("psc-gcn", epsilon=0.3)).knobs["cache"] == "0%"
    assert sorted(found.parts) == [0, 1]


@pytest.mark.parametrize(
    ("device", "asked", "words"),
    [
        ("a100", options(), "was measured on Tesla T4, not on --accelerator a100; allowed: --accelerator t4"),
        ("t4", options(workers=3), "has no times of the graph in 3 parts; measured: 2 parts; measure it: python -m"),
        ("t4", options(hidden=64), r"has no times of --hidden 64; measured: 8; measure it: .* --hidden 64"),
        ("t4", options("pipegcn"), r"has no times of pipegcn.*; measured: full-graph; psc-gcn \(epsilon 0.1, "),
        ("t4", options("psc-gcn", epsilon=0.2), r"has no times of psc-gcn \(epsilon 0.2, .* --epsilon 0.2"),
    ],
)
def test_what_was_not_measured_is_refused_with_the_command(file: Path, device: str, asked: Options, words: str) -> None:
    with pytest.raises(ScenarioError, match=words) as caught:
        measured_setting(str(file), device, asked)
    assert str(caught.value).startswith(f"--measured-compute: {file} ")
    assert "\n" not in str(caught.value)


def test_another_graph_or_partition_is_refused(file: Path) -> None:
    with pytest.raises(ScenarioError, match=r"has no times of the graph of hash abcdef123456; measured: that of hash"):
        refuse_other_graph(str(file), options(), "abcdef1234567890", "")


def test_times_of_a_core_stand_for_no_gpu(tmp_path: Path) -> None:
    core = measured_file(tmp_path, write_graph(tmp_path), 2, device={"kind": "cpu", "name": "a core"})
    with pytest.raises(ScenarioError, match="was measured on a core, not on --accelerator t4; allowed: times of a GPU"):
        measured_setting(str(core), "t4", options())


def test_the_command_line_refuses_before_anything_is_made(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--hosts", "2", "--bandwidth", "10Gbps", "--measured-compute", str(file)]
    assert main(words) == 2
    assert "--measured-compute: " in (err := capsys.readouterr().err)
    assert "needs --accelerator; allowed: with it only" in err
    assert main([*words, "--accelerator", "t4", "--", "--hidden", "16"]) == 2
    done = capsys.readouterr()
    assert f"--measured-compute: {file} has no times of --hidden 16; measured: 8" in done.err
    assert (done.err.count("\n"), done.out) == (1, "")


def test_what_has_no_operation_belongs_to_the_map_of_its_layer_or_to_the_step() -> None:
    update = OpKey(OpKind.UPDATE, 1, Direction.FORWARD)
    pooled, loaded = OpKey(OpKind.AGGREGATE, 1, Direction.FORWARD), OpKey(OpKind.GATHER, -1, Direction.NONE)
    seconds = {update: np.array([1.0, 2.0]), pooled: np.array([0.5, 0.5]), loaded: np.array([3.0, 4.0])}
    found = placed(seconds, {update, STEP})
    assert {key: values.tolist() for key, values in found.items()} == {update: [1.5, 2.5], STEP: [3.0, 4.0]}
