"""`gcnsim schema NAME`: the JSON schema of an answer or a file."""

from __future__ import annotations

import click

from gcnsim.core.schemas import DOCUMENTS, schema_text


@click.command("schema", epilog="Example: gcnsim schema what-if")
@click.argument("name", metavar="NAME")
def schema(name: str) -> None:
    """Print the JSON schema NAME: of an answer (--json) or of a file."""
    click.echo(schema_text(name), nl=False)


schema.help = f"{schema.help}\n\nNames: {', '.join(DOCUMENTS)}."
