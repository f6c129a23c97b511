"""The longer of the host's calls and the GPU's kernels, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim import simulate
from gcnsim.cost import STEP_CALLS, LayerCost, host_bound, with_host_calls
from gcnsim.cost.host_calls import LAYER_CALLS, LOSS_CALLS, layer_calls
from gcnsim.scenario import SCHEMA
from gcnsim.workload import layer_shapes

CALL = 1e-4
GCN = layer_shapes("gcn", 32, 16, 2, 8)
SAGE = layer_shapes("graphsage", 32, 16, 2, 8)


def cost(forward: float, backward: float) -> LayerCost:
    """A layer whose time is in its update, float64[1] each."""
    nothing = np.zeros(1)
    return LayerCost(nothing, np.array([forward]), np.array([backward]), nothing)


def test_a_pass_takes_at_least_its_calls() -> None:
    bound = host_bound(cost(0.5 * CALL, 50 * CALL), CALL)
    assert bound.update == pytest.approx([LAYER_CALLS * CALL])
    assert bound.update_backward == pytest.approx([50 * CALL])


def test_graphsage_and_norms_need_more_calls() -> None:
    assert layer_calls(GCN[0], norm=False) == LAYER_CALLS
    assert layer_calls(GCN[0], norm=True) == LAYER_CALLS + 1
    assert layer_calls(SAGE[0], norm=False) == LAYER_CALLS + 2


def test_who_waits_in_no_layer_pays_once_for_what_the_host_takes_longer() -> None:
    layers, loss = [cost(1e-3, 0.0), cost(0.0, 0.0)], np.array([2e-4])
    found, late = with_host_calls(layers, loss, CALL, GCN, norm=False, waits_in_layers=False)
    assert found == layers
    assert late == pytest.approx([(4 * LAYER_CALLS + LOSS_CALLS) * CALL - 1e-3])
    busy = [cost(1.0, 1.0), cost(1.0, 1.0)]
    _, hidden = with_host_calls(busy, loss, CALL, GCN, norm=False, waits_in_layers=False)
    assert hidden == pytest.approx(loss)


def test_who_waits_for_rows_pays_in_every_layer() -> None:
    layers, loss = [cost(1.0, 0.0), cost(0.0, 0.0)], np.array([2e-4])
    found, late = with_host_calls(layers, loss, CALL, SAGE, norm=True, waits_in_layers=True)
    calls = [LAYER_CALLS + 3, LAYER_CALLS + 2]
    assert [float(layer.update[0]) for layer in found] == pytest.approx([1.0, calls[1] * CALL])
    assert [float(layer.update_backward[0]) for layer in found] == pytest.approx([count * CALL for count in calls])
    assert late == pytest.approx([LOSS_CALLS * CALL])


@pytest.mark.parametrize("name", ["full-graph", "pipegcn", "psc-gcn", "bns-gcn", "cagnet-1d", "sancus", "roc"])
def test_every_method_waits_for_the_calls_of_loss_and_step(name: str) -> None:
    def iteration_s(call_s: str) -> float:
        return simulate(
            {
                "schema": SCHEMA,
                "workload": {"nodes": 2000, "edges": 20000, "features": 16, "hidden": 16, "classes": 4, "layers": 2},
                "cluster": {"gpus": 2, "bandwidth": "10Gbps", "figures": {"generic-16.call_s": call_s}},
                "method": {"name": name},
                "run": {"iterations": 4},
            }
        ).result.metrics.iteration_s

    assert iteration_s("1ms") - iteration_s("0s") > 0.9e-3 * (LOSS_CALLS + STEP_CALLS)
