"""`python -m runtime.train`: train a graph neural network on many workers, and record what each of them did.

The same command is the parent, which starts local workers and watches over them, and each worker, which the environment
tells who it is; so it also runs under torchrun.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from gcnsim.errors import GcnsimError
from runtime.beforehand import refuse_crowd, refuse_places
from runtime.command import options_of, with_options
from runtime.launch import Place, launch, place, run_worker
from runtime.launch.words import say
from runtime.options import Options


@click.command("runtime.train", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@with_options
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Train a GCN, GraphSAGE or GAT over the partitions of a graph, one worker each.

    \b
    Examples:
      python -m runtime.train
      python -m runtime.train --method psc-gcn --tau 2 --epsilon 0.1 --workers 2
      torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint HOST:29500 -m runtime.train
    """
    context.obj = options_of(given)


def main(argv: Sequence[str]) -> int:
    """Parse `argv`, then be the parent or a worker; the exit code."""
    where: Place | None = None
    try:
        where = place()
        options = _parsed(argv)
        if options is None:
            return 0
        if where is None:
            refuse_places(options)
            refuse_crowd(options)
    except (GcnsimError, click.ClickException) as error:
        # All workers were given the same arguments: one of them says what is wrong with these.
        if where is None or where.rank == 0:
            say(_words(error))
        return 2
    if where is not None:
        run_worker(lambda place: _work(options, place))
    return launch(argv, options.workers)


def _words(error: GcnsimError | click.ClickException) -> str:
    if isinstance(error, click.ClickException):
        return " ".join(error.format_message().split()) + " (see python -m runtime.train --help)"
    return str(error)


def _work(options: Options, place: Place) -> int:
    if place.rank == 0:
        refuse_places(options)
    from runtime.worker import work

    return work(options, place)


def _parsed(argv: Sequence[str]) -> Options | None:
    """The options; None when help was asked for and printed."""
    try:
        with command.make_context("runtime.train", list(argv)) as context:
            command.invoke(context)
            found: Options = context.obj
            return found
    except click.exceptions.Exit:
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
