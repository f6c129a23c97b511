"""Public names of packages are imported when first asked for, and a command imports no more than it runs."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from threading import Barrier, Thread
from typing import Any

import pytest

import gcnsim.api
import gcnsim.graph

PACKAGES = ("gcnsim.api", "gcnsim.graph")


def test_a_name_is_that_of_its_module() -> None:
    from gcnsim.api.iterations import render_comparison
    from gcnsim.graph.load import load_graph

    assert gcnsim.graph.load_graph is load_graph
    assert gcnsim.api.render_comparison is render_comparison


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_name_is_there(package: str) -> None:
    with pytest.raises(AttributeError, match=rf"module '{package}' has no attribute 'nothing'"):
        import_module(package).nothing  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there_and_completed(package: str) -> None:
    code = f"import {package} as one; assert {{*one.__all__}} <= {{*dir(one)}}; [getattr(one, x) for x in one.__all__]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_all_threads_get_the_same_function_with_brief_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    from gcnsim.api.question import what_if

    monkeypatch.delitem(vars(gcnsim.api), "what_if", raising=False)
    found: list[Any] = []
    together = Barrier(4)

    def ask() -> None:
        together.wait()
        found.append(gcnsim.api.what_if)

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert {one.__wrapped__ for one in found} == {what_if}
    assert all(one is gcnsim.api.what_if for one in found)


@pytest.mark.parametrize(
    ("arguments", "spared"),
    [
        (["what-if", "--help"], ["rich", "pyarrow", "gcnsim.api", "gcnsim.simulation"]),
        (
            ["what-if", "--gpus", "2", "--method", "pipegcn", "--iterations", "2", "--processes", "1"],
            [
                *("pyarrow", "gcnsim.graph.load", "gcnsim.evidence.recorded_run"),
                *("gcnsim.simulation.graph_source", "gcnsim.simulation.trace_source"),
            ],
        ),
    ],
)
def test_a_command_imports_only_what_it_runs(arguments: list[str], spared: list[str]) -> None:
    code = (
        "import sys; from gcnsim.cli import main\n"
        f"assert main({arguments!r}) == 0\n"
        f"print([name for name in {spared!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout
    assert done.stderr.splitlines()[-1] == "[]"
