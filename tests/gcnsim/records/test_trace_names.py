"""What names in a profiler's trace mean, by our patterns."""

from __future__ import annotations

from pathlib import Path

import pytest

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
