from __future__ import annotations

import numpy as np
import pytest

from gcnsim.timeline import OpKind, Timeline
from runtime.record import Recorder, from_arrays, merge, to_arrays


def of(rank: int, *spans: tuple[OpKind, str, int, int]) -> Timeline:
    """A worker's timeline of (kind, stream, start, end in ns)."""
    recorder = Recorder(rank)
    for kind, stream, start, end in spans:
        recorder.add(kind, stream, 0, start, end, peer=1 - rank, nbytes=float(start))
    return recorder.timeline(0)


FIRST = of(0, (OpKind.AGGREGATE, "compute", 10, 30), (OpKind.WIRE, "f.tx1", 20, 25), (OpKind.STEP, "compute", 40, 50))
SECOND = of(1, (OpKind.WIRE, "f.tx0", 5, 25), (OpKind.AGGREGATE, "compute", 10, 20), (OpKind.PACK, "f.pack", 10, 11))


def test_spans_of_all_workers_in_one_order_on_shared_streams() -> None:
    merged = merge([FIRST, SECOND])
    assert merged.streams == ("f.tx0", "compute", "f.pack", "f.tx1")
    assert [(int(span.start_s * 1e9 + 0.5), span.worker, span.stream, span.kind) for span in merged] == [
        (5, 1, "f.tx0", OpKind.WIRE),
        (10, 0, "compute", OpKind.AGGREGATE),
        (10, 1, "compute", OpKind.AGGREGATE),
        (10, 1, "f.pack", OpKind.PACK),
        (20, 0, "f.tx1", OpKind.WIRE),
        (40, 0, "compute", OpKind.STEP),
    ]
    assert sorted(merged) == sorted([*FIRST, *SECOND])


def test_the_order_of_the_workers_does_not_matter() -> None:
    one, other = merge([FIRST, SECOND]), merge([SECOND, FIRST])
    assert (list(one), one.streams) == (list(other), other.streams)


def test_nothing_and_one_timeline_merge_too() -> None:
    assert len(merge([])) == 0
    assert merge([]).kind.dtype == np.uint8
    alone = merge([FIRST, Recorder(1).timeline(0)])
    assert (list(alone), alone.streams) == (list(FIRST), FIRST.streams)


def test_arrays_there_and_back() -> None:
    for before in (FIRST, merge([FIRST, SECOND]), Recorder(0).timeline(0)):
        arrays = {name: array.copy() for name, array in to_arrays(before).items()}
        after = from_arrays(arrays)
        assert (list(after), after.streams) == (list(before), before.streams)
        assert not after.kind.flags.writeable


def test_arrays_that_are_no_timeline_are_refused() -> None:
    arrays = to_arrays(FIRST)
    with pytest.raises(ValueError, match="lack 'peer'"):
        from_arrays({name: array for name, array in arrays.items() if name != "peer"})
    with pytest.raises(ValueError, match=r"end_ps: int64\[2\], wanted int64\[3\]"):
        from_arrays(arrays | {"end_ps": arrays["end_ps"][:2]})
    with pytest.raises(ValueError, match=r"layer: int64\[3\], wanted int32\[3\]"):
        from_arrays(arrays | {"layer": arrays["layer"].astype(np.int64)})
