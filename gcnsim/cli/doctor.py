"""`gcnsim doctor`: which dependencies are installed or missing, and which engine simulates.

Core dependencies are really imported; extras are only looked up, because importing torch takes seconds.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

import click

from gcnsim import __version__
from gcnsim.core.errors import plural
from gcnsim.core.resources import usable_resources

MODULES: Final = {"pyyaml": "yaml"}
"""The module of a distribution, where the names differ."""

TOOLS: Final = {"chromium": "views pages", "tc": "limits emulated links", "ip": "creates emulated hosts"}


@click.command("doctor")
@click.option("--compile", "compiles", is_flag=True, help="Compile the engine now, if needed, and wait for it.")
@click.pass_context
def command(ctx: click.Context, compiles: bool) -> None:
    """Report what is installed or missing, and which engine simulates.

    Exit code 1 if a core dependency is broken, or --compile fails.

    Example: gcnsim doctor
    """
    if compiles:
        _compile(ctx)
    problems = {name: problem for name, least in requirements().get("", ()) if (problem := problem_of(name, least))}
    click.echo("\n".join(report(problems)))
    ctx.exit(1 if problems else 0)


def _compile(ctx: click.Context) -> None:
    """Compile the engine; if that fails, print why and end with exit code 1."""
    from gcnsim.engine import compile_now, engine

    if engine().kernel is None:
        click.echo("compiling the engine: about 15 seconds of one core", err=True)
        if problem := compile_now():
            click.echo(f"gcnsim: {problem}", err=True)
            ctx.exit(1)


def requirements() -> dict[str, list[tuple[str, str]]]:
    """Our dependencies with their least versions by extra, "" for the core; empty in a source tree that is not
    installed."""
    found: dict[str, list[tuple[str, str]]] = {}
    try:
        wanted = importlib.metadata.requires("gcnsim") or []
    except importlib.metadata.PackageNotFoundError:
        return found
    for line in wanted:
        match = re.match(r"([\w.-]+)(?:\[[^]]*\])?(?:>=([\d.]+))?(?:.*extra == [\"']([\w-]+)[\"'])?", line)
        if match and match[1] != "gcnsim":
            found.setdefault(match[3] or "", []).append((match[1].lower(), match[2] or "0"))
    return found


def version_of(name: str) -> str | None:
    """The installed version of a distribution; None: none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def problem_of(name: str, least: str) -> str:
    """Why a core dependency cannot be used; empty: it can."""
    version = version_of(name)
    if version is None:
        return f"missing: pip install {name}"
    numbers = [[int(part) for part in re.findall(r"\d+", text.split("+")[0])[:3]] for text in (version, least)]
    if numbers[0] < numbers[1]:
        return f"{version} is too old: {least} or later is needed"
    try:
        importlib.import_module(MODULES.get(name, name))
    except Exception as error:
        return f"cannot be imported: {' '.join(str(error).split())}"
    return ""


def report(problems: dict[str, str]) -> list[str]:
    """One fact per line. It does not use rich, which may be missing."""
    needed = requirements()
    core = [f"  {name}: {problem}" for name, problem in problems.items()] or ["  all can be imported"]
    lines = [f"gcnsim {__version__}, Python {sys.version.split()[0]} ({sys.executable})", "core dependencies:", *core]
    lines.append("extras:")
    for extra, parts in needed.items():
        missing = [name for name, _ in parts if version_of(name) is None]
        state = f"missing: {', '.join(missing)}; pip install 'gcnsim[{extra}]'" if missing else "installed"
        if extra:
            lines.append(f"  {extra:<10} {state}")
    lines += ["tools:", *(f"  {name:<10} {shutil.which(name) or 'not found'}; {use}" for name, use in TOOLS.items())]
    resources = usable_resources()
    memory = "" if resources.memory_bytes is None else f", {resources.memory_bytes / 2**30:.1f} GiB of memory"
    lines += [f"resources: {plural(resources.cores, 'core')}{memory}", *_simulator()]
    folder = os.environ.get("GCNSIM_DATA")
    graphs = sorted(path.stem for path in Path(folder).glob("*.npz")) if folder else []
    return [*lines, f"GCNSIM_DATA: {folder}: {plural(len(graphs), 'graph')}" if folder else "GCNSIM_DATA: not set"]


def _simulator() -> list[str]:
    """Which engine simulates, and methods of other packages that cannot be used."""
    try:
        from gcnsim.engine import engine
        from gcnsim.methods import broken_methods
    except ImportError as error:
        return [f"engine: none ({' '.join(str(error).split())})"]
    unusable = [f"unusable method: {why}" for why in broken_methods().values()]
    return [f"engine: {engine().name} ({engine().why})", *unusable]
