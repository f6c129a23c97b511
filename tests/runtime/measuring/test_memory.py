"""What a part needs is foretold from its sizes alone, and what is free is what the system says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from runtime.data import DatasetCache
from runtime.exchange import Mail
from runtime.measuring.part import PartRecord, PartRun, asked_bytes, free_bytes, needed_bytes, sizes_of
from tests.runtime.conftest import Case, MakeOptions


def test_sizes_are_those_of_the_parts(case: Case) -> None:
    owners = case.owners(3)
    for part in case.parts(3):
        found = sizes_of(case.graph, owners, part.rank)
        assert (found.inner, found.boundary, found.entries) == (part.inner_nodes, part.boundary_nodes, part.entries)


@pytest.mark.parametrize("method", ["full-graph", "psc-gcn"])
@pytest.mark.parametrize("model", ["gcn", "gat"])
def test_no_less_is_foretold_than_tensors_take(case: Case, options: MakeOptions, method: str, model: str) -> None:
    given = options(method, {}, model=model, workers=2)
    record = PartRecord(0)
    run = PartRun(record, replace(given, iterations=10**9), torch.device("cpu"), DatasetCache(), Mail())
    run.train(2, measured=False)
    run.close()
    assert record.peak_bytes is not None
    needed = needed_bytes(sizes_of(case.graph, case.owners(2), 0), given, (7, 6, 6, 4), 0)
    assert record.peak_bytes < needed < 10 * record.peak_bytes


def test_more_rows_ages_draws_and_stored_features_need_more(case: Case, options: MakeOptions) -> None:
    sizes, widths = sizes_of(case.graph, case.owners(2), 0), (7, 6, 6, 4)
    least = needed_bytes(sizes, options(), widths, 0)
    assert least < needed_bytes(sizes, options(), (70, 6, 6, 4), 0)
    assert least < needed_bytes(sizes, options(), widths, 50)
    drawn = [needed_bytes(sizes, options("psc-gcn", {"tau": tau}), widths, 0) for tau in (1, 4)]
    assert least < drawn[0] < drawn[1]


def test_free_memory_is_no_more_than_the_machine_has() -> None:
    free = free_bytes()
    assert free is None or 0 < free < 1 << 50


@pytest.mark.parametrize(
    ("message", "nbytes"),
    [
        ("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 14.6 GiB", 2.5 * (1 << 30)),
        ("CUDA out of memory. Tried to allocate 20.00 MiB.", 20 << 20),
        ("something else", 0),
    ],
)
def test_what_a_gpu_was_asked_for_is_in_its_message(message: str, nbytes: float) -> None:
    assert asked_bytes(message) == nbytes
