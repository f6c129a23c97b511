"""What each model learns, by name and shape; its norms of rows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from runtime.model import Network, initialise
from runtime.options import Options

FEATURES, CLASSES = 7, 4


def network(**fields: object) -> Network:
    options = Options(**({"layers": 3, "hidden": 6} | fields))  # type: ignore[arg-type]
    found = Network(options, FEATURES, CLASSES).double()
    initialise(found, 1)
    return found


def shapes(found: Network) -> dict[str, tuple[int, ...]]:
    return {name: tuple(weight.shape) for name, weight in found.named_parameters()}


def test_gcn() -> None:
    assert shapes(network(model="gcn")) == {
        "layers.0.linear.weight": (6, 7),
        "layers.0.linear.bias": (6,),
        "layers.1.linear.weight": (6, 6),
        "layers.1.linear.bias": (6,),
        "layers.2.linear.weight": (4, 6),
        "layers.2.linear.bias": (4,),
    }


def test_graphsage() -> None:
    assert shapes(network(model="graphsage", layers=2)) == {
        "layers.0.linear_self.weight": (6, 7),
        "layers.0.linear_self.bias": (6,),
        "layers.0.linear_neigh.weight": (6, 7),
        "layers.0.linear_neigh.bias": (6,),
        "layers.1.linear_self.weight": (4, 6),
        "layers.1.linear_self.bias": (4,),
        "layers.1.linear_neigh.weight": (4, 6),
        "layers.1.linear_neigh.bias": (4,),
    }


def test_graphsage_has_one_bias_where_the_input_is_summed_once() -> None:
    """One map of a row beside its mean has one; two biases of it would learn at twice the rate."""
    two, one = (shapes(network(model="graphsage", layers=2, preaggregate=once)) for once in (False, True))
    assert two.keys() - one.keys() == {"layers.0.linear_neigh.bias"}
    assert {name: two[name] for name in one} == one
    none = shapes(network(model="graphsage", layers=2, preaggregate=True, bias=False))
    assert not any(name.endswith(".bias") for name in none)


def test_gat_concatenates_heads_and_averages_the_last_layer_s() -> None:
    assert shapes(network(model="gat", layers=2, heads=3)) == {
        "layers.0.linear.weight": (6, 7),
        "layers.0.attn_target": (3, 2),
        "layers.0.attn_source": (3, 2),
        "layers.0.bias": (6,),
        "layers.1.linear.weight": (12, 6),
        "layers.1.attn_target": (3, 4),
        "layers.1.attn_source": (3, 4),
        "layers.1.bias": (4,),
    }


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gat"])
def test_without_bias_and_with_norms(model: str) -> None:
    plain, bare = shapes(network(model=model)), shapes(network(model=model, bias=False))
    assert bare == {name: shape for name, shape in plain.items() if not name.endswith("bias")}
    normed = shapes(network(model=model, norm="layer"))
    norms = {f"norms.{layer}.{word}": (6,) for layer in (0, 1) for word in ("weight", "bias")}
    assert normed == plain | norms


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gat"])
def test_parameters_of_layers_are_all_and_none_twice(model: str) -> None:
    found = network(model=model, norm="layer")
    names = {id(weight): name for name, weight in found.named_parameters()}
    by_layer = [[names[id(weight)] for weight in found.parameters_of(layer)] for layer in range(3)]
    assert sorted(name for layer in by_layer for name in layer) == sorted(names.values())
    assert all(name.split(".")[1] == str(layer) for layer, group in enumerate(by_layer) for name in group)


def test_one_layer_is_the_map_to_the_classes_alone() -> None:
    found = network(layers=1, norm="layer")
    assert found.widths == (7, 4)
    assert shapes(found) == {"layers.0.linear.weight": (4, 7), "layers.0.linear.bias": (4,)}


@pytest.mark.parametrize("model", ["gcn", "graphsage"])
def test_row_norms_are_those_of_the_formula(model: str) -> None:
    found = network(model=model)
    draw = torch.Generator().manual_seed(0)
    inputs = [torch.randn(11, width, dtype=torch.float64, generator=draw) for width in found.widths[:-1]]
    weights = dict(found.named_parameters())
    word = "linear" if model == "gcn" else "linear_neigh"
    squares = sum(((h @ weights[f"layers.{layer}.{word}.weight"].T) ** 2).sum(1) for layer, h in enumerate(inputs))
    norms = found.row_norms(inputs)
    assert norms.dtype == torch.float32
    assert not norms.requires_grad
    assert isinstance(squares, Tensor)
    assert torch.equal(norms, squares.sqrt().detach().float())
