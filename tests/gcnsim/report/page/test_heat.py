from __future__ import annotations

from typing import Any

from gcnsim.report.page.html import heats_of
from tests.gcnsim.results.made import answer_of


def test_workers_and_servers_with_their_links_and_what_sets_the_pace(answered: dict[str, Any]) -> None:
    workers, servers, links = heats_of(answer_of(answered))
    assert workers.heads == ("GPU", "sampler", "copies", "all-reduce", "waits", "PCIe to host")
    assert workers.rows[4] == ("worker 4", (0.4, 0.3, 0.2, 0.1, 0.5, 0.05), True)
    assert [row.marked for row in workers.rows] == [False, False, False, False, True, False]
    assert servers.heads == ("NIC out", "NIC in")
    assert servers.rows[2] == ("server 2", (0.997, 0.997), True)
    assert links.rows == (("uplink of rack 0, out", (0.4,), False),)


def test_every_link_of_a_worker_or_server_stands_with_it_in_words(answered: dict[str, Any]) -> None:
    names = ("dram1", "staging3", "pcie-switch0.1.up", "memory0", "nvlink0.rx")
    answered["utilization"]["links"] = [{"name": name, "kind": "", "server": 0, "utilization": 0.25} for name in names]
    workers, servers = heats_of(answer_of(answered))
    assert workers.heads[-2:] == ("NVLink in", "memory copies")
    assert {row.name: row.shares[-2:] for row in workers.rows}["worker 3"] == (None, 0.25)
    assert servers.heads == ("PCIe switch 1 to host", "memory", "host memory")
    assert [row.name for row in servers.rows] == ["server 0", "server 1"]


def test_nothing_where_the_answer_says_nothing(payload: dict[str, Any]) -> None:
    assert heats_of(answer_of(payload)) == []


def test_a_worker_without_a_share_has_none(answered: dict[str, Any]) -> None:
    answered["utilization"]["links"].pop(6)
    assert heats_of(answer_of(answered))[0].rows[0].shares == (0.0, 0.3, 0.2, 0.1, 0.5, None)
