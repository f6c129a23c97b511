"""`gcnsim doctor`: what is installed, what is missing, and what each extra would add.

Core dependencies are really imported; extras are only looked up, because importing torch takes seconds.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from gcnsim import __version__
from gcnsim.core.errors import plural
from gcnsim.core.resources import usable_resources

SCHEMA: Final = "gcnsim.doctor/1"
CORE: Final[Mapping[str, str]] = {
    "click": "click",
    "filelock": "filelock",
    "jinja2": "jinja2",
    "jsonschema": "jsonschema",
    "llvmlite": "llvmlite",
    "networkx": "networkx",
    "numba": "numba",
    "numpy": "numpy",
    "plotly": "plotly",
    "pyarrow": "pyarrow",
    "pymetis": "pymetis",
    "pyyaml": "yaml",
    "rich": "rich",
    "scipy": "scipy",
    "simpy": "simpy",
}
"""Distribution -> module. Every command may need any of them, so each is really imported here."""

EXTRAS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "runtime": (
        "training and measuring (python -m runtime.train, runtime.measure)",
        {"torch": "torch", "safetensors": "safetensors", "scikit-learn": "sklearn"},
    ),
    "dgl": (
        "DGL's sparse kernels for training, in addition to plain torch (--aggregator dgl)",
        {"dgl": "dgl", "packaging": "packaging"},
    ),
    "caches": ("LRU, ARC, Belady and other demand caches in gcnsim trace cache-curve", {"libcachesim": "libcachesim"}),
    "dask": ("sweeps on a Dask cluster (gcnsim sweep --executor dask)", {"distributed": "distributed"}),
    "ray": ("sweeps on a Ray cluster (gcnsim sweep --executor ray)", {"ray": "ray"}),
    "recommend": ("selection of settings from a large grid (gcnsim recommend --limit)", {"optuna": "optuna"}),
    "dashboard": ("pages in a browser (gcnsim dashboard)", {"dash": "dash", "waitress": "waitress"}),
    "images": ("figures of pages as PNG or SVG (gcnsim images)", {"kaleido": "kaleido"}),
    "dev": (
        "tests, types and lint: make check",
        {
            "hypothesis": "hypothesis",
            "import-linter": "importlinter",
            "mypy": "mypy",
            "pytest": "pytest",
            "ruff": "ruff",
        },
    ),
}
TOOLS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "chromium": (("chromium", "chromium-browser", "google-chrome"), "views the pages that --html writes"),
    "tc": (("tc",), "limits the bandwidth of emulated links (python -m runtime.emulate)"),
    "ip": (("ip",), "creates the emulated hosts and links (python -m runtime.emulate)"),
}


@click.command("doctor")
@click.option("--compile", "compiles", is_flag=True, help="Compile the engine now, if needed, and wait for it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, compiles: bool, as_json: bool) -> None:
    """Report what is installed or missing, what each extra would add, and which engine simulates.

    Exit code 1 if a core dependency is broken, or --compile fails.

    Example: gcnsim doctor --json
    """
    if compiles:
        _compile(ctx)
    report = examine()
    click.echo(json.dumps(report, indent=2, ensure_ascii=False) if as_json else render(report))
    ctx.exit(0 if report["healthy"] else 1)


def _compile(ctx: click.Context) -> None:
    """Compile the engine; if that fails, print why and end with exit code 1."""
    from gcnsim.engine import compile_now, engine

    if engine().kernel is None:
        click.echo("compiling the engine: about 15 seconds of one core", err=True)
        if problem := compile_now():
            click.echo(f"gcnsim: {problem}", err=True)
            ctx.exit(1)


def examine() -> dict[str, Any]:
    """Return the state of this installation as plain data."""
    from gcnsim.methods import broken_methods

    minimum = _minimum_versions()
    core = {name: _core(name, module, minimum.get(name)) for name, module in CORE.items()}
    python_ok = sys.version_info >= (3, 11)
    return {
        "schema": SCHEMA,
        "gcnsim": __version__,
        "python": {"version": sys.version.split()[0], "executable": sys.executable, "ok": python_ok},
        "core": core,
        "extras": {name: _extra(adds, parts) for name, (adds, parts) in EXTRAS.items()},
        "tools": {
            name: {"path": next(filter(None, map(shutil.which, names)), None), "for": purpose}
            for name, (names, purpose) in TOOLS.items()
        },
        "resources": asdict(usable_resources()),
        "engine": _engine(),
        "methods": dict(broken_methods()),
        "data": _data(),
        "healthy": python_ok and all(entry["problem"] is None for entry in core.values()),
    }


def render(report: Mapping[str, Any]) -> str:
    """Return `report` as text, one fact per line. It does not use rich, which may be missing."""
    python = report["python"]
    lines = [
        f"gcnsim {report['gcnsim']}, Python {python['version']} ({python['executable']})"
        + ("" if python["ok"] else "  NEEDS 3.11 or later"),
        "core dependencies:",
    ]
    for name, entry in report["core"].items():
        lines.append(f"  {name:<14} {entry['version'] or 'missing':<12} {entry['problem'] or 'ok'}")
    lines.append("extras:")
    for name, extra in report["extras"].items():
        state = "installed" if not extra["missing"] else f"missing {', '.join(extra['missing'])}"
        lines.append(f"  {name:<14} {state}; adds: {extra['adds']}")
        if extra["missing"]:
            lines.append(f"  {'':<14} pip install 'gcnsim[{name}]'")
    lines.append("tools:")
    for name, tool in report["tools"].items():
        lines.append(f"  {name:<14} {tool['path'] or 'not found'}; {tool['for']}")
    lines.append(f"resources: {_resources(report['resources'])}")
    lines.append(f"engine: {report['engine']['name']} ({report['engine']['why']})")
    if report["methods"]:
        lines += ["methods of other packages that cannot be used:", *(f"  {why}" for why in report["methods"].values())]
    lines.append(f"GCNSIM_DATA: {report['data']['state']}")
    lines.append("all core dependencies work" if report["healthy"] else "a core dependency is broken: see above")
    return "\n".join(lines)


def _resources(resources: Mapping[str, Any]) -> str:
    """Return a description of the CPU cores and memory that may be used."""
    quota = f" (a container's quota: {resources['quota']:g} CPUs)" if resources["quota"] is not None else ""
    memory = f", {resources['memory_bytes'] / 2**30:.1f} GiB of memory" if resources["memory_bytes"] is not None else ""
    return f"{plural(resources['cores'], 'core')}{quota}{memory}"


def _engine() -> dict[str, str]:
    """Return which engine simulates: the compiled one and its file, or the reference and why."""
    try:
        from gcnsim.engine import engine
    except ImportError as error:
        return {"name": "none", "why": " ".join(str(error).split())}
    found = engine()
    return {"name": found.name, "why": found.why}


def _core(name: str, module: str, minimum: str | None) -> dict[str, str | None]:
    version = _version(name)
    if importlib.util.find_spec(module) is None:
        return {"version": version, "problem": f"missing: pip install {name}"}
    try:
        importlib.import_module(module)
    except Exception as error:
        return {"version": version, "problem": f"cannot be imported: {' '.join(str(error).split())}"}
    if version is not None and minimum is not None and _parts(version) < _parts(minimum):
        return {"version": version, "problem": f"too old: {minimum} or later is needed"}
    return {"version": version, "problem": None}


def _extra(adds: str, parts: Mapping[str, str]) -> dict[str, Any]:
    versions = {name: _version(name) for name, module in parts.items() if importlib.util.find_spec(module) is not None}
    return {"adds": adds, "installed": versions, "missing": [name for name in parts if name not in versions]}


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _minimum_versions() -> dict[str, str]:
    """Return the requirements in our metadata (`name>=version`); empty if we run from a source tree that is not
    installed.
    """
    try:
        wanted = importlib.metadata.requires("gcnsim") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    matches = (re.match(r"([A-Za-z0-9._-]+)>=([0-9.]+)$", line) for line in wanted)
    return {match[1].lower(): match[2] for match in matches if match}


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])


def _data() -> dict[str, Any]:
    folder = os.environ.get("GCNSIM_DATA")
    if not folder:
        return {"path": None, "state": "not set; tests on real graphs are skipped"}
    if not Path(folder).is_dir():
        return {"path": folder, "state": f"{folder} is not a folder"}
    graphs = sorted(path.stem for path in Path(folder).glob("*.npz"))
    return {"path": folder, "state": f"{folder}: {len(graphs)} graphs ({', '.join(graphs)})"}
