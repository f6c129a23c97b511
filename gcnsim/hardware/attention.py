"""What graph attention costs a core beside its sums over neighbours, as a calibration finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from gcnsim.shapes import Amount, As, Keys

ATTENTION_TERMS: Final = ("call", "entry", "entry_head", "entry_value", "row_value")
"""Of a pass over a layer: calls; entries, once and once for each head; values of the rows that entries read, and of the
rows themselves."""


@dataclass(frozen=True, slots=True)
class AttentionFigures:
    """Seconds of one of each of ATTENTION_TERMS: forward, and backward."""

    forward: Annotated[Mapping[str, float], As(Keys.of(ATTENTION_TERMS, Amount))]
    """Seconds of one of each, forward."""
    backward: Annotated[Mapping[str, float], As(Keys.of(ATTENTION_TERMS, Amount))]
    """The same backward."""
