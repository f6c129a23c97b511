"""Processes of a launcher join one run, or end with one line: none of them starts a run of its own."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from runtime.emulation.throughput import free_port
from tests.runtime.shell import TRAIN, Shell

SHORT = ("--iterations", "2", "--quiet", "--json")
OPEN_MPI = {"RANK": "{}", "SIZE": "2", "LOCAL_RANK": "{}", "LOCAL_SIZE": "2"}
SLURM = {"PROCID": "{}", "NTASKS": "2", "LOCALID": "{}", "TASKS_PER_NODE": "2", "NODEID": "0"}

needs_mpirun = pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is not installed (openmpi-bin)")


def of_mpirun(*variables: str) -> list[str]:
    """The start of a command that mpirun carries out in two processes."""
    passed = [word for variable in variables for word in ("-x", variable)]
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun", *root, "--oversubscribe", "-np", "2", *passed, *TRAIN]


def by_hand(rank: int, prefix: str, variables: dict[str, str]) -> list[str]:
    """The start of a command with a launcher's variables, as process `rank` sees them."""
    return ["env", *(f"{prefix}{name}={value.format(rank)}" for name, value in variables.items()), *TRAIN]


@needs_mpirun
def test_processes_of_mpirun_train_together(tmp_path: Path) -> None:
    met_at = ("MASTER_ADDR=127.0.0.1", f"MASTER_PORT={free_port()}")
    code, out, err = Shell(tmp_path, *SHORT, command=of_mpirun(*met_at)).end()
    assert code == 0, err
    assert json.loads(out)["workers"] == 2
    assert os.listdir(tmp_path) == ["run"]


@needs_mpirun
def test_processes_of_mpirun_that_cannot_meet_name_what_is_missing(tmp_path: Path) -> None:
    code, out, err = Shell(tmp_path, *SHORT, command=of_mpirun()).end()
    assert (code, out) == (2, "")
    assert "runtime.train: OMPI_COMM_WORLD_SIZE is 2, but MASTER_ADDR and MASTER_PORT are not set: export them" in err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("prefix", "variables", "world"),
    [("OMPI_COMM_WORLD_", OPEN_MPI, "OMPI_COMM_WORLD_SIZE"), ("SLURM_", SLURM, "SLURM_NTASKS")],
)
def test_each_process_that_cannot_meet_the_others_ends_at_once(
    prefix: str, variables: dict[str, str], world: str, tmp_path: Path
) -> None:
    shells = [Shell(tmp_path, *SHORT, command=by_hand(rank, prefix, variables)) for rank in range(2)]
    for shell in shells:
        text = (
            f"{world} is 2, but MASTER_ADDR and MASTER_PORT are not set: export them to every process, or use torchrun"
        )
        assert shell.end() == (2, "", f"runtime.train: {text}\n")
    assert os.listdir(tmp_path) == []


def test_tasks_of_srun_train_together(tmp_path: Path) -> None:
    met_at = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    slurm = {f"SLURM_{name}": value for name, value in SLURM.items()} | met_at
    shells = [Shell(tmp_path, *SHORT, command=by_hand(rank, "", slurm)) for rank in range(2)]
    for rank, shell in enumerate(shells):
        code, out, err = shell.end()
        assert code == 0, err
        assert (json.loads(out)["workers"] if rank == 0 else out) == (2 if rank == 0 else "")
    assert os.listdir(tmp_path) == ["run"]


def test_a_shell_of_slurm_starts_its_own_workers(tmp_path: Path) -> None:
    command = ["env", "SLURM_JOB_ID=1", "SLURM_NTASKS=4", "SLURM_TASKS_PER_NODE=4", *TRAIN]
    code, out, err = Shell(tmp_path, *SHORT, "--workers", "1", command=command).end()
    assert code == 0, err
    assert json.loads(out)["workers"] == 1
