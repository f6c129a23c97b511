"""Figures of links alone: of a CPU also what busy cores cost, and how long a thread waits that a message wakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.evidence.fit_links import LEAST_WAKE_S, WAKE_S, fit_links
from gcnsim.evidence.fitting import Laws
from gcnsim.records.measurements import read_measurements
from tests.gcnsim.evidence.made_calibration import HOST, NETWORK, measurements, messages, point, write_measurements

QUIET_S = 4e-4
CPU_S = 5e-5
"""Processor time of an answer, alone."""


def fit(tmp_path: Path, *more: dict[str, Any], **options: Any) -> Laws:
    document = measurements()
    kept = [] if options else [item for item in document["measurements"] if item["kernel"].startswith("shared_")]
    document["measurements"] = [*kept, *messages(), *more]
    document["options"] |= {"kernels": False, **options}
    return fit_links(read_measurements(write_measurements(tmp_path / "links.json", document)))


def answers(processes: int, beside_s: float) -> list[dict[str, Any]]:
    alone = point("answer", QUIET_S, processes, bytes=4)
    cpu = point("answer_beside_cpu", 1e-4 * processes, processes, bytes=4)
    quiet = point("answer_cpu", CPU_S, processes, bytes=4)
    return [alone, quiet, point("answer_beside", beside_s, processes, bytes=4), cpu]


def test_a_woken_thread_waits_a_quarter_of_what_a_message_and_its_answer_wait_beside_training(tmp_path: Path) -> None:
    # Two cores: of 2, 3 and 4 processes, the least number that leaves none idle counts.
    dearer = 2 * (2e-4 - CPU_S)  # of both ends
    laws = fit(tmp_path, *answers(3, 9e-3), *answers(2, QUIET_S + dearer + 4 * 7e-4), *answers(4, 8e-3))
    assert laws.host["wake_s"].value == pytest.approx(7e-4)
    assert laws.host["wake_s"].reference.startswith("a message and its answer while 2 processes train on 2 cores")


def test_a_message_costs_what_it_does_beside_training(tmp_path: Path) -> None:
    # Two messages at each end.
    assert fit(tmp_path, *answers(2, 1e-3), *answers(4, 1e-3)).host["message_s"].value == pytest.approx(1e-4)
    assert fit(tmp_path).host["message_s"].value == pytest.approx(HOST["message_s"], rel=0.02)


def test_a_difference_below_noise_is_a_microsecond(tmp_path: Path) -> None:
    assert fit(tmp_path, *answers(2, 0.9 * QUIET_S)).host["wake_s"].value == LEAST_WAKE_S


@pytest.mark.parametrize("processes", [None, 1])
def test_measurements_of_older_versions_have_the_benchmarks_figure(tmp_path: Path, processes: int | None) -> None:
    more = [] if processes is None else answers(processes, 1.0)
    assert fit(tmp_path, *more).host["wake_s"].value == WAKE_S


def test_links_of_gpus_have_no_busy_cores(tmp_path: Path) -> None:
    laws = fit(tmp_path, device="cuda")
    assert set(laws.host) == {"cores", "message_s", "socket_bandwidth"}
    assert laws.host["message_s"].value == pytest.approx(HOST["message_s"], rel=0.02)
    assert laws.network["latency_s"].value == pytest.approx(NETWORK["latency_s"], rel=0.02)


def test_an_answer_without_its_processor_time_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        ScenarioError, match=r"links\.json: has no kernel 'answer_cpu' of 2 processes; python -m runtime"
    ):
        fit(tmp_path, *[item for item in answers(2, 1e-3) if item["kernel"] != "answer_cpu"])
