from __future__ import annotations

from typing import Any

from gcnsim.report.answer.rows import labels_of, shared_knobs
from tests.gcnsim.results.made import answer_of


def test_the_recommended_row_is_marked_or_added(answered: dict[str, Any]) -> None:
    rows = answer_of(answered).fastest_first
    assert [row.recommended for row in rows] == [True, False, False, False, False]
    assert rows[0].iteration_s == 0.25
    answered["recommendation"] |= {"in_results": 3}
    assert answer_of(answered).rows == answer_of(answered).results


def test_shared_knobs_need_two_rows(answered: dict[str, Any]) -> None:
    rows = answer_of(answered).results
    assert shared_knobs(rows) == {}
    assert shared_knobs(rows[2:]) == {"tau": "tau 2", "epsilon": "eps 0.1"}
    assert shared_knobs(rows[2:3]) == {}


def test_labels_say_only_what_tells_rows_of_a_method_apart(payload: dict[str, Any]) -> None:
    assert labels_of(answer_of(payload).results) == [
        ("full-graph", ""),
        ("pipegcn", ""),
        ("psc-gcn", "cache 0%"),
        ("psc-gcn", "cache 25%"),
    ]
    payload["results"][0] |= {"method": "bns-gcn", "rate": 0.1}
    payload["results"][1] |= {"method": "bns-gcn", "tau": 0, "rate": 0.5}
    assert labels_of(answer_of(payload).results)[:2] == [("bns-gcn", "rate 0.1"), ("bns-gcn", "rate 0.5")]
    payload["results"][3]["gpus"] = 8
    assert labels_of(answer_of(payload).results)[3] == ("psc-gcn", "8 GPUs, cache 25%")
    payload["results"][3] |= {"gpus": 1, "bandwidth": "25Gbps"}
    assert labels_of(answer_of(payload).results)[3] == ("psc-gcn", "1 GPU, 25Gbps, cache 25%")
