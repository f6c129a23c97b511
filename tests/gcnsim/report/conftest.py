"""A realistic what-if payload, made afresh for every test."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.report.figures.curves import Curve, Series

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
        "limited_by": {"text": limit, "kind": "nic" if "NIC" in limit else "compute", "share": None, "worker": None},
        "may_be_recommended": True,
        "excluded_because": None,
        "recommended": key[3] == 0.25,
        "vs_recommended": None,
    } | MACHINE


def _provenance() -> dict[str, Any]:
    return {
        "graph": {
            "kind": "published-statistics",
            "text": "reddit: 232,965 nodes; boundary nodes of 6 partitions from the published table",
        },
        "model": "gcn",
        "device": "t4: datasheet peaks, efficiencies assumed",
        "interval": "90 % interval over the drawn samples and the assumed ranges; no calibration residuals yet",
        "assumptions": [
            {
                "name": "cross_edges_per_boundary_node",
                "value": "4",
                "low": "2",
                "high": "9.5",
                "basis": "the published table does not say; range of four real graphs partitioned the same way",
                "in_interval": True,
            },
            {
                "name": "overlap slowdown",
                "value": "1.05",
                "low": "1",
                "high": "12%",
                "basis": "not measured yet",
                "in_interval": False,
            },
        ],
        "measured": [],
        "calibration": "none: predictions rest on datasheet numbers",
        "engine": "reference",
        "version": "0.1.0",
        "seed": 0,
        "scenario_hash": "8c5f0f1a77b0c4f2",
        "bounds": [],
        "warnings": ["the last server holds 1 of 3 GPUs"],
    }


MACHINE: dict[str, Any] = {"dataset": "reddit", "device": "t4", "gpus": 6, "bandwidth": "15Gbps"}


@pytest.fixture
def payload() -> dict[str, Any]:
    full = sum(next(iter(_TIMES.values()))[:3])
    return {
        "schema": "gcnsim.what-if/1",
        "scenario": {
            "cluster": {"device": "t4"},
            "workload": {"dataset": "reddit"},
            "grid": [{"gpus": 6, "bandwidth": "15Gbps", "device": "t4"} for _ in _TIMES],
        },
        "provenance": _provenance(),
        "results": [_result(key, full) for key in _TIMES],
        "recommendation": {
            "why": "fastest of 3 simulated candidates (24 ranked by the analytic bound); communication is fully hidden",
            "verdict": "Use psc-gcn with tau 2, epsilon 0.1 and a cache of 25 %: 418 ms an iteration.",
            "confidence": {"share": 0.94, "text": "94 %: in 60 of 64 draws"},
            "note": None,
            "rule": {
                "methods": ["psc-gcn"],
                "min_sampling_rate": 0.1,
                "max_staleness": 2,
                "text": "methods asked for, rates of at least 0.1",
            },
            "excluded": [],
            "row": _result(list(_TIMES)[3], full),
            "in_results": 3,
            "alternatives": [],
        },
        "next_steps": [
            _step("bandwidth", "15Gbps", "30Gbps", 0.4181, (0.0001, -0.01, 0.02)),
            _step("epsilon", 0.1, 0.05, 0.3712, (0.1124, 0.08, 0.16)),
            _step("tau", 2, 1, 0.4495, (-0.0748, -0.1, -0.05)),
        ],
        "no_effect": [],
        "straggler": None,
        "certainty": {
            "calibrated": False,
            "label": "UNCALIBRATED",
            "draws": 64,
            "simulated": [],
            "method": "joint draws",
            "assumptions": [],
        },
    }


def _step(knob: str, start: object, end: object, seconds: float, gain: tuple[float, float, float]) -> dict[str, Any]:
    mean, low, high = gain
    return {"knob": knob, "from": start, "to": end, "iteration_s": seconds} | {
        "gain": mean,
        "gain_low": low,
        "gain_high": high,
        "distinguishable": low * high > 0,
        "fits": True,
        "too_approximate": False,
    }


def _limit(row: dict[str, Any]) -> dict[str, Any]:
    nic = row["bottleneck"] == "NIC bandwidth"
    return {
        "text": "NIC of server 2" if nic else "GPU compute of worker 4",
        "kind": "nic" if nic else "compute",
        "share": 0.33 if nic else 0.22,
        "kind_share": 0.58 if nic else 0.9,
        "worker": 4,
    }


def _recommend(payload: dict[str, Any], best: dict[str, Any]) -> None:
    """`best`, which is no row of the results, is the recommended setting."""
    payload["recommendation"] |= MACHINE | {
        "method": "psc-gcn",
        "tau": 1,
        "epsilon": 0.1,
        "rate": 1.0,
        "cache_fraction": 0.3,
        "iteration_s": 0.25,
        "iteration_s_low": 0.21,
        "iteration_s_high": 0.31,
        "setting": "",
        "fits": True,
        "row": best,
        "in_results": None,
        "verdict": "Use psc-gcn with tau 1, epsilon 0.1 and a cache of 30 %: 250 ms an iteration (210 to 310).",
        "confidence": {"share": 0.94, "text": "94 %: in 60 of 64 draws"},
        "rule": {
            "methods": ["psc-gcn"],
            "min_sampling_rate": 0.1,
            "max_staleness": 2,
            "text": "methods that were asked for, rates of at least 0.1",
        },
        "excluded": [{"what": f"bns-gcn, rate 0.0{k}", "why": "below the least rate 0.1"} for k in range(1, 7)],
        "limited_by": _limit(best),
        "note": "a faster network changes nothing",
        "alternatives": [{"role": "cheapest", "row": best | {"gpus": 4}, "why": "half the GPUs, 1.2 times the time"}],
    }


def _say_more(payload: dict[str, Any]) -> None:
    """Straggler, certainty and utilization."""
    payload["straggler"] = {
        "worker": 4,
        "boundary_nodes": 149552,
        "boundary_nodes_mean": 91725.0,
        "share_of_mean": 1.63,
        "even_s": 0.2,
        "text": "worker 4 has 149,552 boundary nodes (mean 91,725)",
    }
    ends = {"t4.spmm_efficiency": (0.31, 0.21), "ethernet.latency_s": (0.25, 0.25), "cross_edges": (0.24, 0.27)}
    payload["certainty"] = {
        "calibrated": False,
        "label": "UNCALIBRATED",
        "draws": 64,
        "simulated": [],
        "method": "joint draws",
        "assumptions": [
            {"name": name, "value": "60%", "low": "40%", "high": "80%", "basis": "published kernels"}
            | {"iteration_s_low": low, "iteration_s_high": high, "share": 0.5}
            for name, (low, high) in ends.items()
        ],
    }
    stages = {"sampler": 0.3, "copies": 0.2, "reduce": 0.1, "waiting": 0.5}
    payload["utilization"] = {
        "workers": [{"worker": k, "server": k // 2, "gpu": 0.1 * k} | stages for k in range(6)],
        "links": [
            {"name": f"nic{k}.{way}", "kind": "nic", "server": k, "utilization": 0.997 if k == 2 else 0.66}
            for k in range(3)
            for way in ("tx", "rx")
        ]
        + [{"name": f"pcie{k}.up", "kind": "pcie", "server": k // 2, "utilization": 0.05} for k in range(6)]
        + [{"name": "rack0.up", "kind": "rack", "server": None, "utilization": 0.4}],
    }


def _cost(of_thousand: float) -> dict[str, Any]:
    """Costs of a row, of which 1,000 iterations cost `of_thousand` USD."""
    one = of_thousand / 1000
    each = {"per_iteration": one, "per_1000_iterations": of_thousand, "per_epoch": one}
    return {"currency": "USD", "per_hour": 3.156, **each, "price": "0.526 USD/h a GPU", "of": None}


@pytest.fixture
def answered(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload with all that an answer says: the recommended setting is one that was not asked for."""
    for row in payload["results"]:
        ratio = row["iteration_s"] / 0.25 - 1.0
        row |= {
            "limited_by": _limit(row),
            "cost": _cost(0.877 * row["iteration_s"]),
            "recommended": False,
            "vs_recommended": {"low": ratio - 0.1, "high": ratio + 0.1, "distinguishable": True},
        }
    parts = {"compute_s": 0.2, "exposed_comm_s": 0.03, "exposed_other_s": 0.02, "hidden_comm_s": 0.2}
    best = payload["results"][3] | parts | {"iteration_s": 0.25, "iteration_s_low": 0.21, "iteration_s_high": 0.31}
    best |= {"tau": 1, "epoch_s": 0.25, "cache_fraction": 0.3, "speedup_vs_full_graph": 8.2, "vs_recommended": None}
    best |= {"recommended": True, "cost": _cost(0.0219)}
    _recommend(payload, best)
    payload["no_effect"] = [{"knob": "rate", "why": "psc-gcn draws edges, not nodes"}]
    _say_more(payload)
    return payload


@pytest.fixture
def curve() -> Curve:
    bandwidths = tuple(1.25e8 * factor for factor in (1, 2, 5, 10, 15, 25, 50, 100))
    series = []
    for name, floor, sent in (("full-graph", 0.418, 3.07e9), ("pipegcn", 0.437, 2.6e9), ("psc-gcn", 0.418, 5.4e8)):
        wait = 0.0 if name == "full-graph" else 1.0
        seconds = tuple(max(floor, sent / width) if wait else floor + sent / width for width in bandwidths)
        low, high = tuple(0.93 * value for value in seconds), tuple(1.08 * value for value in seconds)
        series.append(Series(name, bandwidths, seconds, low, high))
    return Curve("bandwidth", tuple(series), requested=(1.875e9,))
