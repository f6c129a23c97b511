"""`gcnsim images`: writes the figures of a page as PNG or SVG."""

from __future__ import annotations

from pathlib import Path

import click

from gcnsim.cli.outputs import check_folder, progress
from gcnsim.core.errors import FileError, nearest


@click.command(epilog="Example: gcnsim images answer.html --out figures --format svg")
@click.argument("page", type=click.Path())
@click.option("--out", type=click.Path(), required=True, help="Folder for NAME.png or NAME.svg of each figure.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["png", "svg"]),
    default="png",
    show_default=True,
    help="Format of the images.",
)
@click.option("--figure", "names", multiple=True, metavar="NAME", help="Only this figure (repeatable).  [default: all]")
def command(page: str, out: str, kind: str, names: tuple[str, ...]) -> None:
    """Draw the figures of PAGE, which another command wrote with --html, as PNG or SVG.

    Needs Chrome or Chromium, and the extra `images` (`gcnsim doctor` says how to install it).
    """
    from gcnsim.report.images import page_figures, refuse_without_kaleido, write_image

    check_folder("out", out, read=[page])
    figures = page_figures(page)
    for name in names:
        if name not in figures:
            raise FileError(f"--figure: unknown figure {name!r} of {page}; {nearest(name, figures)}")
    chosen = {name: figure for name, figure in figures.items() if not names or name in names}
    refuse_without_kaleido(out)
    Path(out).mkdir(parents=True, exist_ok=True)
    with progress() as say:
        for name, figure in chosen.items():
            say(f"figure {name}")
            write_image(Path(out) / f"{name}.{kind}", figure)
    for name in chosen:
        click.echo(str(Path(out) / f"{name}.{kind}"))
