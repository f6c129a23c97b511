"""What drawing and shipping a sampled graph costs."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.cost import (
    boundary_core_seconds,
    boundary_seconds,
    draw_core_seconds,
    draw_nodes_core_seconds,
    graph_bytes,
    id_bytes,
    row_bytes,
)
from gcnsim.hardware import DeviceProfile, HostProfile


def test_every_entry_is_drawn_every_iteration(server: HostProfile) -> None:
    assert draw_core_seconds(server, 1_000_000, 20, weighted=False) == pytest.approx(0.01)


def test_weights_are_recomputed_once_per_refresh(server: HostProfile) -> None:
    assert draw_core_seconds(server, 1_000_000, 20, weighted=True) == pytest.approx(0.01 + 0.1 / 20)
    assert draw_core_seconds(server, 1_000_000, 1, weighted=True) == pytest.approx(0.01 + 0.1)


def test_nodes_are_drawn_as_entries_are(server: HostProfile) -> None:
    assert draw_nodes_core_seconds(server, 50_000) == pytest.approx(0.0005)


def test_a_boundary_matrix_looks_at_what_crosses_and_builds_the_rest(server: HostProfile, gpu: DeviceProfile) -> None:
    cross, kept = np.array([1_000_000, 0]), np.array([100_000, 0])
    on_core = boundary_core_seconds(server, cross, kept, 20_000)
    assert on_core == pytest.approx([0.01 + 120_000 / 2e7, 20_000 / 2e7])
    values = 2 * cross + 4 * kept + 40_000
    assert boundary_seconds(gpu, cross, kept, 20_000) == pytest.approx(values * 4 / 100e9 + 1e-5)


def test_bytes() -> None:
    assert graph_bytes(np.array([0, 100]), 10).tolist() == [80.0, 880.0]
    assert id_bytes(np.array([0, 7])).tolist() == [0.0, 28.0]
    assert row_bytes(np.array([0, 7]), 16).tolist() == [0.0, 448.0]
