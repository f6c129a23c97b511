from __future__ import annotations

import json
from typing import Any

import pytest

from gcnsim.results import KEYS, Row
from tests.gcnsim.results.made import DOCUMENT, JUDGED, PRICED


@pytest.mark.parametrize("document", [DOCUMENT, PRICED, JUDGED, JUDGED | {"recommended": True, "vs_recommended": None}])
def test_a_row_writes_what_it_reads_in_the_same_order(document: dict[str, Any]) -> None:
    assert json.dumps(Row.read(document).payload()) == json.dumps(document)


def test_what_plain_data_nest_is_flat() -> None:
    row = Row.read(JUDGED)
    found = [getattr(row, f"limited_by{key}") for key in ("", "_kind", "_share", "_kind_share", "_worker")]
    assert found == ["NIC of server 1", "nic", 0.3, 0.9, 3]
    assert (row.vs_recommended_low, row.vs_recommended_high, row.distinguishable) == (0.1, 0.3, True)


def test_a_row_lacks_nothing_that_all_have_and_passes_over_what_none_has() -> None:
    assert Row.read(DOCUMENT | {"newer": 1}) == Row.read(DOCUMENT)
    without = {key: value for key, value in DOCUMENT.items() if key not in ("compute_s", "tau")}
    with pytest.raises(TypeError, match="a row lacks tau, compute_s"):
        Row.read(without)


def test_a_bandwidth_is_a_number_that_plain_data_have_as_networks_are_sold() -> None:
    assert Row.read(DOCUMENT).bandwidth_bytes_per_s == 25e9 / 8
    assert Row.read(DOCUMENT | {"bandwidth": "1GB/s"}).payload()["bandwidth"] == "8Gbps"


def test_the_machine_comes_first_where_rows_are_flat() -> None:
    assert KEYS[:4] == ("dataset", "device", "gpus", "bandwidth_bytes_per_s")
    assert KEYS[-1] == "distinguishable"


def test_the_knobs_of_a_row_are_those_its_method_has_and_what_they_say() -> None:
    assert Row.read(DOCUMENT | {"method": "pipegcn"}).knobs == ()
    drawn = Row.read(
        DOCUMENT | {"method": "psc-gcn", "tau": 2, "epsilon": 0.1, "cache_fraction": 0.3, "setting": "mine"}
    )
    assert drawn.knobs == ("tau 2", "eps 0.1", "cache 30%", "mine")
    assert Row.read(DOCUMENT | {"method": "psc-gcn", "tau": 0}).knobs == ("tau 0", "eps 1")
    assert Row.read(DOCUMENT | {"method": "bns-gcn", "rate": 0.5}).knobs == ("rate 0.5",)
    # Of a method that is not installed here: what differs from a plain run.
    assert Row.read(DOCUMENT | {"method": "unheard-of", "tau": 0, "rate": 0.5}).knobs == ("rate 0.5",)
