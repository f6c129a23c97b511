"""Memory in answers: told of every row, marked where it does not fit, and not recommended then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gcnsim.api import simulate, what_if

SCENARIOS = Path(__file__).resolve().parents[3] / "scenarios"


@pytest.mark.parametrize(("name", "parts"), [("bns_gcn-reddit", 2), ("bns_gcn-ogbn-products", 5), ("bns_gcn-yelp", 3)])
def test_fits_at_the_published_minimum_of_partitions(name: str, parts: int) -> None:
    # BNS-GCN's experiment setup: the fewest RTX 2080 Ti that train each whole. Their code keeps more than the laws
    # know of (dropout, copies), so fewer may fit by these.
    given = ["method.rate=1.0", "run.iterations=2", f"cluster.gpus={parts}", f"cluster.gpus_per_server={parts}"]
    memory = simulate(SCENARIOS / f"{name}.yaml", given).payload["memory"]
    assert memory["fits"]
    assert memory["device_bytes"] == 11e9
    assert len(memory["workers"]) == parts


def question(**given: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {"gpus": 2, "method": ["full-graph", "psc-gcn"], "iterations": 4} | given
    return dict(what_if(**asked).payload)


def test_every_row_tells_its_peak_and_the_payload_its_parts() -> None:
    payload = question()
    for row, memory in zip(payload["results"], payload["memory"], strict=True):
        assert row["fits"] is True
        assert row["memory_bytes"] == max(worker["total"] for worker in memory["workers"])
        assert memory["device_bytes"] == 16e9
        for worker in memory["workers"]:
            assert worker["total"] == pytest.approx(sum(value for name, value in worker.items() if name != "total"))


def test_a_row_that_does_not_fit_is_marked_and_not_recommended() -> None:
    # Eight layers of width 1024 with 64 iterations in flight: more than 16 GB, unlike synchronous training.
    payload = question(method=["full-graph", "psc-gcn"], tau=[0, 64], overrides=["workload.hidden=512"])
    fits = {(row["method"], row["tau"]): row["fits"] for row in payload["results"]}
    assert fits["full-graph", 0] is True
    assert fits["psc-gcn", 64] is False
    assert payload["recommendation"]["tau"] < 64
    said = [text for text in payload["provenance"]["warnings"] if "does not fit" in text]
    assert len(said) == 1
    assert said[0].startswith("psc-gcn on 2 GPUs does not fit: ")
    from gcnsim.report import render_table

    assert "!" in render_table(payload, 160)


def test_nothing_is_known_of_cores() -> None:
    payload = question(device="cpu-core")
    assert [row["fits"] for row in payload["results"]] == [None, None]
    assert payload["memory"][0]["device_bytes"] is None
