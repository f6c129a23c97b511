"""The colours of the page, each with one meaning on all of it; Okabe and Ito's where all readers must tell them apart.

Hatching, dashes, marker shapes and words say the same again for print without colour.
"""

from __future__ import annotations

from typing import Final

COMPUTE: Final = "#0072B2"
EXPOSED: Final = "#D55E00"
"""Communication: filled where it is exposed, hatched where it is hidden."""
OTHER: Final = "#8A8F98"
RECOMMENDED: Final = "#00684A"
ASSUMPTION: Final = "#B59A00"
BUSY: Final = "#4B2E83"
"""The full end of the scale of the heat map; an idle worker or link is white."""
SETTINGS: Final = (
    ("#CC79A7", "5px,2px", "square"),
    ("#56B4E9", "9px,3px,2px,3px", "diamond"),
    ("#6B4226", "2px,2px", "triangle-up"),
    ("#7CB518", "11px,4px", "x"),
    ("#C2185B", "11px,4px,3px,4px", "star"),
    ("#000000", "1px,3px", "cross"),
)
"""Lines of settings other than the recommended one: colour, dashes, marker."""

INK: Final = "#1F2933"
MUTED: Final = "#52606D"
GRID: Final = "#E3E7EC"
"""Text and lines, which mean nothing."""

MEANINGS: Final = {
    "compute": COMPUTE,
    "communication": EXPOSED,
    "other": OTHER,
    "recommended": RECOMMENDED,
    "assumption": ASSUMPTION,
    "busy": BUSY,
}


def shade(share: float) -> str:
    """The colour of a utilization in [0, 1], from white to `BUSY`.

    >>> shade(0.0), shade(1.0)
    ('#FFFFFF', '#4B2E83')
    """
    part = min(1.0, max(0.0, share))
    mixed = (round(255 + (int(BUSY[i : i + 2], 16) - 255) * part) for i in (1, 3, 5))
    return "#" + "".join(f"{value:02X}" for value in mixed)
