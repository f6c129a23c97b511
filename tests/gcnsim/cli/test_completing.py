"""Shell completion: commands, options and names of the catalogue, without the imports that a run needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gcnsim import cli
from gcnsim.cli import completing, root
from gcnsim.scenario.question import Question, options
from gcnsim.scenario.recommend import Recommend
from gcnsim.scenario.what_if import WhatIf

SLOW = ("numba", "scipy", "simpy", "plotly", "pyarrow", "networkx", "torch", "gcnsim.engine", "gcnsim.simulation")


def completed(words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a shell would offer for the last of `words`, which may be empty."""
    monkeypatch.setenv(cli.COMPLETE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    capsys.readouterr()
    assert cli.main([]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return [line.partition(",")[2] for line in captured.out.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("gcnsim wh", ["what-if"]),
        ("gcnsim c", ["compare", "calibrate", "catalog"]),
        ("gcnsim what-if --de", ["--device"]),
        ("gcnsim what-if --dataset reddit-t", ["reddit-train"]),
        ("gcnsim what-if --device v100", ["v100-16", "v100-32", "v100-pcie-16", "v100-pcie-32"]),
        ("gcnsim what-if --host p4de", ["p4de.24xlarge"]),
        ("gcnsim what-if --host ./my", ["./my"]),
        ("gcnsim what-if --device t4,v100-1", ["t4,v100-16"]),
        ("gcnsim what-if --device ./my", ["./my"]),
        ("gcnsim what-if --method psc-gcn,bns", ["psc-gcn,bns-gcn"]),
        ("gcnsim what-if --gpus many --model gr", ["graphsage"]),
        ("gcnsim what-if --cache-policy ", ["inclusion", "degree", "random"]),
        ("gcnsim what-if --fidelity ", ["auto", "exact", "coarse"]),
        ("gcnsim what-if --implementation ", ["lean", "released"]),
        ("gcnsim graph info --ids n", ["numbers", "names"]),
        ("gcnsim graph par", ["partition"]),
        ("gcnsim catalog list h", ["hosts"]),
        ("gcnsim catalog show pcie3", ["pcie3-x16"]),
        ("gcnsim no-such-command --x", []),
    ],
)
def test_what_is_offered(
    words: str, offered: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert completed(words, capsys, monkeypatch) == offered


@pytest.mark.parametrize("kind", [WhatIf, Recommend])
def test_every_option_whose_rule_has_names_is_completed(kind: type[Question]) -> None:
    command = root.get_command(click.Context(root), kind.__name__.replace("WhatIf", "what-if").lower())
    assert command is not None
    parameters = {param.name: param for param in command.params}
    named = {
        name: names for name, option in options(kind).items() if (names := completing.names_of(option)) is not None
    }
    assert {"dataset", "device", "host", "method", "model", "transport"} <= {*named}
    for name, names in named.items():
        offered = parameters[name].shell_complete(click.Context(command), "")
        assert [item.value for item in offered] == list(names()), name


def test_nothing_slow_is_imported() -> None:
    code = (
        "import os, sys; from gcnsim.cli import main\n"
        "for words in ('gcnsim ', 'gcnsim what-if --de', 'gcnsim what-if --device t'):\n"
        "    os.environ.update(COMP_WORDS=words, COMP_CWORD=str(len(words.split(' ')) - 1))\n"
        "    assert main([]) == 0\n"
        "    print('done')\n"
        f"print([name for name in {SLOW!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, cli.COMPLETE: "bash_complete"},
    )
    for offered in done.stdout.split("done\n")[:3]:
        assert offered
    assert done.stderr.strip() == "[]"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path: Path) -> None:
    """The script of `_GCNSIM_COMPLETE=bash_source gcnsim`, read by a real bash and asked as it asks itself."""
    script = (
        'eval "$(_GCNSIM_COMPLETE=bash_source gcnsim)"; COMP_WORDS=(gcnsim what-if --de); COMP_CWORD=2;'
        ' _gcnsim_completion gcnsim; echo "${COMPREPLY[*]}"; complete -p gcnsim'
    )
    command = tmp_path / "gcnsim"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m gcnsim "$@"\n')
    command.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.splitlines() == ["--device", "complete -o nosort -F _gcnsim_completion gcnsim"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_that_shells_read(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cli.COMPLETE, f"{shell}_source")
    assert cli.main([]) == 0
    assert f"_GCNSIM_COMPLETE={shell}_complete" in capsys.readouterr().out
