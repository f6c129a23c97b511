"""What is said of a graph, and the memory that reading it takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from gcnsim.core.errors import GraphError
from gcnsim.graph import Graph, build_csr, describe, from_networkx
from gcnsim.graph.describe import Components, components, degree_bins, degree_percentiles, homophily
from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.graph.load import (
    check_memory,
    check_partition_memory,
    memory_of_sizes,
    memory_to_load,
    write_edges,
    write_npz,
)
from tests.gcnsim.graph.formats.layouts.published import write_arrays, write_ogb_arrays, write_ogb_text


@pytest.fixture
def star() -> Graph:
    """Node 0 joined to 1, 2, 3, 4; node 5 alone."""
    return build_csr(np.zeros(4, dtype=np.int64), np.arange(1, 5), 6, "star")


def test_degree_bins_hold_every_node_and_entry() -> None:
    graph = from_networkx(nx.barabasi_albert_graph(500, 3, seed=1))
    found = degree_bins(graph)
    assert (sum(degree_bin.nodes for degree_bin in found), sum(degree_bin.entries for degree_bin in found)) == (
        graph.nodes,
        graph.entries,
    )
    for degree_bin in found:
        inside = (graph.degrees >= degree_bin.least) & (graph.degrees <= degree_bin.most)
        assert degree_bin.nodes == np.count_nonzero(inside)


def test_percentiles_are_numpys(star: Graph) -> None:
    expected = {"p10": 0.5, "p25": 1.0, "p50": 1.0, "p75": 1.0, "p90": 2.5, "p99": 3.85}
    assert degree_percentiles(star) == pytest.approx(expected)


def test_an_isolated_node_is_a_component(star: Graph) -> None:
    assert components(star) == Components(2, 5)


def test_homophily_by_chunks_is_that_of_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = nx.random_partition_graph([60, 40, 20], 0.3, 0.05, seed=2)
    labels = np.repeat([0, 1, 2], [60, 40, 20])
    for node, label in enumerate(labels):
        drawn.nodes[node]["label"] = int(label)
    monkeypatch.setattr(describe, "_CHUNK", 50)
    found = homophily(from_networkx(drawn), labels)
    assert found is not None
    alike = sum(labels[a] == labels[b] for a, b in drawn.edges())
    assert found.edge == pytest.approx(alike / drawn.number_of_edges())
    # With one class a node, adjusted homophily is the modularity-like assortativity coefficient.
    assert found.adjusted == pytest.approx(nx.attribute_assortativity_coefficient(drawn, "label"))


def test_homophily_needs_an_edge_between_known_nodes(star: Graph) -> None:
    assert homophily(star, np.full(6, -1)) is None
    assert homophily(star, np.array([-1, 0, 0, 0, 0, 0])) is None
    one = homophily(star, np.zeros(6, dtype=np.int64))
    assert one is not None
    assert (one.edge, one.adjusted) == (1.0, None)


@pytest.mark.parametrize("writer", [write_ogb_text, write_ogb_arrays, write_arrays])
def test_every_layout_says_what_it_needs(tmp_path: Path, writer: Callable[[Path], Path]) -> None:
    folder = writer(tmp_path / "data")
    structure, whole = memory_to_load(folder), memory_to_load(folder, features=True)
    assert 1e8 < structure < whole
    assert memory_to_load(folder, partition=True) > structure
    check_memory(folder, None)
    check_memory(folder, whole, features=True)
    with pytest.raises(GraphError, match=r"data: loading needs about .*MiB of memory; allowed: 1\.00 MiB$"):
        check_memory(folder, 2**20)


@pytest.mark.parametrize("name", ["g.npz", "g.txt", "g.graph"])
def test_single_files_say_it_too(tmp_path: Path, name: str) -> None:
    graph = build_csr(np.arange(9), np.arange(1, 10), 10, "path", features=4)
    path = tmp_path / name
    if name == "g.npz":
        write_npz(path, graph, {"x": np.ones((10, 1000), np.float32)})
        assert memory_to_load(path, features=True) - memory_to_load(path) >= 2 * 40_000
    elif name == "g.txt":
        write_edges(path, graph)
    else:
        path.write_text("2 1\n2\n1\n")
    assert memory_to_load(path) < 2e8


# getrusage would tell the peak of whoever started this process, if that was larger: a test run is.
LOAD = """
import sys
from gcnsim.graph import load_graph
from gcnsim.graph.describe import components
from gcnsim.graph.load import memory_to_load
said = memory_to_load(sys.argv[1])
components(load_graph(sys.argv[1]))
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(said, int(peak.split()[1]) * 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="needs /proc to tell a process's peak memory")
@pytest.mark.parametrize(("name", "most"), [("g.npz", 2), ("g.txt", 3)])
def test_the_estimate_is_above_the_truth_and_not_far(tmp_path: Path, name: str, most: int) -> None:
    # A line of an edge list may be an edge of two entries; here both directions have a line, so it counts double.
    drawn = np.random.default_rng(0).integers(0, 100_000, (2, 4_000_000))
    graph = build_csr(drawn[0], drawn[1], 100_000, "drawn")
    path = tmp_path / name
    if name == "g.npz":
        write_npz(path, graph)
    else:
        write_edges(path, graph)
    done = subprocess.run([sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=True)
    text, held = (int(word) for word in done.stdout.split())
    assert held < text < most * held


PARTITION = """
import sys
from gcnsim.graph import load_graph
from gcnsim.graph.load import memory_to_load
from gcnsim.graph.describe import partition_facts
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import split
said = memory_to_load(sys.argv[1], partition=True)
graph = load_graph(sys.argv[1])
partition_facts(split(graph, partition_graph(graph, 8)))
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(said, int(peak.split()[1]) * 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="needs /proc to tell a process's peak memory")
def test_the_estimate_of_partitioning_is_above_the_truth(tmp_path: Path) -> None:
    # METIS takes the most for graphs without communities.
    path = tmp_path / "g.npz"
    write_npz(path, block_model(BlockModel(20_000, 800_000, communities=1, degree_spread=2.0), 0))
    done = subprocess.run([sys.executable, "-c", PARTITION, str(path)], capture_output=True, text=True, check=True)
    text, held = (int(word) for word in done.stdout.split())
    assert held < text < 2 * held


def test_published_sizes_are_estimated_above_what_metis_took() -> None:
    assert memory_of_sizes(2_449_029, 123_718_280, partition=True) > 11e9
    with pytest.raises(GraphError, match=r"^products: partitioning needs about .* GiB of memory; allowed: 10\.0 GiB$"):
        check_partition_memory("products", 2_449_029, 123_718_280, 10 * 2**30)
    check_partition_memory("products", 2_449_029, 123_718_280, None)


def test_partitioning_is_judged_by_the_nodes_and_entries_it_is_told() -> None:
    needed = memory_of_sizes(1000, 50_000_000, partition=True)
    assert needed - memory_of_sizes(0, 50_000_000, partition=True) < 1e6, "entries are what takes memory"
    check_partition_memory("many", 1000, 50_000_000, needed)
    with pytest.raises(GraphError, match="many: partitioning needs"):
        check_partition_memory("many", 1000, 50_000_000, needed - 1)
