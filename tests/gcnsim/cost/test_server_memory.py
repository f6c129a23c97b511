from __future__ import annotations

import pytest

from gcnsim.cost import ServerMemory, server_memory


def test_a_server_of_papers100m_holds_rows_and_citations() -> None:
    """By hand: 111,059,956 rows of 128 values and a label, 1,615,685,872 citations with as many offsets as nodes."""
    held = server_memory(nodes=111_059_956, entries=1_615_685_872, width=128, booked=0, buffered=0, workers=1)
    assert held.rows == 111_059_956 * 520
    assert held.graph == 8 * (1_615_685_872 + 111_059_956)
    assert held.total == pytest.approx(73.6e9, rel=0.01)
    assert not held.fits(64e9)
    assert held.fits(128e9)


def test_the_system_needs_some_too() -> None:
    assert not ServerMemory(1e9, 0.0, 0.0, 0.0, 0.0).fits(1.5e9)
    assert ServerMemory(1e9, 0.0, 0.0, 0.0, 0.0).fits(2e9)
