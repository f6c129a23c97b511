"""The systems that published tables name: which method of ours each is, or why it has no prediction yet.

A new system is one line here once its schedule is in `gcnsim.methods`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gcnsim.errors import FileError, ScenarioError, nearest
from gcnsim.reproduction.facts import Row
from gcnsim.scenario import MethodSpec


@dataclass(frozen=True, slots=True)
class System:
    """One system. method: ours. knobs: by our name, the row's field that sets it. smooths: directions in which
    received rows enter a moving average."""

    method: str
    knobs: tuple[tuple[str, str], ...] = ()
    smooths: tuple[str, ...] = ()


SYSTEMS: Final[Mapping[str, System]] = {
    "full_graph": System("full-graph"),
    "gcn": System("full-graph"),
    "pipegcn": System("pipegcn"),
    "pipegcn_g": System("pipegcn", smooths=("backward",)),
    "pipegcn_f": System("pipegcn", smooths=("forward",)),
    "pipegcn_gf": System("pipegcn", smooths=("forward", "backward")),
    "psc_gcn": System("psc-gcn", (("tau", "tau"), ("epsilon", "epsilon"))),
    "bns_gcn": System("bns-gcn", (("rate", "p"),)),
}

UNMODELLED: Final[Mapping[str, str]] = {
    "cagnet": "no schedule of CAGNET yet",
    "roc": "no schedule of ROC yet",
    "scs_a1": "no schedule of SANCUS yet",
    "scs_e": "no schedule of SANCUS yet",
    "scs_h": "no schedule of SANCUS yet",
    "bns_gcn_gat": "no model with attention yet",
    "dropedge": "no schedule of edge sampling yet",
    "boundary_edge_sampling": "no schedule of edge sampling yet",
    "graphsage": "no schedule of mini-batch sampling yet",
    "graphsaint": "no schedule of mini-batch sampling yet",
    "clustergcn": "no schedule of mini-batch sampling yet",
    "fastgcn": "no schedule of mini-batch sampling yet",
    "vr_gcn": "no schedule of mini-batch sampling yet",
    "random_partition_bns": "no partition at random is shipped",
}

WHOLE_PAPERS: Final[Mapping[str, str]] = {"pagraph": "no schedule of PaGraph and DGL's loader yet"}
"""Papers whose tables name no method."""


def system_of(row: Row) -> System | str:
    """The system of a row, or why it is not predicted. Raises FileError for a method that no list above has."""
    if row.paper in WHOLE_PAPERS:
        return WHOLE_PAPERS[row.paper]
    name = str(row.fields.get("method"))
    if name in SYSTEMS:
        return SYSTEMS[name]
    if name in UNMODELLED:
        return UNMODELLED[name]
    raise FileError(f"{row.place}: unknown method {name!r}; {nearest(name, [*SYSTEMS, *UNMODELLED])}")


def method_of(row: Row, system: System) -> MethodSpec:
    """Our method with its knobs where the row has them. Raises FileError for a knob out of range, or missing."""
    given: dict[str, Any] = {}
    for knob, field in system.knobs:
        value = row.fields.get(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FileError(f"{row.place}: {field} is {value!r}; allowed: a number")
        given[knob] = value if knob == "tau" else float(value)
    try:
        return MethodSpec.of(system.method, **given)
    except ScenarioError as error:
        raise FileError(f"{row.place}: {error}") from None
