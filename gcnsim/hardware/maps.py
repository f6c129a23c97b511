"""What learnt maps and the loss over their logits cost a core, as a calibration finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from gcnsim.shapes import Amount, As, Keys, Positive, Within

MAP_TERMS: Final = (
    "call",
    "flop",
    "read_byte",
    "written_byte",
    "weight_call",
    "weight_flop",
    "weight_read_byte",
    "weight_gradient_byte",
)
"""Of rows times weights: calls, floating-point operations, bytes of the rows read and of those written. Of the weights'
gradient, a product over all rows: calls, operations, bytes of the rows and of the gradients that are read."""


@dataclass(frozen=True, slots=True)
class MapFigures:
    """What learnt maps, their gradients and the loss cost a core."""

    seconds: Annotated[Mapping[str, float], As(Keys.of(MAP_TERMS, Amount))]
    """Of one of each term: rows times weights, and the weights' gradient."""
    loss: Annotated[tuple[tuple[Positive, Positive], ...], Within(min_items=1)]
    """Pairs of classes, ascending, and seconds a row of the loss, its gradient and the count of right answers."""
