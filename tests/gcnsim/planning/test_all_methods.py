"""`what-if --method all`: a row per method and variant, and why others have none."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import gcnsim
from gcnsim.core.errors import ScenarioError
from gcnsim.methods import COMPARED, create_method, every_method, method_type, methods
from gcnsim.report.answer.table import render_table


def answer_of(**question: Any) -> Any:
    return gcnsim.what_if(dataset="ogbn-products", iterations=3, processes=1, **question)


@pytest.fixture(scope="module")
def answer() -> Any:
    return answer_of(method="all", gpus=2, gpus_per_server=1)


def test_every_method_has_a_row_or_a_reason(answer: Any) -> None:
    rows = [(row["method"], row["setting"]) for row in answer.results]
    left = [(one["method"], one["setting"]) for one in answer.payload["left_out"]]
    assert {name for name, _ in rows + left} == set(methods())
    assert len(set(rows + left)) == len(rows + left) == sum(len(kind.variants) for kind in every_method().values())


def test_every_row_says_whether_it_fits(answer: Any) -> None:
    for row in answer.results:
        assert row["memory_bytes"] > 0, row["method"]
        assert row["fits"] is not None
    roc = [text for text in answer.payload["provenance"]["warnings"] if text.startswith("roc on 2 GPUs")]
    assert len(roc) == 1
    assert "no all-reduce" in roc[0]
    assert "GiB of the fullest server's memory" in roc[0]


def test_every_interval_holds_the_stated_value_and_no_low_end_is_below_the_bound(answer: Any) -> None:
    for row, bound in zip(answer.results, answer.payload["provenance"]["bounds"], strict=True):
        assert row["iteration_s_low"] <= row["iteration_s"] <= row["iteration_s_high"], row["method"]
        assert bound["lower_s"] <= row["iteration_s_low"], row["method"]
        assert bound["upper_s"] >= row["iteration_s_high"], row["method"]
        assert row["iteration_s_high"] > 1.02 * row["iteration_s_low"], "assumed figures leave every method open"


def test_those_left_out_say_why(answer: Any) -> None:
    reasons = {one["method"]: one["reason"] for one in answer.payload["left_out"]}
    assert "pagraph keeps the graph in the memory of one" in reasons["pagraph"]
    assert "dgl" in reasons
    assert not set(reasons) & set(COMPARED)


def test_the_payload_is_of_the_shipped_schema(answer: Any) -> None:
    schema = json.loads(files("gcnsim").joinpath("data/what-if.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(json.loads(json.dumps(answer.payload)))


def test_epochs_are_iterations_times_their_number(answer: Any) -> None:
    for row in answer.results:
        assert row["epoch_s"] == pytest.approx(row["iteration_s"] * row["iterations_per_epoch"])
        assert (row["iterations_per_epoch"] > 1) == (method_type(row["method"]).mini_batches)


def test_the_table_shows_epochs_and_knobs(answer: Any) -> None:
    text = render_table(answer.told, top=len(answer.rows) + 1)
    assert "epoch" in text
    assert "sample edges" in text
    assert "epoch" not in str(answer_of(method="full-graph", gpus=2)).split("Bottleneck")[0]


def test_what_was_not_asked_for_by_name_is_shown_for_comparison_only(answer: Any) -> None:
    assert answer.recommendation["method"] in COMPARED
    content = {entry["what"]: entry["why"] for entry in answer.recommendation["excluded"]}
    assert content["distdgl"] == "distdgl is shown for comparison only (--allow distdgl allows it)"


def test_one_server_has_rows_of_dgl_and_pagraph() -> None:
    answer = answer_of(method="all", gpus=2, gpus_per_server=2)
    rows = [(row["method"], row["setting"]) for row in answer.results]
    assert {("dgl", ""), ("pagraph", ""), ("pagraph", "preprocess yes")} <= set(rows)


def test_what_was_asked_for_by_name_is_refused_not_left_out() -> None:
    with pytest.raises(ScenarioError, match="dgl keeps the graph in the memory of one"):
        answer_of(method="dgl", gpus=2, gpus_per_server=1)


def test_overrides_of_own_knobs_reach_the_methods_that_have_them() -> None:
    answer = answer_of(
        method=["dgl", "full-graph"], gpus=2, gpus_per_server=2, overrides=["method.fanout=5,5,5", "method.batch=2000"]
    )
    assert [row["setting"] for row in answer.results] == ["batch 2000, fanout 5,5,5", ""]
    with pytest.raises(ScenarioError, match="full-graph has no fanout; methods with it: dgl, pagraph"):
        answer_of(method="full-graph", gpus=2, overrides=["method.fanout=5,5,5"])
    with pytest.raises(ScenarioError, match=r"method.batch: 0 is not allowed"):
        answer_of(method="dgl", gpus=2, overrides=["method.batch=0"])


def test_what_is_recommended_of_mini_batches_is_what_was_asked() -> None:
    answer = answer_of(method="dgl", gpus=1, overrides=["method.batch=500"])
    assert [row["setting"] for row in answer.results] == ["batch 500"]
    assert answer.recommendation["setting"] == "batch 500", "not the usual batch, which nobody asked for"


def test_a_list_of_caches_is_a_row_each_of_pagraph() -> None:
    answer = answer_of(method="pagraph", gpus=2, gpus_per_server=2, cache=["0%", "10%", "auto"])
    rows = answer.results
    assert [row["cache_fraction"] for row in rows[:2]] == pytest.approx([0.0, 0.1], rel=1e-3)
    seconds = [row["iteration_s"] for row in rows]
    assert seconds == sorted(seconds, reverse=True)


def test_variants_are_settings_of_their_methods() -> None:
    several = [kind for kind in every_method().values() if len(kind.variants) > 1]
    assert {kind.name for kind in several} == {"bns-gcn", "sancus", "pagraph"}
    for kind in several:
        assert len({create_method(kind.name, **variant) for variant in kind.variants}) == len(kind.variants)
        assert all(kind.has(knob) for variant in kind.variants for knob in variant)


@pytest.mark.slow
def test_what_no_gpu_holds_is_left_out_of_a_comparison_of_all() -> None:
    answer = answer_of(method="all", gpus=2, gpus_per_server=2, device="gtx-1080-ti", hidden=4096)
    reasons = {one["method"]: one["reason"] for one in answer.payload["left_out"]}
    assert "does not fit" in reasons["distdgl"]
    assert "a smaller mini-batch would" in reasons["distdgl"]
    assert all(row["fits"] is not False for row in answer.results if row["method"] not in COMPARED)


def test_a_dataset_known_by_sizes_alone_has_a_boundary_by_assumption() -> None:
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 4, "gpus_per_server": 2},
        "workload": {"dataset": "livejournal"},
        "method": {"name": "distdgl", "layer_sizes": "2400,2400"},
    }
    simulation = gcnsim.simulate(mapping)
    whole = gcnsim.simulate({**mapping, "method": {"name": "full-graph"}})
    assert simulation.payload["result"]["speedup_vs_full_graph"] == pytest.approx(
        whole.payload["result"]["epoch_s"] / simulation.payload["result"]["epoch_s"]
    )
    for answer in (simulation, whole):
        assert "by assumption: boundary nodes per inner node by the mean degree" in str(answer)
        assert "warning: 4 GPUs: boundary nodes by assumption" in str(answer)
