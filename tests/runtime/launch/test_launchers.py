"""Places are read from whole answers; half an answer is refused in one line."""

from __future__ import annotations

import pytest

from gcnsim.core.errors import ScenarioError
from runtime.launch import Place, place
from runtime.launch.launchers import rank_in

MEET = {"MASTER_ADDR": "node0", "MASTER_PORT": "29500"}
TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
SLURM = {"SLURM_PROCID": "8", "SLURM_NTASKS": "11", "SLURM_LOCALID": "0", "SLURM_NODEID": "2"}
ON_NODES = {"SLURM_TASKS_PER_NODE": "4(x2),3"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "5",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
}
PMI = {"PMI_RANK": "5", "PMI_SIZE": "8"}
MPICH = PMI | {"MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4"}


def test_nobody_launched_us() -> None:
    assert place({}) is None
    assert place({"LOCAL_RANK": "0"} | MEET) is None


def test_as_torchrun_sets_it() -> None:
    assert place(TORCHRUN | MEET) == Place(5, 8, 1, 4, launched=False)


def test_as_our_launcher_sets_it() -> None:
    assert place(TORCHRUN | {"GCNSIM_RENDEZVOUS": "/tmp/x"}) == Place(5, 8, 1, 4, launched=True)


def test_one_worker_per_server_needs_no_local_rank() -> None:
    assert place({"RANK": "1", "WORLD_SIZE": "2"} | MEET) == Place(1, 2, 0, 1, launched=False)


@pytest.mark.parametrize("launcher", [OPEN_MPI, MPICH])
def test_as_mpi_sets_it(launcher: dict[str, str]) -> None:
    assert place(launcher | MEET) == Place(5, 8, 1, 4, launched=False)


def test_tasks_of_a_slurm_step() -> None:
    assert place(SLURM | MEET | ON_NODES) == Place(8, 11, 0, 3, launched=False)
    step = {"SLURM_STEP_NUM_TASKS": "5", "SLURM_STEP_TASKS_PER_NODE": "1(x2),3"}
    assert place(SLURM | {"SLURM_PROCID": "2"} | MEET | ON_NODES | step) == Place(2, 5, 0, 3, launched=False)


def test_the_innermost_launcher_counts() -> None:
    batch = SLURM | ON_NODES | MEET | {"ENVIRONMENT": "BATCH"}
    assert place(batch | OPEN_MPI | TORCHRUN) == Place(5, 8, 1, 4, launched=False)
    assert place(batch | OPEN_MPI) == place(batch | MPICH) == Place(5, 8, 1, 4, launched=False)
    assert place(batch | PMI | {"SLURM_STEP_ID": "0"}) == Place(8, 11, 0, 3, launched=False)
    assert place(OPEN_MPI | TORCHRUN | {"GCNSIM_RENDEZVOUS": "/tmp/x"}) == Place(5, 8, 1, 4, launched=True)


@pytest.mark.parametrize(
    "env",
    [
        SLURM | ON_NODES | {"SLURM_NTASKS": "1"},
        SLURM | ON_NODES | {"SLURM_STEP_NUM_TASKS": "1"},  # salloc's shell is a step of one task
        {"SLURM_NTASKS": "4", "SLURM_TASKS_PER_NODE": "4"},
        SLURM | {"SLURM_PROCID": "0", "ENVIRONMENT": "BATCH"},
        OPEN_MPI | {"OMPI_COMM_WORLD_SIZE": "1"},
        MPICH | {"PMI_SIZE": "1"},
    ],
)
def test_one_process_is_no_launch(env: dict[str, str]) -> None:
    assert place(env) is None


@pytest.mark.parametrize(
    ("env", "rank"),
    [({}, 0), ({"RANK": "3"}, 3), (SLURM, 8), (OPEN_MPI, 5), (PMI, 5), ({"RANK": "x"}, 0)],
)
def test_the_rank_of_a_last_message_needs_nothing_else(env: dict[str, str], rank: int) -> None:
    assert rank_in(env) == rank


MISSING = "not set: export them to every process, or use torchrun"


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
        (TORCHRUN, f"WORLD_SIZE is 8, but MASTER_ADDR and MASTER_PORT are {MISSING}"),
        (OPEN_MPI, f"OMPI_COMM_WORLD_SIZE is 8, but MASTER_ADDR and MASTER_PORT are {MISSING}"),
        (PMI | MEET, f"PMI_SIZE is 8, but MPI_LOCALRANKID and MPI_LOCALNRANKS are {MISSING}"),
        (
            SLURM | {"SLURM_NTASKS": "2"},
            "SLURM_NTASKS is 2, but SLURM_TASKS_PER_NODE, MASTER_ADDR and MASTER_PORT are " + MISSING,
        ),
        (
            SLURM | ON_NODES | {"MASTER_PORT": "1", "ENVIRONMENT": "BATCH", "SLURM_STEP_ID": "0"},
            "SLURM_NTASKS is 11, but MASTER_ADDR is not set: export it to every process, or use torchrun",
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
