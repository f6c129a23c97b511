from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.report.answer.table import render_short, render_table
from tests.gcnsim.results.made import answer_of


def _rows(text: str, methods: tuple[str, ...] = ("full-graph", "pipegcn", "psc-gcn")) -> list[str]:
    """The lines of the table."""
    table = text.split("\n\n")[0].split("  (too wide for")[0].splitlines()
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


def test_the_fastest_first_and_the_recommended_marked_though_nobody_asked_for_it(answered: dict[str, Any]) -> None:
    rows = _rows(render_table(answer_of(answered), 140, color=False))
    assert [line.startswith("* ") for line in rows] == [True, False, False, False, False]
    assert [line[2:].split()[0] for line in rows] == ["psc-gcn"] * 3 + ["pipegcn", "full-graph"]
    lines = ("tau 1  eps 0.1  cache 30%", "250 (210-310)", "8.20x", "80|12", "GPU compute of worker 4", "5.7", "0.022")
    assert all(part in rows[0] for part in lines)


def test_a_recommended_row_that_was_asked_for_is_there_once(answered: dict[str, Any]) -> None:
    answered["recommendation"] |= {"in_results": 2, "row": answered["results"][2]}
    answered["results"][2]["recommended"] = True
    rows = _rows(render_table(answer_of(answered), 120, color=False))
    assert len(rows) == len(answered["results"])
    assert [line[0] for line in rows] == [" ", "*", " ", " "]


def test_what_all_rows_share_is_in_the_title(answered: dict[str, Any]) -> None:
    first = render_table(answer_of(answered), 120, color=False).splitlines()[0]
    assert first.startswith("reddit, 6 x T4 in 3 servers, 15 Gbit/s ")
    assert first.endswith("UNCALIBRATED")
    answered["results"] = answered["results"][2:]
    answered["scenario"]["grid"] = answered["scenario"]["grid"][2:]
    text = render_table(answer_of(answered), 120, color=False)
    assert text.startswith("reddit, 6 x T4 in 3 servers, 15 Gbit/s, eps 0.1 ")
    assert not any("eps" in line for line in _rows(text))


def test_machines_are_columns_where_several_were_asked(answered: dict[str, Any]) -> None:
    answered["results"][1] |= {"gpus": 8, "bandwidth": "100Gbps", "device": "a100-40"}
    lines = render_table(answer_of(answered), 160, color=False).splitlines()
    assert lines[0].split("  ")[0] == "reddit"
    assert lines[2].split()[:3] == ["GPUs", "device", "bandwidth"]
    assert next(line for line in lines if "pipegcn" in line).split()[:4] == ["8", "a100-40", "100Gbps", "pipegcn"]


def test_columns_without_room_are_named(answered: dict[str, Any]) -> None:
    text = render_table(answer_of(answered), 60, color=False)
    assert "(too wide for" in text
    assert "limited by" not in text.split("\n\n")[0]
    assert "(too wide for" not in render_table(answer_of(answered), 120, color=False)


def test_wide_prints_every_column_however_long(answered: dict[str, Any]) -> None:
    table = render_table(answer_of(answered), 60, color=False, wide=True).split("\n\n")[0]
    head = " ".join(line.strip() for line in table.splitlines()[1:3])
    assert all(word in head for word in ("dataset", "hidden", "hits", "NIC", "recommended", "USD per"))
    assert len(_rows(table)) == 5


def test_the_columns_asked_for_in_their_order(answered: dict[str, Any]) -> None:
    table = render_table(answer_of(answered), 60, color=False, columns=["memory_bytes", "method", "vs_recommended"])
    assert _rows(table)[0].split() == ["*", "5.7", "psc-gcn", "-"]
    assert _rows(table)[1].split() == ["5.7", "psc-gcn", "+57", "to", "+77%"]


def test_an_unknown_column_is_refused_with_the_nearest(answered: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=r"--columns: unknown column 'memory'; did you mean 'memory_bytes'\?"):
        render_table(answer_of(answered), 80, columns=["method", "memory"])


