"""A graph whose nodes have features, labels and a place in the training, validation or test set."""

from __future__ import annotations

from dataclasses import dataclass

from gcnsim.graph import Graph
from gcnsim.ids import AnyArray, BoolArray
from runtime.data.features import Features


@dataclass(frozen=True, slots=True)
class Dataset:
    """The whole graph's data, in node order.

    labels: int64[N], -1 unknown; or, with `multilabel`, float32[N, classes] in 0..1. train, val, test: bool[N],
    disjoint, every node in them labelled, at least one in train. Arrays are read-only. notes: what a user must know of
    how features, labels and split were read, a line each: the first of several splits, one drawn at random.
    """

    name: str
    graph: Graph
    features: Features
    labels: AnyArray
    train: BoolArray
    val: BoolArray
    test: BoolArray
    classes: int
    multilabel: bool
    notes: tuple[str, ...] = ()
