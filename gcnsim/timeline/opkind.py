"""OpKind and its phase: the one table used by schedules, engines, runtime and reports (DESIGN, section 2)."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """What a span's time is spent on."""

    SAMPLING = "sampling"
    TRANSFER = "transfer"
    WAIT = "wait"
    COMPUTE = "compute"
    REDUCE = "reduce"
    OPTIMIZER = "optimizer"


class OpKind(StrEnum):
    """One step of an iteration; simulated and measured spans use the same words."""

    SAMPLE = "sample"
    LOOKUP = "lookup"
    CACHE_REFRESH = "cache_refresh"
    INDEX = "index"
    GATHER = "gather"
    PACK = "pack"
    D2H = "d2h"
    WIRE = "wire"
    H2D = "h2d"
    UNPACK = "unpack"
    SCATTER = "scatter"
    WAIT = "wait"
    AGGREGATE = "aggregate"
    UPDATE = "update"
    LOSS = "loss"
    ATTENTION = "attention"
    QUANTISE = "quantise"
    ALLREDUCE = "allreduce"
    STEP = "step"


PHASE: dict[OpKind, Phase] = {
    OpKind.SAMPLE: Phase.SAMPLING,
    OpKind.LOOKUP: Phase.SAMPLING,
    OpKind.CACHE_REFRESH: Phase.SAMPLING,
    OpKind.INDEX: Phase.SAMPLING,
    OpKind.GATHER: Phase.TRANSFER,
    OpKind.PACK: Phase.TRANSFER,
    OpKind.D2H: Phase.TRANSFER,
    OpKind.WIRE: Phase.TRANSFER,
    OpKind.H2D: Phase.TRANSFER,
    OpKind.UNPACK: Phase.TRANSFER,
    OpKind.SCATTER: Phase.TRANSFER,
    OpKind.WAIT: Phase.WAIT,
    OpKind.AGGREGATE: Phase.COMPUTE,
    OpKind.UPDATE: Phase.COMPUTE,
    OpKind.LOSS: Phase.COMPUTE,
    OpKind.ATTENTION: Phase.COMPUTE,
    OpKind.QUANTISE: Phase.COMPUTE,
    OpKind.ALLREDUCE: Phase.REDUCE,
    OpKind.STEP: Phase.OPTIMIZER,
}
