"""Every member of a ring ends with every block, whatever the pieces, and sends each block at most once."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.timeline import OpKind
from tests.runtime.block_jobs import added_up, passed_around, values
from tests.runtime.conftest import mostly
from tests.runtime.crew import Crew

ROWS, WIDTH = [5, 1, 12, 7], 3


ONE, TWO, WHOLE = 1, 24, 1 << 20
"""Bytes of a piece: a row, two rows, a block."""


@pytest.mark.parametrize(
    ("size", "piece"), mostly([(1, WHOLE), (2, ONE), (3, TWO), (3, WHOLE), (4, ONE)], (1, 2, 3, 4), (ONE, TWO, WHOLE))
)
def test_every_member_has_every_block(crew: Crew, size: int, piece: int) -> None:
    members = [2, 0, 3, 1][:size] if size == 4 else list(range(size))
    content = crew.run(size, passed_around, members, ROWS[:size], WIDTH, piece)
    for rank, passed in enumerate(content):
        for root, count in enumerate(ROWS[:size]):
            assert np.array_equal(passed.blocks[root], values(root, count, WIDTH).numpy())
        after = members[(members.index(rank) + 1) % size]
        # All blocks but that of the next member, which has it.
        nbytes = 4 * WIDTH * (sum(ROWS[:size]) - ROWS[members.index(after)])
        assert passed.sent == ({(after, "rows"): nbytes} if size > 1 else {})
        spans = list(passed.timeline)
        sent = [span for span in spans if span.stream == f"f.tx{after}"]
        assert sum(span.nbytes for span in sent) == (nbytes if size > 1 else 0)
        assert len([span for span in spans if span.kind is OpKind.WIRE and ".rx" in span.stream]) == size - 1
        assert len([span for span in spans if span.kind is OpKind.WAIT]) == (size if size > 1 else 0)


@pytest.mark.parametrize("rows", [1, 7], ids=["fewer values than members", "some"])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_all_members_end_with_the_same_sum(crew: Crew, size: int, rows: int) -> None:
    width = 3 if rows > 1 else 1
    members = [2, 0, 3, 1] if size == 4 else list(range(size))
    content = crew.run(size, added_up, members, rows, width)
    wanted = size * values(0, rows, width).numpy() + 0.1 * sum(range(size))
    assert np.allclose(content[0].blocks[0], wanted, rtol=1e-6)
    assert len({item.blocks[0].tobytes() for item in content}) == 1
    assert sum(sum(item.sent.values()) for item in content) == 2 * (size - 1) * 4 * rows * width
    for rank, item in enumerate(content):
        after = members[(members.index(rank) + 1) % size]
        assert set(item.sent) <= {(after, "gradients")}
        spans = [span for span in item.timeline if span.kind is OpKind.ALLREDUCE]
        assert [(span.stream, span.iteration, span.layer) for span in spans] == [("replicas.ring", 3, 1)] * (size > 1)
