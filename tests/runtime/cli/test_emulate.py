"""`python -m runtime.emulate` from a user's shell: training on hosts, what is recorded, and every mistake in a line."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.processes import cores
from runtime.emulate.command import main
from runtime.emulation.spec import PAYLOAD_SHARE
from runtime.record import RunRecord, read_run
from tests.runtime.crew import Crew
from tests.runtime.emulation.places import emulated, namespaces, needs_namespaces
from tests.runtime.session_jobs import worked

SMALL = ("--iterations", "6", "--hidden", "16", "--quiet")


@needs_namespaces
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_hosts_train_and_the_record_says_where(workers: int, tmp_path: Path) -> None:
    words = ("--hosts", "2", "--workers-per-host", str(workers), "--bandwidth", "200Mbps", "--json")
    shell = emulated(tmp_path, *words, "--", *SMALL, "--out", "run")
    code, out, err = shell.end()
    assert (code, err) == (0, "")
    content, final = (json.loads(line) for line in out.splitlines())
    run = read_run(tmp_path / "run")
    assert run.record.emulation == content["emulation"]
    assert final["workers"] == run.record.workers == 2 * workers
    facts: dict[str, Any] = content["emulation"]
    assert (facts["hosts"], facts["workers_per_host"], facts["bandwidth"]) == (2, workers, 25e6)
    assert facts["measured"] == pytest.approx(25e6 * PAYLOAD_SHARE, rel=0.03)
    assert (facts["limiter"], facts["latency_by"], facts["cores"]) == ("netns", "none", cores())
    assert run.record.options["threads"] == max(1, cores() // (2 * workers))
    assert namespaces(shell.process.pid) == []


@pytest.mark.slow
@needs_namespaces
def test_the_link_slows_training_down(tmp_path: Path) -> None:
    """An iteration on 20 Mbit/s lasts at least as long as its largest sender's bytes take."""
    words = ("--hosts", "2", "--bandwidth", "20Mbps", "--", *SMALL, "--hidden", "128", "--out", "run")
    assert emulated(tmp_path, *words).end()[0] == 0
    run = read_run(tmp_path / "run").record
    assert run.summary is not None
    assert run.emulation is not None
    sent = most_sent(run)
    # Rows of two layers and gradients of one leave, each perhaps after a pause.
    least = (sent / run.iterations - 3 * run.emulation["burst"]) / (2.5e6 * PAYLOAD_SHARE)
    assert run.summary["iteration_s"] > least > 0.01


@pytest.mark.slow
def test_the_exchange_limits_where_nothing_else_can(tmp_path: Path) -> None:
    words = ("--hosts", "2", "--bandwidth", "20Mbps", "--latency", "2ms", "--limiter", "exchange")
    code, _, err = emulated(tmp_path, *words, "--", *SMALL, "--out", "run").end()
    assert (code, err.count("\n")) == (0, 1)
    assert "by exchange: 2.35 MB/s of payload, not measured, 2.00 ms latency by exchange" in err
    run = read_run(tmp_path / "run").record
    assert run.emulation is not None
    assert (run.emulation["limiter"], run.emulation["latency_by"]) == ("exchange", "exchange")
    assert run.summary is not None
    sent = most_sent(run)
    assert run.summary["iteration_s"] > sent / run.iterations / (2.5e6 * PAYLOAD_SHARE)


def test_a_run_that_is_not_emulated_says_so(crew: Crew, tmp_path: Path) -> None:
    crew.run(1, worked, [*SMALL, "--workers", "1", "--threads", "1"], str(tmp_path))
    assert read_run(tmp_path / "run").record.emulation is None


def most_sent(run: RunRecord) -> int:
    """Bytes of rows and gradients that the worker sent that sent most."""
    return max(sum(run.bytes["rows"][n]) + sum(run.bytes["gradients"][n]) for n in range(run.workers))


WRONG = {
    "no hosts": (
        "--hosts 0 --bandwidth 1Gbps",
        "--hosts: 0 is not allowed; a whole number of at least 1",
    ),
    "no workers": (
        "--hosts 2 --workers-per-host 0 --bandwidth 1Gbps",
        "--workers-per-host: 0 is not allowed; a whole number of at least 1",
    ),
    "no unit": (
        "--hosts 2 --bandwidth 500",
        "--bandwidth: '500' has no unit; write a bandwidth with its unit, e.g.",
    ),
    "no bandwidth": ("--hosts 2", "Missing option '--bandwidth'. (see python -m runtime.emulate --help)"),
    "too slow": ("--hosts 2 --bandwidth 0Gbps", "--bandwidth: 0B/s is not allowed; a bandwidth of at least 5Mbps"),
    "no time": ("--hosts 2 --bandwidth 1Gbps --latency 5", "--latency: '5' has no unit; write a time with its unit"),
    "too late": (
        "--hosts 2 --bandwidth 1Gbps --latency 2s",
        "--latency: 2s is not allowed; a time of at least 0s",
    ),
    "limiter": ("--hosts 2 --bandwidth 1Gbps --limiter x", "Invalid value for '--limiter': 'x' is not one of 'auto'"),
    "training": ("--hosts 2 --bandwidth 1Gbps -- --tau 2", "--tau: full-graph has no tau; it has no knobs"),
    "option": ("--hosts 2 --bandwidth 1Gbps -- --metod x", "No such option '--metod'. (Did you mean"),
    "workers": (
        "--hosts 2 --bandwidth 1Gbps -- --workers 7",
        "--workers: 7 is not allowed; the hosts have 2; leave it out",
    ),
    "plan": ("--hosts 2 --bandwidth 1Gbps --plan no.yaml", "no.yaml: cannot be read: No such file or directory"),
}


@pytest.mark.parametrize(("typed", "words"), WRONG.values(), ids=WRONG)
def test_every_mistake_is_one_line(
    typed: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(typed.split()) == 2
    done = capsys.readouterr()
    assert done.err.startswith(f"runtime.emulate: {words}")
    assert (done.err.count("\n"), done.out) == (1, "")
    assert namespaces(os.getpid()) == []


def test_an_interrupt_before_anything_starts_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("runtime.emulate.command.limiter_of", interrupted)
    assert main(["--hosts", "2", "--bandwidth", "1Gbps"]) == 130
    assert capsys.readouterr().err == "runtime.emulate: stopped by SIGINT\n"


@needs_namespaces
def test_a_bandwidth_that_no_machine_carries_is_measured_and_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["--hosts", "2", "--bandwidth", "4Tbps", "--", "--out", str(tmp_path / "run")]) == 2
    text = capsys.readouterr().err
    assert re.fullmatch(
        r"runtime.emulate: --bandwidth: 4Tbps is more than this machine carries between 2 emulated hosts: measured "
        r"\d+Mbps of the wire, [\d.]+ [MG]B/s of payload, where 471 GB/s are needed\n",
        text,
    )
    assert namespaces(os.getpid()) == []
    assert not (tmp_path / "run").exists()


@pytest.mark.slow  # the launcher's words for it are tested in tests/runtime/launch
@needs_namespaces
def test_a_workers_error_is_one_line_with_its_rank(tmp_path: Path) -> None:
    code, out, err = emulated(
        tmp_path, "--hosts", "2", "--bandwidth", "200Mbps", "--", *SMALL, "--graph", "absent.npz"
    ).end()
    assert (code, out) == (2, "")
    content, text = err.splitlines()
    assert content.startswith("runtime.emulate: 2 x 1 workers on ")
    assert re.match(r"runtime.emulate: worker [01]: absent.npz: ", text)
