"""`gcnsim catalog`: devices, links, hosts, datasets, methods and prices that the package knows, with their sources.

`catalog compare` shows the figures of several devices, links or hosts side by side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import click

from gcnsim import hardware, workload
from gcnsim.cli.outputs import print_table
from gcnsim.cli.questions import complete_any, complete_kind
from gcnsim.core import units
from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.spellings import known_name
from gcnsim.core.terminal import aligned
from gcnsim.cost import OPERATORS
from gcnsim.methods import SHARED_KNOBS, every_method, method_type, methods
from gcnsim.workload import knobs

SCHEMA: Final = "gcnsim.catalog/1"
SINGULAR: Final = {"devices": "device", "links": "link", "hosts": "host", "datasets": "dataset", "methods": "method"}
YES: Final = {True: "yes", False: "no"}


def names() -> Mapping[str, Sequence[str]]:
    """Return the names of the catalogue by kind."""
    return {
        "devices": hardware.devices(),
        "links": hardware.links(),
        "hosts": hardware.hosts(),
        "datasets": workload.datasets(),
        "methods": methods(),
    }


def entry_named(name: str) -> tuple[str, str]:
    """The kind of the entry that `name` is (`devices`), and its own name; a file is of the kind that it describes.

    Raises ScenarioError with the nearest name where there is none, FileError for a file that cannot be read.
    """
    if hardware.is_file(name):
        return f"{hardware.kind_described(name)}s", name
    for kind, known in names().items():
        if (found := known_name(name, known)) is not None:
            return kind, found
    if (device := hardware.known_device(name)) is not None:
        return "devices", device
    raise ScenarioError(
        f"catalog: unknown name {name!r}; {nearest(name, [text for known in names().values() for text in known])}"
    )


def profile_facts(item: Any) -> dict[str, Any]:
    """Return the figures and facts of a device, link or host, and the catalogue entries it names, as plain data."""
    figures = hardware.figures_of(item)
    facts = {"name": item.name, "title": item.title, "figures": {key: asdict(value) for key, value in figures.items()}}
    own = facts_of(item)
    return facts | ({"facts": {name: asdict(fact) for name, fact in own.items()}} if own else {})


def facts_of(item: Any) -> dict[str, hardware.Fact]:
    """Return the boolean facts of a device or host: what it has, or is known not to have."""
    known = {name: getattr(item, name, None) for name in ("peer_to_peer", "gpudirect")}
    return {name: fact for name, fact in known.items() if fact is not None}


def written(key: str, value: float) -> str:
    """Return the value of the figure `key` with its unit."""
    quantity = hardware.QUANTITIES[key]
    if key.endswith("_bandwidth") or key == "nvlink":  # sold in bytes; networks are in bits
        quantity = replace(units.BANDWIDTH, written=("GB/s", "MB/s", "GiB/s", "B/s"))
    return f"{value:g}" if quantity is None else quantity.exact(value)


NONE: Final = "none"
GENERATION: Final = "nvlink_generation"
"""A number that is not an amount of anything."""

_LOADS: Final[Mapping[str, Callable[[str], Any]]] = {
    "devices": lambda name: hardware.device(name),
    "links": lambda name: hardware.link(name),
    "hosts": lambda name: hardware.host(name),
}
_NAMED: Final = ("link", "device", "network", "pcie")
"""Fields of a device or host that name other entries of the catalogue."""


@click.command("compare", short_help="Compare figures of devices, links or hosts.")
@click.argument("names", nargs=-1, required=True, shell_complete=complete_any)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare_command(names: tuple[str, ...], as_json: bool) -> None:
    """Show the figures of two or more NAMES side by side, with ratios to the first.

    They must be of one kind: devices, links or hosts; your own files are allowed.

    Example: gcnsim catalog compare a100-80 h100
    """
    kind, items = _items(names)
    if as_json:
        entries = [profile_facts(item) | _named(item) for item in items]
        content = {"schema": SCHEMA, "kind": SINGULAR[kind], "entries": entries, "ratios": _ratios(items)}
        click.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    for item in items:
        click.echo(f"{item.name} ({SINGULAR[kind]}): {item.title}")
    click.echo()
    headings = [SINGULAR[kind], items[0].name]
    for item in items[1:]:
        headings += [item.name, "ratio"]
    print_table(headings, _rows(items))


def _items(names: Sequence[str]) -> tuple[str, list[Any]]:
    """Return the kind of the entries, and the entries. Raises ScenarioError if they cannot be compared."""
    entries = [entry_named(name) for name in names]
    for kind, name in entries:
        if kind not in _LOADS:
            raise ScenarioError(f"catalog compare: {name} is a {SINGULAR[kind]}; allowed: devices, links or hosts")
    (kind, first), *others = entries
    if not others:
        raise ScenarioError(f"catalog compare: {first} alone is named; allowed: two or more {kind}")
    for other, name in others:
        if other != kind:
            raise ScenarioError(
                f"catalog compare: {first} is a {SINGULAR[kind]}, {name} a {SINGULAR[other]}; allowed: all of one kind"
            )
    return kind, [_LOADS[kind](name) for _, name in entries]


def _rows(items: Sequence[Any]) -> list[list[str]]:
    """Return one line for each figure, fact and name that an entry has."""
    figures = [hardware.figures_of(item) for item in items]
    rows = []
    for key, ratios in _ratios(items).items():
        cells = [_cell(key, figure.get(key)) for figure in figures]
        row = [key, cells[0]]
        for cell, ratio in zip(cells[1:], ratios[1:], strict=True):
            row += [cell, "" if ratio is None else f"{ratio:.3g}x"]
        rows.append(row)
    facts = [facts_of(item) for item in items]
    for name in dict.fromkeys(name for fact in facts for name in fact):
        rows.append(_spread(name, [YES[fact[name].value] if name in fact else "not known" for fact in facts]))
    named = [_named(item) for item in items]
    for name in dict.fromkeys(name for entry in named for name in entry):
        if any(entry[name] for entry in named):
            rows.append(_spread(name, [entry[name] or NONE for entry in named]))
    return rows


def _spread(name: str, cells: Sequence[str]) -> list[str]:
    """Return a line without ratios."""
    return [name, cells[0], *(text for cell in cells[1:] for text in (cell, ""))]


def _ratios(items: Sequence[Any]) -> dict[str, list[float | None]]:
    """Return the ratios of each figure to the first entry's; None where an entry lacks it."""
    figures = [hardware.figures_of(item) for item in items]
    ratios: dict[str, list[float | None]] = {}
    for key in dict.fromkeys(key for figure in figures for key in figure):
        base = figures[0][key].value if key in figures[0] and key != GENERATION else 0.0
        ratios[key] = [figure[key].value / base if key in figure and base else None for figure in figures]
    return ratios


