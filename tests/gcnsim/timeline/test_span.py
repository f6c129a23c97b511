"""A timeline's columns read back as spans."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.timeline import KIND_CODE, KINDS, PS_PER_S, Direction, OpKind, Phase, Timeline
from gcnsim.timeline.span import Span


@pytest.fixture
def two_spans() -> Timeline:
    kinds = [OpKind.WIRE, OpKind.UPDATE]
    return Timeline(
        kind=np.array([KIND_CODE[kind] for kind in kinds], dtype=np.uint8),
        worker=np.array([0, 1], dtype=np.int32),
        stream=np.array([1, 0], dtype=np.int32),
        iteration=np.array([0, 2], dtype=np.int32),
        layer=np.array([3, -1], dtype=np.int32),
        direction=np.array([Direction.BACKWARD, Direction.NONE], dtype=np.uint8),
        peer=np.array([1, -1], dtype=np.int32),
        start_ps=np.array([0, PS_PER_S]),
        end_ps=np.array([PS_PER_S // 2, 3 * PS_PER_S]),
        nbytes=np.array([64.0, 0.0]),
        streams=("gpu", "f.tx1"),
    )


def test_rows_of_a_timeline(two_spans: Timeline) -> None:
    assert len(two_spans) == 2
    assert list(two_spans) == [
        Span(OpKind.WIRE, 0, "f.tx1", 0, 3, Direction.BACKWARD, 1, 0.0, 0.5, 64.0),
        Span(OpKind.UPDATE, 1, "gpu", 2, -1, Direction.NONE, -1, 1.0, 3.0, 0.0),
    ]


def test_mask_of_phases(two_spans: Timeline) -> None:
    assert two_spans.of_phase(Phase.TRANSFER).tolist() == [True, False]
    assert two_spans.of_phase(Phase.TRANSFER, Phase.COMPUTE).tolist() == [True, True]
    assert not two_spans.of_phase(Phase.REDUCE).any()


def test_codes_are_positions() -> None:
    assert [KIND_CODE[kind] for kind in KINDS] == list(range(len(OpKind)))


def test_stored_codes_keep_their_meaning() -> None:
    """Files of spans hold directions as numbers, and picoseconds."""
    assert {item.name: item.value for item in Direction} == {"NONE": 0, "FORWARD": 1, "BACKWARD": 2}
    assert PS_PER_S == 10**12
    assert [KIND_CODE[kind] for kind in KINDS] == list(range(len(KINDS)))
