"""All settings of a measurement, one after the other; its file (`gcnsim.measured_compute/3`), and its text.

On a CPU other processes train parts of the same setting on the other cores meanwhile (`runtime.measuring.neighbours`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from gcnsim.core.atomic import atomic_write
from gcnsim.core.ids import AnyArray
from gcnsim.core.terminal import aligned
from gcnsim.core.units import format_bytes, format_fraction, format_seconds
from gcnsim.graph import graph_notes
from gcnsim.graph.parts import Partitioning
from gcnsim.records.compute_facts import FORMAT
from gcnsim.timeline import KINDS, Direction
from runtime.data import Dataset, DatasetCache
from runtime.launch import disable_malloc_trim
from runtime.measuring.neighbours import Neighbours, cores_apart, on_cores
from runtime.measuring.part import PartRecord, free_bytes
from runtime.measuring.request import AIM, MeasureRequest
from runtime.measuring.rounds import (
    ALONE,
    Setting,
    SettingRecord,
    Tell,
    relative_error,
    widths_of,
    with_fastest_kernels,
)
from runtime.options import Options
from runtime.record import hardware, versions
from runtime.train.setup import device_of

SHORTEST_S: Final = 5.0
"""Of a shorter measurement nothing is left when other processes have begun."""

QUIET: Final = 0.95
"""Of the time a part's threads run at least so much where nothing else wants the cores."""

_NOT_QUIET: Final = (
    "other programs used the cores: training ran only {} of the time; measure again when the machine is quiet"
)
_FEWER_BESIDE: Final = (
    "{} of {} processes that trained on the other cores ended early; kernels may be slower in a cluster"
)


