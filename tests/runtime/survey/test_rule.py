"""The rule of a survey: requests, graphs, what fits."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.graph import load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import split
from runtime.survey import ONE_WORKER, RULE, GeneratedGraph, SurveyRequest, read_rule
from runtime.survey.program import made_up, save
from runtime.survey.rule import PlannedRun, fitting

TINY = Path(__file__).with_name("tiny.yaml")


def test_the_rule_that_ships_holds_out_whole_settings() -> None:
    rule = read_rule(RULE)
    runs = rule.planned()
    requested = {run.name: SurveyRequest(Path("survey"), rule, "cuda").task(run).options for run in runs}
    seen = {(run.graph, requested[run.name].hidden) for run in runs if run.seen}
    held_out = {(run.graph, requested[run.name].hidden) for run in runs if not run.seen}
    assert seen.isdisjoint(held_out)
    assert {graph for graph, _ in held_out} == {graph for graph, _ in seen} == set(rule.graphs)
    hidden = [width for _, width in seen]
    assert all(min(hidden) < width < max(hidden) for _, width in held_out), "within what the calibration sees"
    assert sum(run.seen for run in runs) <= 6


def test_the_rule_that_ships_repeats_every_held_out_configuration() -> None:
    rule = read_rule(RULE)
    runs = [run for run in rule.planned() if not run.seen]
    counts = Counter((run.configuration, run.graph, run.args) for run in runs)
    assert len(counts) == len(rule.held_out) * len(rule.methods) >= 16
    assert set(counts.values()) == {rule.repeats}
    assert rule.repeats > rule.least_repeats >= 2


def test_the_rule_of_one_worker_holds_out_widths_within_what_the_calibration_sees() -> None:
    rule = read_rule(ONE_WORKER)
    runs = rule.planned()
    request = SurveyRequest(Path("survey"), rule, "cuda", workers=1)
    requested = {run.name: request.task(run).options for run in runs}
    assert {options.method for options in requested.values()} == {"full-graph"}, "nothing is exchanged"
    for of in ("hidden", "layers"):
        seen = {getattr(requested[run.name], of) for run in runs if run.seen}
        held_out = {getattr(requested[run.name], of) for run in runs if not run.seen}
        assert min(seen) <= min(held_out) <= max(held_out) <= max(seen)
    for of in ("model", "norm"):
        assert {getattr(requested[run.name], of) for run in runs if not run.seen} == {
            getattr(requested[run.name], of) for run in runs if run.seen
        }
    seen = {requested[run.name].hidden for run in runs if run.seen}
    assert seen.isdisjoint({requested[run.name].hidden for run in runs if not run.seen})
    counts = Counter(run.configuration for run in runs if not run.seen)
    assert len(counts) == 16
    assert set(counts.values()) == {3}


def test_rounds_come_one_after_another_each_in_its_own_order() -> None:
    rule = read_rule(RULE)
    runs = rule.planned()
    assert runs == read_rule(RULE).planned()
    assert [run.repeat for run in runs] == sorted(run.repeat for run in runs)
    assert all(run.seen for run in runs[: len(rule.calibration)])
    rounds = [[run.configuration for run in runs if not run.seen and run.repeat == index] for index in range(3)]
    assert [sorted(one) for one in rounds] == [sorted(rounds[0])] * 3
    assert rounds[0] != rounds[1]
    assert len({run.name for run in runs}) == len(runs)


def test_a_run_is_asked_of_training_in_its_own_folder(tmp_path: Path) -> None:
    survey_request = SurveyRequest(tmp_path / "s", read_rule(TINY), workers=4)
    task = survey_request.task(survey_request.rule.planned()[1])
    options = task.options
    assert (options.method, options.hidden, options.iterations, options.workers) == ("psc-gcn", 32, 8, 4)
    assert (options.threads, options.device, options.quiet) == (1, "cpu", True)
    assert options.graph == str(tmp_path / "s" / "graphs" / "near.npz")
    assert options.out == str(tmp_path / "s" / "unfinished" / "held-out-0-m0-r0")
    assert options.save_trace == f"{options.out}/access.trace"
    on_gpus = (
        SurveyRequest(tmp_path / "s", survey_request.rule, device="cuda").task(survey_request.rule.planned()[0]).options
    )
    assert (on_gpus.threads, on_gpus.device) == (None, "cuda")


def test_a_graph_may_be_one_that_the_servers_have(tmp_path: Path) -> None:
    path = tmp_path / "rule.yaml"
    text = TINY.read_text(encoding="utf-8").replace(
        "near: {nodes: {cpu: 300, cuda: 300}, degree: 8, far: 5%, features: 16, classes: 4}",
        "near: {args: [--dataset, amazon_cs, --feature-dim, 16]}",
    )
    path.write_text(text, encoding="utf-8")
    rule = read_rule(path)
    options = SurveyRequest(tmp_path, rule).task(rule.planned()[0]).options
    assert (options.dataset, options.feature_dim, options.graph) == ("amazon_cs", 16, None)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("draw: 1", "draw: one", "draw: 'one' is not a whole number of at least 0"),
        ("draw: 1", "drew: 1", "drew: unknown key; did you mean 'draw'?"),
        ("draw: 1\n", "", "draw: is missing"),
        ("profile: tiny", "profile: fast", "profile: unknown 'fast'; "),
        (
            "least_repeats: 1",
            "least_repeats: 3",
            "least_repeats: 3 is not allowed; a whole number of at least 1",
        ),
        ("{cpu: 8, cuda: 8}", "{cpu: 8}", "iterations.cuda: is missing"),
        ("{cpu: 8, cuda: 8}", "{cpu: 5, cuda: 8}", "iterations.cpu: 5 is not allowed"),
        ("far: 5%", "far: 5", "graphs.near.far: 5 has no unit"),
        ("degree: 8, ", "", "graphs.near.degree: is missing"),
        ("- {graph: near, args: [--hidden, 32]}", "- {graph: neer, args: []}", "held_out[0].graph: unknown 'neer'; "),
        ("- {graph: near, args: [--hidden, 32]}", "- near", "held_out[0]: 'near' is not allowed"),
        (
            "- [--method, psc-gcn, --tau, 1, --epsilon, 0.3]",
            "- --method psc-gcn",
            "methods[0]: not a list of strings",
        ),
        ("common: [--layers, 2, --eval-every, 0]", "common: [true]", "common: not a list of strings"),
    ],
)
def test_a_wrong_rule_is_refused(old: str, new: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "rule.yaml"
    text = TINY.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(FileError) as caught:
        read_rule(path)
    assert str(caught.value).startswith(f"{path}: {words}")
    assert "\n" not in str(caught.value)


def test_no_mapping_is_no_rule(tmp_path: Path) -> None:
    path = tmp_path / "rule.yaml"
    path.write_text("- a\n", encoding="utf-8")
    with pytest.raises(FileError, match="not a rule; allowed: a mapping with draw, profile"):
        read_rule(path)


def survey_request(**fields: Any) -> SurveyRequest:
    return SurveyRequest(Path("survey"), read_rule(RULE), **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"device": "gpu"}, "--device: unknown 'gpu'; did you mean 'cpu'?"),
        *(
            ({"workers": count}, f"--workers: {count} is not allowed; a whole number of at least 1 and at most 4096")
            for count in (0, 4097)
        ),
        *(
            ({"minutes": wrong}, f"--minutes: {wrong} is not allowed; a number above 0 and at most 10000")
            for wrong in (0, 10_001, -1, math.inf, math.nan)
        ),
    ],
)
def test_what_means_nothing_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        survey_request(**fields)
    assert message in str(caught.value)


NODES = {"cpu": 2000, "cuda": 4000}


def test_a_graph_is_drawn_from_its_name(tmp_path: Path) -> None:
    made = GeneratedGraph(NODES, 20, 0.1, 8, 4)
    first, other = made_up("a", made, "cpu"), made_up("b", made, "cpu")
    assert made_up("a", made, "cpu").content_hash() == first.content_hash() != other.content_hash()
    assert (first.nodes, made_up("a", made, "cuda").nodes) == (2000, 4000)
    assert first.entries == pytest.approx(2000 * 20, rel=0.1)
    save(tmp_path / "a.npz", first)
    save(tmp_path / "again.npz", first)
    assert load_graph(str(tmp_path / "a.npz")).content_hash() == first.content_hash()
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "again.npz").read_bytes(), "servers may share the folder"
    save(tmp_path / "a.npz", other)
    assert load_graph(str(tmp_path / "a.npz")).content_hash() == first.content_hash(), "what is there stays"


def test_far_edges_make_boundaries() -> None:
    def boundary(far: float) -> int:
        graph = made_up("a", GeneratedGraph(NODES, 20, far, 8, 4), "cpu")
        return sum(part.boundary_nodes for part in split(graph, partition_graph(graph, 4, "metis", "vol", 0)))

    assert boundary(0.3) > 1.2 * boundary(0.02)


CALIBRATION = [PlannedRun(f"c{index}", "g", (), index, 0, True) for index in range(2)]
HELD_OUT = [
    PlannedRun(f"h{which}r{repeat}", "g", (), which, repeat, False) for repeat in range(3) for which in (4, 2, 3)
]
RUNS = (*CALIBRATION, *HELD_OUT)
"""2 runs for a calibration, 3 configurations held out, 3 rounds in another order than the rule's: 11 runs."""


