"""What a training loop of your own did: the rows that each iteration used, and how long its computation took.

The loop trains each part alone on one device, without communication, as `python -m runtime.measure` does with ours. One
recorder per part has both; `write_loop` writes the times as a file of measured times (`gcnsim.measured_compute/3`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import Layer
from gcnsim.graph import Graph
from gcnsim.graph.parts import Part, Partitioning
from gcnsim.records.compute_facts import FORMAT, OpKey
from gcnsim.timeline import KIND_CODE, Direction, OpKind
from gcnsim.trace import AccessRecorder
from runtime.measuring.document import part_header, write
from runtime.measuring.part import Ops, PartRecord
from runtime.measuring.rounds import SettingRecord
from runtime.options import Options
from runtime.record import hardware, versions

Region: TypeAlias = Literal["forward", "backward", "step"]

_KEYS: Final[Mapping[str, OpKey]] = {
    "forward": OpKey(OpKind.LOSS, -1, Direction.FORWARD),
    "backward": OpKey(OpKind.UPDATE, -1, Direction.BACKWARD),
    "step": OpKey(OpKind.STEP, -1, Direction.NONE),
}
"""What a region without a layer is. A backward pass in one piece is shared among the layers when it is written."""

_GROUPS: Final = 10
"""Groups of consecutive iterations whose means tell how exactly the mean is known."""


class LoopRecorder(AccessRecorder):
    """Records the rows and the seconds of each iteration of one part's loop; `add` ends an iteration.

    On a CPU a region takes the time that its thread had a core, with several threads the time that passed; on a GPU the
    time between CUDA events (not tried on one yet).
    """

    def __init__(self, part: Part, device: str | torch.device = "cpu") -> None:
        """A recorder without iterations. part: the worker's share of the graph."""
        super().__init__(part)
        self.part = part
        self.device = torch.device(device)
        self.seconds: list[float] = []
        """Of each iteration, by the CPU's or the machine's clock."""
        self._marks: list[tuple[OpKey, Any, Any]] = []
        self._regions: list[Mapping[OpKey, float]] = []
        self._open = False
        self._clock = (
            time.thread_time_ns
            if self.device.type == "cpu" and torch.get_num_threads() == 1
            else (time.perf_counter_ns)
        )
        self._began = self._clock()

    @contextmanager
    def compute(self, layer: Layer | None, region: Region) -> Iterator[None]:
        """Time the block: computation of `layer`, forward or backward.

        With None for the layer: forward, what belongs to no layer, as the loss; backward, all layers at once; step, the
        optimizer. Blocks of one kind add up within an iteration. Raises ScenarioError for other words and for a block
        inside another.
        """
        if region not in _KEYS or (layer is not None and (region == "step" or layer < 0)):
            raise ScenarioError(
                f"compute: {layer!r}, {region!r}; allowed: a layer or None with forward or backward, None with step"
            )
        if self._open:
            raise ScenarioError("compute: inside another block; allowed: one after the other")
        key = _KEYS[region]
        if layer is not None:
            key = OpKey(OpKind.UPDATE, layer, key.direction)
        self._open = True
        start = self._mark()
        try:
            yield
        finally:
            self._marks.append((key, start, self._mark()))
            self._open = False

    def add(self, nodes: ArrayLike, edges: tuple[int, int] | None = None) -> None:
        """End an iteration that used these rows; see `AccessRecorder.add`."""
        super().add(nodes, edges)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        now = self._clock()
        self.seconds.append((now - self._began) * 1e-9)
        found: dict[OpKey, float] = {}
        for key, start, end in self._marks:
            found[key] = found.get(key, 0.0) + self._between(start, end)
        self._regions.append(found)
        self._marks = []
        self._began = self._clock()

    def _mark(self) -> Any:
        if self.device.type == "cpu":
            return self._clock()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self.device))
        return event

    def _between(self, start: Any, end: Any) -> float:
        if self.device.type == "cpu":
            return float(end - start) * 1e-9
        return float(start.elapsed_time(end)) * 1e-3

    def record(self, layers: int, warmup: int) -> PartRecord:
        """What was recorded after the first `warmup` iterations, of a model of so many layers.

        Raises ScenarioError for a region that is missing, or of a layer that the model does not have.
        """
        name = f"worker {self.part.rank}"
        if len(self.seconds) < warmup + 2:
            raise ScenarioError(
                f"{name}: {len(self.seconds)} iterations; allowed: {warmup + 2} or more, {warmup} of them to warm up"
            )
        chosen = [_by_layer(found, layers, name) for found in self._regions[warmup:]]
        keys = sorted({key for found in chosen for key in found}, key=lambda key: (key.layer, key.direction, key.kind))
        rows = [(t, key, found[key]) for t, found in enumerate(chosen) for key in keys if key in found]
        seconds = self.seconds[warmup:]
        needed, edges = self.arrays()["bits"][warmup:], self.arrays()["edges"][warmup:]
        used = np.unpackbits(needed, axis=1).sum(axis=1)
        record = PartRecord(
            self.part.rank,
            rounds=[float(np.mean(group)) for group in np.array_split(seconds, min(_GROUPS, len(seconds)))],
            ops=[
                Ops(
                    np.array([t for t, _, _ in rows]),
                    np.array([KIND_CODE[key.kind] for _, key, _ in rows]),
                    np.array([key.layer for _, key, _ in rows]),
                    np.array([int(key.direction) for _, key, _ in rows]),
                    np.array([value for _, _, value in rows]),
                )
            ],
            counts=[(int(count), 0, 0, int(pair.sum())) for count, pair in zip(used, edges, strict=True)],
            seconds=seconds,
            refreshing=[False] * len(seconds),
            processor_s=seconds,
            warmup=warmup,
            threads=torch.get_num_threads(),
            inner=self.part.inner_nodes,
            boundary=self.part.boundary_nodes,
        )
        if self.device.type == "cuda":
            record.covered_s = [sum(found.values()) for found in chosen]
        return record


