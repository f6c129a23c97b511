"""What GraphSAGE's pooling costs a core: the largest values of each row's neighbours, as a calibration finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from gcnsim.shapes import Amount, As, Keys

POOLING_TERMS: Final = ("call", "entry", "entry_value", "row_value", "made_value")
"""Of a pass over a layer: calls; entries; values of the rows that entries read, of the rows themselves, and of the rows
made."""


@dataclass(frozen=True, slots=True)
class PoolingFigures:
    """Seconds of one of each of POOLING_TERMS: forward, and backward."""

    forward: Annotated[Mapping[str, float], As(Keys.of(POOLING_TERMS, Amount))]
    """Seconds of one of each, forward."""
    backward: Annotated[Mapping[str, float], As(Keys.of(POOLING_TERMS, Amount))]
    """The same backward."""
