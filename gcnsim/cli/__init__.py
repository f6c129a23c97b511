"""The command line: parse, call the API, print. Only the module of the requested command is imported.

Exit codes: 0 success; 2 the user's error, one line on stderr; 1 our error, one line (GCNSIM_DEBUG=1 adds the
traceback);

130 and 143 ended by Ctrl-C or SIGTERM, one line.
"""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import click
from click.shell_completion import CompletionItem, shell_complete

from gcnsim import __version__
from gcnsim.core.errors import GcnsimError, KilledError, nearest
from gcnsim.core.resources import keep_freed_blocks
from gcnsim.core.signals import interrupt_of, raising_signals
from gcnsim.core.terminal import screened

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "what-if": ("gcnsim.cli.what_if:what_if", "Predict an iteration, its bottleneck, and the gain from each knob."),
    "sweep": ("gcnsim.cli.sweep:group", "Predict thousands of settings on all cores or a cluster; can be resumed."),
    "recommend": (
        "gcnsim.cli.what_if:recommend",
        "Search hundreds of machines and settings for one that meets a target.",
    ),
    "simulate": ("gcnsim.cli.iterations:simulate", "Simulate one scenario file."),
    "compare": ("gcnsim.cli.iterations:compare", "Compare two iterations: where the difference comes from."),
    "timeline": ("gcnsim.cli.iterations:timeline", "Show a recorded run and its prediction in Perfetto."),
    "dashboard": (
        "gcnsim.cli.dashboard:command",
        "Serve pages to a browser: sliders, figures, plans.",
    ),
    "graph": ("gcnsim.cli.graph:group", "Inspect and partition graph files."),
    "trace": ("gcnsim.cli.trace:group", "Record and inspect access traces."),
    "calibrate": ("gcnsim.cli.evidence:calibrate", "Fit the simulator's parameters to measurements of a machine."),
    "validate": ("gcnsim.cli.evidence:validate", "Predict recorded runs and compare, phase by phase."),
    "reproduce": ("gcnsim.cli.evidence:reproduce", "Predict every row of published tables and compare."),
    "catalog": ("gcnsim.cli.catalog:group", "List devices, links, hosts, datasets, methods and prices, with sources."),
    "schema": ("gcnsim.cli.schema:schema", "Print the JSON schema of an answer or a file."),
    "doctor": ("gcnsim.cli.doctor:command", "Report what is installed or missing, and which engine simulates."),
}

_BUILDING: Final = "the answer has kWh at the machine and USD; the rest is arithmetic on them"
_USD: Final = "costs are in US dollars; convert the prices that you give, or the answer"
_TO_BUY: Final = "the answer has the rent of an hour and the watts; compare them with a purchase in a spreadsheet"
GONE: Final[Mapping[str, str]] = {
    "--carbon": _BUILDING,
    "--pue": _BUILDING,
    "--currency": _USD,
    "--exchange": _USD,
    "--purchase": _TO_BUY,
    "--life-years": _TO_BUY,
    "--in-use": _TO_BUY,
    "--provenance": "--explain prints it",
    "--assumptions": "--explain prints them",
    "--max-wait": "draws are estimated and corrected by a few runs, which takes no longer",
}
"""Options of earlier versions, and what to do in their place."""

GONE_COMMANDS: Final[Mapping[str, str]] = {"images": "open the page in a browser and print it"}
"""Commands of earlier versions, and what to do in their place."""

_SHOWN: Final = 60
"""Characters shown of a word that is too long to be a file name."""

COMPLETE: Final = "_GCNSIM_COMPLETE"
"""Set by a shell that asks for completions (click's protocol)."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and help, and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command; None if no command has this name."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of `args`. Raises UsageError with the nearest name."""
        if args and args[0] in GONE_COMMANDS:
            raise GcnsimError(f"{args[0]} is gone: {GONE_COMMANDS[args[0]]}")
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"unknown command {args[0]!r}; {nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Commands and options that begin with `incomplete`, without importing any."""
        items = [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names with their help, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Example: gcnsim what-if --bandwidth 15Gbps --gpus 6",
)
@click.version_option(__version__, message="gcnsim %(version)s")
def root() -> None:
    """Predict how long one training iteration of a distributed GCN takes, why, and which knob to turn."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on `argv` (the process's own when None); return the exit code."""
    # No command multiplies large matrices: NumPy's threads for that would only wait, and busily at first.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    keep_freed_blocks()
    # A command lives for seconds and leaves few cycles of garbage: looking for them as often as Python does by default
    # takes a tenth of a short one's time.
    gc.set_threshold(100_000, 50, 100)
    # Nor is garbage looked for when the process ends, which takes another twentieth.
    atexit.register(gc.freeze)
    with _prepared():
        code = _run(sys.argv[1:] if argv is None else list(argv))
    engine = sys.modules.get("gcnsim.engine")
    if engine is not None:
        engine.compile_in_background()
    return code


def _run(arguments: list[str]) -> int:
    instruction = os.environ.get(COMPLETE)
    try:
        if instruction:
            return shell_complete(root, {}, "gcnsim", COMPLETE, instruction)
        # click's own main() turns a broken pipe into exit code 1 before we see it
        with root.make_context("gcnsim", arguments) as context:
            root.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except GcnsimError as error:
        return _say(str(error), 2)
    except KilledError as error:
        return _say(str(error), 1)
    except click.ClickException as error:
        return _usage(error)
    except click.Abort:
        return _say("interrupted", 130)
    except OSError as error:
        if error.errno == errno.EPIPE:
            return _reader_left()
        if error.errno == errno.ENOSPC:
            return _say(f"{error.strerror}", 2)
        if error.errno == errno.ENAMETOOLONG:
            return _say(f"{str(error.filename)[:_SHOWN]}...: {error.strerror}", 2)
        return _internal(error)
    except BaseException as error:
        interrupt = interrupt_of(error)
        if interrupt is not None:
            return _say("interrupted", 130) if isinstance(interrupt, KeyboardInterrupt) else _say("terminated", 143)
        if isinstance(error, Exception):
            return _internal(error)
        raise
    return 0


@contextmanager
def _prepared() -> Iterator[None]:
    """Return a block that answers requests to end; streams that were closed at the start discard their output."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open until the process ends
    with screened(), raising_signals():
        yield


def _usage(error: click.ClickException) -> int:
    """Print the help for a group without a command, and one line for every other misuse."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        click.echo(context.get_help())
        return 0
    if isinstance(error, click.NoSuchOption) and error.option_name in GONE:
        return _say(f"{error.option_name} is gone: {GONE[error.option_name]}", 2)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return _say(f"{error.format_message()}{hint}", 2)


def _reader_left() -> int:
    """End quietly: the reader of our output has closed it, which is no error. Nothing may be written at shutdown
    either.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _internal(error: Exception) -> int:
    if os.environ.get("GCNSIM_DEBUG") == "1":
        traceback.print_exc()
        return _say(f"internal error: {type(error).__name__}: {error}", 1)
    return _say(f"internal error: {type(error).__name__}: {error} (GCNSIM_DEBUG=1 shows the traceback)", 1)


def _say(message: str, code: int) -> int:
    click.echo(f"gcnsim: {' '.join(message.split())}", err=True)
    return code
