"""The boundary nodes that bns-gcn draws in training are those that the simulator draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.trace import record_nodes, write_trace
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import ran

WORKERS, ITERATIONS, SEED = 3, 6, 5


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_draws_are_the_simulators_byte_for_byte(
    crew: Crew, options: MakeOptions, case: Case, tmp_path: Path, rate: float
) -> None:
    requested = options(
        "bns-gcn",
        {"rate": rate},
        workers=WORKERS,
        iterations=ITERATIONS,
        seed=SEED,
        save_trace=str(tmp_path / "run.trace"),
        out=str(tmp_path / "run"),
    )
    crew.run(WORKERS, ran, requested)
    wanted = record_nodes(case.parts(WORKERS), case.owners(WORKERS), rate=rate, iterations=ITERATIONS, seed=SEED)
    write_trace(tmp_path / "wanted.trace", wanted)
    assert (tmp_path / "run.trace").read_bytes() == (tmp_path / "wanted.trace").read_bytes()