def _cell(key: str, figure: hardware.Figure | None) -> str:
    if figure is None:
        return NONE
    return f"{written(key, figure.value)}{' (assumed)' if figure.source == 'assumed' else ''}"


def _named(item: Any) -> dict[str, str | None]:
    """Return the fields of this kind of entry that name other entries."""
    return {name: getattr(item, name) for name in _NAMED if hasattr(item, name)}


@click.group()
def group() -> None:
    """List devices, links, hosts, datasets, methods and prices, with source and date.

    Example: gcnsim catalog show t4
    """


group.add_command(compare_command)


@group.command("list", short_help="List names and titles, of one kind or all.")
@click.argument("kind", required=False, shell_complete=complete_kind)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(kind: str | None, as_json: bool) -> None:
    """List names and titles of one KIND (devices, links, hosts, datasets, methods, prices) or all.

    Example: gcnsim catalog list devices
    """
    if kind is not None and kind not in _LISTS:
        raise ScenarioError(f"catalog: unknown kind {kind!r}; {nearest(kind, _LISTS)}")
    lists = {name: rows() for name, rows in _LISTS.items() if kind in (None, name)}
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, **lists}, indent=2, ensure_ascii=False))
        return
    for name, rows in lists.items():
        click.echo(f"{name}:")
        click.echo(_columns([[str(value) for value in row.values()] for row in rows]))


@group.command("show", short_help="Show every figure of a name, with source, date and range.")
@click.argument("name", shell_complete=complete_any)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_command(name: str, as_json: bool) -> None:
    """Show every figure of NAME with its source, date and range; NAME may be your own device or host file.

    Example: gcnsim catalog show pcie3-x16
    """
    kind, name = entry_named(name)
    facts, rows = _SHOWS[kind](name)
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "kind": SINGULAR[kind], **facts}, indent=2, ensure_ascii=False))
        return
    click.echo(f"{name} ({SINGULAR[kind]}): {facts.get('title', '')}".rstrip(" :"))
    click.echo(_columns(rows))


