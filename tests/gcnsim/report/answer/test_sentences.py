from __future__ import annotations

from dataclasses import replace
from typing import Any

from gcnsim.report.answer import sentences
from gcnsim.report.answer.table import render_table
from gcnsim.scenario import ClusterSpec
from tests.gcnsim.results.made import answer_of


def test_steps_say_what_the_change_brings(payload: dict[str, Any]) -> None:
    steps = sentences.steps_of(answer_of(payload))
    assert [step.change for step in steps] == [
        "no clear difference (1.0 % longer to 2.0 % shorter)",
        "11 % shorter (8.0 to 16 %)",
        "7.5 % longer (5.0 to 10 %)",
    ]
    assert steps[1][:4] == ("epsilon", "0.1", "0.05", "371 ms")
    payload["next_steps"][1] |= {"fits": False, "too_approximate": True}
    change = sentences.steps_of(answer_of(payload))[1].change
    assert change == "11 % shorter (8.0 to 16 %), does not fit, excluded by --min-sampling-rate 0.1"


def test_what_is_not_told_apart_says_what_it_may_bring(answered: dict[str, Any]) -> None:
    step = replace(answer_of(answered).next_steps[0], gain=0.23, gain_low=0.0, gain_high=0.384)
    assert sentences.change_of(step) == "no clear difference (the same to 38 % shorter)"
    assert sentences.change_of(replace(step, gain_low=-0.02)) == "no clear difference (2.0 % longer to 38 % shorter)"
    assert sentences.change_of(replace(step, gain_low=-0.002, gain_high=0.009)) == "no clear difference"


def test_the_label_is_that_of_the_certainty(answered: dict[str, Any]) -> None:
    answered["certainty"]["label"] = "CALIBRATED"
    assert sentences.label_of(answer_of(answered)) == "CALIBRATED"


def test_a_title_names_unequal_and_unknown_devices(answered: dict[str, Any]) -> None:
    answered["scenario"]["cluster"] = {"device": "t4", "devices": ["t4", "a10g"], "gpus_per_server": 4}
    assert sentences.title_of(answer_of(answered)) == "reddit, 6 x unequal GPUs in 2 servers, 15 Gbit/s"
    del answered["scenario"]["cluster"]["devices"]
    for row in (*answered["results"], answered["recommendation"]["row"]):
        row["device"] = "my\x1bgpu.yaml"
    assert sentences.title_of(answer_of(answered)) == "reddit, 6 x my gpu.yaml in 2 servers, 15 Gbit/s"


def test_a_title_counts_one_gpu_and_the_usual_gpus_of_a_server(answered: dict[str, Any]) -> None:
    rows = (*answered["results"], answered["recommendation"]["row"])
    for index, row in enumerate(rows):
        row |= {"gpus": 1, "device": ("t4", "a10g")[index % 2]}
    for place in answered["scenario"]["grid"]:
        place["gpus"] = 1
    assert sentences.title_of(answer_of(answered)).startswith("reddit, 1 GPU in 1 server, ")
    for entry in (*rows, *answered["scenario"]["grid"]):
        entry["gpus"] = 2 * ClusterSpec().gpus_per_server + 1
    assert " GPUs in 3 servers, " in sentences.title_of(answer_of(answered))


def test_clauses_are_told_as_far_as_a_line_holds() -> None:
    assert sentences.clauses_within(("one", "two", "three"), 9) == "one; two"
    assert sentences.clauses_within(("longer than the line", "two"), 9) == "longer than the line"


