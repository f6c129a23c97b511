from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.errors import ScenarioError
from gcnsim.workload import LayerShape, layer_shapes


def test_gcn_of_reddit() -> None:
    shapes = layer_shapes("gcn", 602, 256, 4, 41)
    assert [(shape.d_in, shape.d_out) for shape in shapes] == [(602, 256), (256, 256), (256, 256), (256, 41)]
    assert shapes[0].weights == 602 * 256 + 256


def test_graphsage_multiplies_the_row_and_its_mean() -> None:
    assert layer_shapes("graphsage", 10, 4, 1, 3) == (LayerShape(10, 3, 2 * 10 * 3 + 3),)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 9), st.integers(1, 99), st.integers(1, 99), st.integers(1, 99))
def test_layers_chain(layers: int, features: int, hidden: int, classes: int) -> None:
    shapes = layer_shapes("gcn", features, hidden, layers, classes)
    assert len(shapes) == layers
    assert (shapes[0].d_in, shapes[-1].d_out) == (features, classes)
    assert all(a.d_out == b.d_in for a, b in itertools.pairwise(shapes))


def test_bad_models_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"workload.model: unknown model 'gnc'; did you mean 'gcn'"):
        layer_shapes("gnc", 1, 1, 1, 1)
    with pytest.raises(ScenarioError, match=r"workload.layers: 0 is not allowed"):
        layer_shapes("gcn", 1, 1, 0, 1)
    with pytest.raises(ScenarioError, match=r"workload.classes: 0 is not allowed"):
        layer_shapes("gcn", 1, 1, 1, 0)
