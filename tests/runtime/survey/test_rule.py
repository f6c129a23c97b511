"""Rules of surveys: what is held out is held out, repeats take turns, and every mistake names its place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gcnsim.core.errors import FileError
from runtime.survey import ONE_WORKER, RULE, SurveyRequest, read_rule

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
