"""Figure of one steady iteration: a row per worker and kind of work and per link, and the cause of each op's wait.

Rows have the track names of `gcnsim.timeline.run_perfetto`. The data come from a recorded or a simulated run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, IntArray, Iteration
from gcnsim.core.units import format_bytes, format_seconds
from gcnsim.hardware.link_specs import LinkName
from gcnsim.records.recorded_run import PS_PER_S, RecordedRun
from gcnsim.report.answer.rows import plain
from gcnsim.report.figures.links import TrafficMatrix, pairs_data
from gcnsim.report.figures.style import escaped, layout, time_unit
from gcnsim.report.palette import LIGHT
from gcnsim.simulation.limit import EVERY
from gcnsim.timeline import KINDS, PHASE, Direction, Phase, Timeline
from gcnsim.timeline.run_perfetto import TRACKS, slices_by_kind

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from gcnsim.engine import Run
    from gcnsim.simulation import Result


def timeline_of_run(run: RecordedRun, only: int | None = None) -> TimelineData:
    """One steady iteration of a recorded run, with the slowest worker among those shown; only: one worker.

    Raises GcnsimError.
    """
    spans = run.timeline()
    facts = run.facts(spans)
    return timeline_data(spans, facts.ends, facts.measured, slowest=run.slowest, only=only)


def in_one_unit(one: TimelineData, other: TimelineData) -> tuple[TimelineData, TimelineData]:
    """Both timelines with the unit of the longer one, so that their axes are comparable."""
    unit = time_unit(max(one.length_s, other.length_s))
    first, second = (replace(timeline_data, unit=unit.name, unit_s=unit.size) for timeline_data in (one, other))
    return first, second


def timeline_of_result(result: Result, limited_by: str = "", only: int | None = None) -> TimelineData:
    """One steady iteration of a simulated run; with many workers, the slowest and the first of the others.

    limited_by: what limits the iteration, in the words of its row; only: one worker, with its links and its server's.
    Raises ScenarioError.
    """
    from gcnsim.engine import link_rates, timeline

    run, spans, rates = result.run, timeline(result.run), link_rates(result.run)
    if only is not None:
        each = result.scenario.cluster.gpus_per_server
        links = {name: LinkName.of(name) for name in rates}
        rates = {name: rates[name] for name, link in links.items() if link is None or link.serves(only, each)}
    return timeline_data(
        spans,
        run.ends[:, list(run.schedule.ends)].max(axis=1),
        result.warm_up,
        rates=rates,
        capacity=dict(zip(run.schedule.link_names, run.schedule.capacity, strict=True)),
        waited=Causes(run, spans),
        slowest=result.metrics.worker,
        limited_by=limited_by,
        only=only,
    )


def pairs_of_result(result: Result) -> TrafficMatrix:
    """Bytes per iteration between the workers of a simulated run."""
    from gcnsim.engine import timeline

    return pairs_data(timeline(result.run), result.warm_up, len(result.run.schedule.ends))


class Causes:
    """The cause of each span's wait in a simulated run: the dependency that ended last."""

    def __init__(self, run: Run, spans: Timeline) -> None:
        self._run, self._spans = run, spans
        self._ops: dict[tuple[object, ...], list[int]] = {}
        for op in run.schedule.ops:
            self._ops.setdefault((op.stream, op.kind, op.layer, op.direction, op.peer), []).append(op.index)

    def __call__(self, span: int) -> str:
        """The cause in words: `waited 1.20 ms for wire of worker 2, layer 1, of the iteration before`; empty without a
        wait.
        """
        timeline, run = self._spans, self._run
        key = (
            int(timeline.stream[span]),
            KINDS[int(timeline.kind[span])],
            int(timeline.layer[span]),
            Direction(int(timeline.direction[span])),
            int(timeline.peer[span]),
        )
        iteration, start = int(timeline.iteration[span]), int(timeline.start_ps[span])
        index = next((op for op in self._ops.get(key, ()) if run.starts[iteration, op] == start), None)
        return "" if index is None else self._of(index, iteration, start)

    def _of(self, index: int, iteration: int, start: int) -> str:
        run, ops = self._run, self._run.schedule.ops
        op = ops[index]
        before = [(int(run.ends[iteration - lag, item]), item, lag) for item, lag in op.waits if lag <= iteration]
        own = [end for end, item, _ in before if ops[item].stream == op.stream]
        others = [found for found in before if ops[found[1]].stream != op.stream]
        stream = run.schedule.order[op.stream]
        at = stream.index(index)
        turn = (iteration, stream[at - 1]) if at else (iteration - 1, stream[-1])
        if turn[0] >= 0:
            own.append(int(run.ends[turn]))
        if not others:
            return ""
        end, cause, lag = max(others)
        free = max(own, default=0)
        if end <= free or end > start:
            return "waited for nothing but its own stream"
        other = ops[cause]
        layer = f", layer {other.layer}" if other.layer >= 0 else ""
        when = "" if lag == 0 else f", of {'the iteration' if lag == 1 else f'{lag} iterations'} before"
        return (
            f"waited {format_seconds((start - free) / PS_PER_S)} for {other.kind} of worker {other.worker}{layer}{when}"
        )


