"""`gcnsim catalog`: what the package knows of devices, links, hosts, datasets, methods and prices, and from where."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import click

from gcnsim import hardware, knobs, workload
from gcnsim.cli.catalog_compare import compare_command
from gcnsim.cli.catalog_entries import SCHEMA, SINGULAR, YES, entry_named, facts_of, profile_facts, written
from gcnsim.cli.completing import complete_any, complete_kind
from gcnsim.errors import ScenarioError, nearest
from gcnsim.methods import STANDING, every_method, method_type
from gcnsim.terminal.tables import aligned


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
    found = {name: rows() for name, rows in _LISTS.items() if kind in (None, name)}
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, **found}, indent=2, ensure_ascii=False))
        return
    for name, rows in found.items():
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
    if host.pcie is not None:
        rows.append(["pcie", host.pcie, "", "", "between its processors and its GPUs, unless theirs is slower"])
    return facts | {"device": host.device, "network": host.network, "pcie": host.pcie}, rows


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