@dataclass(frozen=True)
class MeasuredWorkload:
    """All settings of a request. widths: of the rows before the first and after each layer. beside: processes that
    trained on other cores meanwhile, of those that were started."""

    dataset: Dataset
    partitioning: Partitioning
    widths: tuple[int, ...]
    threads: int
    beside: int
    started: int
    settings: tuple[SettingRecord, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user must know of how the data were read."""
        partition = (self.partitioning.note,) if self.partitioning.note else ()
        shared = () if (ran := self.ran_share) is None or ran >= QUIET else (_NOT_QUIET.format(format_fraction(ran)),)
        ended = self.started - self.beside
        alone = (_FEWER_BESIDE.format(ended, self.started),) if ended else ()
        return (*graph_notes(self.dataset.graph), *self.dataset.notes, *partition, *shared, *alone)

    @property
    def ran_share(self) -> float | None:
        """The share of the time that a thread of ours was running, where nothing else can be waited for: on a CPU.

        About 1 or more on a quiet machine. None on a GPU, and where nothing was measured.
        """
        parts = [part for setting in self.settings for part in setting.parts if part.skipped is None]
        if self.settings[0].options.device != "cpu" or not parts:
            return None
        return sum(sum(part.processor_s) for part in parts) / sum(sum(part.seconds) for part in parts)


def measured(measure_request: MeasureRequest, tell: Tell) -> MeasuredWorkload:
    """Measure all settings, one after the other, in equal shares of the time that is left.

    Raises GcnsimError for data that cannot be read, or a device that is not here.
    """
    shared = measure_request.shared
    device = device_of(shared, ALONE)
    shelf = DatasetCache()
    tell("reading the graph")
    dataset = shelf.dataset(shared)
    tell("partitioning the graph")
    partitioning = shelf.owners(shared, dataset)
    if device.type == "cpu":
        disable_malloc_trim()
    settings = [
        Setting(with_fastest_kernels(item, dataset, partitioning), device, shelf, tell)
        for item in measure_request.settings
    ]
    groups: list[list[int]] = [[]]
    share: int | None = None
    if device.type == "cpu":
        groups, share = _groups(settings, 1 if measure_request.seconds < SHORTEST_S else shared.workers)
    for setting in settings:
        setting.share = share
    neighbours = Neighbours(measure_request.settings, groups[1:], share)
    try:
        if groups[1:]:
            tell("waiting for the processes on the other cores")
            neighbours.wait()
        with on_cores(groups[0]):
            setting_records = _all_measured(settings, neighbours, measure_request.seconds)
        beside = neighbours.count
    finally:
        neighbours.close()
    return MeasuredWorkload(
        dataset,
        partitioning,
        widths_of(shared, dataset),
        torch.get_num_threads(),
        beside,
        len(groups) - 1,
        setting_records,
    )


def _groups(settings: Sequence[Setting], most: int) -> tuple[list[list[int]], int | None]:
    """The cores of each process, and the bytes that it may take for parts; of one process None.

    As many processes, up to `most`, as have memory for the graph, which each of them reads, and for their largest part.
    """
    groups = cores_apart(torch.get_num_threads(), most)
    free, largest = free_bytes(), max(setting.largest for setting in settings)
    if free is None:
        return groups, None
    own = 0
    if len(groups) > 1:
        import resource  # Unix alone has it

        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    while len(groups) > 1 and len(groups) * largest + (len(groups) - 1) * own > free:
        groups = groups[:-1]
    return groups, None if len(groups) == 1 else (free - (len(groups) - 1) * own) // len(groups)


def _all_measured(settings: Sequence[Setting], neighbours: Neighbours, seconds: float) -> tuple[SettingRecord, ...]:
    end = time.perf_counter() + seconds
    found = []
    for number, setting in enumerate(settings):
        neighbours.train(number)
        left = (end - time.perf_counter()) / (len(settings) - number)
        found.append(setting.measured(left))
    return tuple(found)


KEY: Final = "gcnsim"
"""Of the file's metadata, under which one JSON object says what was measured."""

MODEL: Final = (
    "model", "layers", "hidden", "heads", "dropout", "dropout_order", "norm", "bias", "sage_mean", "preaggregate",
)  # fmt: skip
TRAINING: Final = (
    "dtype", "aggregator", "overlap", "backend", "optimizer", "lr", "weight_decay", "seed", "feature_dim",
    "feature_norm",
)  # fmt: skip

_KINDS: Final = tuple(str(kind) for kind in KINDS)
_DIRECTIONS: Final = {Direction.NONE: "", Direction.FORWARD: "forward", Direction.BACKWARD: "backward"}


def about(found: MeasuredWorkload) -> dict[str, Any]:
    """What was measured, on what, and how well: all but the ops."""
    options = found.settings[0].options
    plain, graph, partitioning = options.asdict(), found.dataset.graph, found.partitioning
    file = {} if options.graph is None else {"file": os.path.abspath(options.graph)}
    sizes = {"nodes": graph.nodes, "edges": graph.entries, "features": found.widths[0], "classes": found.widths[-1]}
    numbered = list(enumerate(found.settings))
    return {
        "format": FORMAT,
        "graph": {"name": partitioning.graph_name, **file, **sizes, "hash": partitioning.graph_hash},
        "partition": {
            "parts": partitioning.parts,
            "algorithm": partitioning.method,
            "hash": partitioning.owner_hash,
        },
        "model": {name: plain[name] for name in MODEL} | {"widths": list(found.widths)},
        "training": {name: plain[name] for name in TRAINING},
        "device": _device(options, found.threads, found.beside),
        "versions": versions(),
        "settings": [
            {"setting": number, "method": item.options.method, "knobs": item.options.asdict()["knobs"]}
            for number, item in numbered
        ],
        "parts": [
            {"setting": number, **part_header(part)}
            for number, item in numbered
            for part in item.parts
            if part.skipped is None
        ],
        "skipped": [
            {"setting": number, **_skipped(part)}
            for number, item in numbered
            for part in item.parts
            if part.skipped is not None
        ],
    }


def write(path: str | Path, head: Mapping[str, Any], settings: Sequence[SettingRecord]) -> None:
    """Write what is `about` the measurement and its ops, a row for each key of each iteration. Raises FileError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = _columns(settings)
    kinds = pa.DictionaryArray.from_arrays(pa.array(columns.pop("kind").astype(np.int32)), pa.array(_KINDS))
    ways = pa.DictionaryArray.from_arrays(
        pa.array(columns.pop("direction").astype(np.int32)), pa.array([_DIRECTIONS[item] for item in Direction])
    )
    table = pa.table(
        {
            **{name: columns[name] for name in ("setting", "part", "iteration")},
            "kind": kinds.cast(pa.string()),
            "layer": columns["layer"],
            "direction": ways.cast(pa.string()),
            "seconds": columns["seconds"],
        }
    ).replace_schema_metadata({KEY: json.dumps(head, allow_nan=False)})
    with atomic_write(path) as file:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)


def text(head: Mapping[str, Any], settings: Sequence[SettingRecord], path: str) -> str:
    """The table of a measurement, without a newline at its end."""
    lines = []
    for number, setting in enumerate(settings):
        lines += [_title(head["settings"][number], setting), ""]
        rows = [
            (
                str(part["part"]),
                f"{part['inner']:,}",
                f"{part['boundary']:,}",
                str(part["iterations"]),
                format_seconds(part["mean_seconds"]),
                format_fraction(part["relative_error"]),
                "-" if part["peak_bytes"] is None else format_bytes(part["peak_bytes"]),
            )
            for part in head["parts"]
            if part["setting"] == number
        ]
        heads = ("part", "nodes", "boundary", "iterations", "mean", "+-", "memory")
        lines += [*aligned(rows, heads, left=0, indent=2), ""]
        lines += [_missing(part) for part in head["skipped"] if part["setting"] == number]
    return "\n".join([*lines, f"Written to {path}"])


def _title(setting: Mapping[str, Any], record: SettingRecord) -> str:
    knobs = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in setting["knobs"].items())
    what = f"{setting['method']} ({knobs})" if knobs else setting["method"]
    aim = format_fraction(AIM)
    reached = f"each mean known to {aim}" if record.known else f"not every mean known to {aim}, because time was up"
    return f"{what}, measured in {format_seconds(record.seconds)}; {reached}"


def _missing(part: Mapping[str, Any]) -> str:
    needed, free = part.get("needed_bytes"), part.get("free_bytes")
    sizes = [f"{format_bytes(value)} {what}" for value, what in ((needed, "needed"), (free, "free")) if value]
    return f"  part {part['part']} left out: {part['reason']}" + (f" ({', '.join(sizes)})" if sizes else "")


def _device(options: Options, threads: int, beside: int) -> dict[str, Any]:
    machine = hardware(options.device == "cuda")
    if options.device == "cpu":
        return {
            "kind": "cpu",
            "name": machine["cpu"],
            "memory_bytes": machine["memory_bytes"],
            "threads": threads,
            "cores": machine["cores"],
            "beside": beside,
        }
    import torch

    memory = int(torch.cuda.get_device_properties(0).total_memory)
    return {
        "kind": "cuda",
        "name": machine["gpus"][0],
        "memory_bytes": memory,
        "threads": threads,
        "host": machine["cpu"],
    }


def part_header(part: PartRecord) -> dict[str, Any]:
    return {
        "part": part.rank,
        "inner": part.inner,
        "boundary": part.boundary,
        "iterations": part.iterations,
        "refreshing": [number for number, refreshing in enumerate(part.refreshing) if refreshing],
        "warmup": part.warmup,
        "mean_seconds": part.mean_seconds,
        "outside_seconds": part.outside_seconds,
        "relative_error": relative_error(part.rounds),
        "peak_bytes": part.peak_bytes,
        "drawn": dict(part.drawn),
    }


def _skipped(part: PartRecord) -> dict[str, Any]:
    assert part.skipped is not None
    sizes = {"needed_bytes": part.skipped.needed_bytes, "free_bytes": part.skipped.free_bytes}
    return {"part": part.rank, "reason": part.skipped.reason} | {k: v for k, v in sizes.items() if v is not None}


def _columns(settings: Sequence[SettingRecord]) -> dict[str, AnyArray]:
    found: dict[str, list[AnyArray]] = {name: [] for name in (*_TYPES, "kind", "direction")}
    for number, setting in enumerate(settings):
        for part in setting.parts:
            for ops in part.ops:
                found["setting"].append(np.full(ops.seconds.size, number))
                found["part"].append(np.full(ops.seconds.size, part.rank))
                for name in ("iteration", "kind", "layer", "direction", "seconds"):
                    found[name].append(getattr(ops, name))
    return {name: np.concatenate(pieces).astype(_TYPES.get(name, "int32")) for name, pieces in found.items()}


_TYPES: Final = {"setting": "int32", "part": "int32", "iteration": "int32", "layer": "int32", "seconds": "float64"}
