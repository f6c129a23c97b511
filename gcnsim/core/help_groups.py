"""A command whose help lists its options in groups, and those that few need only with `--help-all`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import click

EVERY: Final = "gcnsim.help-all"
"""Set in a context's `meta`: its help shows every option."""


class GroupedCommand(click.Command):
    """groups: the names of its options by title; commands may share them. rare: those that `--help` leaves out and
    `--help-all` shows.

    An option in no group is listed with the last one.
    """

    def __init__(self, *args: Any, groups: Mapping[str, Sequence[str]], rare: Collection[str], **more: Any) -> None:
        super().__init__(*args, **more)
        self._groups, self._rare = groups, rare
        self.params.append(
            click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_every,
                help="Show every option.",
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options to `formatter`, group by group."""
        every = bool(ctx.meta.get(EVERY))
        *named, last = self._groups
        group_of = {name: title for title, names in self._groups.items() for name in names}
        rows: dict[str, list[tuple[str, str]]] = {title: [] for title in (*named, last)}
        left_out = 0
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.name in self._rare and not every:
                left_out += 1
            else:
                rows[group_of.get(str(parameter.name), last)].append(record)
        for title, records in ((title, records) for title, records in rows.items() if records):
            with formatter.section(title):
                formatter.write_dl(records)
        if left_out:
            formatter.write(f"\n{left_out} more options: --help-all\n")


def _print_every(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        ctx.meta[EVERY] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