def test_a_measured_time_and_what_it_makes_of_the_rows(answered: dict[str, Any]) -> None:
    assert sentences.measured_of(answer_of(answered)) == []
    again = [{"iteration_s": 0.4, "iteration_s_low": 0.3, "iteration_s_high": 0.5}] * 4
    times = {"measured_s": 0.74, "predicted_s": 0.4, "ratio": 1.85, "consistent": True, "explanations": []}
    answered["measured"] = [
        {"row": index, "setting": "", "text": text, "rows": rows} | times
        for index, (text, rows) in enumerate((("psc-gcn: measured 740 ms", again), ("pipegcn: far", None)))
    ]
    content = sentences.measured_of(answer_of(answered))
    assert (len(content), content[0], content[-1]) == (
        6,
        ("measured", "psc-gcn: measured 740 ms"),
        ("measured", "pipegcn: far"),
    )
    assert content[3] == ("psc-gcn (cache 0%)", "400 ms (300 ms to 500 ms) by this measurement")
    assert "pipegcn: far" in render_table(answer_of(answered), 100, color=False)


def test_other_partitions_are_told_by_their_spread(answered: dict[str, Any]) -> None:
    assert sentences.partitions_of(answer_of(answered)) == []
    answered["partition_seeds"] = {"seeds": [0, 1, 2], "iteration_s": [0.6, 0.5, 0.4]} | {
        "mean_s": 0.5,
        "low_s": 0.4,
        "high_s": 0.6,
        "best": 2,
    }
    text = "3 seeds: 500 ms on average, 400 ms with the fastest (seed 2), 600 ms with the slowest"
    assert sentences.partitions_of(answer_of(answered)) == [text]
    assert text in render_table(answer_of(answered), 100, color=False)
    answered["partition_seeds"]["seeds"] = [7]
    assert sentences.partitions_of(answer_of(answered))[0].startswith("1 seed: ")


def test_an_alternative_that_is_the_recommended_one_is_not_told_again(answered: dict[str, Any]) -> None:
    alternative = answered["recommendation"]["alternatives"][0]
    alternative["row"] = answered["recommendation"]["row"] | {"iteration_s": 9.0}
    assert sentences.alternatives_of(answer_of(answered)) == [
        ("cheapest", "the recommended one; half the GPUs, 1.2 times the time")
    ]


def test_an_alternative_names_the_knobs_of_its_method_and_one_price(answered: dict[str, Any]) -> None:
    alternative = answered["recommendation"]["alternatives"][0]
    row = alternative["row"] | {"method": "full-graph", "tau": 0, "epsilon": 1.0, "usd_per_1000_iterations": 0.0034}
    alternative["row"] = row | {"iteration_s": 9.0}
    (found,) = sentences.alternatives_of(answer_of(answered))
    assert found[1].startswith(f"full-graph on {row['gpus']} x {row['device']} at {row['bandwidth']}: 9.00 s; ")
    alternative["role"] = "fewest GPUs"
    assert "9.00 s, 0.0034 USD per 1,000 iterations; " in sentences.alternatives_of(answer_of(answered))[0][1]


def test_of_several_machines_the_sources_name_none(answered: dict[str, Any]) -> None:
    answered["provenance"]["device"] = "6 x NVIDIA T4, 3 servers of 2; figures: assumed"
    assert sentences.sources_of(answer_of(answered))[1].clauses[0] == "6 x NVIDIA T4, 3 servers of 2"
    answered["results"][0]["gpus"] = 8
    assert sentences.sources_of(answer_of(answered))[1].clauses[0] == "figures: assumed"


def test_a_limit_that_the_shares_seem_to_deny_is_explained(answered: dict[str, Any]) -> None:
    row = replace(
        answer_of(answered).recommendation.row,
        limited_by="GPU compute of all workers", limited_by_kind="compute", limited_by_share=0.3,
        limited_by_kind_share=0.3, compute_s=0.4, exposed_comm_s=0.6, iteration_s=1.0,
    )  # fmt: skip
    text = sentences.limit_text(row)
    assert text.endswith("for communication for 60 %, but for several resources, each of which alone saves less")
    assert "waits" not in sentences.limit_text(replace(row, compute_s=0.7, exposed_comm_s=0.3))
    assert "waits" not in sentences.limit_text(replace(row, limited_by_kind="nic"))
