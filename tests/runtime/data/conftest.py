"""A small graph file whose every array a test can replace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.ids import AnyArray
from gcnsim.graph import build_csr

NODES = 10


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., str]:
    """Writes a ring of 10 nodes with 3 features and 2 classes, `arrays` in place of its own (None: left out)."""

    def save(name: str = "ring", **arrays: AnyArray | None) -> str:
        nodes = np.arange(NODES)
        graph = build_csr(nodes, (nodes + 1) % NODES, NODES, name)
        every: dict[str, AnyArray | None] = {
            "indptr": graph.indptr,
            "indices": graph.indices,
            "x": np.arange(3.0 * NODES).reshape(NODES, 3),
            "labels": nodes % 2,
            "train_mask": (nodes < 6).astype(np.uint8),
            "val_mask": (nodes // 2 == 3).astype(np.uint8),
            "test_mask": (nodes // 2 == 4).astype(np.uint8),
            **arrays,
        }
        path = tmp_path / f"{name}.npz"
        np.savez(path, allow_pickle=False, **{key: array for key, array in every.items() if array is not None})
        return str(path)

    return save
