"""The help of every command, put below its heading when the site is built: no copy of it can go stale.

A heading `## gcnsim what-if` or `## python -m runtime.train` of docs/cli.md names a command. Its help is what `--help`
prints, or `--help-all` where there is that, at a width of 110 columns.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Final

import click

from gcnsim.cli import COMMANDS, root
from gcnsim.core.help_groups import EVERY

WIDTH: Final = 110
_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_RUNTIME: Final = {
    "train": "runtime.train.tasks",
    "emulate": "runtime.emulate.command",
    "measure": "runtime.measure",
    "profile": "runtime.profile",
    "survey": "runtime.survey.__main__",
}


def commands() -> Mapping[str, click.Command]:
    """Every command by what a user types, groups replaced by their members."""
    found: dict[str, click.Command] = {"gcnsim": root}
    context = click.Context(root)
    for name in COMMANDS:
        command = root.get_command(context, name)
        assert command is not None
        members = command.commands if isinstance(command, click.Group) else {"": command}
        found |= {f"gcnsim {name} {member}".rstrip(): value for member, value in members.items()}
    for name, module in _RUNTIME.items():
        found[f"python -m runtime.{name}"] = importlib.import_module(module).command
    return found


def help_of(name: str, command: click.Command) -> str:
    """What `--help` of a command prints, every option included."""
    context = click.Context(command, info_name=name, max_content_width=WIDTH, terminal_width=WIDTH)
    context.meta[EVERY] = True
    return command.get_help(context)


def with_help(text: str) -> str:
    """A document with the help of a command at the end of each section that is named after one."""
    every = commands()
    starts = [found.start() for found in _HEADING.finditer(text)]
    pieces = [text[: starts[0]]] if starts else [text]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        section = text[start:end].rstrip()
        name = section.partition("\n")[0].removeprefix("## ")
        if name in every:
            lines = "\n".join(f"    {line}".rstrip() for line in help_of(name, every[name]).splitlines())
            section += f'\n\n??? note "{name} --help"\n\n    ```text\n{lines}\n    ```'
        pieces.append(section + "\n\n")
    return "".join(pieces).rstrip() + "\n"
