"""Timelines: OpKind, phases and spans, the same for simulated and measured runs."""

from gcnsim.timeline.intervals import Intervals
from gcnsim.timeline.opkind import PHASE, OpKind, Phase
from gcnsim.timeline.span import KIND_CODE, KINDS, PS_PER_S, Direction, Span, Timeline

__all__ = ["KINDS", "KIND_CODE", "PHASE", "PS_PER_S", "Direction", "Intervals", "OpKind", "Phase", "Span", "Timeline"]
