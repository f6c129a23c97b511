"""What drawing and shipping a sampled graph costs."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.cost import draw_core_seconds, graph_bytes, id_bytes, row_bytes
from gcnsim.profile import HostProfile


def test_every_entry_is_drawn_every_iteration(server: HostProfile) -> None:
    assert draw_core_seconds(server, 1_000_000, 20, weighted=False) == pytest.approx(0.01)


def test_weights_are_recomputed_once_per_refresh(server: HostProfile) -> None:
    assert draw_core_seconds(server, 1_000_000, 20, weighted=True) == pytest.approx(0.01 + 0.1 / 20)
    assert draw_core_seconds(server, 1_000_000, 1, weighted=True) == pytest.approx(0.01 + 0.1)


def test_bytes() -> None:
    assert graph_bytes(np.array([0, 100]), 10).tolist() == [80.0, 880.0]
    assert id_bytes(np.array([0, 7])).tolist() == [0.0, 28.0]
    assert row_bytes(np.array([0, 7]), 16).tolist() == [0.0, 448.0]
