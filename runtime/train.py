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
      torchrun --nnodes 2 --nproc-per-node 2 --rdzv-endpoint HOST:29500 -m runtime.train --graph g.npz
    """
    context.obj = options_of(given)


def main(argv: Sequence[str]) -> int:
    """Parse `argv`, then be the parent or a worker; the exit code."""
    try:
        where = place()
        options = _parsed(argv)
    except GcnsimError as error:
        say(str(error))
        return 2
    except click.ClickException as error:
        hint = " (see python -m runtime.train --help)"
        say(" ".join(error.format_message().split()) + hint)
        return 2
    if options is None:
        return 0
    if where is not None:
        run_worker(lambda place: _work(options, place))
    return launch(argv, options.workers)


def _work(options: Options, place: Place) -> int:
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
