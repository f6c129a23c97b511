"""Files of measured compute times as `python -m runtime.measure` writes them, of times that a test chooses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gcnsim.graph import load_graph
from gcnsim.graph.assign import partition_graph

NODES = 40
ITERATIONS = 4
LAYERS = 2

Setting = tuple[str, Mapping[str, Any]]
Seconds = Callable[[str, int, int, str, int], float]
"""Of a kind, a layer, a part, a direction and an iteration."""

OPS = [
    ("aggregate", 0, "forward"),
    ("update", 0, "forward"),
    ("aggregate", 1, "forward"),
    ("update", 1, "forward"),
    ("loss", -1, "forward"),
    ("loss", -1, "backward"),
    ("update", 1, "backward"),
    ("aggregate", 1, "backward"),
    ("update", 0, "backward"),
    ("step", -1, ""),
]
"""The operations of an iteration of two layers, as a run records them; of several parts there are more."""

EXCHANGED = [("pack", 0, "forward"), ("pack", 1, "forward"), ("scatter", 1, "backward")]
DRAWN = [("sample", -1, ""), ("index", -1, "")]


def write_graph(folder: Path) -> Path:
    """A ring with chords, as an edge list: every part borders on others."""
    path = folder / "ring.txt"
    path.write_text("".join(f"{v} {(v + hop) % NODES}\n" for v in range(NODES) for hop in (1, 2, 7)))
    return path


@cache
def _known(graph: str, parts: int) -> tuple[str, str, int]:
    loaded = load_graph(graph)
    return loaded.content_hash(), partition_graph(loaded, parts).owner_hash, loaded.entries // 2


def header(
    edges: Path,
    parts: int = 1,
    settings: Sequence[Setting] = (("full-graph", {}),),
    outside: float = 0.0,
    **more: Any,
) -> Any:
    """What the metadata says. outside: seconds of an iteration in none of its operations; more: sections with keys of
    their own."""
    graph_hash, partition_hash, count = _known(str(edges), parts)
    place = [(number, part) for number in range(len(settings)) for part in range(parts)]
    drawn = {"rows": 8.0, "hits": 4.0, "sent": 8.0, "edges": 120.0}
    about = {"iterations": ITERATIONS, "refreshing": [], "warmup": 2, "mean_seconds": 0.1, "outside_seconds": outside,
             "relative_error": 0.02, "peak_bytes": 1000, "inner": NODES, "boundary": 0, "drawn": drawn}  # fmt: skip
    found: dict[str, Any] = {
        "format": "gcnsim.measured_compute/3",
        "graph": {"name": "ring", "nodes": NODES, "edges": count, "features": 16, "classes": 4, "hash": graph_hash},
        "partition": {"parts": parts, "algorithm": "metis-vol", "hash": partition_hash},
        "model": {"model": "gcn", "layers": LAYERS, "hidden": 8, "heads": 1, "norm": "none", "dropout": 0.0,
                  "dropout_order": "exchange-first", "bias": True, "sage_mean": "neighbours",
                  "preaggregate": False, "widths": [16, 8, 4]},
        "training": {"dtype": "float32", "aggregator": "plain", "overlap": "central", "seed": 0},
        "device": {"kind": "cuda", "name": "Tesla T4", "memory_bytes": 16e9, "threads": 1},
        "versions": {"gcnsim": "1", "torch": "2", "python": "3"},
        "settings": [{"setting": n, "method": name, "knobs": dict(knobs)} for n, (name, knobs) in enumerate(settings)],
        "parts": [{"setting": number, "part": part, **about} for number, part in place],
        "skipped": [],
    }  # fmt: skip
    for name, changed in more.items():
        found[name] = found[name] | changed if isinstance(changed, dict) else changed
    return found


def rows(about: Any, seconds: Seconds, ops: Sequence[tuple[str, int, str]] | None = None) -> dict[str, list[Any]]:
    """A column for each fact of every operation of every iteration."""
    several = about["partition"]["parts"] > 1
    found: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for part in about["parts"]:
        method = next(setting for setting in about["settings"] if setting["setting"] == part["setting"])
        drawn = method["knobs"].get("epsilon", 1.0) < 1.0
        chosen = ops if ops is not None else [*OPS, *(EXCHANGED if several else []), *(DRAWN if drawn else [])]
        for iteration in range(part["iterations"]):
            for kind, layer, direction in chosen:
                rate = float(method["knobs"].get("epsilon", 1.0))
                value = seconds(kind, layer, part["part"], direction, iteration) * rate
                row = (part["setting"], part["part"], iteration, kind, layer, direction, value)
                for name, item in zip(COLUMNS, row, strict=True):
                    found[name].append(item)
    return found


COLUMNS = {
    "setting": pa.int32(),
    "part": pa.int32(),
    "iteration": pa.int32(),
    "kind": pa.string(),
    "layer": pa.int32(),
    "direction": pa.string(),
    "seconds": pa.float64(),
}


def even(kind: str, layer: int, part: int, direction: str, iteration: int) -> float:
    """Ten milliseconds for everything, of every part, in every iteration."""
    return 0.01


def write(path: Path, about: Any, columns: Mapping[str, Sequence[Any]]) -> Path:
    """Write the file."""
    names = {name: kind for name, kind in COLUMNS.items() if name in columns}
    arrays = {name: pa.array(np.array(columns[name]) if kind != pa.string() else columns[name], kind)
              for name, kind in names.items()}  # fmt: skip
    arrays |= {name: pa.array(values) for name, values in columns.items() if name not in COLUMNS}
    metadata = None if about is None else {"gcnsim": about if isinstance(about, bytes) else json.dumps(about)}
    pq.write_table(pa.table(arrays).replace_schema_metadata(metadata), path, compression="zstd")
    return path


def measured_file(
    folder: Path,
    edges: Path,
    parts: int = 1,
    settings: Sequence[Setting] = (("full-graph", {}),),
    seconds: Seconds = even,
    name: str = "measured.parquet",
    **more: Any,
) -> Path:
    """A file of measured times of a graph's parts."""
    about = header(edges, parts, settings, **more)
    return write(folder / name, about, rows(about, seconds))
