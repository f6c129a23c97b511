"""`gcnsim catalog`: what the package knows of devices, links, hosts, datasets, methods and prices, and from where."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import click

from gcnsim import hardware, knobs, units, workload
from gcnsim.cli.completing import complete_any, complete_kind
from gcnsim.errors import ScenarioError, nearest
from gcnsim.known_names import known_name
from gcnsim.methods import STANDING, every_method, method_type, methods
from gcnsim.terminal.tables import aligned

SCHEMA: Final = "gcnsim.catalog/1"
_SINGULAR: Final = {"devices": "device", "links": "link", "hosts": "host", "datasets": "dataset", "methods": "method"}


@click.group()
def group() -> None:
    """Devices, links, hosts, datasets, methods and prices, with source and date.

    Example: gcnsim catalog show t4
    """


@group.command("list", short_help="Names and titles, of one kind or of all.")
@click.argument("kind", required=False, shell_complete=complete_kind)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(kind: str | None, as_json: bool) -> None:
    """Names and titles, of one KIND (devices, links, hosts, datasets, methods, prices) or of all.

    Example: gcnsim catalog list devices
    """
    if kind is not None and kind not in _LISTS:
        raise ScenarioError(f"catalog: unknown kind {kind!r}; {nearest(kind, _LISTS)}")
    found = {name: rows() for name, rows in _LISTS.items() if kind in (None, name)}
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, **found}, indent=2, ensure_ascii=False))
        return
    for name, rows in found.items():
        click.echo(f"{name}:")
        click.echo(_columns([[str(value) for value in row.values()] for row in rows]))


@group.command("show", short_help="Every figure of a name, with source, date and range.")
@click.argument("name", shell_complete=complete_any)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_command(name: str, as_json: bool) -> None:
    """Every figure of NAME with its source, date and range; NAME may be the file of a device of your own.

    Example: gcnsim catalog show pcie3-x16
    """
    kinds = ((kind, known_name(name, names)) for kind, names in _names().items())
    kind, known = next(((kind, known) for kind, known in kinds if known), (None, None))
    if kind is None and hardware.known_device(name) is not None:
        kind, known = "devices", hardware.known_device(name)
    if kind is None or known is None:
        every = [known for names in _names().values() for known in names]
        raise ScenarioError(f"catalog: unknown name {name!r}; {nearest(name, every)}")
    name = known
    facts, rows = _SHOWS[kind](name)
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "kind": _SINGULAR[kind], **facts}, indent=2, ensure_ascii=False))
        return
    click.echo(f"{name} ({_SINGULAR[kind]}): {facts.get('title', '')}".rstrip(" :"))
    click.echo(_columns(rows))


def _columns(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(aligned(rows, left=len(rows[0]), indent=2))


def _names() -> Mapping[str, Sequence[str]]:
    return {
        "devices": hardware.devices(),
        "links": hardware.links(),
        "hosts": hardware.hosts(),
        "datasets": workload.datasets(),
        "methods": methods(),
    }


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
    figures = hardware.figures_of(item)
    facts = {"name": item.name, "title": item.title, "figures": {key: asdict(value) for key, value in figures.items()}}
    rows = [[key, *_figure_cells(key, value)] for key, value in figures.items()]
    own = {name: getattr(item, name) for name in ("peer_to_peer", "gpudirect") if getattr(item, name, None) is not None}
    if own:
        facts["facts"] = {name: asdict(fact) for name, fact in own.items()}
        yes = {True: "yes", False: "no"}
        rows += [[name, yes[fact.value], fact.source, fact.date, fact.reference] for name, fact in own.items()]
    return facts, rows


def _figure_cells(key: str, figure: hardware.Figure) -> list[str]:
    text = _written(key, figure.value)
    if figure.low is not None and figure.high is not None:
        text += f" ({_written(key, figure.low)} to {_written(key, figure.high)})"
    return [text, figure.source, figure.date, figure.reference]


def _written(key: str, value: float) -> str:
    quantity = hardware.QUANTITIES[key]
    if key.endswith("_bandwidth") or key == "nvlink":  # sold in bytes; networks are in bits
        quantity = replace(units.BANDWIDTH, written=("GB/s", "MB/s", "GiB/s", "B/s"))
    return f"{value:g}" if quantity is None else quantity.exact(value)


def _show_device(name: str) -> tuple[dict[str, Any], list[list[str]]]:
    device, prices = hardware.device(name), hardware.prices(name)
    facts, rows = _show_profile(device)
    facts |= {"link": device.link, "prices": [asdict(price) for price in prices]}
    rows.append(["link", device.link, "", "", "to the host"])
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
        rows.append(["network", host.network, "", "", "what its adapters are"])
    return facts | {"device": host.device, "network": host.network}, rows


def _show_dataset(name: str) -> tuple[dict[str, Any], list[list[str]]]:
    facts = workload.dataset(name)
    data = asdict(facts) | {"citations": dict(facts.citations)}
    rows = []
    for field, citation in facts.citations:
        if field == "boundary":
            for row in facts.boundary:
                counts = f"{row.inner:,.0f} inner, {row.boundary:,.0f} boundary nodes"
                rows.append([f"{row.partitions} partitions", counts, citation])
        else:
            value = getattr(facts, field)
            rows.append([field, f"{value:,}" if isinstance(value, int) else str(value), citation])
    rows.append(["train", f"{100 * facts.train:g}%", facts.train_source])
    return data, rows


def _show_method(name: str) -> tuple[dict[str, Any], list[list[str]]]:
    kind = method_type(name)
    have, standing = kind.knobs(), kind()
    fixed = {knob: getattr(standing, knob) for knob in STANDING if not kind.has(knob)}
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
