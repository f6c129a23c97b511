"""The faults that `--inject` takes, for the help of the commands that have it."""

from __future__ import annotations

import click


class WithFaults(click.Command):
    """A command whose help ends with the faults, which are looked up when it is shown."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The faults, a line each."""
        from gcnsim.scenario import fault_lines

        lines = (f"  {line}" for line in fault_lines())
        self.epilog = "\n".join(["\b", "Faults of --inject, each with its fields at their defaults:", *lines])
        super().format_epilog(ctx, formatter)
