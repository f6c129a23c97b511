"""Timelines: spans, the same for simulated and measured runs, and the part of an iteration that each instant has."""

from gcnsim.timeline.span import (
    KIND_CODE,
    KINDS,
    PHASE,
    PS_PER_S,
    Direction,
    Intervals,
    IntervalSweep,
    OpKind,
    Phase,
    Timeline,
    of_kinds,
)

__all__ = [
    "KINDS",
    "KIND_CODE",
    "PHASE",
    "PS_PER_S",
    "Direction",
    "IntervalSweep",
    "Intervals",
    "OpKind",
    "Phase",
    "Timeline",
    "of_kinds",
]