def _columns(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(aligned(rows, left=len(rows[0]), indent=2))


def _titles(names: Sequence[str], load: Callable[[str], Any]) -> list[dict[str, Any]]:
    return [{"name": name, "title": load(name).title} for name in names]


def _list_datasets() -> list[dict[str, Any]]:
    facts = [workload.dataset(name) for name in workload.datasets()]
    text = "{0.nodes:,} nodes, {0.entries:,} entries, {0.features} features, {0.classes} classes"
    return [{"name": fact.name, "title": text.format(fact)} for fact in facts]


def _list_prices() -> list[dict[str, Any]]:
    rows = [asdict(price) for price in hardware.prices()]
    return [row | {"usd_per_gpu_hour": round(row["usd_per_gpu_hour"], 4)} for row in rows]


_LISTS: Final[Mapping[str, Callable[[], list[dict[str, Any]]]]] = {
    "devices": lambda: _titles(hardware.devices(), hardware.device),
    "links": lambda: _titles(hardware.links(), hardware.link),
    "hosts": lambda: _titles(hardware.hosts(), hardware.host),
    "datasets": _list_datasets,
    "methods": lambda: [{"name": name, "title": kind.about} for name, kind in every_method().items()],
    "prices": _list_prices,
}


def _show_profile(item: Any) -> tuple[dict[str, Any], list[list[str]]]:
    rows = [[key, *_figure_cells(key, value)] for key, value in hardware.figures_of(item).items()]
    rows += [[name, YES[fact.value], fact.source, fact.date, fact.reference] for name, fact in facts_of(item).items()]
    return profile_facts(item), rows


def _figure_cells(key: str, figure: hardware.Figure) -> list[str]:
    text = written(key, figure.value)
    if figure.low is not None and figure.high is not None:
        text += f" ({written(key, figure.low)} to {written(key, figure.high)})"
    return [text, figure.source, figure.date, figure.reference]


def _show_device(name: str) -> tuple[dict[str, Any], list[list[str]]]:
    device, prices = hardware.device(name), hardware.prices(name)
    facts, rows = _show_profile(device)
    facts |= {"link": device.link, "prices": [asdict(price) for price in prices]}
    rows.append(["link", device.link, "", "", "to the host"])
    for operator, measured_on, date, reference in OPERATORS if device.kind == "gpu" else ():
        where = "this GPU" if device.name in measured_on else "other GPUs"
        rows.append([operator, f"a law fitted on {where}", "fitted", date, reference])
    for price in prices:
        text = f"{price.usd_per_gpu_hour:.4g} USD/h per GPU"
        rows.append(
            [
                "price",
                text,
                "list" if price.pricing == "on-demand" else price.pricing,
                price.date,
                f"{price.instance}, {price.region}: {price.source}",
            ]
        )
    if not prices:
        rows.append(["price", "none known", "", "", "not in the price list"])
    return facts, rows


def _show_host(name: str) -> tuple[dict[str, Any], list[list[str]]]:
    host = hardware.host(name)
    facts, rows = _show_profile(host)
    if host.device is not None:
        rows.insert(0, ["device", host.device, "", "", "its GPUs"])
    if host.network is not None:
        rows.append(["network", host.network, "", "", "its network adapters"])
    if host.pcie is not None:
        rows.append(["pcie", host.pcie, "", "", "between its processors and its GPUs, unless the GPUs' link is slower"])
    return facts | {"device": host.device, "network": host.network, "pcie": host.pcie}, rows


def _show_dataset(name: str) -> tuple[dict[str, Any], list[list[str]]]:
    facts = workload.dataset(name)
    data = asdict(facts) | {"citations": dict(facts.citations)}
    rows = []
    for field, citation in facts.citations:
        if field == "boundary":
            for row in (*facts.boundary, *facts.elsewhere):
                counts = f"{row.inner:,.0f} inner, {row.boundary:,.0f} boundary nodes"
                rows.append([f"{row.partitions} partitions", counts, row.source])
        else:
            value = getattr(facts, field)
            rows.append([field, f"{value:,}" if isinstance(value, int) else str(value), citation])
    rows.append(["train", f"{100 * facts.train:g}%", facts.train_source])
    return data, rows


def _show_method(name: str) -> tuple[dict[str, Any], list[list[str]]]:
    kind = method_type(name)
    have, standing = kind.knobs(), kind()
    fixed = {knob: getattr(standing, knob) for knob in SHARED_KNOBS if not kind.has(knob)}
    fixed |= {"cache": 0.0} if "cache" in fixed else {}
    data = {
        "name": name,
        "title": kind.about,
        "knobs": [asdict(knob) | {"allowed": knob.allowed} for knob in have],
        "fixed": fixed,
    }
    rows = [[knob.name, f"default {_default(knob)}", knob.allowed, knob.help] for knob in have]
    for key, value in fixed.items():
        stands = "0%" if key == "cache" else f"{value:g}" if isinstance(value, float) else str(value)
        rows.append([key, f"fixed at {stands}", "", knobs.KNOBS[key].help])
    return data, rows


def _default(knob: knobs.Knob) -> str:
    if knob.kind == "size" and knob.default == 0.0:
        return "0%"
    return "none" if knob.default is None else str(knob.default)


_SHOWS: Final[Mapping[str, Callable[[str], tuple[dict[str, Any], list[list[str]]]]]] = {
    "devices": _show_device,
    "links": lambda name: _show_profile(hardware.link(name)),
    "hosts": _show_host,
    "datasets": _show_dataset,
    "methods": _show_method,
}
