"""First weights: their ranges, their independence, and files of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray
from runtime.model import Network, initialise, load_weights, save_weights
from runtime.options import Options
from tests.runtime.conftest import MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.jobs import trained

MODELS = ["gcn", "graphsage", "gat"]


def network(features: int = 7, classes: int = 4, seed: int | None = 1, **fields: object) -> Network:
    options = Options(**({"layers": 3, "hidden": 6, "norm": "layer"} | fields))  # type: ignore[arg-type]
    found = Network(options, features, classes)
    if seed is not None:
        initialise(found, seed)
    return found


def arrays(found: Network) -> dict[str, AnyArray]:
    return {name: weight.detach().numpy().copy() for name, weight in found.named_parameters()}


@pytest.mark.parametrize("model", MODELS)
def test_ranges(model: str) -> None:
    found = arrays(network(features=50, classes=30, hidden=80, model=model, heads=2))
    wide = {0: 50, 1: 80, 2: 80}
    for name, weight in found.items():
        layer = int(name.split(".")[1])
        if name.startswith("norms."):
            assert (weight == (1.0 if name.endswith("weight") else 0.0)).all()
            continue
        if model == "gat" and name.endswith(".bias"):
            assert not weight.any()
            continue
        bound = math.sqrt(6.0 / (weight.shape[1] + 1)) if ".attn_" in name else 1.0 / math.sqrt(wide[layer])
        assert np.abs(weight).max() <= bound
        assert np.abs(weight).max() > 0.8 * bound
        # A uniform's deviation is bound / sqrt(3); its mean over n values lies within 5 of its own deviations.
        assert abs(weight.mean()) < 5 * bound / math.sqrt(3 * weight.size)
        assert weight.std() == pytest.approx(bound / math.sqrt(3), rel=3 / math.sqrt(weight.size))


@pytest.mark.parametrize("model", MODELS)
def test_a_seed_gives_the_same_weights_and_another_seed_others(model: str) -> None:
    first, again, other = (arrays(network(model=model, seed=seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    drawn = [name for name, weight in first.items() if np.unique(weight).size > 1]
    assert len(drawn) >= 6
    assert all(not np.array_equal(first[name], other[name]) for name in drawn)


def test_a_weight_does_not_depend_on_the_others() -> None:
    """Other layers, no bias, another norm: what is the same in both has the same numbers."""
    one = arrays(network(model="gcn"))
    two = arrays(network(model="gcn", layers=4, bias=False, norm="none"))
    for name in ("layers.0.linear.weight", "layers.1.linear.weight"):
        assert np.array_equal(one[name], two[name])
    assert not np.array_equal(one["layers.1.linear.weight"], two["layers.2.linear.weight"])


def test_weights_are_the_same_numbers_in_both_precisions() -> None:
    single, double = network(seed=None), network(seed=None).double()
    initialise(single, 5)
    initialise(double, 5)
    for name, weight in arrays(double).items():
        assert np.array_equal(arrays(single)[name], weight.astype(np.float32))


def test_the_ambient_generator_has_no_part_in_it() -> None:
    torch.manual_seed(1)
    one = arrays(network())
    torch.manual_seed(2)
    assert all(np.array_equal(one[name], weight) for name, weight in arrays(network()).items())


def test_every_worker_and_any_number_of_them_begins_alike(crew: Crew, options: MakeOptions) -> None:
    content = [
        rank for workers in (1, 3) for rank in crew.run(workers, trained, options(workers=workers, iterations=1))
    ]
    for rank in content:
        assert all(np.array_equal(rank.weights[0][name], weight) for name, weight in content[0].weights[0].items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("model", MODELS)
def test_round_trip(tmp_path: Path, model: str, dtype: torch.dtype) -> None:
    path = tmp_path / "weights.npz"
    first = network(model=model, seed=3).to(dtype)
    save_weights(path, first)
    with np.load(path, allow_pickle=False) as archive:
        assert sorted(archive.files) == sorted(arrays(first))
    second = network(model=model, seed=4).to(dtype)
    pointers = [weight.data_ptr() for weight in second.parameters()]
    load_weights(path, second)
    for name, weight in arrays(first).items():
        found = arrays(second)[name]
        assert found.dtype == weight.dtype
        assert np.array_equal(found, weight)
    assert [weight.data_ptr() for weight in second.parameters()] == pointers, "set in place"
    assert [path.name for path in tmp_path.iterdir()] == ["weights.npz"]


def test_integers_and_other_precisions_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    found = arrays(network(layers=1))
    np.savez(path, **{name: np.ones(weight.shape, np.int8) for name, weight in found.items()})  # type: ignore[arg-type]
    target = network(layers=1)
    load_weights(path, target)
    assert all((weight == 1.0).all() and weight.dtype == np.float32 for weight in arrays(target).values())


@pytest.mark.parametrize("kind", [">f4", ">f8", ">i2"])
def test_weights_of_the_other_byte_order_are_the_same_numbers(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "weights.npz"
    held = {name: np.arange(weight.size).reshape(weight.shape) for name, weight in arrays(network(layers=1)).items()}
    np.savez(path, **{name: weight.astype(kind) for name, weight in held.items()})  # type: ignore[arg-type]
    target = network(layers=1)
    load_weights(path, target)
    assert all(np.array_equal(weight, held[name]) for name, weight in arrays(target).items())


def refused(path: Path, target: Network) -> str:
    before = arrays(target)
    with pytest.raises(FileError) as caught:
        load_weights(path, target)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    if ".linear.weight is" not in text:
        assert all(np.array_equal(before[name], weight) for name, weight in arrays(target).items())
    return text.removeprefix(f"{path}: ")


def test_a_file_that_is_not_there_or_no_archive(tmp_path: Path) -> None:
    target = network(layers=1)
    assert refused(tmp_path / "none.npz", target) == "cannot be read: No such file or directory"
    assert refused(tmp_path, target) == "cannot be read: Is a directory"
    path = tmp_path / "text.npz"
    for raw in (b"not an archive", b"", b"PK\x03\x04" + b"\x00" * 60):
        path.write_bytes(raw)
        assert refused(path, target).startswith("truncated or altered: ")
    np.save(tmp_path / "one.npy", np.zeros(3))
    assert refused(tmp_path / "one.npy", target) == "truncated or altered: File is not a zip file"


def test_an_archive_of_objects_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    np.savez(path, **{"layers.0.linear.weight": np.array([object()])})  # type: ignore[arg-type]
    assert "a pickle" in refused(path, network(layers=1))


def test_a_damaged_archive(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    save_weights(path, network(layers=1))
    raw = path.read_bytes()
    for cut in (10, len(raw) // 2, len(raw) - 5):
        path.write_bytes(raw[:cut])
        refused(path, network(layers=1))
    flipped = bytearray(raw)
    flipped[150] ^= 0xFF
    path.write_bytes(bytes(flipped))
    refused(path, network(layers=1))


def test_missing_and_unknown_names(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    held = arrays(network(layers=1))
    names = "layers.0.linear.weight, layers.0.linear.bias"
    np.savez(path, **{"layers.0.linear.bias": held["layers.0.linear.bias"]})  # type: ignore[arg-type]
    assert refused(path, network(layers=1)) == f"lacks layers.0.linear.weight; this model has {names}"
    np.savez(path, **held, extra=np.zeros(1), another=np.zeros(1))  # type: ignore[arg-type]
    assert refused(path, network(layers=1)) == f"has unknown another, extra; this model has {names}"
    np.savez(path, other=np.zeros(1))
    text = refused(path, network(layers=1))
    assert text == ("lacks layers.0.linear.bias, layers.0.linear.weight; has unknown other; this model has " + names)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((4, 8)), "float64[4, 8]"),
        (np.zeros((7, 4)), "float64[7, 4]"),
        (np.zeros(28), "float64[28]"),
        (np.zeros((4, 7), np.complex128), "complex128[4, 7]"),
        (np.zeros((4, 7), np.bool_), "bool[4, 7]"),
        (np.full((4, 7), "x"), "<U1[4, 7]"),
    ],
    ids=str,
)
def test_another_shape_or_type(tmp_path: Path, array: AnyArray, message: str) -> None:
    path = tmp_path / "weights.npz"
    np.savez(path, **(arrays(network(layers=1)) | {"layers.0.linear.weight": array}))  # type: ignore[arg-type]
    text = refused(path, network(layers=1))
    assert text == f"layers.0.linear.weight is {message}; [4, 7] is needed"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="none"):
        save_weights(tmp_path / "none" / "weights.npz", network(layers=1))
