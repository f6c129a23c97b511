from __future__ import annotations

from pathlib import Path

import numpy as np

from gcnsim.graph import build_csr, graph_notes, graph_warnings, load_graph


def test_few_isolated_nodes_are_no_reason_to_warn() -> None:
    ends = np.arange(95)
    ring = build_csr(ends, (ends + 1) % 95, 100, "ring")
    assert graph_warnings(ring) == ()
    assert graph_warnings(build_csr(ends, (ends + 1) % 95, 101, "ring")) == (
        "ring: 6 of 101 nodes are isolated (no edges)",
    )


def test_a_note_of_one_number_and_of_two_kinds_is_plain_english(tmp_path: Path) -> None:
    path = tmp_path / "gap.txt"
    path.write_text("0 1\n1 3\n")
    assert graph_warnings(load_graph(path)) == (
        "gap: 1 of 4 nodes are isolated (no edges): the ids have gaps, 1 number does not occur; --ids compact leaves "
        "them out",
    )
    path.write_text("user,item,rating\n0,0,5\n1,1,4\n2,0,3\n")
    graph = load_graph(path)
    second = "nodes of the second column are another kind, numbered from 3"
    assert graph_notes(graph) == ("gap: ignored: rating", f"gap: {second}")
    assert str(graph.cleaning) == f"added 3 reverse entries, ignored: rating; {second}"
