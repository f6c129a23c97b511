"""Results: built once as dataclasses, read by JSON, tables, pages, comparison and the Python API."""

from gcnsim.core.shapes import from_plain, to_plain
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
from gcnsim.results.column import Column, Form, Table, When
from gcnsim.results.documents import (
    LinkTraffic,
    LinkUse,
    MemoryReport,
    RunLength,
    SimulationReport,
    StragglerReport,
    Utilization,
    WhatIf,
    WorkerUse,
)
from gcnsim.results.optional_sections import (
    Differs,
    EnergyReport,
    EnergyRow,
    Explanation,
    FailuresReport,
    FaultFree,
    MeasuredReport,
    OtherPricing,
    PartitionSeeds,
    PricesReport,
    RecordedCurve,
    Suspect,
    TargetReport,
    TargetRow,
    TimeAgain,
)
from gcnsim.results.provenance import (
    Assumed,
    AssumptionEffect,
    Bounds,
    Certainty,
    LikeQuestions,
    MeasuredTimes,
    Provenance,
    Unlike,
)
from gcnsim.results.recommended import (
    Advice,
    BudgetReport,
    Change,
    Confirmed,
    GoalReport,
    KnobEffect,
    Missed,
    OtherRule,
    PointReport,
    RunnerUp,
    SearchReport,
)
from gcnsim.results.row import KEYS, Row
from gcnsim.results.tables import COLUMNS, FLAT, OF_SETTING, RESULTS