def test_everything_that_was_answered_is_printed(answered: dict[str, Any]) -> None:
    text = " ".join(render_table(answer_of(answered), 200, color=False).split())
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


def test_provenance_is_three_lines_and_all_of_it_on_request(answered: dict[str, Any]) -> None:
    short = render_table(answer_of(answered), 100, color=False)
    lines = short[short.index("Provenance") :].strip().splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["graph", "machine", "certainty"]
    assert "UNCALIBRATED; ranges: 90 % of 64 draws; gcnsim 0.1.0, seed 0, scenario 8c5f0f1a" in lines[2]
    whole = " ".join(render_table(answer_of(answered), 200, color=False, provenance=True).split())
    document = answered["provenance"]
    basis = [item["basis"] for item in document["assumptions"]]
    assert all(part in whole for part in (document["interval"], document["scenario_hash"], "4 (2 to 9.5)", *basis))
    assert not any(text in short for text in basis)


def test_assumptions_are_bars_on_request(answered: dict[str, Any]) -> None:
    assert "t4.spmm_efficiency" not in render_table(answer_of(answered), 100, color=False)
    text = render_table(answer_of(answered), 100, color=False, assumptions=True)
    line = next(line for line in text.splitlines() if "t4.spmm_efficiency" in line)
    assert "60% (40% to 80%)" in line
    assert "310 ms .. 210 ms" in line
    assert "less than 0.1 % each: ethernet.latency_s" in text


def test_the_short_form_is_the_table_and_the_verdict(answered: dict[str, Any]) -> None:
    lines = render_short(answer_of(answered), most=3).splitlines()
    assert lines[-1] == answered["recommendation"]["verdict"]
    assert lines[-2] == "  (2 more rows)"
    assert len(lines) == 8
    assert "  (1 more row)" in render_short(answer_of(answered), most=4).splitlines()


def test_colour_only_where_asked(answered: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in render_table(answer_of(answered), 120, color=True)
    assert "\x1b[" not in render_table(answer_of(answered), 120, color=False)


def test_text_is_ascii_and_square_brackets_are_text_not_markup(answered: dict[str, Any]) -> None:
    answered["provenance"]["graph"]["text"] = "[bold]graph[/bold] :smile:"
    text = render_table(answer_of(answered), 120, color=False)
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


def test_an_unknown_order_is_a_line(answered: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match="--sort: unknown column 'gpu'; did you mean 'gpus'"):
        render_table(answer_of(answered), 80, sort="gpu")


def test_of_many_rows_ten_are_printed_and_the_others_counted(answered: dict[str, Any]) -> None:
    answer = answer_of(answered)
    first = next(row for row in answer.results if not row.recommended)
    many = dataclasses.replace(answer, results=(*answer.results, *[first] * (13 - len(answer.rows))))
    assert len(many.rows) == 13
    lines = render_table(many, 120, color=False).split("\n\n")[0].splitlines()
    assert "  (3 more rows; --top N prints as many as you like, --csv writes all)" in lines
    assert sum(line.startswith("* ") for line in lines) == 1
    assert "more row" not in render_table(many, 120, color=False, top=13)


def test_of_several_machines_it_says_what_the_speed_up_is_over(answered: dict[str, Any]) -> None:
    note = "(speed-up: over full-graph training on the same machine)"
    assert note not in render_table(answer_of(answered), 140, color=False)
    answered["results"][0]["gpus"] = 8
    assert note in render_table(answer_of(answered), 140, color=False)


def test_a_row_that_waits_longer_than_it_computes_has_a_note(answered: dict[str, Any]) -> None:
    note = "GPU compute is named if each link alone saves less"
    row = answered["results"][0]
    row["limited_by"] = {"text": "GPU compute of all workers", "kind": "compute", "share": 0.2, "kind_share": 0.2}
    assert row["exposed_comm_s"] > row["compute_s"]
    assert note in render_table(answer_of(answered), 140, color=False)
    row["limited_by"] |= {"kind": "nic"}
    assert note not in render_table(answer_of(answered), 140, color=False)
