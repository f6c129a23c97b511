"""Timelines: OpKind, phases and spans, the same for simulated and measured runs."""

from gcnsim.timeline.span import (
    KIND_CODE,
    KINDS,
    PHASE,
    PS_PER_S,
    Direction,
    Intervals,
    OpKind,
    Phase,
    Span,
    Sweep,
    Timeline,
    of_kinds,
)

__all__ = [
    "KINDS",
    "KIND_CODE",
    "PHASE",
    "PS_PER_S",
    "Direction",
    "Intervals",
    "OpKind",
    "Phase",
    "Span",
    "Sweep",
    "Timeline",
    "of_kinds",
]
