"""The GPU memory of each worker by component, and the memory of its device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from gcnsim.core.units import format_bytes
from gcnsim.report.figures.style import byte_unit, layout
from gcnsim.report.palette import LIGHT
from gcnsim.results import MemoryReport

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
"""The name, theme colour and hatching of each component."""

MOST_WORKERS: Final = 16


class Held(NamedTuple):
    """One worker's GPU memory in bytes by component, and the memory of its device; None if unknown."""

    worker: int
    nbytes: dict[str, float]
    device_bytes: float | None

    @property
    def total(self) -> float:
        """The sum of all components."""
        return sum(self.nbytes.values())


@dataclass(frozen=True, slots=True)
class MemoryBars:
    """Workers in order; with many workers, those nearest their limits. unit_size: bytes of `unit`."""

    workers: tuple[Held, ...]
    tightest: int
    left_out: int
    unit: str
    unit_size: float

    @property
    def legend(self) -> list[tuple[str, str, bool]]:
        """The name, theme colour and hatching of each component in use."""
        seen = [key for key in COMPONENTS if any(worker.nbytes.get(key) for worker in self.workers)]
        return [(COMPONENTS[key][0], COMPONENTS[key][1], bool(COMPONENTS[key][2])) for key in seen]


def memory_data(report: MemoryReport) -> MemoryBars:
    """The bars of `report`."""
    devices = report.devices_bytes or (report.device_bytes,) * len(report.workers)
    held = [
        Held(
            rank,
            {key: float(getattr(worker, key)) for key in COMPONENTS if key != "reserved"}
            | {"reserved": float(report.reserved_bytes)},
            None if devices[rank] is None else float(devices[rank] or 0),
        )
        for rank, worker in enumerate(report.workers)
    ]
    nearest = sorted(held, key=lambda item: (item.worker != report.tightest, -item.total))[:MOST_WORKERS]
    shown = tuple(item for item in held if item in nearest)
    unit = byte_unit(max(max(item.total, item.device_bytes or 0.0) for item in shown))
    return MemoryBars(shown, report.tightest, len(held) - len(shown), unit.name, unit.size)


def memory_figure(data: MemoryBars) -> Figure:
    """Stacked bars, and a mark at the memory of the device."""
    import plotly.graph_objects as go

    figure = go.Figure()
    names = [f"worker {worker.worker}" for worker in data.workers]
    for key, (name, color, pattern) in COMPONENTS.items():
        sizes = [worker.nbytes.get(key, 0.0) for worker in data.workers]
        if not any(sizes):
            continue
        figure.add_bar(
            orientation="h",
            name=name,
            y=names,
            x=[size / data.unit_size for size in sizes],
            marker={
                "color": LIGHT.color(color),
                "line": {"width": 0},
                "pattern": {
                    "shape": pattern,
                    "bgcolor": LIGHT.color(color),
                    "fgcolor": LIGHT.paper,
                    "size": 6,
                    "solidity": 0.3,
                },
            },
            customdata=[
                f"{who}<br>{name}: {format_bytes(size)} of {format_bytes(worker.total)}"
                for who, size, worker in zip(names, sizes, data.workers, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    known = [
        (name, worker.device_bytes) for name, worker in zip(names, data.workers, strict=True) if worker.device_bytes
    ]
    if known:
        figure.add_trace(
            go.Scatter(
                name="size of the device",
                mode="markers",
                y=[name for name, _ in known],
                x=[size / data.unit_size for _, size in known],
                marker={"symbol": "line-ns", "size": 22, "line": {"width": 3, "color": LIGHT.ink}},
                customdata=[f"{name}: the device has {format_bytes(size)}" for name, size in known],
                hovertemplate="%{customdata}<extra></extra>",
            )
        )
    shape = layout(f"Memory ({data.unit})", height=100 + 34 * len(names))
    figure.update_layout(**shape, barmode="stack", bargap=0.3)
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure
