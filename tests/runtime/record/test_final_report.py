from __future__ import annotations

from typing import Any

from runtime.record import breakdown

FINAL: dict[str, Any] = {
    "method": "psc-gcn",
    "workers": 2,
    "iterations": 1200,
    "test_accuracy": 0.963,
    "val_accuracy": 0.9711,
    "final_loss": 0.123456,
    "iteration_s": 0.02,
    "compute_s": 0.015,
    "wait_s": 0.0004,
    "transfer_s": 0.012,
    "sampling_s": 0.0,
    "bytes_sent": 1200 * 2**20,
    "cache_hit_rate": 0.3,
    "seconds": 25.2,
}


def test_the_table_is_aligned_with_units() -> None:
    assert breakdown(FINAL).splitlines() == [
        "psc-gcn: 1,200 iterations on 2 workers in 25.2 s",
        "",
        "  test accuracy        96.3 %",
        "  validation accuracy  97.1 %",
        "  final loss           0.1235",
        "  bytes sent           1.17 GiB, 1.00 MiB an iteration",
        "  cache hit rate       30.0 %",
        "",
        "Per iteration, slowest worker; activities may overlap:",
        "  iteration (mean)  20.0 ms  100.0 %",
        "  compute           15.0 ms   75.0 %",
        "  waiting            400 us    2.0 %",
        "  transfers         12.0 ms   60.0 %",
        "  sampling              0 s    0.0 %",
    ]


def test_what_is_not_known_is_a_dash_and_extras_have_their_lines() -> None:
    nothing = dict.fromkeys(FINAL) | {"method": "full-graph", "workers": 1, "iterations": 1, "seconds": 0.5}
    text = breakdown(nothing | {"reduce_s": 0.25, "optimizer_s": None, "evaluation_s": 1.0})
    assert "1 iterations on 1 worker in 500 ms" in text
    lines = {name.strip(): rest.strip() for name, _, rest in (line[2:].partition("  ") for line in text.splitlines())}
    dashes = (
        "test accuracy",
        "final loss",
        "bytes sent",
        "cache hit rate",
        "iteration (mean)",
        "compute",
        "optimizer",
    )
    assert [lines[title] for title in dashes] == ["-"] * len(dashes)
    assert (lines["all-reduce"], lines["evaluation"]) == ("250 ms", "1.00 s")
