"""Which rows the platforms' figures were fitted to: they show how well a fit holds, the others how well it carries."""

from __future__ import annotations

from typing import Final

from gcnsim.methods import COMPARED
from gcnsim.reproduction.facts import Row
from gcnsim.reproduction.row_scenario import RowScenario
from gcnsim.reproduction.systems import CAGNET

MOST_WORKERS: Final = 24
"""Larger settings are judged, not fitted: what they compute is not explained by any efficiency (docs/reproduce.md)."""


def is_fitted(row: Row, one: RowScenario) -> bool:
    """Whether a figure follows from this row, of its platform or of its device.

    Sampled edges, attention and other systems that a paper compares with are judged by figures fitted to the rest, and
    so is the sampling of an iteration, of which no figure is.
    """
    method, model = one.scenario.method, one.scenario.workload.model
    if one.scenario.cluster.gpus > MOST_WORKERS:
        return False
    known = row.fields.get("method") == CAGNET or (
        method.name in COMPARED and not method.sampling().drops_edges and model != "gat"
    )
    return row.use == "calibrate" and known and row.metrics != ("overhead_pct",)
