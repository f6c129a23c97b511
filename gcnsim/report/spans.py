"""Spans as a Parquet file, for analysis in a data frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gcnsim.sections import replacing
from gcnsim.timeline import KINDS, Direction, Timeline


def write_spans(path: str | Path, timeline: Timeline, about: dict[str, str]) -> None:
    """Write one row per span: kind, worker, stream, iteration, layer, direction, peer, start_ps, end_ps, nbytes.

    about: text that travels in the file's metadata (scenario hash, seed, version). Raises FileError when the file
    cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def words(codes: Any, names: list[str]) -> Any:
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names))

    table = pa.table(
        {
            "kind": words(timeline.kind, [str(kind) for kind in KINDS]),
            "worker": timeline.worker,
            "stream": words(timeline.stream, list(timeline.streams)),
            "iteration": timeline.iteration,
            "layer": timeline.layer,
            "direction": words(timeline.direction, [each.name.lower() for each in Direction]),
            "peer": timeline.peer,
            "start_ps": timeline.start_ps,
            "end_ps": timeline.end_ps,
            "nbytes": timeline.nbytes,
        }
    ).replace_schema_metadata(about)
    with replacing(path) as file:
        pq.write_table(table, file)