MOST_WORKERS: Final = 6
MOST_LINKS: Final = 24
MOST_NAMED: Final = 4
BINS: Final = 160
"""The number of equal intervals of an iteration for which a link's rate is shown."""

COLORS: Final = {
    Phase.COMPUTE: "compute",
    Phase.TRANSFER: "exposed",
    Phase.SAMPLING: "sampling",
    Phase.REDUCE: "reduce",
    Phase.OPTIMIZER: "optimizer",
    Phase.WAIT: "idle",
}
"""The theme colour of each kind of work."""

Waited = Callable[[int], str]
"""The cause of a span's wait, by its index in the timeline; empty if unknown."""


class TimelineBlock(NamedTuple):
    """One or several spans on a row: seconds from the start of the iteration, and a description."""

    row: int
    phase: Phase
    start_s: float
    end_s: float
    hover_text: str


@dataclass(frozen=True, slots=True)
class TimelineData:
    """Rows by name: workers, then links. rates: per link its share of capacity (bytes/s if that is unknown) in each of
    `BINS` intervals. slowest: the worker that the others wait for; limits: the links that limit the iteration.
    """

    iteration: Iteration
    length_s: float
    rows: tuple[str, ...]
    blocks: tuple[TimelineBlock, ...]
    links: tuple[str, ...]
    rates: tuple[tuple[float, ...], ...]
    shares: bool
    workers_left_out: int
    unit: str
    unit_s: float
    slowest: int | None = None
    limits: tuple[str, ...] = ()

    @property
    def shows_slowest(self) -> bool:
        """Whether the slowest worker is among those shown."""
        return any(row.startswith(f"worker {self.slowest}:") for row in self.rows)

    @property
    def limits_text(self) -> str:
        """What limits the iteration, as it is labelled and in words: `nic1.tx (NIC of server 1)`; many are counted."""
        if len(self.limits) > MOST_NAMED:
            return f"{len(self.limits)} links"
        names = ((name, LinkName.of(name)) for name in self.limits)
        return ", ".join(f"{name} ({link.text})" if link else name for name, link in names)

    @property
    def legend(self) -> list[tuple[str, str, bool]]:
        """The name and theme colour of each kind of work; none is hatched."""
        seen = {block.phase for block in self.blocks}
        return [(str(phase), color, False) for phase, color in COLORS.items() if phase in seen]


def steady_iteration(ends: IntArray, measured: Iteration) -> Iteration:
    """Of the iterations from `measured` on, the one nearest to their mean length, the last of equals.

    ends: int64[T] picoseconds, the end of each iteration on the last worker.
    """
    lengths = np.diff(ends, prepend=0)
    first = min(max(measured, 0), len(ends) - 1)
    away = np.abs(lengths[first:] - lengths[first:].mean())
    return int(len(ends) - 1 - np.argmin(away[::-1]))


