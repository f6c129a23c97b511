"""The step to parts with about equally many training nodes, where each worker trains those of its own part."""

from __future__ import annotations

from dataclasses import replace

from gcnsim.alternatives import PartitionVariant, partition_seconds, partition_setting
from gcnsim.partition import TRAINING_NODES
from gcnsim.planning.study_cache import StudyCache
from gcnsim.scenario import Scenario

KNOB = "training nodes"


def even_training(studies: StudyCache, scenario: Scenario, patience_s: float) -> PartitionVariant | None:
    """The scenario with METIS balancing training nodes too; None where even ones would not shorten an epoch, where
    somebody else cut the graph, and where METIS would take more than `patience_s` seconds.
    """
    graph, spec = studies.accesses.graph, scenario.partition
    if graph is None or spec.file is not None or spec.balance == TRAINING_NODES:
        return None
    shares = studies.accesses.training_shares(scenario)
    balanced = replace(spec, method="metis", balance=TRAINING_NODES)
    if shares is None or not shares.uneven or partition_seconds(graph.entries, balanced) > patience_s:
        return None
    return PartitionVariant(partition_setting(balanced), replace(scenario, partition=balanced))
