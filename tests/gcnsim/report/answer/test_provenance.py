from __future__ import annotations

from typing import Any

from gcnsim.report.answer import rows
from tests.gcnsim.results.made import answer_of


def test_provenance_holds_every_fact_but_assumptions_and_warnings(payload: dict[str, Any]) -> None:
    content = dict(rows.provenance_of(answer_of(payload)))
    assert set(content) == {
        "graph",
        "model",
        "device",
        "interval",
        "calibration",
        "engine",
        "version",
        "seed",
        "scenario hash",
    }
    assert content["graph"].endswith("(published-statistics)")


def test_assumptions_carry_their_range(payload: dict[str, Any]) -> None:
    first = rows.assumptions_of(answer_of(payload))[0]
    assert (first.value, first.range) == ("4", "2 to 9.5")


def test_control_characters_do_not_reach_a_terminal(payload: dict[str, Any]) -> None:
    payload["provenance"]["warnings"] = ["bad\x1b[2Jname\nnext"]
    assert rows.warnings_of(answer_of(payload)) == ["bad [2Jname next"]
