"""The systems that published tables name: which method of ours each is, or why it has no prediction yet.

A new system is one line here once its schedule is in `gcnsim.methods`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gcnsim.core.errors import FileError, ScenarioError, nearest
from gcnsim.evidence.published_facts import FactRow
from gcnsim.methods import Method, create_method


@dataclass(frozen=True, slots=True)
class System:
    """One system. method: ours. knobs: by our name, the row's field that sets it. fixed: knobs that no field sets.

    setting: what its setting's name ends in, where it is not that of its paper and dataset. at_random: whether parts
    are alike, as where nodes are dealt in their order and not by METIS. base: ours that ratios compare with.
    """

    method: str
    knobs: tuple[tuple[str, str], ...] = ()
    fixed: tuple[tuple[str, int | float | str | tuple[int, ...]], ...] = ()
    setting: str = ""
    at_random: bool = False
    base: str = "full-graph"


REMEASURED: Final[Mapping[str, System]] = {
    "full-graph": System("full-graph"),
    "pipegcn": System("pipegcn"),
    "bns-gcn": System("bns-gcn", (("rate", "rate"),)),
    "dgl": System("dgl", (("batch", "batch_per_gpu"),), base="dgl"),
    "distdgl": System("distdgl", (("batch", "batch_per_gpu"),), base="dgl"),
    "pagraph": System("pagraph", (("batch", "batch_per_gpu"),), base="dgl"),
}
"""By the names of rows that others measured."""

KEEPS_INPUTS: Final = frozenset({"bns-gcn"})
"""Of these, whose scripts exchange and sum the inputs of the first layer once, before training, whatever the model."""

CAGNET: Final = "cagnet"
"""The name that stands for several methods, by the row's replication."""

WARMED: Final = (("warmup", 50 / 300),)
"""Of SANCUS' 300 epochs on Reddit the first 50 send everything; its times are read as means over all of them."""

SYSTEMS: Final[Mapping[str, System]] = {
    "full_graph": System("full-graph"),
    "gcn": System("full-graph"),
    "pipegcn": System("pipegcn"),
    "pipegcn_g": System("pipegcn-g"),
    "pipegcn_f": System("pipegcn-f"),
    "pipegcn_gf": System("pipegcn-gf"),
    "psc_gcn": System("psc-gcn", (("tau", "tau"), ("epsilon", "epsilon"))),
    "bns_gcn": System("bns-gcn", (("rate", "p"),)),
    "bns_gcn_gat": System("bns-gcn", (("rate", "p"),), setting="-gat"),
    "dropedge": System("bns-gcn", fixed=(("rate", 0.1), ("sample", "edges"))),
    "boundary_edge_sampling": System("bns-gcn", fixed=(("rate", 0.1), ("sample", "boundary-edges"))),
    "roc": System("roc", setting="-full", at_random=True),
    "scs_a1": System("sancus", fixed=(("stale_test", "adaptive"), *WARMED), at_random=True, base="cagnet-1d"),
    "scs_e": System("sancus", fixed=(("stale_test", "fixed"), *WARMED), at_random=True, base="cagnet-1d"),
    "scs_h": System(
        "sancus", fixed=(("stale_test", "gap"), ("threshold", 0.02), *WARMED), at_random=True, base="cagnet-1d"
    ),
}
"""Edge sampling drops as many edges as sampling nodes at p = 0.1 does (BNS-GCN, text beside Table 9).
SANCUS' thresholds are not printed with its table. scs_a1: 1, by its name. Assumed: 1 for scs_e (range 1 to 5), 0.02
for scs_h (range 0.01 to 0.05), whose rows move 0.01 an epoch (range 0.005 to 0.02)."""

UNMODELLED: Final[Mapping[str, str]] = {
    "graphsage": "its batches and fan-outs are not given",
    "graphsaint": "its batches and fan-outs are not given",
    "clustergcn": "its batches and fan-outs are not given",
    "fastgcn": "its batches and fan-outs are not given",
    "vr_gcn": "its batches and fan-outs are not given",
    "random_partition_bns": "no partition at random is shipped",
}

WHOLE_PAPERS: Final[Mapping[str, System]] = {
    "pagraph": System("pagraph", fixed=(("batch", 6000), ("fanout", (2, 2))), base="dgl"),
}
"""Papers whose tables name no method, nor how many GPUs: their settings say."""


def system_of(row: FactRow) -> System | str:
    """The system of a row, or why it is not predicted. Raises FileError for a method that no list above has."""
    if row.paper in WHOLE_PAPERS:
        return WHOLE_PAPERS[row.paper]
    name = str(row.fields.get("method"))
    if name == CAGNET:
        return cagnet_of(row)
    if name in SYSTEMS:
        return SYSTEMS[name]
    if name in UNMODELLED:
        return UNMODELLED[name]
    raise FileError(f"{row.place}: unknown method {name!r}; {nearest(name, [*SYSTEMS, *UNMODELLED, CAGNET])}")


def cagnet_of(row: FactRow) -> System:
    """CAGNET by the replication of a row; on SANCUS' own settings where that paper compares with it."""
    copies = row.fields.get("replication_c", 1)
    own = row.paper == "sancus"
    setting, base = ("", "cagnet-1d") if own else ("-full", "full-graph")
    if copies == 1:
        return System("cagnet-1d", setting=setting, at_random=True, base=base)
    return System("cagnet-1.5d", (("replication", "replication_c"),), setting=setting, at_random=True, base=base)


def method_of(row: FactRow, system: System) -> Method:
    """Our method with its knobs where the row has them. Raises FileError for a knob out of range, or missing."""
    knobs: dict[str, Any] = dict(system.fixed)
    for knob, field in system.knobs:
        value = row.fields.get(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FileError(f"{row.place}: {field} is {value!r}; allowed: a number")
        knobs[knob] = value if knob in ("tau", "replication", "batch") else float(value)
    try:
        return create_method(system.method, **knobs)
    except ScenarioError as error:
        raise FileError(f"{row.place}: {error}") from None
