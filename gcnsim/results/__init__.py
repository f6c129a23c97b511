"""Results: built once as dataclasses, read by JSON, tables, pages, comparison and the Python API."""

from gcnsim.results.advice import (
    Alternative,
    Confidence,
    Excluded,
    LeftOutRow,
    NoEffect,
    Recommendation,
    RuleReport,
    Step,
)
from gcnsim.results.asked import (
    Explanation,
    FaultFree,
    MeasuredReport,
    PartitionSeeds,
    PricesReport,
    TargetReport,
    TargetRow,
    TimeAgain,
)
from gcnsim.results.documents import RunLength, SimulationReport, WhatIf
from gcnsim.results.grounds import Assumed, AssumptionEffect, Bounds, Budget, Certainty, Provenance
from gcnsim.results.loads import LinkTraffic, LinkUse, MemoryReport, StragglerReport, Utilization, WorkerUse
from gcnsim.results.plain import from_plain, to_plain
from gcnsim.results.row import KEYS, Row

__all__ = [
    "KEYS",
    "Alternative",
    "Assumed",
    "AssumptionEffect",
    "Bounds",
    "Budget",
    "Certainty",
    "Confidence",
    "Excluded",
    "Explanation",
    "FaultFree",
    "LeftOutRow",
    "LinkTraffic",
    "LinkUse",
    "MeasuredReport",
    "MemoryReport",
    "NoEffect",
    "PartitionSeeds",
    "PricesReport",
    "Provenance",
    "Recommendation",
    "Row",
    "RuleReport",
    "RunLength",
    "SimulationReport",
    "Step",
    "StragglerReport",
    "TargetReport",
    "TargetRow",
    "TimeAgain",
    "Utilization",
    "WhatIf",
    "WorkerUse",
    "from_plain",
    "to_plain",
]
