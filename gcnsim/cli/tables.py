"""Plain tables on the terminal: a label and a value a line, or columns under headings."""

from __future__ import annotations

from collections.abc import Sequence

import click


def print_columns(rows: Sequence[tuple[str, str]]) -> None:
    """A label and its value a line, the values aligned."""
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        click.echo(f"{label:<{width}}  {value}")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under headings, the first column to the left, the others to the right."""
    widths = [max(len(line[k]) for line in (headings, *rows)) for k in range(len(headings))]
    for line in (headings, *rows):
        first, *others = (
            f"{text:<{width}}" if not k else f"{text:>{width}}"
            for k, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        click.echo("  ".join([first, *others]).rstrip())
