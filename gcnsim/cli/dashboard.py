"""`gcnsim dashboard`: pages in a browser."""

from __future__ import annotations

import importlib.util
import sys

import click

from gcnsim.core.errors import ScenarioError

NEEDS = ("dash", "flask", "waitress")


@click.command("dashboard")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; any other than loopback needs --token.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8050, show_default=True, help="Port; 0: any free one.")
@click.option(
    "--token", envvar="GCNSIM_DASHBOARD_TOKEN", help="Secret that browsers must present, 16 characters or more."
)
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="Host name that a proxy in front passes on (repeatable)."
)
@click.option(
    "--prefix",
    default="",
    help="Path of the pages at a proxy in front, e.g. /user/kim/proxy/8050/.  [default: its X-Forwarded-Prefix]",
)
@click.option("--files", type=click.Path(), default=".", show_default=True, help="Folder whose files pages may open.")
@click.option("--processes", type=click.IntRange(min=1), help="Worker processes.  [default: one per core]")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
def command(
    host: str,
    port: int,
    token: str | None,
    allow_host: tuple[str, ...],
    prefix: str,
    files: str,
    processes: int | None,
    opens: bool,
) -> None:
    """Serve pages to a browser: what-if with sliders, compare, plan, sweep, validation.

    Ctrl-C ends it. Only browsers on this machine can reach it, unless --host is set.

    \b
    Example:
      gcnsim dashboard --open
    """
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        raise ScenarioError(f"dashboard: needs {', '.join(missing)}; pip install 'gcnsim[dashboard]'")
    from gcnsim.dashboard.guard import Guard
    from gcnsim.dashboard.serve import serve

    def ready(address: str) -> None:
        click.echo(f"{address} (Ctrl-C ends it)")
        sys.stdout.flush()
        if opens:
            import webbrowser

            webbrowser.open(address)

    serve(host, port, Guard(host, token, allow_host), files, processes, prefix, ready)
