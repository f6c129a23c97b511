"""The lengths of one worker's kernels as they were measured, iteration by iteration, in place of those of the laws.

The rules are the simulator's (`gcnsim.records.compute_facts`): one measured operation that is two kernels here is
shared as the laws would, what was not measured takes no time, and what has no kernel here is added to the map of its
layer or to the step, as is the time in which the GPU waits for the host. Links say what copies and messages take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from gcnsim.core.ids import FloatArray, Layer
from gcnsim.core.streams import stream
from gcnsim.records.compute_facts import (
    LOOKUP,
    STEP,
    MeasuredPart,
    OpKey,
    in_schedule_words,
    placed,
    replayed,
    unmeasured,
)
from gcnsim.timeline import Direction, OpKind
from runtime.accelerator.lengths import Layered, OpSeconds

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
LOSS: Final = OpKey(OpKind.LOSS, -1, Direction.NONE)
SAMPLE: Final = OpKey(OpKind.SAMPLE, -1, Direction.NONE)
INDEX: Final = OpKey(OpKind.INDEX, -1, Direction.NONE)


class MeasuredSeconds(OpSeconds):
    """Lengths of a part that was measured, on a device as slow as that of the laws."""

    def __init__(
        self,
        part: MeasuredPart,
        *arguments: Any,
        exchanges: bool,
        samples: bool,
        picks: bool,
        period: int | None,
        seed: int,
        **named: Any,
    ) -> None:
        """exchanges: whether boundary rows travel. samples: whether a thread draws graphs. picks: whether the device
        then picks their entries. period: iterations from one refresh of the sampling probabilities to the next, if
        there is any. seed: of the order in which they are replayed. Other arguments as of `OpSeconds`."""
        super().__init__(*arguments, **named)
        order = replayed(part.refreshing, period or 1, stream(seed, "measured compute", self._part.rank))
        own = {key: values[order] for key, values in in_schedule_words(part, on_host=not picks).items()}
        looked_up = own.pop(LOOKUP, None)
        self._measured = placed(own, set(self._keys(exchanges=exchanges, samples=samples, picks=picks)))
        self.layers = [self._of_layer(layer, law) for layer, law in enumerate(self.layers)]
        self._measured[STEP] = self._measured[STEP] + part.outside_s
        self.loss, self.step = (self._slowed(self._seconds(key, np.zeros(1))) for key in (LOSS, STEP))
        rows = part.drawn.get("hits")
        if looked_up is not None and rows:
            self.lookup = self._slowed(looked_up * (float(self._drawn.hits.mean()) / rows))

    def draw_edges(self, refresh: int, *, weighted: bool) -> FloatArray:
        """See `OpSeconds`."""
        return self._seconds(SAMPLE, np.zeros(1))

    def draw_nodes(self, rate: float) -> FloatArray:
        """See `OpSeconds`."""
        return self._seconds(SAMPLE, np.zeros(1))

    def pick(self) -> FloatArray:
        """See `OpSeconds`."""
        return self._seconds(INDEX, np.zeros(1))

    def _keys(self, *, exchanges: bool, samples: bool, picks: bool) -> Iterator[OpKey]:
        """The operations that a worker here has."""
        yield from (LOSS, STEP)
        if samples:
            yield SAMPLE
        if picks:
            yield INDEX
        for layer in range(len(self.layers)):
            for direction in (FORWARD, BACKWARD):
                yield OpKey(OpKind.UPDATE, layer, direction)
                if layer or direction is FORWARD:
                    yield OpKey(OpKind.AGGREGATE, layer, direction)
                    if exchanges:
                        yield OpKey(OpKind.PACK, layer, direction)
                        yield OpKey(OpKind.SCATTER, layer, direction)

    def _seconds(self, key: OpKey, law: FloatArray) -> FloatArray:
        """Of each measured iteration; `law`: in which case it has none."""
        return self._measured[key] if key in self._measured else unmeasured(key, law)

    def _of_layer(self, layer: Layer, law: Layered) -> Layered:
        def found(kind: OpKind, direction: Direction, seconds: FloatArray) -> FloatArray:
            return self._slowed(self._seconds(OpKey(kind, layer, direction), seconds))

        summed = found(OpKind.AGGREGATE, FORWARD, law.cost.aggregate)
        returned = found(OpKind.AGGREGATE, BACKWARD, law.cost.aggregate_backward)
        share, share_back = _share(law.inner_sum, law.cross_sum), _share(law.inner_sum_back, law.cross_sum_back)
        cost = replace(
            law.cost,
            aggregate=summed,
            update=found(OpKind.UPDATE, FORWARD, law.cost.update),
            update_backward=found(OpKind.UPDATE, BACKWARD, law.cost.update_backward),
            aggregate_backward=returned,
        )
        return Layered(
            cost=cost,
            inner_sum=share * summed,
            cross_sum=(1.0 - share) * summed,
            inner_sum_back=share_back * returned,
            cross_sum_back=(1.0 - share_back) * returned,
            pack=found(OpKind.PACK, FORWARD, law.pack),
            unpack=found(OpKind.SCATTER, FORWARD, law.unpack),
            pack_back=found(OpKind.PACK, BACKWARD, law.pack_back),
            unpack_back=found(OpKind.SCATTER, BACKWARD, law.unpack_back),
        )


def _share(part: FloatArray, rest: FloatArray) -> float:
    """Of two kernels' time, that of the first by the laws."""
    whole = float(part.mean() + rest.mean())
    return float(part.mean()) / whole if whole > 0 else 1.0
