"""The objects of JSON that hold some of the fields of a row."""

from __future__ import annotations

from typing import Final

from gcnsim.core.shapes import Nested

LIMIT: Final = Nested(
    "limited_by",
    "The resource without which the iteration would be shortest: its work takes no time then, everything else stays as "
    "it is.",
)
COST: Final = Nested(
    "cost", "Costs in the currency asked for, and by which price of an hour; absent where none is known.", "omitted"
)
DIFFERENCE: Final = Nested(
    "vs_recommended",
    "Epoch time over that of the recommended setting, less one, under the same draws of the assumptions; null for that "
    "setting itself.",
    "null",
)
