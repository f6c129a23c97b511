"""How near corrected draws of the assumptions come to simulated ones, over drawn settings.

    python -m studies.corrected_draws [SETTINGS]

Each setting is simulated in every joint draw. Printed are, over the settings, the median, the 90th percentile and the
largest relative error of both ends of the 90 % range: estimated, and corrected by runs as in answers. The settings are
drawn from a fixed seed, of up to eight GPUs.
"""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import numpy as np

from gcnsim.api.question import settings
from gcnsim.planning.candidate import central
from gcnsim.planning.study import Studies, key_of
from gcnsim.simulation.assumed import DRAWS
from gcnsim.simulation.open_assumptions import DrawnRuns, paces_to_factors


def drawn(random: Random) -> dict[str, Any]:
    """The options of one setting."""
    method = random.choice(["full-graph", "pipegcn", "bns-gcn", "psc-gcn"])
    knobs: dict[str, Any] = {"rate": random.choice([0.1, 0.5])} if method == "bns-gcn" else {}
    if method == "psc-gcn":
        knobs = {"tau": random.choice([0, 1, 2, 3]), "epsilon": random.choice([0.1, 0.3, 1.0])}
        knobs["cache"] = random.choice(["0%", "30%"])
    return {
        "dataset": random.choice(["reddit", "ogbn-products", "yelp"]),
        "gpus": random.choice([2, 3, 4, 6, 8]),
        "bandwidth": random.choice(["5Gbps", "10Gbps", "15Gbps", "25Gbps", "100Gbps"]),
        "device": random.choice(["t4", "v100-16", "a100-40", "a10g"]),
        "method": method,
        **knobs,
    }


def errors(options: dict[str, Any]) -> list[float]:
    """Relative errors of the low and the high end: estimated, then corrected."""
    (scenario,) = settings(**options)
    studies, key = Studies(scenario), key_of(scenario)
    runs = DrawnRuns.of(key[0], studies.accesses_of(key), studies.seed)
    paces = paces_to_factors([runs.pace(draw) for draw in range(DRAWS + 1)])
    left_open, seconds = studies.factors(*key), studies.result(*key).metrics.iteration_s
    wanted = central(paces * left_open.scaled(seconds, left_open.apart))
    found = (*central(studies.estimated(key)), *central(studies.drawn(key)))
    return [one / other - 1.0 for one, other in zip(found, (*wanted, *wanted), strict=True)]


def main() -> None:
    """Print the table."""
    random = Random(7)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    table = np.abs(np.array([errors(drawn(random)) for _ in range(count)]))
    lines = [f"{'':10}{'estimated low':>16}{'high':>8}{'corrected low':>16}{'high':>8}"]
    for name, row in (
        ("median", np.median(table, axis=0)),
        ("90th", np.quantile(table, 0.9, axis=0)),
        ("largest", table.max(axis=0)),
    ):
        lines.append(f"{name:10}{row[0]:16.1%}{row[1]:8.1%}{row[2]:16.1%}{row[3]:8.1%}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
