"""The sets of other systems and kernels: what is held out, what is listed, what becomes of the figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.yaml_files import read_yaml
from gcnsim.records.calibration import write_calibration
from studies.validate import RULE, refusals, was_quiet
from studies.validation_runs import NO_NETWORK, planned
from studies.validation_tables import COMMITTED, KERNELS, SYSTEMS, by_method
from tests.gcnsim.evidence.conftest import runs_in
from tests.gcnsim.evidence.made_calibration import calibration


def rule() -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(RULE)
    return found


def test_forty_configurations_are_held_out_on_graphs_that_no_calibration_saw() -> None:
    runs = planned(rule(), SYSTEMS)
    seen, held_out = [run for run in runs if run.calibration], [run for run in runs if not run.calibration]
    assert len({(run.graph, run.hosts, run.workers_per_host, run.bandwidth, run.args) for run in held_out}) >= 40
    assert {run.graph for run in held_out} == {"coauthor_phy", "generated"}
    assert {run.graph for run in seen}.isdisjoint({run.graph for run in held_out})
    times = rule()["systems"]["calibrations"]
    assert [run.args for run in seen] == times * [tuple(entry["args"]) for entry in rule()["calibration"]]
    assert len({run.name for run in runs}) == len(runs)


def test_nothing_that_the_committed_set_trains_is_trained_again() -> None:
    known = {run.args for run in planned(rule(), COMMITTED)}
    assert known.isdisjoint({run.args for run in planned(rule(), SYSTEMS) if not run.calibration})


def test_what_keeps_the_graph_on_one_server_needs_no_network() -> None:
    alone = {tuple(item) for item in rule()["systems"]["alone"]}
    for run in planned(rule(), SYSTEMS):
        assert (run.args in alone) == (run.hosts == 1) == (run.bandwidth == NO_NETWORK)


def test_other_kernels_are_those_of_every_run_that_calibrates_or_is_held_out() -> None:
    words = tuple(rule()[KERNELS]["with"])
    assert words == ("--aggregator", "numba")
    runs = planned(rule(), KERNELS)
    assert {run.args[-2:] for run in runs} == {words}
    assert {run.graph for run in runs if run.calibration}.isdisjoint({run.graph for run in runs if not run.calibration})
    rows = [{"run": run.name, "error": 0.5} for run in runs if not run.calibration]
    lines = by_method(rule()[KERNELS], runs, rows, {}).splitlines()
    assert [line.split(" | ")[1] for line in lines[2:]] == ["4"] * len(rule()[KERNELS]["methods"])


def test_a_draw_decides_the_bandwidths_and_repeats_itself() -> None:
    other = rule()
    other["systems"]["draw"] += 1
    first, again, changed = ([run.bandwidth for run in planned(entry, SYSTEMS)] for entry in (rule(), rule(), other))
    assert first == again
    assert first != changed


def test_what_is_not_modelled_is_listed_with_its_refusal(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    write_run = runs_in(tmp_path)
    runs = [run for run in planned(rule(), SYSTEMS) if not run.calibration][:2]
    write_run(f"runs/{runs[0].name}")
    write_run(f"runs/{runs[1].name}", dtype="float64")
    refused = refusals(runs, tmp_path)
    assert list(refused) == [runs[1]]
    assert refused[runs[1]].startswith("trained with dtype float64")
    rows = [{"run": str(tmp_path / "runs" / runs[0].name), "error": -0.1}]
    lines = by_method(rule()[SYSTEMS], planned(rule(), SYSTEMS), rows, refused).splitlines()
    methods = len(rule()["systems"]["methods"]) + len(rule()["systems"]["alone"])
    assert len(lines) == 2 + methods
    assert f"| `{' '.join(runs[0].args)}` | 1 | 10.0 % | 10.0 % | -10.0 % |" in lines
    assert any(line.startswith(f"| `{' '.join(runs[1].args)}` | 0 | trained with dtype") for line in lines)
    assert sum("not made" in line for line in lines) == methods - 2


@pytest.mark.parametrize(
    ("spread", "quiet", "message"),
    [
        (0.03, True, "quiet   calibrating runs of one configuration differ by 3.0 % (standard deviation)"),
        (0.21, False, "NOT JUDGED: calibrating runs of one configuration differ by 21.0 % (standard deviation)"),
        (None, False, "NOT JUDGED: calibrating runs of one configuration are not repeated"),
    ],
)
def test_a_draw_is_judged_only_where_the_calibrating_runs_repeat_themselves(
    spread: float | None, quiet: bool, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "calibration.json"
    write_calibration(path, replace(calibration(), spread=spread))
    assert was_quiet(path, 0.05) == quiet
    assert capsys.readouterr().out == f"{message}; a quiet machine: at most 5 %\n"
