"""`gcnsim graph partition`: owners of the nodes, and what crosses between the parts, for one way to cut or several."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, Final, TypeAlias

import click
import numpy as np
from click.core import ParameterSource

from gcnsim.cli.ids import SizeOption, ids_options, map_path, partition_option, read_owners, warn, write_map
from gcnsim.cli.outputs import check_outputs, overwrite_option, print_columns, print_table, progress
from gcnsim.core.errors import GraphError, ScenarioError, nearest, plural
from gcnsim.core.ids import BoolArray
from gcnsim.graph import Graph, graph_notes, graph_warnings, load_graph
from gcnsim.graph.assign import ALGORITHMS, BALANCES, KWAY, METHODS, NODES, OBJECTIVES, RECURSIVE, partition_graph
from gcnsim.graph.describe import PartitionFacts, Spread, partition_facts, partition_warnings, role_spreads
from gcnsim.graph.formats.nodes import read_nodes
from gcnsim.graph.load import check_memory
from gcnsim.graph.owners import write_partition
from gcnsim.graph.parts import FROM_FILE, Partitioning, split
from gcnsim.graph.placement import balanced_order, card_loads, renumbered, rows_between
from gcnsim.scenario import AS_NUMBERED, BALANCED, IMBALANCE

_WHOLE_FROM: Final = 100
"""Means below this are shown with a decimal."""

_Masks: TypeAlias = Sequence[BoolArray] | None
"""Training, validation and test nodes, bool[N] each; None if the graph does not say."""

KNOWN: Final = {"method": METHODS, "objective": OBJECTIVES, "algorithm": ALGORITHMS, "balance": BALANCES}
"""The names that each option allows."""


@dataclass(frozen=True, slots=True)
class _Way:
    parts: int
    method: str
    objective: str
    algorithm: str
    balance: str


@dataclass(frozen=True, slots=True)
class _Placed:
    """Parts renumbered for servers of so many GPUs. numbered, balanced: rows of the busiest card, before and after."""

    gpus_per_server: int
    numbered: int
    balanced: int


@dataclass(frozen=True, slots=True)
class _Cut:
    """One partition. seconds: processor time of assigning the owners, in steps of the system's clock; None
    if it came from a file. roles: nodes that
    train, validate and test, by those words, where the graph says."""

    owners: Partitioning
    facts: PartitionFacts
    seconds: float | None
    roles: Mapping[str, Spread]
    warnings: tuple[str, ...]
    placed: _Placed | None = None

    def named(self) -> dict[str, Any]:
        """Return the result as plain data."""
        owners = self.owners
        document = {"method": owners.method, "seed": owners.seed, "graph": owners.graph_name}
        roles = {f"{role}_nodes": asdict(spread) for role, spread in self.roles.items()}
        return {**document, "graph_hash": owners.graph_hash, **asdict(self.facts), **roles} | {
            **({} if self.placed is None else {"placement": asdict(self.placed)}),
            "warnings": [*self.warnings],
            "seconds": None if self.seconds is None else round(self.seconds, 3),
        }


def _placement_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options --placement and --gpus-per-server."""
    each = click.option(
        "--gpus-per-server", type=click.IntRange(min=1), help="GPUs of each server, for --placement balanced."
    )
    return click.option(
        "--placement",
        type=click.Choice([AS_NUMBERED, BALANCED]),
        default=AS_NUMBERED,
        show_default=True,
        help="Number the parts such that the busiest network card carries least (with --gpus-per-server).",
    )(each(command))


