"""The trace of mini-batches comes back as it was, and a file that contradicts itself is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.container import read_sections, write_sections
from gcnsim.core.errors import FileError
from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.trace import BatchOrigin, BatchTrace, packed, read_batch_trace, write_batch_trace
from gcnsim.trace.batches import KIND, VERSION
from gcnsim.trace.counts import Store, count_batches
from gcnsim.workload.mini_batches import NeighbourDraws, shuffled_pools

NODES, WORKERS, ITERATIONS = 203, 2, 3


@pytest.fixture
def drawn() -> Any:
    """drawn[t][n]."""
    graph = block_model(BlockModel(nodes=NODES, edges=900), 3, "small")
    draws = NeighbourDraws(graph, shuffled_pools(np.arange(60), WORKERS, 0), 20, (3, 2), (), 0)
    return [[draws.draw(t, rank) for rank in range(WORKERS)] for t in range(ITERATIONS)]


@pytest.fixture
def trace(drawn: Any) -> BatchTrace:
    def inputs(rank: int) -> Any:
        mask = np.zeros((ITERATIONS, NODES), np.bool_)
        for t in range(ITERATIONS):
            mask[t, drawn[t][rank].levels[0]] = True
        return packed(mask)

    return BatchTrace(
        BatchOrigin("small", "ab12", "distdgl", 0, 2),
        NODES,
        np.array([[[level.size for level in one.levels] for one in row] for row in drawn], np.int64),
        np.array([[one.entries for one in row] for row in drawn], np.int64),
        np.array([[one.looked for one in row] for row in drawn], np.int64),
        tuple(inputs(rank) for rank in range(WORKERS)),
        tuple(packed(np.arange(NODES) < 40 * rank) for rank in range(WORKERS)),
        np.full(WORKERS, NODES, np.int64),
        (np.arange(NODES) % WORKERS).astype(np.int32),
    )


def test_it_comes_back_with_the_counts_of_its_batches(trace: BatchTrace, drawn: Any, tmp_path: Path) -> None:
    write_batch_trace(tmp_path / "t", trace)
    back = read_batch_trace(tmp_path / "t")
    assert (back.origin, back.nodes, back.iterations, back.workers) == (trace.origin, NODES, ITERATIONS, WORKERS)
    assert all(np.array_equal(back.read_by(n, t), drawn[t][n].levels[0]) for n in range(2) for t in range(3))
    held = tuple(np.arange(NODES) < 40 * rank for rank in range(WORKERS))
    wanted = count_batches(drawn, Store(trace.owner, held, trace.stored), 2)
    for name in ("levels", "entries", "looked", "wanted", "hits", "cached", "stored", "per_epoch"):
        assert np.array_equal(getattr(back.counts(), name), getattr(wanted, name)), name
    assert back.counts().hits[:, 1].any()
    assert not back.counts().hits[:, 0].any()


def _spoilt(name: str, arrays: dict[str, Any], meta: dict[str, Any]) -> str:
    """Change one section or fact; what is said of it."""
    if name == "owner":
        arrays["owner"] = arrays["owner"] + 1
        return "section 'owner' names workers other than 0 to 1"
    if name == "inputs":
        arrays["worker1.inputs"] = arrays["worker1.inputs"] & np.uint8(0x7F)
        return "section 'worker1.inputs' has other numbers of rows than 'levels'"
    if name == "beyond":
        arrays["worker0.held"] = arrays["worker0.held"] | np.uint8(0x80)
        return "section 'worker0.held' names nodes beyond the last, 202"
    if name == "entries":
        arrays["entries"] = arrays["entries"][:, :, :1]
        return "section 'entries' is int64 (3, 2, 1), wanted <i8 (3, 2, 2)"
    if name == "levels":
        arrays["levels"] = arrays["levels"][:, :1]
        return "section 'levels' has shape (3, 1, 3), wanted (1 or more, 2, 2 or more)"
    if name == "looked":
        del arrays["looked"]
        return "section 'looked' is missing"
    if name == "workers":
        meta["workers"] = 0
        return "workers is 0; allowed: 1 or more"
    meta["origin"]["seed"] = "0"
    return "origin.seed is '0', wanted int"


@pytest.mark.parametrize("name", ["owner", "inputs", "beyond", "entries", "levels", "looked", "workers", "origin"])
def test_what_contradicts_itself_is_refused(trace: BatchTrace, tmp_path: Path, name: str) -> None:
    path = tmp_path / "t"
    write_batch_trace(path, trace)
    stored = read_sections(path, kind=KIND, version=VERSION)
    arrays, meta = {key: np.array(array) for key, array in stored.arrays.items()}, dict(stored.meta)
    meta["origin"] = dict(meta["origin"])
    text = _spoilt(name, arrays, meta)
    write_sections(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)
    with pytest.raises(FileError) as caught:
        read_batch_trace(path)
    assert str(caught.value) == f"{path}: {text}"