def names(took: dict[str, float], seconds: float) -> list[str]:
    return [run.name for run in fitting(RUNS, took, seconds, 2)]


def test_everything_is_tried_while_nothing_is_known() -> None:
    assert names({}, 1.0) == [run.name for run in RUNS]


def test_what_is_done_is_not_done_again() -> None:
    assert names({"c0": 1.0, "h2r0": 1.0}, 100.0) == [run.name for run in RUNS if run.name not in ("c0", "h2r0")]
    assert names({run.name: 1.0 for run in RUNS}, 100.0) == []


def test_third_repeats_go_first_the_last_of_the_rule_first() -> None:
    done = {"c0": 10.0, "c1": 10.0}
    assert names(done, 90.0)[-3:] == ["h4r2", "h2r2", "h3r2"]
    assert names(done, 80.0)[-3:] == ["h3r1", "h2r2", "h3r2"]
    assert names(done, 60.0) == ["h4r0", "h2r0", "h3r0", "h4r1", "h2r1", "h3r1"]


def test_then_whole_configurations_go_so_that_the_others_keep_their_repeats() -> None:
    done = {"c0": 10.0, "c1": 10.0}
    assert names(done, 49.0) == ["h2r0", "h3r0", "h2r1", "h3r1"]
    assert names(done, 29.0) == ["h2r0", "h2r1"]


