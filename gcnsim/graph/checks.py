"""What about a graph may mislead whoever reads an answer that rests on it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from gcnsim.errors import plural
from gcnsim.graph.csr import Cleaning, Graph

MANY_ISOLATED = 0.05
"""Share of nodes without an edge above which something is probably wrong with the file."""

_WORD = re.compile(r"[^\W\d]+")


def graph_warnings(graph: Graph) -> tuple[str, ...]:
    """A line for each thing that is probably not as the graph's owner means it.

    Many nodes without edges: ids with gaps are the usual reason, since every number below the largest id is a node. A
    first line of names that no other line has: it may be a header.
    """
    return tuple(line for line in (_isolated(graph), _first_line(graph)) if line)


def graph_notes(graph: Graph) -> tuple[str, ...]:
    """The warnings, and before them a line on what loading left out: loops, duplicates, columns and arrays."""
    left_out = replace(graph.cleaning, reverse_entries_added=0, second_kind_from=0)
    kinds = replace(Cleaning(), second_kind_from=graph.cleaning.second_kind_from)
    said = [f"{graph.name}: {each}" for each in (left_out, kinds) if each != Cleaning()]
    return (*said, *graph_warnings(graph))


def _isolated(graph: Graph) -> str | None:
    isolated = int(np.count_nonzero(graph.degrees == 0))
    if isolated <= MANY_ISOLATED * graph.nodes:
        return None
    said = f"{graph.name}: {isolated:,} of {graph.nodes:,} nodes are isolated (no edges)"
    if not graph.unused_ids:
        return said
    do = "does" if graph.unused_ids == 1 else "do"
    return (
        f"{said}: the ids have gaps, {plural(graph.unused_ids, 'number')} {do} not occur; --ids compact leaves them out"
    )


def _first_line(graph: Graph) -> str | None:
    names, other = graph.original_ids, graph.cleaning.second_kind_from or 1
    if not isinstance(names, tuple) or graph.nodes < 4 or list(graph.indices[: graph.indptr[1]]) != [other]:
        return None
    first, second = names[0], names[other]
    if graph.degrees[other] != 1 or not all(_WORD.fullmatch(name) for name in (first, second)):
        return None
    return (
        f"{graph.name}: the first line ({first}, {second}) may be a header, no other line has its names; "
        f"--ends {first},{second} (workload.ends) takes it for one"
    )