@click.command("partition")
@click.argument("file", type=click.Path())
@click.option("--parts", help="Number of parts, one per GPU; or several: 2,4,8.")
@partition_option
@click.option("--method", default="metis", show_default=True, help=f"One or several of {', '.join(METHODS)}.")
@click.option("--objective", default="vol", show_default=True, help=f"What METIS minimises: {', '.join(OBJECTIVES)}.")
@click.option(
    "--algorithm", default=KWAY, show_default=True, help=f"How METIS cuts: {', '.join(ALGORITHMS)} (objective cut)."
)
@click.option("--balance", default=NODES, show_default=True, help=f"What METIS balances: {', '.join(BALANCES)}.")
@click.option(
    "--imbalance", help="Allowed excess of the largest part over the mean.  [default: METIS' own: 3%, recursive 0.1%]"
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=0,
    show_default=True,
    help="Seed of METIS or of the random permutation.",
)
@_placement_options
@click.option(
    "--max-memory", type=SizeOption(), metavar="SIZE", help="Refuse work that needs more memory than this, e.g. 6GiB."
)
@ids_options("next to --out, OUT.ids.csv")
@click.option("--out", type=click.Path(), help="Write the partition to this file.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON (schema gcnsim.graph-partition/1, or graph-partitions/1)."
)
@overwrite_option
def command(
    file: str,
    parts: str | None,
    partition: str | None,
    method: str,
    objective: str,
    algorithm: str,
    balance: str,
    imbalance: str | None,
    seed: int,
    placement: str,
    gpus_per_server: int | None,
    max_memory: float | None,
    ids: str,
    ends: tuple[str, str] | None,
    ids_map: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Partition the graph in FILE and describe the parts.

    Prints their balance and what crosses between them. --partition describes an existing partition instead; --out
    writes it as a gcnsim file. Several numbers of parts, methods, objectives, algorithms or balances, separated by
    commas, print a row each.

    \b
    Examples:
      gcnsim graph partition amazon_cs.npz --parts 4 --out amazon_cs.part
      gcnsim graph partition amazon_cs.npz --partition owner.npy --out amazon_cs.part
      gcnsim graph partition amazon_cs.npz --parts 8 --placement balanced --gpus-per-server 2 --out amazon_cs.part
      gcnsim graph partition amazon_cs.npz --parts 2,4,8 --method metis,random --objective vol,cut
      gcnsim graph partition amazon_cs.npz --parts 4 --objective cut --algorithm kway,recursive --balance nodes,edges
    """
    _refuse_combinations(parts, partition, placement, gpus_per_server)
    options = {"method": method, "objective": objective, "algorithm": algorithm, "balance": balance}
    ways = [] if parts is None else _ways(parts, options)
    allowed = _imbalance(imbalance, ways)
    if out is not None and len(ways) > 1:
        raise ScenarioError(f"--out: {out}: {len(ways)} partitions were asked for; allowed: one")
    named = map_path(ids, ids_map, out)
    check_outputs(file, partition, out=out, ids_map=named)
    check_memory(file, max_memory, partition=partition is None)
    with progress() as say:
        say(f"loading {file}")
        loaded = load_graph(file, ids, ends)
        masks = read_nodes(file, loaded.nodes, features=False, labels=False).masks
        cuts = [] if partition is None else [_described(loaded, masks, read_owners(partition, loaded), None)]
        for way in ways:
            say(f"partitioning {loaded.nodes:,} nodes into {plural(way.parts, 'part')} ({way.method})")
            cuts.append(_cut(loaded, masks, way, seed, allowed))
    cuts = [_balanced(loaded, masks, cut, gpus_per_server) for cut in cuts]
    if out is not None:
        write_partition(out, cuts[0].owners)
    write_map(named, loaded)
    _print(loaded, cuts, out, as_json)


def _print(loaded: Graph, cuts: Sequence[_Cut], out: str | None, as_json: bool) -> None:
    of_cuts = [*dict.fromkeys(line for cut in cuts for line in cut.warnings)]
    if as_json:
        own = of_cuts if len(cuts) == 1 else []
        said = {"cleaning": asdict(loaded.cleaning), "warnings": [*graph_warnings(loaded), *own]}
        click.echo(json.dumps(_named(cuts, out) | said, indent=2))
    elif len(cuts) == 1:
        print_columns([*_lines(cuts[0], out), ("cleaning", str(loaded.cleaning))])
    else:
        _print_rows(cuts)
    notes = graph_notes if len(cuts) > 1 and not as_json else graph_warnings
    warn([*notes(loaded), *of_cuts])


def _ways(parts: str, options: Mapping[str, str]) -> list[_Way]:
    """Each way to cut; METIS alone has more options than a method, and bisects by the edges cut alone.

    Raises GraphError or ScenarioError before any work is done.
    """
    counts = [word.strip() for word in parts.split(",")]
    choices = {name: [word.strip() for word in text.split(",")] for name, text in options.items()}
    for word in counts:
        if not (re.fullmatch("[0-9]{1,10}", word) and 0 < int(word) < 2**31):
            raise ScenarioError(f"--parts: {word!r} is not a number of parts; at least 1 is needed")
    for name, known in KNOWN.items():
        for word in choices[name]:
            if word not in known:
                raise GraphError(f"partition {name} {word!r} is unknown: {nearest(word, known)}")
    plain: dict[str, Any] = {name: words[0] for name, words in choices.items() if name != "method"}
    every = [_Way(int(count), *words) for count in counts for words in product(*choices.values())]
    ways = [way if way.method == "metis" else replace(way, **plain) for way in every]
    refused = [way for way in ways if way.method == "metis" and (way.algorithm, way.objective) == (RECURSIVE, "vol")]
    if refused and len(refused) == len(ways):
        raise GraphError(f"partition objective 'vol' is not allowed with {RECURSIVE}; METIS bisects by: cut")
    return list(dict.fromkeys(way for way in ways if way not in refused))


def _imbalance(text: str | None, ways: Sequence[_Way]) -> float | None:
    """Return the allowed imbalance as stored in scenarios. Raises UnitError or ScenarioError with the option's name."""
    if text is None:
        return None
    if all(way.method != "metis" for way in ways):
        raise ScenarioError(f"--imbalance: {text}: only valid with --method metis")
    return IMBALANCE.read(text, "--imbalance")


def _refuse_combinations(parts: str | None, partition: str | None, placement: str, gpus_per_server: int | None) -> None:
    if (parts is None) == (partition is None):
        raise click.UsageError("give either --parts or --partition")
    if (placement == BALANCED) == (gpus_per_server is None):
        raise click.UsageError("--placement balanced and --gpus-per-server need each other")
    if partition is not None:
        _refuse_ways(partition)


def _refuse_ways(partition: str) -> None:
    """Raises ScenarioError for an option of partitioning that is given with an existing partition."""
    context = click.get_current_context()
    for name in (*KNOWN, "imbalance", "seed"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            value = context.params[name]
            raise ScenarioError(f"--{name}: {value} applies to a new partition, not to {partition}")


def _cut(loaded: Graph, masks: _Masks, way: _Way, seed: int, imbalance: float | None) -> _Cut:
    # Processor time, not wall time: METIS has one thread, and other processes must not count.
    begin = os.times()
    more: dict[str, Any] = {"algorithm": way.algorithm, "imbalance": imbalance, "balance": way.balance}
    more["training"] = None if masks is None else masks[0]
    owners = partition_graph(loaded, way.parts, way.method, way.objective, seed, **more)
    end = os.times()
    seconds = max(0.0, (end.user - begin.user) + (end.system - begin.system))
    return _described(loaded, masks, owners, seconds)


def _described(loaded: Graph, masks: _Masks, owners: Partitioning, seconds: float | None) -> _Cut:
    shares = split(loaded, owners)
    return _Cut(owners, partition_facts(shares), seconds, role_spreads(masks, owners), partition_warnings(shares))


def _balanced(loaded: Graph, masks: _Masks, cut: _Cut, per_server: int | None) -> _Cut:
    """The partition numbered for servers of so many GPUs; None: as it is."""
    if per_server is None:
        return cut
    rows = rows_between(split(loaded, cut.owners))
    order = balanced_order(rows, per_server)
    loads = card_loads(rows, np.stack([np.arange(order.size), order]), per_server).max(axis=1)
    placed = _Placed(per_server, *(int(load) for load in loads))
    return replace(_described(loaded, masks, renumbered(cut.owners, order), cut.seconds), placed=placed)


def _named(cuts: Sequence[_Cut], out: str | None) -> dict[str, Any]:
    if len(cuts) == 1:
        return {"schema": "gcnsim.graph-partition/1", **cuts[0].named(), "out": out}
    return {"schema": "gcnsim.graph-partitions/1", "rows": [cut.named() for cut in cuts]}


def _carried(placed: _Placed) -> str:
    servers = f"of servers of {plural(placed.gpus_per_server, 'GPU')}"
    return f"{placed.balanced:,} rows a layer and direction, {placed.numbered:,} before, {servers}"


def _lines(cut: _Cut, out: str | None) -> list[tuple[str, str]]:
    owners, facts = cut.owners, cut.facts
    lines = [
        ("graph", owners.graph_name),
        ("method", "from a file" if owners.method == FROM_FILE else f"{owners.method}, seed {owners.seed}"),
        ("parts", str(facts.parts)),
        ("inner nodes", _spread(facts.inner)),
        *((f"{role} nodes", _spread(spread)) for role, spread in cut.roles.items()),
        ("boundary nodes", _spread(facts.boundary)),
        *(() if cut.placed is None else [("busiest card", _carried(cut.placed))]),
        ("boundary/inner", f"{facts.boundary_per_inner:.2f}"),
        ("balance", f"{facts.balance:.3f} of nodes, {facts.entry_balance:.3f} of entries (largest part over mean)"),
        ("replication", f"{facts.replication:.2f} copies per node"),
        ("edges cut", f"{facts.cut_entries // 2:,}"),
        ("volume", f"{facts.communication_volume:,} rows per layer, all workers"),
        *([] if cut.seconds is None else [("time", f"{cut.seconds:.2f} s of one core")]),
    ]
    return [*lines, ("written", out)] if out is not None else lines


def _print_rows(cuts: Sequence[_Cut]) -> None:
    training = all("training" in cut.roles for cut in cuts)
    headings = ("method", "parts", "inner", "boundary", "ratio", "balance", "of entries")
    more = ("of training",) * training + ("edges cut", "volume", "time")
    rows = [
        (
            cut.owners.method,
            str(cut.facts.parts),
            f"{cut.facts.inner.mean:,.0f}",
            f"{cut.facts.boundary.mean:,.0f}",
            f"{cut.facts.boundary_per_inner:.2f}",
            f"{cut.facts.balance:.3f}",
            f"{cut.facts.entry_balance:.3f}",
            *([f"{cut.roles['training'].most / cut.roles['training'].mean:.3f}"] if training else []),
            f"{cut.facts.cut_entries // 2:,}",
            f"{cut.facts.communication_volume:,}",
            f"{cut.seconds or 0.0:.2f} s",
        )
        for cut in cuts
    ]
    print_table((*headings, *more), rows)


def _spread(spread: Spread) -> str:
    digits = 0 if spread.mean >= _WHOLE_FROM or spread.mean == round(spread.mean) else 1
    return f"{spread.mean:,.{digits}f} per part ({spread.least:,}..{spread.most:,})"