def test_time_that_no_configuration_fits_in_goes_to_repeats() -> None:
    assert names({"c0": 10.0, "c1": 10.0}, 39.0) == ["h2r0", "h2r1", "h2r2"]


def test_a_configuration_that_is_begun_keeps_its_repeats_before_another_begins() -> None:
    done = {"c0": 10.0, "c1": 10.0, "h4r0": 10.0}
    assert names(done, 35.0) == ["h2r0", "h4r1", "h2r1"]
    assert names(done, 15.0) == ["h4r1"]


def test_a_known_configuration_takes_as_long_as_it_did() -> None:
    done = {"c0": 1.0, "c1": 1.0, "h4r0": 30.0, "h2r0": 1.0, "h3r0": 1.0}
    assert names(done, 4.0) == ["h2r1", "h3r1", "h2r2", "h3r2"]


def test_an_unknown_one_takes_as_long_as_those_on_its_graph() -> None:
    runs = [PlannedRun(name, name[0], (), index, 0, False) for index, name in enumerate(("a0", "a1", "a2", "b0", "b1"))]
    done = {"a0": 1.0, "a1": 3.0, "b0": 50.0}
    assert [run.name for run in fitting(runs, done, 2.0, 1)] == ["a2"]
    assert [run.name for run in fitting(runs, done, 52.0, 1)] == ["a2", "b1"]


def test_no_time_takes_nothing_once_runs_are_known_to_take_some() -> None:
    assert names({"c0": 1.0}, 0.5) == []
    assert names({"c0": 1.0}, -5.0) == []
    assert names({"c0": 1.0}, 1.0) == ["c1"]
