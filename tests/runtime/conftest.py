"""Ranks, small graphs with features and labels, and the options of small runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gcnsim.core.streams import stream
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import Part, Partitioning, split
from runtime.methods import method_of, method_type
from runtime.options import Options
from tests.runtime.crew import Crew
from tests.runtime.reference.model import Model, Params
from tests.runtime.reference.training import Problem


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Products of tests are so small that two threads would mostly wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def crew() -> Iterator[Crew]:
    """Four ranks for all tests of a session."""
    ranks = Crew(4)
    yield ranks
    ranks.close()


@dataclass(frozen=True)
class Case:
    """A graph on disk with its data, and the same as the references take it."""

    path: Path
    graph: Graph
    problem: Problem

    def parts(self, count: int, method: str = "random", seed: int = 0) -> tuple[Part, ...]:
        """Its parts, as the runtime makes them."""
        return split(self.graph, self.owners(count, method, seed))

    def owners(self, count: int, method: str = "random", seed: int = 0) -> Partitioning:
        """Who owns each node."""
        return partition_graph(self.graph, count, method, "vol", seed)


def small_graph(nodes: int, edges: int, seed: int) -> Graph:
    """A graph of two hubs, a few isolated nodes and random edges."""
    generator = stream(seed, "test graph")
    ends = generator.integers(3, nodes, size=(edges, 2))
    hubs = np.stack([np.repeat([3, 4], nodes // 3), generator.integers(3, nodes, 2 * (nodes // 3))], axis=1)
    every = np.concatenate([ends, hubs])
    return build_csr(every[:, 0], every[:, 1], nodes, "small")


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """120 nodes, 7 features, 4 classes."""
    graph = small_graph(120, 360, 5)
    generator = stream(5, "test data")
    features = generator.standard_normal((graph.nodes, 7)).astype(np.float32)
    labels = generator.integers(0, 4, graph.nodes)
    place = generator.permutation(graph.nodes)
    masks = {
        name: np.isin(np.arange(graph.nodes), chosen).astype(np.uint8)
        for name, chosen in zip(("train_mask", "val_mask", "test_mask"), np.split(place, [70, 95]), strict=True)
    }
    path = tmp_path_factory.mktemp("case") / "small.npz"
    np.savez(
        path,
        allow_pickle=False,
        indptr=graph.indptr,
        indices=graph.indices,
        x=features,
        labels=labels.astype(np.int16),
        **masks,
    )
    problem = Problem(
        torch.from_numpy(features.astype(np.float64)),
        torch.from_numpy(labels),
        torch.from_numpy(masks["train_mask"] > 0),
    )
    return Case(path, graph, problem)


MakeOptions = Callable[..., Options]


@pytest.fixture(scope="session")
def options(case: Case) -> MakeOptions:
    """Options of a short float64 run on the small graph: `options("psc-gcn", tau=2, workers=3, model="gcn")`."""

    def make(method: str = "full-graph", knobs: dict[str, Any] | None = None, **fields: Any) -> Options:
        small: dict[str, Any] = {
            "graph": str(case.path),
            "iterations": 10,
            "dtype": "float64",
            "partition_method": "random",
            "layers": 3,
            "hidden": 6,
            "lr": 0.02,
            "record": False,
        }
        made = Options(method=method, knobs=method_type(method).settled(knobs or {}), **(small | fields))
        method_of(method, made.knobs).refuse(made)
        return made

    return make


def mostly(often: Iterable[tuple[Any, ...]], *values: Iterable[Any]) -> list[Any]:
    """All combinations of `values` as parameters, those in `often` in every run, the others in the slow one."""
    kept = list(often)
    every = list(product(*values))
    assert all(item in every for item in kept)
    return [item if item in kept else pytest.param(*item, marks=pytest.mark.slow) for item in every]


def model_of(options: Options, case: Case) -> Model:
    """The reference's model of `options`."""
    classes = 4
    widths = (case.problem.features.shape[1], *[options.hidden] * (options.layers - 1), classes)
    with_self = options.sage_mean == "with-self"
    joined = options.sums_input and options.model == "graphsage"
    mean = options.model == "gcn" and options.knobs.get("estimator") == "mean"
    norm = options.norm == "layer"
    return Model(options.model, widths, options.heads, norm, with_self, joined, mean)


def params_of(told_weights: dict[str, Any]) -> Params:
    """The reference's parameters from a run's first weights."""
    return {name: torch.from_numpy(array.copy()) for name, array in told_weights.items()}
