"""What is done to trainings and to commands that write: all of it in the slow tests, its completeness in the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gcnsim.cli import root
from runtime.emulation.network import refused
from tests.faults.cases import CASES, Case
from tests.faults.training import LIMIT_S, Alone
from tests.faults.writers import WRITERS, Writer, kill_writer

WRITING = {"--out", "--html", "--csv", "--json-out", "--timeline", "--to", "--ids-map", "out"}
"""Options and arguments that take a file to be written."""


def commands(group: click.Group, above: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, (*above, name))
        else:
            yield " ".join((*above, name)), found


def test_every_command_that_writes_is_killed() -> None:
    writing = {name for name, item in commands(root) if any(WRITING & set(one.opts) for one in item.params)}
    assert writing == {writer.name for writer in WRITERS}
    for name, item in commands(root):
        requested = {word for writer in WRITERS if writer.name == name for word in writer.words}
        options = {one for param in item.params for one in param.opts if one in WRITING and one.startswith("--")}
        # What became of ids is asked of one of the commands that say it.
        assert options - requested - {"--ids-map"} == set(), name


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """The training that nothing is done to."""
    return Alone(tmp_path_factory.mktemp("alone") / "run")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.place}: {case.name}")
def test_it_ends_or_goes_on_as_documented(case: Case, alone: Alone, tmp_path: Path) -> None:
    if case.place == "emulated" and (why := refused()) is not None:
        pytest.skip(f"no network namespaces: {why}")
    assert case.strike(tmp_path / "case", alone) <= LIMIT_S


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: f"commands: {writer.name}")
def test_a_killed_command_leaves_nothing_half_written(writer: Writer, tmp_path: Path) -> None:
    kill_writer(writer, tmp_path / "writers", 3, 1)
