"""Tables that commands print: a label and a value a line, or columns under headings."""

from __future__ import annotations

from collections.abc import Sequence

import click

from gcnsim.terminal.tables import aligned


def print_columns(rows: Sequence[tuple[str, str]]) -> None:
    """A label and its value a line, the values aligned."""
    click.echo("\n".join(aligned(rows, left=2)))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Rows under headings, the first `left` columns to the left, the others to the right."""
    click.echo("\n".join(aligned(rows, headings, left=left)))
