"""The colours of pages and figures, each with one meaning; Okabe and Ito's where they must be distinguished.

Hatching, dashes, marker shapes and words repeat the meaning for print without colour. A theme assigns the same meanings
on another background: a figure drawn in the light theme becomes a dark one by replacing each colour (`replacements`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Final

COMPUTE: Final = "#0072B2"
EXPOSED: Final = "#D55E00"
"""Communication: filled if exposed, hatched if hidden."""
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

SAMPLING: Final = "#E69F00"
REDUCE: Final = "#A0337A"
OPTIMIZER: Final = "#009E73"
IDLE: Final = "#C9CFD6"
"""Time in which nothing runs, or in which a worker only waits for a peer."""
HATCHED: Final = "#FBE3D3"
"""The background of hatching."""

INK: Final = "#1F2933"
MUTED: Final = "#52606D"
GRID: Final = "#E3E7EC"
PAPER: Final = "#FFFFFF"
"""Text, lines and backgrounds, which have no meaning."""


@dataclass(frozen=True, slots=True)
class Theme:
    """A colour, `#RRGGBB`, for each meaning; lines: of settings other than the recommended one."""

    name: str
    ink: str
    muted: str
    grid: str
    paper: str
    compute: str
    exposed: str
    other: str
    recommended: str
    assumption: str
    busy: str
    sampling: str
    reduce: str
    optimizer: str
    idle: str
    hatched: str
    lines: tuple[str, ...]

    def color(self, name: str) -> str:
        """The colour of a meaning; `line0` to `line5` are those of lines."""
        color: str = self.lines[int(name[4:])] if name.startswith("line") else getattr(self, name)
        return color

    def line(self, position: int, recommended: bool = False) -> tuple[str, str, str]:
        """Colour, dashes and marker of a line; `position` counts those that are not recommended."""
        if recommended:
            return self.recommended, "solid", "circle"
        place = position % len(SETTINGS)
        return self.lines[place], *SETTINGS[place][1:]


LIGHT: Final = Theme(
    "light",
    ink=INK,
    muted=MUTED,
    grid=GRID,
    paper=PAPER,
    compute=COMPUTE,
    exposed=EXPOSED,
    other=OTHER,
    recommended=RECOMMENDED,
    assumption=ASSUMPTION,
    busy=BUSY,
    sampling=SAMPLING,
    reduce=REDUCE,
    optimizer=OPTIMIZER,
    idle=IDLE,
    hatched=HATCHED,
    lines=tuple(color for color, _, _ in SETTINGS),
)
DARK: Final = Theme(
    "dark",
    ink="#E6EAEF",
    muted="#A9B4C0",
    grid="#323A44",
    paper="#14181D",
    compute="#3B9BDC",
    exposed="#F2792B",
    other="#8B929C",
    recommended="#3CC8A0",
    assumption="#D9BE2B",
    busy="#B79CF2",
    sampling="#F0B63A",
    reduce="#E07CC0",
    optimizer="#22B98C",
    idle="#49525D",
    hatched="#3B2A20",
    lines=("#E39AC5", "#7CC7F2", "#C49A72", "#9AD13A", "#F2608F", "#F4F6F8"),
)
THEMES: Final = {theme.name: theme for theme in (LIGHT, DARK)}
COLORS: Final = re.compile(r"#[0-9A-Fa-f]{6}|rgba\(\d+, \d+, \d+,")
"""Colours in the JSON of a figure: `templates/page.html.j2` has the same."""


def faded(color: str, share: float = 0.16) -> str:
    """A colour with that opacity, used for bands.

    >>> faded("#0072B2")
    'rgba(0, 114, 178, 0.16)'
    """
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {share:g})"


def replacements() -> dict[str, str]:
    """For each colour of the light theme in a figure's JSON, the colour of the dark one.

    Faded colours by their prefix.
    """
    pairs = list(zip(LIGHT.lines, DARK.lines, strict=True))
    pairs += [(getattr(LIGHT, field.name), getattr(DARK, field.name)) for field in fields(Theme) if field.type == "str"]
    solid = {light: dark for light, dark in pairs if light.startswith("#")}
    return solid | {_start(light): _start(dark) for light, dark in solid.items()}


def darkened(text: str) -> str:
    """The JSON of a figure in the light theme, in the dark one."""
    colors = replacements()
    return COLORS.sub(lambda found: colors.get(found[0], found[0]), text)


def _start(color: str) -> str:
    return faded(color).rpartition(" ")[0]


def variables(theme: Theme) -> str:
    """The colours of a theme as CSS variables, `--ink: #1F2933; ...; --line0: ...`."""
    named = {field.name: getattr(theme, field.name) for field in fields(Theme) if field.name not in ("name", "lines")}
    named |= {f"line{index}": color for index, color in enumerate(theme.lines)}
    return " ".join(f"--{name}: {color};" for name, color in named.items())


def variable(color: str) -> str:
    """The CSS variable that holds a colour of the light theme.

    >>> variable("#0072B2")
    'var(--compute)'
    """
    search = re.search(rf"--(\w+): {color};", variables(LIGHT))
    assert search is not None, color
    return f"var(--{search[1]})"
