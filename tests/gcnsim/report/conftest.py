"""A realistic what-if payload, made afresh for every test."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.report import BandwidthCurve, Series

_TIMES = {  # method, tau, epsilon, cache: compute, exposed, other, hidden, sampling, hit rate, bytes, bottleneck
    ("full-graph", 0, 1.0, 0.0): (0.412, 1.638, 0.006, 0.0, 0.0, 0.0, 2.9e9, "NIC bandwidth"),
    ("pipegcn", 1, 1.0, 0.0): (0.431, 1.204, 0.006, 0.434, 0.0, 0.0, 2.9e9, "NIC bandwidth"),
    ("psc-gcn", 2, 0.1, 0.0): (0.388, 0.0213, 0.0297, 0.352, 0.0241, 0.0, 6.4e8, "GPU compute"),
    ("psc-gcn", 2, 0.1, 0.25): (0.387, 0.0, 0.0312, 0.271, 0.0256, 0.614, 4.7e8, "GPU compute"),
}


def _result(key: tuple[str, int, float, float], full: float) -> dict[str, Any]:
    compute, exposed, other, hidden, sampling, hits, sent, limit = _TIMES[key]
    total = compute + exposed + other
    return {
        "method": key[0],
        "tau": key[1],
        "epsilon": key[2],
        "rate": 1.0,
        "cache_fraction": key[3],
        "iteration_s": total,
        "iteration_s_low": 0.96 * total,
        "iteration_s_high": 1.05 * total,
        "compute_s": compute,
        "exposed_comm_s": exposed,
        "exposed_other_s": other,
        "hidden_comm_s": hidden,
        "sampling_s": sampling,
        "gpu_utilization": compute / total,
        "nic_utilization": min(1.0, sent / 1.875e9 / total),
        "cache_hit_rate": hits,
        "nic_bytes": sent,
        "speedup_vs_full_graph": full / total,
        "bottleneck": limit,
        "iterations_per_epoch": 1,
        "epoch_s": total,
        "setting": "",
        "memory_bytes": 6.1e9,
        "fits": True,
    }


@pytest.fixture
def payload() -> dict[str, Any]:
    full = sum(next(iter(_TIMES.values()))[:3])
    return {
        "schema": "gcnsim.what-if/1",
        "scenario": {
            "cluster": {"device": "t4"},
            "workload": {"dataset": "reddit"},
            "grid": [{"gpus": 6, "bandwidth": "15Gbps"} for _ in _TIMES],
        },
        "provenance": {
            "graph": {
                "kind": "published-statistics",
                "text": "reddit: 232,965 nodes; boundary nodes of 6 partitions from the published table",
            },
            "device": "t4: datasheet peaks, efficiencies assumed",
            "interval": "90 % interval over the drawn samples and the assumed ranges; no calibration residuals yet",
            "assumptions": [
                {
                    "name": "cross_edges_per_boundary_node",
                    "value": 4.0,
                    "low": 2.0,
                    "high": 9.5,
                    "basis": "the published table does not say; range of four real graphs partitioned the same way",
                    "in_interval": True,
                },
                {
                    "name": "overlap slowdown",
                    "value": 1.05,
                    "low": 1,
                    "high": "12%",
                    "basis": "not measured yet",
                    "in_interval": False,
                },
            ],
            "calibration": "none: predictions rest on datasheet numbers",
            "engine": "reference",
            "version": "0.1.0",
            "seed": 0,
            "scenario_hash": "8c5f0f1a77b0c4f2",
            "warnings": ["the last server holds 1 of 3 GPUs"],
        },
        "results": [_result(key, full) for key in _TIMES],
        "recommendation": {
            "method": "psc-gcn",
            "tau": 2,
            "epsilon": 0.1,
            "rate": 1.0,
            "cache_fraction": 0.25,
            "iteration_s": 0.4182,
            "why": "fastest of 3 simulated candidates (24 ranked by the analytic bound); communication is fully hidden",
        },
        "next_steps": [
            {"knob": "bandwidth", "from": "15Gbps", "to": "30Gbps", "iteration_s": 0.4181, "gain": 0.0001},
            {"knob": "epsilon", "from": 0.1, "to": 0.05, "iteration_s": 0.3712, "gain": 0.1124},
            {"knob": "tau", "from": 2, "to": 1, "iteration_s": 0.4495, "gain": -0.0748},
        ],
    }


@pytest.fixture
def curve() -> BandwidthCurve:
    bandwidths = tuple(1.25e8 * factor for factor in (1, 2, 5, 10, 15, 25, 50, 100))
    series = []
    for name, floor, sent in (("full-graph", 0.418, 3.07e9), ("pipegcn", 0.437, 2.6e9), ("psc-gcn", 0.418, 5.4e8)):
        wait = 0.0 if name == "full-graph" else 1.0
        seconds = tuple(max(floor, sent / width) if wait else floor + sent / width for width in bandwidths)
        low, high = tuple(0.93 * value for value in seconds), tuple(1.08 * value for value in seconds)
        series.append(Series(name, seconds, low, high))
    return BandwidthCurve(bandwidths, tuple(series))
