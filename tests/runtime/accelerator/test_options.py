"""What `python -m runtime.emulate --accelerator` refuses, each in a line with exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.cli.emulate import main

HERE = "--hosts 2 --bandwidth 10Gbps --accelerator t4"
WRONG = {
    "device": ("--hosts 2 --bandwidth 10Gbps --accelerator rxt-4090", "unknown device 'rxt-4090'; did you mean"),
    "core": (
        "--hosts 2 --bandwidth 10Gbps --accelerator cpu-core",
        "--accelerator: cpu-core is not a GPU; its workers",
    ),
    "file": ("--hosts 2 --bandwidth 10Gbps --accelerator no.yaml", "no.yaml: cannot be read"),
    "alone": ("--hosts 2 --bandwidth 10Gbps --scale 3", "--scale: 3.0 needs --accelerator; allowed: with it only"),
    "fast": (f"{HERE} --scale 0.5", "--scale: 0.5 is not allowed; a number of at least 1"),
    "slow": (f"{HERE} --scale 9999", "--scale: 9999 makes links slower than 5 Mbit/s; allowed: 1 to 2000"),
    "host": (f"{HERE} --host other", "unknown host 'other'; known: Standard_NC4as_T4_v3"),
    "crowd": (f"{HERE} --workers-per-host 17", "--workers-per-host: 17 is more than the 16 cores of generic-16"),
    "latency": (f"{HERE} --latency 1ms", "--latency: is not modelled with --accelerator, whose latency is measured"),
    "limiter": (f"{HERE} --limiter exchange", "--limiter: exchange has no links to measure; allowed with"),
    "no rank": (f"{HERE} --slow-worker two", "--slow-worker: 'two' is not allowed; allowed: RANK:FACTOR"),
    "rank": (f"{HERE} --slow-worker 2:1.5", "--slow-worker: 2 is not allowed; a whole number of at least 0"),
    "factor": (f"{HERE} --slow-worker 1:1", "--slow-worker: 1 is not allowed; a number above 1"),
    "lonely": ("--hosts 1 --bandwidth 10Gbps --accelerator t4 --background 1Gbps", "--background: goes from host 0"),
    "others": (
        f"{HERE} --background 10Gbps",
        "--background: 10Gbps is not allowed; a bandwidth above 0B/s and at most 9Gbps",
    ),
    "switch": (f"{HERE} --gpus-per-switch -1", "--gpus-per-switch: -1 is not allowed; a whole number of at least 0"),
    "receives": (f"{HERE} --receives never", "Invalid value for '--receives': 'never' is not one of 'reached'"),
    "method": (
        f"{HERE} -- --method pipegcn-g",
        "--method: pipegcn-g is not possible with --accelerator; allowed: full",
    ),
    "model": (f"{HERE} -- --model gat", "--model: gat is not possible with --accelerator; allowed: gcn, graphsage"),
    "pool": (
        f"{HERE} -- --model graphsage --sage-aggregator pool",
        "--sage-aggregator: pool is not possible with --accelerator; allowed: mean",
    ),
    "dropout": (f"{HERE} -- --dropout 0.5", "--dropout: 0.5 is not possible with --accelerator; allowed: 0.0"),
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
