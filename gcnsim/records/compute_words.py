"""From a recorder's words for operations to those of schedules, which simulations and waits share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Layer
from gcnsim.records.compute_facts import MeasuredPart, OpKey
from gcnsim.timeline import Direction, OpKind

MOVED: Final = (OpKind.WIRE, OpKind.ALLREDUCE, OpKind.D2H, OpKind.H2D, OpKind.WAIT)
"""What links and peers decide, in a schedule as in a file."""

SAME: Final = {OpKind.ATTENTION: OpKind.UPDATE, OpKind.UNPACK: OpKind.SCATTER, OpKind.CACHE_REFRESH: OpKind.SAMPLE}
"""A recorder's words for operations that schedules have another word for."""

WITHOUT_LAYER: Final = (OpKind.LOSS, OpKind.STEP, OpKind.SAMPLE, OpKind.INDEX)
"""Operations of a schedule that have neither layer nor direction."""

LOOKUP: Final = OpKey(OpKind.LOOKUP, 0, Direction.FORWARD)
STEP: Final = OpKey(OpKind.STEP, -1, Direction.NONE)

WOKEN_S: Final = 1e-6
"""A thread that waited needs a core again before it can go on."""


def in_schedule_words(part: MeasuredPart, *, on_host: bool) -> dict[OpKey, FloatArray]:
    """Seconds of each measured iteration, float64[iterations], by the schedule's words.

    on_host: what tells the owners of a drawn graph's rows is the sampling thread's work.
    """
    found = dict[OpKey, FloatArray]()
    for column, key in enumerate(part.keys):
        if key.kind in MOVED:
            continue
        kind = SAME.get(key.kind, key.kind)
        kind = OpKind.SAMPLE if kind is OpKind.INDEX and on_host else kind
        own = OpKey(kind, -1, Direction.NONE) if kind in WITHOUT_LAYER else key._replace(kind=kind)
        found[own] = found.get(own, np.zeros(len(part.seconds))) + part.seconds[:, column]
    return found


def replayed(
    refreshing: BoolArray, period: int, generator: np.random.Generator, iterations: int | None = None
) -> IntArray:
    """Numbers of measured iterations, int64[iterations]: each kind equally often, as far as that goes, in random order.

    refreshing: bool[measured], which refreshed the sampling probabilities. Every `period`-th, from the first on, is one
    of these, where both kinds were measured. iterations: None takes the fewest periods that have all measured ones.
    """
    both = refreshing.any() and not refreshing.all()
    if iterations is None:
        refreshed = int(np.count_nonzero(refreshing))
        rounds = max(-(-(refreshing.size - refreshed) // (period - 1)) if period > 1 else 0, refreshed)
        iterations = rounds * period if both else refreshing.size
    due = np.arange(iterations) % period == 0 if both else np.full(iterations, refreshing.all())
    order = np.zeros(iterations, np.int64)
    for kind in (False, True):
        measured, wanted = np.flatnonzero(refreshing == kind), np.flatnonzero(due == kind)
        order[wanted] = generator.permutation(np.resize(generator.permutation(measured), wanted.size))
    return order


def placed(seconds: Mapping[OpKey, FloatArray], known: Collection[OpKey]) -> dict[OpKey, FloatArray]:
    """`seconds` by the operations `known` alone: what else there is belongs to the map of its layer, or to the step."""
    found = {key: values for key, values in seconds.items() if key in known}
    for key in [key for key in seconds if key not in known]:
        instead = OpKey(OpKind.UPDATE, key.layer, key.direction)
        instead = instead if instead in known else STEP
        found[instead] = found.get(instead, np.zeros(1)) + seconds[key]
    return found


def unmeasured(key: OpKey, law: FloatArray) -> FloatArray:
    """Seconds of an operation that a schedule has and the file lacks: the code that was measured does not do it."""
    return np.minimum(law, WOKEN_S if key.kind is OpKind.SCATTER else 0.0)


def first_gap(known: Collection[OpKey], layers: Iterable[Layer]) -> str | None:
    """In words, what every training has and `known` lacks: a layer's map, either way, or the step; None: nothing."""
    maps = (OpKey(OpKind.UPDATE, layer, way) for layer in layers for way in (Direction.FORWARD, Direction.BACKWARD))
    for key in (*maps, STEP):
        if key not in known:
            where = "" if key.layer < 0 else f" of layer {key.layer}, {key.direction.name.lower()}"
            return f"{key.kind}{where}"
    return None
