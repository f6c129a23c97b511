"""What helps at the terminal: doctor, progress, completion."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

import click
import pytest

from gcnsim import cli
from gcnsim.cli import doctor, main, questions, root
from gcnsim.cli.outputs import bar, progress
from gcnsim.core import clock
from gcnsim.scenario.option import flag
from gcnsim.scenario.question import Question, flat_options, options
from gcnsim.scenario.recommend import Recommend
from gcnsim.scenario.what_if import WhatIf
from tests.terminals import drawn


def test_a_working_installation_is_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "core dependencies:\n  all can be imported\nextras:\n" in out
    assert {"runtime", "dgl", "dask", "ray", "recommend", "dashboard", "dev"} <= set(doctor.requirements())


def test_extras_are_looked_up_but_never_imported() -> None:
    script = (
        "import sys; from gcnsim.cli import main; main(['doctor']);"
        "sys.exit(any(name in sys.modules for name in ('torch', 'dgl', 'dash', 'sklearn')))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_a_broken_core_dependency_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken_thing.py").write_text("raise ImportError('no\\nluck')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(doctor, "MODULES", {"click": "broken_thing"})
    parts = [("click", "0"), ("absent", "1"), ("numpy", "999.1"), ("scipy", "0")]
    monkeypatch.setattr(doctor, "requirements", lambda: {"": parts, "extra": [("absent", "0")]})
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "click: cannot be imported: no luck" in out
    assert "absent: missing: pip install absent" in out
    assert "is too old: 999.1 or later is needed" in out
    assert "scipy" not in out
    assert "extra      missing: absent; pip install 'gcnsim[extra]'" in out


def test_an_engine_whose_dependencies_are_missing_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcnsim.engine", None)
    assert any(line.startswith("engine: none (") and "gcnsim.engine" in line for line in doctor.report({}))


@pytest.mark.parametrize(("name", "kind"), [("what-if", WhatIf), ("recommend", Recommend)])
def test_help_has_groups_and_at_most_50_options_the_rest_on_request(
    name: str, kind: type[Question], capsys: pytest.CaptureFixture[str]
) -> None:
    first, every = ("" if main([name, option]) else capsys.readouterr().out for option in ("--help", "--help-all"))
    options = re.compile(r"^  (?:-h, )?(--[a-z][a-z-]*)", re.MULTILINE)
    listed, known = options.findall(first), options.findall(every)
    assert len(listed) <= 50
    assert f"{len(known) - len(listed)} more options: --help-all" in first
    assert {option.flag or flag(field) for field, option in flat_options(kind).items()} < set(known)
    titles = [title for title in questions.GROUPS if title != "Target" or kind is Recommend]
    shown = re.compile(r"^(\S.*):$", re.MULTILINE)
    assert [line for line in shown.findall(first) if not line.startswith("Usage")] == titles
    assert "more options" not in every


def test_what_help_groups_or_leaves_out_is_an_option() -> None:
    context = click.Context(root)
    commands = [root.get_command(context, name) for name in ("what-if", "recommend")]
    known = {parameter.name for command in commands if command is not None for parameter in command.params}
    grouped = [name for names in questions.GROUPS.values() for name in names]
    assert {*grouped, *questions.RARE} <= known
    assert len(grouped) == len(set(grouped))


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody looks at stderr from now on."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_a_bar_fills_as_work_is_done() -> None:
    text: list[tuple[str, float]] = []
    add = bar("drawing", 200, lambda *what: text.append(what))
    for _ in range(4):
        add(50)
    assert text == [("drawing", share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]


def test_a_bar_says_nothing_twice() -> None:
    text: list[tuple[str, float]] = []
    add = bar("drawing", 10_000, lambda *what: text.append(what))
    for _ in range(10_000):
        add(1)
    assert len(text) == len(set(text)) == 101


class Hurried(threading.Timer):
    """A timer that runs out as soon as it is started."""

    def start(self) -> None:
        self.function()


def test_long_work_is_shown_and_wiped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch)
    monkeypatch.setattr(threading, "Timer", Hurried)
    with progress() as say:
        say("first")
        say("second")
    assert drawn(capsys.readouterr().err) == ["first ...", "second ..."]


def test_a_question_shows_what_is_done_of_how_many_and_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(monkeypatch)
    monkeypatch.setattr(threading, "Timer", Hurried)
    ticks = count()
    monkeypatch.setattr(clock, "now", lambda: 3.0 * next(ticks))
    monkeypatch.setattr("gcnsim.api.question.cores", lambda: 1)
    assert main(["what-if", "--gpus", "2", "--method", "pipegcn", "--iterations", "4"]) == 0
    text = drawn(capsys.readouterr().err)
    for what in ("simulating 1 setting and", "trying the next step of each knob"):
        content = [line for line in text if line.startswith(what)]
        assert re.search(r": 1 of \d+ runs, \d+ (s|min) left \.\.\.$", content[1])
        assert re.search(r": (\d+) of \1 runs \.\.\.$", content[-1])


def test_short_work_is_not_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch)
    with progress() as say:
        say("first")
    assert capsys.readouterr().err == ""


def test_nothing_is_shown_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as say:
        say("first")
    assert capsys.readouterr().err == ""


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
        ("gcnsim what-if --dataset reddit-t", ["reddit-train"]),
        ("gcnsim what-if --host p4de", ["p4de.24xlarge"]),
        ("gcnsim what-if --device t4,v100-1", ["t4,v100-16"]),
        ("gcnsim what-if --method psc-gcn,bns", ["psc-gcn,bns-gcn"]),
        ("gcnsim what-if --gpus many --model gr", ["graphsage"]),
        ("gcnsim what-if --fidelity ", ["auto", "exact", "coarse"]),
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
    named = {name: names for name, option in options(kind).items() if (names := questions.names_of(option)) is not None}
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
