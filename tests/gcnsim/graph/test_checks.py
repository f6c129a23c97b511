from __future__ import annotations

import numpy as np

from gcnsim.graph import build_csr, graph_warnings


def test_few_isolated_nodes_are_no_reason_to_warn() -> None:
    ends = np.arange(95)
    ring = build_csr(ends, (ends + 1) % 95, 100, "ring")
    assert graph_warnings(ring) == ()
    assert graph_warnings(build_csr(ends, (ends + 1) % 95, 101, "ring")) == (
        "ring: 6 of 101 nodes are isolated (no edges)",
    )