def _by_layer(found: Mapping[OpKey, float], layers: int, name: str) -> dict[OpKey, float]:
    """Seconds of an iteration by operation. A backward pass in one piece is shared among layers as their forward."""
    forward = [OpKey(OpKind.UPDATE, layer, Direction.FORWARD) for layer in range(layers)]
    backward = [key._replace(direction=Direction.BACKWARD) for key in forward]
    given = dict(found)
    whole = given.pop(_KEYS["backward"], None)
    if strange := next((key.layer for key in given if key.layer >= layers), None):
        raise ScenarioError(f"{name}: compute({strange}, ...); allowed: layers 0 to {layers - 1}")
    if whole is not None:
        total = sum(given.get(key, 0.0) for key in forward)
        for own, key in zip(forward, backward, strict=True):
            share = given.get(own, 0.0) / total if total else 1.0 / layers
            given[key] = given.get(key, 0.0) + whole * share
    for key in (*forward, *backward, _KEYS["step"]):
        if key not in given:
            where = repr("step") if key.layer < 0 else f"{key.layer}, {key.direction.name.lower()!r}"
            raise ScenarioError(f"{name}: no compute({'None, ' if key.layer < 0 else ''}{where}) in an iteration")
    return given


def write_loop(
    path: str,
    graph: Graph,
    owners: Partitioning,
    recorders: Sequence[LoopRecorder],
    *,
    widths: Sequence[int],
    method: str,
    model: str = "gcn",
    knobs: Mapping[str, Any] | None = None,
    dropout: float = 0.0,
    norm: str = "none",
    warmup: int = 5,
) -> None:
    """Write the times of a loop's parts, one recorder each, for `--measured-compute`.

    widths: of the rows before the first and after each layer. method, knobs: which method of gcnsim the loop trains.
    warmup: iterations left out at the start. Raises ScenarioError for recorders that are not those of all parts in
    order, and for missing regions; FileError if the file cannot be written.
    """
    ranks = [recorder.part.rank for recorder in recorders]
    if ranks != list(range(owners.parts)):
        raise ScenarioError(f"recorders: of parts {ranks}; allowed: one for each of {owners.parts} parts, in order")
    layers = len(widths) - 1
    parts = tuple(recorder.record(layers, warmup) for recorder in recorders)
    sizes = {"nodes": graph.nodes, "edges": graph.entries, "features": widths[0], "classes": widths[-1]}
    hidden = widths[1] if layers > 1 else widths[0]
    options = {"dropout": dropout, "norm": norm, "widths": list(widths)}
    head = {
        "format": FORMAT,
        "graph": {"name": graph.name, **sizes, "hash": owners.graph_hash},
        "partition": {"parts": owners.parts, "algorithm": owners.method, "hash": owners.owner_hash},
        "model": {"model": model, "layers": layers, "hidden": hidden, **options},
        "training": {"dtype": "float32", "aggregator": "plain", "overlap": "none"},
        "device": _device(recorders[0].device),
        "versions": versions(),
        "settings": [{"setting": 0, "method": method, "knobs": dict(knobs or {})}],
        "parts": [{"setting": 0, **part_header(part)} for part in parts],
        "skipped": [],
    }
    write(path, head, [SettingRecord(Options(method=method), parts, 0.0)])


def _device(device: torch.device) -> dict[str, Any]:
    cuda = device.type == "cuda"
    machine = hardware(cuda)
    name = machine["gpus"][device.index or 0] if cuda else machine["cpu"]
    counts = {"threads": torch.get_num_threads(), "cores": machine["cores"], "beside": 0}
    return {"kind": device.type, "name": name, **counts}