def timeline_data(
    timeline: Timeline,
    ends: IntArray,
    measured: Iteration,
    *,
    rates: Mapping[str, tuple[IntArray, FloatArray]] | None = None,
    capacity: Mapping[str, float] | None = None,
    waited: Waited = lambda _: "",
    slowest: int | None = None,
    limited_by: str = "",
    only: int | None = None,
) -> TimelineData:
    """One steady iteration of a run, simulated or recorded.

    ends, measured: as in `steady_iteration`. rates, capacity: of links, bytes per second. slowest: a worker that is
    shown before others if there are many; only: one that is shown alone. Raises ScenarioError if that does not exist.
    """
    chosen = steady_iteration(ends, measured)
    start, end = int(ends[chosen - 1]) if chosen else 0, int(ends[chosen])
    inside = np.flatnonzero((timeline.start_ps < end) & (timeline.end_ps > start))
    workers = sorted(set(timeline.worker[inside].tolist()))
    if only is not None and only not in workers:
        raise ScenarioError(f"worker: {only} is not allowed; one of 0 to {workers[-1]}")
    first = [number for number in (slowest,) if number in workers]
    shown = [only] if only is not None else sorted(list(dict.fromkeys([*first, *workers]))[:MOST_WORKERS])
    slices = [
        part
        for part in slices_by_kind(timeline, inside.tolist())
        if part.worker in shown and part.start_ps < end and part.end_ps > start
    ]
    order = {name: index for index, name in enumerate(TRACKS)}
    tracks = sorted({(part.worker, part.track) for part in slices}, key=lambda own: (own[0], order[own[1]]))
    place = {own: row for row, own in enumerate(tracks)}
    blocks = tuple(
        TimelineBlock(
            place[part.worker, part.track],
            PHASE[KINDS[int(timeline.kind[part.spans[0]])]],
            (max(part.start_ps, start) - start) / PS_PER_S,
            (min(part.end_ps, end) - start) / PS_PER_S,
            _words(timeline, part.spans, part.received, waited),
        )
        for part in slices
    )
    names, binned = _binned(rates or {}, capacity, start, end)
    unit = time_unit((end - start) / PS_PER_S)
    return TimelineData(
        iteration=chosen,
        length_s=(end - start) / PS_PER_S,
        rows=tuple(f"worker {worker}: {track}" for worker, track in tracks),
        blocks=blocks,
        links=names,
        rates=binned,
        shares=capacity is not None,
        workers_left_out=len(workers) - len(shown),
        unit=unit.name,
        unit_s=unit.size,
        slowest=slowest,
        limits=tuple(name for name in names if _limits(name, limited_by)),
    )


def _limits(link: str, limited_by: str) -> bool:
    """Whether a link is among what limits the iteration."""
    name = LinkName.of(link)
    texts = [] if name is None else [name.text, EVERY.get(name.family, name.text)]
    return any(re.search(rf"\b{re.escape(text)}\b", limited_by) for text in texts)


def _words(timeline: Timeline, spans: Sequence[int], received: bool, waited: Waited) -> str:
    """Descriptions of up to three concurrent spans, one line each."""
    lines = []
    for span in spans[:3]:
        kind = str(KINDS[int(timeline.kind[span])])
        parts = [f"received {kind}" if received else kind]
        if timeline.layer[span] >= 0:
            parts.append(f"layer {int(timeline.layer[span])}")
        if timeline.direction[span]:
            parts.append(Direction(int(timeline.direction[span])).name.lower())
        if timeline.peer[span] >= 0:
            parts.append(f"from {int(timeline.worker[span])}" if received else f"to {int(timeline.peer[span])}")
        if timeline.nbytes[span]:
            parts.append(format_bytes(float(timeline.nbytes[span])))
        length = float(timeline.end_ps[span] - timeline.start_ps[span]) / PS_PER_S
        why = "" if received else waited(span)
        lines.append(f"{', '.join(parts)}: {format_seconds(length)}, iteration {int(timeline.iteration[span])}")
        lines += [f"  {plain(why)}"] if why else []
    return "\n".join([*lines, *([f"and {len(spans) - 3} more"] if len(spans) > 3 else [])])


def _binned(
    rates: Mapping[str, tuple[IntArray, FloatArray]], capacity: Mapping[str, float] | None, start: int, end: int
) -> tuple[tuple[str, ...], tuple[tuple[float, ...], ...]]:
    """Mean rates of the busiest links in equal intervals of [start, end), in order."""
    edges = np.linspace(start, end, BINS + 1)
    rates_by_link: dict[str, FloatArray] = {}
    for name, (instants, values) in rates.items():
        lengths = np.diff(instants, append=instants[-1:])
        carried = np.concatenate(([0.0], np.cumsum(lengths * values)))[:-1]
        at = np.clip(np.searchsorted(instants, edges, side="right") - 1, 0, None)
        until = carried[at] + values[at] * np.maximum(edges - instants[at], 0.0)
        mean = np.diff(until) / (edges[1] - edges[0])
        rates_by_link[name] = mean if capacity is None else mean / capacity[name]
    busiest = sorted(rates_by_link, key=lambda name: -float(rates_by_link[name].mean()))[:MOST_LINKS]
    names = tuple(name for name in rates_by_link if name in busiest)
    return tuple(map(plain, names)), tuple(tuple(rates_by_link[name].tolist()) for name in names)


