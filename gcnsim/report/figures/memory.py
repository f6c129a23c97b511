"""What each worker's GPU holds, by component, against what the device has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from gcnsim.report.figures.style import byte_unit, layout
from gcnsim.report.palette import LIGHT, Theme
from gcnsim.results import MemoryReport
from gcnsim.units import format_bytes

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

COMPONENTS: Final = {
    "features": ("features", "compute", ""),
    "adjacency": ("adjacency", "line1", ""),
    "activations": ("activations", "exposed", ""),
    "boundary": ("boundary rows", "line0", "\\"),
    "cache": ("cache", "optimizer", ""),
    "model": ("model", "line2", ""),
    "gradients": ("gradients", "line3", "."),
    "optimizer": ("optimizer state", "line4", ""),
    "workspace": ("workspace", "sampling", "/"),
    "reserved": ("reserved for the system", "idle", ""),
}
"""Of each component its name, its colour in a theme and its hatching."""

MOST_WORKERS: Final = 16


class Held(NamedTuple):
    """What one worker's GPU holds, bytes by component, and what its device has; None where that is not known."""

    worker: int
    nbytes: dict[str, float]
    device_bytes: float | None

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self.nbytes.values())


@dataclass(frozen=True, slots=True)
class MemoryBars:
    """Workers in their order, those nearest their limits where they are many; unit_size: bytes of `unit`."""

    workers: tuple[Held, ...]
    tightest: int
    left_out: int
    unit: str
    unit_size: float

    @property
    def legend(self) -> list[tuple[str, str, bool]]:
        """Of each component that anyone has: its name, its colour in a theme, whether it is hatched."""
        seen = [key for key in COMPONENTS if any(each.nbytes.get(key) for each in self.workers)]
        return [(COMPONENTS[key][0], COMPONENTS[key][1], bool(COMPONENTS[key][2])) for key in seen]


def memory_data(report: MemoryReport, most: int = MOST_WORKERS) -> MemoryBars:
    """The bars of `report`."""
    devices = report.devices_bytes or (report.device_bytes,) * len(report.workers)
    held = [
        Held(
            rank,
            {key: float(getattr(each, key)) for key in COMPONENTS if key != "reserved"}
            | {"reserved": float(report.reserved_bytes)},
            None if devices[rank] is None else float(devices[rank] or 0),
        )
        for rank, each in enumerate(report.workers)
    ]
    nearest = sorted(held, key=lambda each: (each.worker != report.tightest, -each.total))[:most]
    shown = tuple(each for each in held if each in nearest)
    unit = byte_unit(max(max(each.total, each.device_bytes or 0.0) for each in shown))
    return MemoryBars(shown, report.tightest, len(held) - len(shown), unit.name, unit.size)


def memory_figure(data: MemoryBars, theme: Theme = LIGHT) -> Figure:
    """Stacked bars, and a mark where the device ends."""
    import plotly.graph_objects as go

    figure = go.Figure()
    names = [f"worker {each.worker}" for each in data.workers]
    for key, (name, color, pattern) in COMPONENTS.items():
        sizes = [each.nbytes.get(key, 0.0) for each in data.workers]
        if not any(sizes):
            continue
        figure.add_bar(
            orientation="h",
            name=name,
            y=names,
            x=[size / data.unit_size for size in sizes],
            marker={
                "color": theme.color(color),
                "line": {"width": 0},
                "pattern": {
                    "shape": pattern,
                    "bgcolor": theme.color(color),
                    "fgcolor": theme.paper,
                    "size": 6,
                    "solidity": 0.3,
                },
            },
            customdata=[
                f"{who}<br>{name}: {format_bytes(size)} of {format_bytes(each.total)}"
                for who, size, each in zip(names, sizes, data.workers, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    known = [(name, each.device_bytes) for name, each in zip(names, data.workers, strict=True) if each.device_bytes]
    if known:
        figure.add_trace(
            go.Scatter(
                name="size of the device",
                mode="markers",
                y=[name for name, _ in known],
                x=[size / data.unit_size for _, size in known],
                marker={"symbol": "line-ns", "size": 22, "line": {"width": 3, "color": theme.ink}},
                customdata=[f"{name}: the device has {format_bytes(size)}" for name, size in known],
                hovertemplate="%{customdata}<extra></extra>",
            )
        )
    shape = layout(theme, f"Memory ({data.unit})", height=100 + 34 * len(names))
    figure.update_layout(**shape, barmode="stack", bargap=0.3)
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure
