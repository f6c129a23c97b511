"""The arguments of `python -m runtime.train`, and the runs that they ask for: one, or those of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from gcnsim.errors import GcnsimError, ScenarioError
from runtime.launch.failure_report import say
from runtime.options import Options
from runtime.train.arguments import options_of, with_options
from runtime.train.plan import Entry, Task, naming, read_plan
from runtime.train.preflight import DEFAULT, check_outputs, check_worker_count, free_folder


@click.command("runtime.train", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@with_options
@click.option("--plan", metavar="FILE", help="Train the runs of this list (.yaml), one after the other.")
@click.pass_context
def command(context: click.Context, /, plan: str | None, **given: Any) -> None:
    """Train a GCN, GraphSAGE or GAT over the partitions of a graph, one worker each.

    On several servers it opens ports: for trusted networks only.

    \b
    Examples:
      python -m runtime.train
      python -m runtime.train --method psc-gcn --tau 2 --epsilon 0.1 --workers 2
      torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint HOST:29500 -m runtime.train
    """
    context.obj = options_of(given), plan


def tasks_of(argv: Sequence[str]) -> tuple[Task, ...] | None:
    """The runs that `argv` asks for: one, or those of a plan; None when help was asked for and printed.

    Raises GcnsimError or a ClickException for a value that is not allowed, naming the entry of a plan.
    """
    found = _asked(argv)
    if found is None:
        return None
    options, plan = found
    if plan is None:
        return (Task(options),)
    return tuple(_planned(argv, entry, options.workers) for entry in read_plan(plan))


def refuse(tasks: Sequence[Task]) -> None:
    """Raise GcnsimError for what can be seen to fail before any worker starts."""
    for task in tasks:
        with naming(task.name):
            check_outputs(task.options)
            check_worker_count(task.options)


def with_folder(argv: Sequence[str], tasks: Sequence[Task]) -> tuple[list[str], tuple[Task, ...]]:
    """`argv` and `tasks`; where the default run folder holds a run, with another, which the user is told of.

    For whoever starts the workers, who must all have the same folder. Raises FileError.
    """
    task = tasks[0]
    folder = free_folder(task.options) if task.name is None else None
    if folder is None:
        return [*argv], tuple(tasks)
    if not task.options.json_log:
        say(f"{DEFAULT} holds a run already: this one goes into {folder}")
    return [*argv, "--out", str(folder)], (replace(task, options=replace(task.options, out=str(folder))),)


def _planned(argv: Sequence[str], entry: Entry, workers: int) -> Task:
    """An entry's run: its own arguments after those of the whole plan, of which it cannot change the workers."""
    with naming(entry.name):
        try:
            found = _asked([*argv, "--plan", "", *entry.arguments, "--out", entry.out])
        except click.ClickException as error:
            raise ScenarioError(error_text(error)) from None
        if found is None or found[1]:
            raise ScenarioError("args: --help and --plan are for the whole command")
        if found[0].workers != workers:
            raise ScenarioError(
                f"--workers: {found[0].workers}, but the plan is trained by {workers}; allowed: {workers}"
            )
        return Task(found[0], entry.name)


def error_text(error: GcnsimError | click.ClickException) -> str:
    """What is wrong with the arguments, in one line."""
    if isinstance(error, click.ClickException):
        return " ".join(error.format_message().split()) + " (see python -m runtime.train --help)"
    return str(error)


def _asked(argv: Sequence[str]) -> tuple[Options, str | None] | None:
    """The options and the plan, if any; None when help was asked for and printed."""
    try:
        with command.make_context("runtime.train", list(argv)) as context:
            command.invoke(context)
            found: tuple[Options, str | None] = context.obj
            return found
    except click.exceptions.Exit:
        return None