def timeline_figure(data: TimelineData, until_s: float | None = None) -> Figure:
    """Blocks by row, coloured by kind, above a row per link, darker if busier.

    Both share a time axis that ends at `until_s` or with the iteration.
    """
    from plotly.subplots import make_subplots

    tall, links = 26 * len(data.rows) + 10, 20 * len(data.links)
    heights = [tall, links] if data.links else [1]
    figure = make_subplots(
        rows=len(heights), shared_xaxes=True, row_heights=heights, vertical_spacing=14 / (tall + links + 90)
    )
    for phase, color in COLORS.items():
        blocks = [block for block in data.blocks if block.phase is phase]
        if blocks:
            figure.add_trace(_blocks(data, phase, blocks, LIGHT.color(color)), row=1, col=1)
    if data.links:
        figure.add_trace(_rates(data), row=2, col=1)
    shape = layout("", height=tall + links + 90)
    axes = {name: shape.pop(name) for name in ("xaxis", "yaxis")}
    figure.update_layout(**shape, barmode="overlay", bargap=0.15)
    figure.update_xaxes(**axes["xaxis"], range=[0, (until_s or data.length_s) / data.unit_s])
    figure.update_xaxes(title_text=f"Time in iteration {data.iteration} ({data.unit})", row=len(heights), col=1)
    figure.update_yaxes(**axes["yaxis"])
    slow = f"worker {data.slowest}:"
    names = [_bold(_short(name), name.startswith(slow)) for name in data.rows]
    figure.update_yaxes(
        row=1, col=1, tickvals=list(range(len(data.rows))), ticktext=names,
        range=[len(data.rows) - 0.4, -0.6], tickfont={"size": 11}, gridcolor=LIGHT.grid,
    )  # fmt: skip
    if data.links:
        figure.update_yaxes(row=2, col=1, autorange="reversed", tickfont={"size": 11}, dtick=1, showgrid=False)
    return figure


def _short(name: str) -> str:
    """A short row name: `0 compute`."""
    return escaped(name.removeprefix("worker ").replace(":", "", 1))


def _bold(name: str, marked: bool) -> str:
    return f"<b>{name}</b>" if marked else name


def _blocks(data: TimelineData, phase: Phase, blocks: Sequence[TimelineBlock], color: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": str(phase),
        "y": [block.row for block in blocks],
        "base": [round(block.start_s / data.unit_s, 6) for block in blocks],
        "x": [round((block.end_s - block.start_s) / data.unit_s, 6) for block in blocks],
        # Without an explicit width, a bar is as wide as the distance between rows of its kind.
        "width": 0.82,
        "marker": {"color": color, "line": {"width": 0}},
        "customdata": [
            f"{escaped(data.rows[block.row])}<br>{escaped(block.hover_text).replace(chr(10), '<br>')}"
            for block in blocks
        ],
        "hovertemplate": "%{customdata}<br>from %{base:.4g}<extra></extra>",
    }


def _rates(data: TimelineData) -> dict[str, Any]:
    scale, unit = (100.0, "% of its capacity") if data.shares else (1e-9, "GB/s")
    step = data.length_s / data.unit_s / BINS
    return {
        "type": "heatmap",
        "z": [[round(scale * value, 2) for value in row] for row in data.rates],
        "x0": step / 2,
        "dx": step,
        "y": [_bold(escaped(name), name in data.limits) for name in data.links],
        "zmin": 0,
        "zmax": 100.0 if data.shares else None,
        "colorscale": [[0, LIGHT.paper], [1, LIGHT.busy]],
        "showscale": False,
        "ygap": 2,
        "hovertemplate": f"%{{y}}: %{{z:.3g}} {unit}<extra></extra>",
    }
