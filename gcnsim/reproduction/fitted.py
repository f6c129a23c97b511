"""Which rows the platforms' figures were fitted to: they show how well a fit holds, the others how well it carries."""

from __future__ import annotations

from typing import Final

from gcnsim.methods import BASELINE, COMPARED
from gcnsim.reproduction.facts import Row
from gcnsim.reproduction.row_scenario import RowScenario

MOST_WORKERS: Final = 24
"""Larger settings take as long to simulate as all others together: they are judged, not fitted."""


def is_fitted(row: Row, one: RowScenario) -> bool:
    """Whether a figure follows from this row, of its platform or of its system's partitioner.

    Other systems, samplings and models that a paper compares with are judged by the figures of its own.
    """
    scenario = one.scenario
    if row.use != "calibrate" or scenario.cluster.gpus > MOST_WORKERS:
        return False
    plain = (
        scenario.method.name in COMPARED
        and not scenario.method.sampling().drops_edges
        and scenario.workload.model != "gat"
    )
    return plain or one.system.base != BASELINE
