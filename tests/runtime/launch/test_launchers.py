"""Places are read from whole answers; half an answer is refused in one line."""

from __future__ import annotations

import pytest

from gcnsim.core.errors import ScenarioError
from runtime.launch import Place, place

MEET = {"MASTER_ADDR": "node0", "MASTER_PORT": "29500"}
TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
SLURM = {"SLURM_PROCID": "8", "SLURM_NTASKS": "11", "SLURM_LOCALID": "0", "SLURM_NODEID": "2"}


def test_nobody_launched_us() -> None:
    assert place({}) is None
    assert place({"LOCAL_RANK": "0"} | MEET) is None


def test_as_torchrun_sets_it() -> None:
    assert place(TORCHRUN | MEET) == Place(5, 8, 1, 4, launched=False)


def test_as_our_launcher_sets_it() -> None:
    assert place(TORCHRUN | {"GCNSIM_RENDEZVOUS": "/tmp/x"}) == Place(5, 8, 1, 4, launched=True)


def test_one_worker_per_server_needs_no_local_rank() -> None:
    assert place({"RANK": "1", "WORLD_SIZE": "2"} | MEET) == Place(1, 2, 0, 1, launched=False)


@pytest.mark.parametrize("name", ["SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"])
def test_tasks_of_a_slurm_step(name: str) -> None:
    assert place(SLURM | MEET | {name: "4(x2),3"}) == Place(8, 11, 0, 3, launched=False)


def test_a_slurm_job_of_one_task_or_without_a_meeting_point_is_no_launch() -> None:
    assert place(SLURM | MEET | {"SLURM_NTASKS": "1"}) is None
    assert place(SLURM) is None


@pytest.mark.parametrize(
    ("env", "line"),
    [
        ({"RANK": "0"}, "RANK: set to '0', but WORLD_SIZE is not set; set both, as torchrun does"),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE: set to '2', but RANK is not set; set both, as torchrun does"),
        (TORCHRUN | {"RANK": "8"} | MEET, "RANK: 8 is not allowed; allowed: 0 to WORLD_SIZE - 1 (7)"),
        (TORCHRUN | {"RANK": "-1"} | MEET, "RANK: '-1' is not a whole number >= 0"),
        (TORCHRUN | {"RANK": "9" * 5000} | MEET, f"RANK: '{'9' * 40}' is not a whole number >= 0"),
        (TORCHRUN | {"WORLD_SIZE": "x"} | MEET, "WORLD_SIZE: 'x' is not a whole number >= 0"),
        (TORCHRUN | {"LOCAL_RANK": "4"} | MEET, "LOCAL_RANK: 4 is not allowed; allowed: 0 to LOCAL_WORLD_SIZE - 1 (3)"),
        (
            TORCHRUN | {"LOCAL_WORLD_SIZE": "9"} | MEET,
            "LOCAL_WORLD_SIZE: 9 is not allowed; allowed: 1 to WORLD_SIZE (8)",
        ),
        (
            {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"} | MEET,
            "LOCAL_RANK: set to '0', but LOCAL_WORLD_SIZE is not set; set both, as torchrun does",
        ),
        (TORCHRUN, "MASTER_ADDR: not set, but RANK is; torchrun sets both; without it, set both"),
        (
            SLURM | {"MASTER_ADDR": "node0", "SLURM_TASKS_PER_NODE": "11"},
            "MASTER_PORT: not set, but SLURM_PROCID is; torchrun sets both; without it, set both",
        ),
        (
            SLURM | MEET | {"SLURM_TASKS_PER_NODE": "4,4"},
            "SLURM_TASKS_PER_NODE: '4,4' does not say how many tasks node 2 has; like 4(x2),3",
        ),
        (
            SLURM | MEET | {"SLURM_TASKS_PER_NODE": "many"},
            "SLURM_TASKS_PER_NODE: 'many' does not say how many tasks node 2 has; like 4(x2),3",
        ),
    ],
)
def test_half_an_answer_is_refused(env: dict[str, str], line: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        place(env)
    assert str(caught.value) == line
