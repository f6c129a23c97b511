from __future__ import annotations

from gcnsim.workload.knobs import usual_fanout


def test_the_usual_fan_out_is_that_of_public_examples() -> None:
    """GraphSAGE: S1 = 25 around the batch, S2 = 10; DGL's NeighborSampler([5, 10, 15])."""
    assert [usual_fanout(layers) for layers in (1, 2, 3, 4)] == [(10,), (10, 25), (5, 10, 15), (10, 10, 10, 10)]
