"""The exact ends, in picoseconds, of three small runs, stored: a change of results does not pass unseen.

If this fails and the change was meant, say why in CHANGELOG.md and store the new results:
`GCNSIM_STORE=1 pytest tests/back`. Every number of these runs is in tests/conftest.py; no catalogue figure enters.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcnsim.engine import simulate
from gcnsim.schedule import Schedule
from gcnsim.schedule.schedule import Op
from tests.cases import Case, method

STORED = Path(__file__).with_name("exact_ends.json")
NOTE = "Stored exact results: a change here needs a line in CHANGELOG.md that says why (tests/back/test_exact_ends.py)."
ITERATIONS = 8

RUNS: dict[str, dict[str, Any]] = {
    "full-graph": {"workers": 3, "per_server": 2, "slope": 0.25, "startup": 2e-5},
    "pipegcn": {"workers": 4, "per_server": 2, "nic": 2e8, "slope": 0.1},
    "psc-gcn": {"workers": 3, "per_server": 1, "tau": 2, "sampled": True, "weighted": True, "iterations": 5,
                "spread": 0.5, "hits": 0.25, "nic": 3e8, "startup": 1e-4},
}  # fmt: skip


def results(name: str, facts: Callable[..., Case], label: Callable[[Schedule, Op], tuple[object, ...]]) -> Any:
    """Every worker's iteration ends, and a hash over the start and end of every op of every iteration by its name."""
    schedule = method(name)(facts(**RUNS[name]))
    run = simulate(schedule, ITERATIONS)
    lines = [
        f"{label(schedule, op)} {run.starts[:, op.index].tolist()} {run.ends[:, op.index].tolist()}"
        for op in schedule.ops
    ]
    return {
        "ops": len(schedule.ops),
        "iteration_ends_ps": run.ends[:, list(schedule.ends)].tolist(),
        "sha256": hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest(),
    }


@pytest.mark.parametrize("name", RUNS)
def test_ends_are_those_stored(
    name: str, facts: Callable[..., Case], label: Callable[[Schedule, Op], tuple[object, ...]]
) -> None:
    found = results(name, facts, label)
    if os.environ.get("GCNSIM_STORE") == "1":
        kept = json.loads(STORED.read_text()) if STORED.exists() else {}
        STORED.write_text(json.dumps(kept | {"note": NOTE, name: found}, indent=1, sort_keys=True) + "\n")
    assert found == json.loads(STORED.read_text())[name]
