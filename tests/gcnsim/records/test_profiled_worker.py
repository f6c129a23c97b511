"""Profiler traces of one worker: names and repairs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsim.records.profiled_worker import by_ends, flattened
from gcnsim.records.trace_names import (
    ANNOTATIONS,
    COLLECTIVES,
    COMPUTE,
    COPIES,
    MESSAGES,
    NO_WORK,
    RANGES,
    first_of,
    matches,
    read_names,
)
from gcnsim.timeline import OpKind

Nested = list[tuple[float, float, int, bool]]


@st.composite
def nested(draw: st.DrawFn) -> Nested:
    """Events within each other or apart, on whole numbers to 40, by their starts, the longest first."""
    found: Nested = []

    def fill(start: int, end: int, depth: int) -> None:
        while start < end and depth < 4 and draw(st.booleans()):
            first = draw(st.integers(start, end - 1))
            last = draw(st.integers(first + 1, end))
            found.append((first, last, draw(st.integers(0, 3)), draw(st.booleans())))
            fill(first, last, depth + 1)
            start = last

    fill(0, 40, 0)
    return found


def kind_at(events: Nested, instant: float) -> int | None:
    """The innermost that names all within it, else the outermost."""
    kind: int | None = None
    for start, end, own, sure in events:
        if start <= instant < end and (sure or kind is None):
            kind = own
    return kind


@given(events=nested())
def test_every_instant_has_one_kind(events: Nested) -> None:
    pieces = flattened(events)
    assert all(before[1] <= after[0] for before, after in pairwise(pieces))
    for instant in np.arange(0.5, 40.0):
        inside = [kind for start, end, kind in pieces if start <= instant < end]
        wanted = kind_at(events, instant)
        assert inside == ([] if wanted is None else [wanted])


def test_events_that_overlap_without_nesting_cover_what_they_cover() -> None:
    pieces = flattened([(0.0, 4.0, 1, True), (2.0, 6.0, 2, True), (7.0, 8.0, 1, False)])
    assert pieces == [(0.0, 2.0, 1), (2.0, 6.0, 2), (7.0, 8.0, 1)]


def test_an_iteration_ends_with_the_last_that_it_launched() -> None:
    steps = {3: (0.0, 10.0), 4: (10.0, 20.0), 6: (30.0, 40.0)}
    launched, ends = np.array([1.0, 5.0, 12.0, 31.0, np.nan]), np.array([14.0, 12.0, 25.0, 44.0, 99.0])
    assert by_ends(launched, ends, steps) == {3: (0.0, 14.0), 4: (14.0, 25.0), 6: (30.0, 44.0)}
    assert by_ends(launched[:2], ends[:2], steps) == {}, "the other iterations launched nothing that is known"


@pytest.mark.parametrize("late", [9.0, 14.0])
def test_an_iteration_never_ends_before_the_one_before_it(late: float) -> None:
    found = by_ends(np.array([1.0, 11.0]), np.array([14.0, late]), {0: (0.0, 10.0), 1: (10.0, 20.0)})
    assert found == {0: (0.0, 14.0), 1: (14.0, 14.0)}


DOCS = Path(__file__).resolve().parents[3] / "docs" / "files.md"


@pytest.mark.parametrize(
    ("patterns", "name", "kind"),
    [
        (RANGES, "Optimizer.step#AdamW.step", OpKind.STEP),
        (RANGES, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", OpKind.SAMPLE),
        (RANGES, "pyg::hetero_neighbor_sample", OpKind.SAMPLE),
        (RANGES, "aten::upsample_nearest2d", None),
        (ANNOTATIONS, "## Neighbour Sampling ##", OpKind.SAMPLE),
        (MESSAGES, "gloo:all_reduce", OpKind.ALLREDUCE),
        (MESSAGES, "gloo:all_to_all", OpKind.WIRE),
        (MESSAGES, "gloo:barrier", OpKind.WAIT),
        (MESSAGES, "c10d::allreduce_", None),
        (COLLECTIVES, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", OpKind.ALLREDUCE),
        (COLLECTIVES, "ncclKernel_ReduceScatter_RING_LL_Sum_half", OpKind.ALLREDUCE),
        (COLLECTIVES, "ncclDevKernel_AllGather_RING_LL", OpKind.WIRE),
        (COLLECTIVES, "ncclDevKernel_Generic [allreduce]", OpKind.ALLREDUCE),
        (COLLECTIVES, "ncclDevKernel_Generic [all_to_allv]", OpKind.WIRE),
        (COLLECTIVES, "void reduce_kernel<512, 1>", None),
        (COPIES, "Memcpy DtoH (Device -> Pageable)", OpKind.D2H),
        (COPIES, "Memcpy DtoD (Device -> Device)", OpKind.UPDATE),
        (COPIES, "Memset (Device)", OpKind.UPDATE),
        (COMPUTE, "void at::native::(anonymous namespace)::indexSelectLargeIndex<float>", OpKind.AGGREGATE),
        (COMPUTE, "void cusparse::csrmm_v2_kernel", OpKind.AGGREGATE),
        (COMPUTE, "aten::cross_entropy_loss", OpKind.LOSS),
        (COMPUTE, "volta_sgemm_128x64_nn", OpKind.UPDATE),
    ],
)
def test_a_name_means_the_first_pattern_that_it_matches(
    patterns: tuple[tuple[str, OpKind], ...], name: str, kind: OpKind | None
) -> None:
    assert first_of(patterns, name) == kind


def test_the_whole_name_must_match_in_any_case() -> None:
    assert matches("Train_?", "train_1")
    assert not matches("train", "train_1")
    assert matches("k[ab]*", "KA(int)\n")


def test_all_patterns_are_documented() -> None:
    text = DOCS.read_text()
    tables = (RANGES, ANNOTATIONS, MESSAGES, COLLECTIVES, COPIES, COMPUTE)
    patterns = [pattern for table in tables for pattern, _ in table if pattern != "*"]
    assert [pattern for pattern in (*patterns, *NO_WORK) if f"`{pattern}`" not in text] == []


def test_the_documented_file_of_names_is_read(tmp_path: Path) -> None:
    text = DOCS.read_text()
    example = text[text.index("schema: gcnsim.trace-names/1") :].partition("```")[0]
    (tmp_path / "names.yaml").write_text(example)
    names = read_names(tmp_path / "names.yaml")
    assert names.iteration == "train_step"
    assert names.own("draw_minibatch") == (True, OpKind.SAMPLE)
    assert names.own("logging") == (True, None)
    assert names.own("Logging in") == (False, None)
