"""Features, labels and masks beside the graph, from any source that holds them."""

from __future__ import annotations

from dataclasses import dataclass

from gcnsim.graph.formats.nodes import MASKS, read_nodes
from gcnsim.ids import AnyArray, BoolArray
from runtime.data.features import InMemory

__all__ = ["MASKS", "NodeData", "read_node_data"]


@dataclass(frozen=True, slots=True)
class NodeData:
    """What a file says about its nodes; None where it says nothing. labels as in `Dataset`; masks: train, val, test;
    notes as in `NodeArrays`."""

    features: InMemory | None = None
    labels: AnyArray | None = None
    masks: tuple[BoolArray, BoolArray, BoolArray] | None = None
    notes: tuple[str, ...] = ()


def read_node_data(path: str, nodes: int, *, features: bool = True, labels: bool = True) -> NodeData:
    """What the source at `path` holds for its graph of `nodes` nodes; arguments and errors as of `read_nodes`."""
    held = read_nodes(path, nodes, features=features, labels=labels)
    return NodeData(None if held.features is None else InMemory(held.features), held.labels, held.masks, held.notes)
