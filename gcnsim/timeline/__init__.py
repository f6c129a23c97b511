"""Timelines: OpKind, phases and spans, the same for simulated and measured runs."""

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
    Span,
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
    "Span",
    "Timeline",
    "of_kinds",
]
