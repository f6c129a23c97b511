from __future__ import annotations

import signal
from collections.abc import Callable

import numpy as np
import pymetis
import pytest

from gcnsim.core.errors import GraphError
from gcnsim.graph import Graph
from gcnsim.graph.assign import metis_owners, partition_graph
from gcnsim.graph.partition_facts import partition_facts
from gcnsim.graph.parts import split


@pytest.mark.parametrize("parts", [2, 5, 11])
def test_the_objectives_value_is_the_volume_or_the_cut_of_the_split(skewed: Graph, parts: int) -> None:
    for objective in ("vol", "cut"):
        owner, value = metis_owners(skewed, parts, objective, 0)
        chosen = partition_graph(skewed, parts, "metis", objective)
        assert np.array_equal(owner, chosen.owner)
        facts = partition_facts(split(skewed, chosen))
        assert value == (facts.communication_volume if objective == "vol" else facts.cut_entries // 2)


@pytest.mark.parametrize("parts", [4, 6])
def test_volume_sends_less_than_cut_and_both_less_than_random(real_graph: Callable[[str], Graph], parts: int) -> None:
    graph = real_graph("amazon_cs")
    volumes = [
        partition_facts(split(graph, partition_graph(graph, parts, method, objective))).communication_volume
        for method, objective in (("metis", "vol"), ("metis", "cut"), ("random", "vol"))
    ]
    assert volumes[0] < volumes[1] < 0.6 * volumes[2]


def test_no_signal_stays_blocked_after_an_error_of_metis(skewed: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """METIS jumps out of its handler of SIGTERM, which leaves the signal blocked."""

    def failing(*_: object, **__: object) -> tuple[int, list[int]]:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        raise RuntimeError("metis error")

    monkeypatch.setattr(pymetis, "part_graph", failing)
    with pytest.raises(GraphError, match="METIS could not cut the graph into 2 parts"):
        metis_owners(skewed, 2, "vol", 0)
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
