"""Every member of a ring ends with every block, whatever the pieces, and sends each block at most once."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.timeline import OpKind
from tests.runtime.block_jobs import passed_around, values
from tests.runtime.crew import Crew

ROWS, WIDTH = [5, 1, 12, 7], 3


@pytest.mark.parametrize("piece", [1, 24, 1 << 20], ids=["row by row", "two rows", "whole"])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_every_member_has_every_block(crew: Crew, size: int, piece: int) -> None:
    members = [2, 0, 3, 1][:size] if size == 4 else list(range(size))
    told = crew.run(size, passed_around, members, ROWS[:size], WIDTH, piece)
    for rank, each in enumerate(told):
        for root, count in enumerate(ROWS[:size]):
            assert np.array_equal(each.blocks[root], values(root, count, WIDTH).numpy())
        after = members[(members.index(rank) + 1) % size]
        # All blocks but that of the next member, which has it.
        nbytes = 4 * WIDTH * (sum(ROWS[:size]) - ROWS[members.index(after)])
        assert each.sent == ({(after, "rows"): nbytes} if size > 1 else {})
        spans = list(each.timeline)
        sent = [span for span in spans if span.stream == f"f.tx{after}"]
        assert sum(span.nbytes for span in sent) == (nbytes if size > 1 else 0)
        assert len([span for span in spans if span.kind is OpKind.WIRE and ".rx" in span.stream]) == size - 1
        assert len([span for span in spans if span.kind is OpKind.WAIT]) == (size if size > 1 else 0)
