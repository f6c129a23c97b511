"""The table of an answer, and its sentences."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import replace
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.report.answer import sentences
from gcnsim.report.answer.table import render_table
from tests.gcnsim.results.made import answer_of


def _rows(text: str, methods: tuple[str, ...] = ("full-graph", "pipegcn", "psc-gcn")) -> list[str]:
    """The lines of the table."""
    table = re.split(r"  \(too wide for|\n  (?:tau|eps|rate|cache|speed-up) +[A-Z]", text.split("\n\n")[0])[
        0
    ].splitlines()
    return [line for line in table if any(method in line for method in methods)]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160])
def test_a_row_is_one_line_at_every_width(answered: dict[str, Any], width: int) -> None:
    text = render_table(answer_of(answered), width, color=False)
    rows = _rows(text, ("full", "pipe", "psc"))
    assert len(rows) == len(answered["results"]) + 1
    assert max(map(len, text.splitlines())) <= width
    if width >= 60:
        assert all(time in line for time, line in zip(("250", "418", "439", "1641", "2056"), rows, strict=True))
        assert all("eps 0.1" in line for line in rows if "psc-gcn" in line)


def test_a_recommended_row_that_was_asked_for_is_there_once(answered: dict[str, Any]) -> None:
    answered["recommendation"] |= {"in_results": 2, "row": answered["results"][2]}
    answered["results"][2]["recommended"] = True
    rows = _rows(render_table(answer_of(answered), 120, color=False))
    assert len(rows) == len(answered["results"])
    assert [line[0] for line in rows] == [" ", "*", " ", " "]


def test_an_unknown_column_is_refused_with_the_nearest(answered: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=r"--columns: unknown column 'memory'; did you mean 'memory_bytes'\?"):
        render_table(answer_of(answered), 80, columns=["method", "memory"])


def test_everything_that_was_answered_is_printed(answered: dict[str, Any]) -> None:
    text = " ".join(render_table(answer_of(answered), 200, color=False, explain=True).split())
    message = (
        answered["recommendation"]["verdict"],
        "confidence 94 %: in 60 of 64 draws",
        "limited by GPU compute of worker 4: 22 % less time if this GPU were infinitely fast, 90 % if all GPUs were",
        "so a faster network changes nothing",
        "worker 4 has 149,552 boundary nodes (mean 91,725); with an even partition: 200 ms",
        "considered methods that were asked for",
        "bns-gcn, rate 0.04: below the least rate 0.1",
        "2 more (--json names them)",
        "cheapest psc-gcn, tau 1, eps 0.1, cache 30% on 4 x t4 at 15Gbps: 250 ms",
        "bandwidth 15Gbps -> 30Gbps 418 ms, no clear difference",
        "epsilon 0.1 -> 0.05 371 ms, 11 % shorter (8.0 to 16 %)",
        "tau 2 -> 1 450 ms, 7.5 % longer (5.0 to 10 %)",
        "No effect rate psc-gcn draws edges, not nodes",
        *answered["provenance"]["warnings"],
    )
    assert [part for part in message if part not in text] == []


def test_an_answer_is_short_first(answered: dict[str, Any]) -> None:
    """Heading, table, legend, recommendation, three steps; asked-for sections and warnings; a line on the rest."""
    document = answer_of(answered)
    lines = render_table(replace(document, provenance=replace(document.provenance, warnings=())), 130, color=False)
    table, decision, alternatives, rest = lines.rstrip().split("\n\n")
    assert [line.split()[0] for line in table.splitlines()[3 + len(document.rows) :]] == [
        "tau",
        "eps",
        "cache",
        "speed-up",
    ]
    title, verdict, accuracy, steps = decision.splitlines()[:4]
    assert (title, verdict, steps) == ("Recommendation", f"  {document.recommendation.verdict}", "Next steps")
    assert "how much accuracy this setting loses is not known" in accuracy
    assert len(decision.splitlines()) == 4 + 3
    assert alternatives.startswith("Other machines\n")
    assert rest.strip() == "(--explain: why; confidence 94 %; what limits it; every step, source and assumption)"


def test_the_first_steps_are_those_that_may_be_taken(answered: dict[str, Any]) -> None:
    answered["next_steps"][1] |= {"too_approximate": True}
    assert "epsilon 0.1 -> 0.05" not in render_table(answer_of(answered), 130, color=False)
    assert "epsilon 0.1 -> 0.05" in render_table(answer_of(answered), 130, color=False, explain=True)


def test_sources_and_assumptions_are_printed_on_request(answered: dict[str, Any]) -> None:
    short = render_table(answer_of(answered), 100, color=False)
    whole = " ".join(render_table(answer_of(answered), 200, color=False, explain=True).split())
    document = answered["provenance"]
    basis = [item["basis"] for item in document["assumptions"]]
    assert all(part in whole for part in (document["interval"], document["scenario_hash"], "4 (2 to 9.5)", *basis))
    assert not any(text in short for text in basis)


def test_text_is_ascii_and_square_brackets_are_text_not_markup(answered: dict[str, Any]) -> None:
    answered["provenance"]["graph"]["text"] = "[bold]graph[/bold] :smile:"
    text = render_table(answer_of(answered), 120, color=False, explain=True)
    assert "[bold]graph[/bold] :smile:" in text
    assert text.isascii()


def test_rows_are_printed_in_the_order_asked_for(answered: dict[str, Any]) -> None:
    def methods(**options: Any) -> list[str]:
        table = render_table(answer_of(answered), 120, color=False, columns=["method", "gpu_utilization"], **options)
        return [line[2:].split()[0] for line in table.split("\n\n")[0].splitlines()[3:] if "more row" not in line]

    rows = answer_of(answered).rows
    busiest = [row.method for row in sorted(rows, key=lambda row: -row.gpu_utilization)]
    assert methods(sort="-gpu_utilization") == busiest
    assert methods(sort="gpu_utilization")[0] == busiest[-1]
    named = methods(sort="method", top=2)
    assert len(named) == 2
    (best,) = (row.method for row in rows if row.recommended)
    assert best in named


def test_of_many_rows_ten_are_printed_and_the_others_counted(answered: dict[str, Any]) -> None:
    answer = answer_of(answered)
    first = next(row for row in answer.results if not row.recommended)
    many = dataclasses.replace(answer, results=(*answer.results, *[first] * (13 - len(answer.rows))))
    assert len(many.rows) == 13
    lines = render_table(many, 120, color=False).split("\n\n")[0].splitlines()
    assert "  (3 more rows; --top N prints as many as you like, --csv writes all)" in lines
    assert sum(line.startswith("* ") for line in lines) == 1
    assert "more row" not in render_table(many, 120, color=False, top=13)


def test_a_row_that_waits_longer_than_it_computes_has_a_note(answered: dict[str, Any]) -> None:
    note = "GPU compute is named if each link alone saves less"
    row = answered["results"][0]
    row["limited_by"] = {"text": "GPU compute of all workers", "kind": "compute", "share": 0.2, "kind_share": 0.2}
    assert row["exposed_comm_s"] > row["compute_s"]
    assert note in render_table(answer_of(answered), 140, color=False)
    row["limited_by"] |= {"kind": "nic"}
    assert note not in render_table(answer_of(answered), 140, color=False)


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
    numberings = {"numbered_low_s": 0.35, "numbered_high_s": 0.7, "placed_s": 0.34}
    answered["partition_seeds"] |= numberings
    assert sentences.partitions_of(answer_of(answered)) == [
        text,
        "one partition, numbered anew: 350 ms to 700 ms; its parts placed evenly: 340 ms",
    ]
    answered["partition_seeds"]["seeds"] = [7]
    assert sentences.partitions_of(answer_of(answered))[0].startswith("1 seed: ")


def test_an_alternative_that_is_the_recommended_one_is_not_told_again(answered: dict[str, Any]) -> None:
    alternative = answered["recommendation"]["alternatives"][0]
    alternative["row"] = answered["recommendation"]["row"] | {"iteration_s": 9.0}
    assert sentences.alternatives_of(answer_of(answered)) == [
        ("cheapest", "the recommended one; half the GPUs, 1.2 times the time")
    ]


def test_a_title_names_unequal_and_unknown_devices(answered: dict[str, Any]) -> None:
    answered["scenario"]["cluster"] = {"device": "t4", "devices": ["t4", "a10g"], "gpus_per_server": 4}
    assert (
        sentences.title_of(answer_of(answered)) == "reddit, 6 x unequal GPUs in 2 servers of 4, 15 Gbit/s, 3.16 USD/h"
    )
    del answered["scenario"]["cluster"]["devices"]
    for row in (*answered["results"], answered["recommendation"]["row"]):
        row["device"] = "my\x1bgpu.yaml"
    assert sentences.title_of(answer_of(answered)) == "reddit, 6 x my gpu.yaml in 2 servers of 4, 15 Gbit/s, 3.16 USD/h"


def test_an_unknown_order_is_a_line(answered: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match="--sort: unknown column 'gpu'; did you mean 'gpus'"):
        render_table(answer_of(answered), 80, sort="gpu")
