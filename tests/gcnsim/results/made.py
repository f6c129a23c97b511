"""A row of an answer as plain data, and answers out of these."""

from __future__ import annotations

from typing import Any

from gcnsim.results import WhatIf, from_plain

DOCUMENT: dict[str, Any] = {
    "dataset": "reddit",
    "gpus": 4,
    "device": "t4",
    "bandwidth": "25Gbps",
    "method": "pipegcn",
    "tau": 1,
    "epsilon": 1.0,
    "rate": 1.0,
    "cache_fraction": 0.0,
    "setting": "",
    "iteration_s": 1.0,
    "iteration_s_low": 0.9,
    "iteration_s_high": 1.2,
    "iterations_per_epoch": 1,
    "epoch_s": 1.0,
    "speedup_vs_full_graph": 1.3,
    "compute_s": 0.6,
    "exposed_comm_s": 0.3,
    "hidden_comm_s": 0.2,
    "exposed_other_s": 0.1,
    "sampling_s": 0.0,
    "bottleneck": "network (NIC)",
    "limited_by": {"text": "NIC of server 1", "kind": "nic", "share": 0.3, "kind_share": 0.9, "worker": 3},
    "memory_bytes": 6.0e9,
    "fits": True,
    "gpu_utilization": 0.6,
    "nic_utilization": 0.9,
    "cache_hit_rate": 0.0,
    "nic_bytes": 1.5e9,
}

PRICED: dict[str, Any] = DOCUMENT | {
    "cost": {
        "currency": "EUR",
        "per_hour": 2.0,
        "per_iteration": 5.6e-4,
        "per_1000_iterations": 0.56,
        "per_epoch": 5.6e-4,
        "price": "0.5 EUR/h a GPU (as given)",
        "of": None,
    }
}
"""The same with its costs."""

JUDGED: dict[str, Any] = DOCUMENT | {
    "may_be_recommended": False,
    "excluded_because": "was not asked for",
    "recommended": False,
    "vs_recommended": {"low": 0.1, "high": 0.3, "distinguishable": True},
}
"""The same beside a recommended setting."""


def answer_of(payload: dict[str, Any]) -> WhatIf:
    """The answer that plain data tell."""
    return from_plain(WhatIf, payload)
