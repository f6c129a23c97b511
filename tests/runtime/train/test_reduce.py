"""Gradients summed during the backward pass, and evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

from gcnsim.core.ids import AnyArray, BoolArray, FloatArray
from gcnsim.core.streams import stream
from runtime.exchange import Channel
from runtime.model import Network, initialise
from runtime.options import Options
from runtime.record import Recorder
from runtime.train.evaluate import Scores
from runtime.train.reduce import EXTRAS, FlatGradients, GlobalSums, LocalSums
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.jobs import trained
from tests.runtime.reduce_jobs import scored, summed
from tests.runtime.train.test_equality import close, same_run, whole


@dataclass
class Alone:
    """A channel of one rank that notes what is reduced and settled, in order."""

    started: list[Tensor] = field(default_factory=list)
    settled: int = 0

    def all_reduce(self, tensor: Tensor) -> Any:
        self.started.append(tensor)
        return tensor

    def wait(self, work: Any) -> None:
        assert any(work is tensor for tensor in self.started)
        self.settled += 1


def network(**fields: Any) -> Network:
    small: dict[str, Any] = {"layers": 3, "hidden": 6, "norm": "layer"}
    found = Network(Options(**(small | fields)), 5, 3)
    initialise(found, 0)
    return found


def flat(found: Network, channel: Alone | None = None) -> FlatGradients:
    return FlatGradients(found, cast("Channel | None", channel), Recorder(0, enabled=False))


def loss_of(found: Network, without: str = "nothing") -> Tensor:
    """A loss whose gradient is 2 w, of all weights but those whose name holds `without`."""
    return torch.stack([w.square().sum() for name, w in found.named_parameters() if without not in name]).sum()


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gat"])
def test_gradients_are_views_of_the_buffer_before_and_after_a_backward_pass(model: str) -> None:
    found = network(model=model)
    buffer = flat(found)
    place, size = buffer.flat.data_ptr(), buffer.flat.element_size()
    covered: list[int] = []
    for turn in range(3):
        loss = loss_of(found)
        buffer.begin(turn, loss, torch.tensor(0), LocalSums())
        loss.backward()  # type: ignore[no-untyped-call]
        buffer.finish()
        covered = []
        for weight in found.parameters():
            assert weight.grad is not None
            first = (weight.grad.data_ptr() - place) // size
            covered += range(first, first + weight.numel())
            assert torch.equal(weight.grad, 2 * weight.detach()), "zeroed in every iteration"
    assert sorted(covered) == list(range(buffer.flat.numel() - len(EXTRAS)))


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gat"])
def test_pieces_are_layers_and_start_in_backward_order(model: str) -> None:
    found, channel = network(model=model), Alone()
    buffer = flat(found, channel)
    x = torch.ones(4, 5, requires_grad=True)
    h = x
    seen: list[int] = []
    for layer in range(3):
        # A pass through all weights of a layer, so that the gradients of layer 2 are there before those of layer 1.
        h = h.sum() * torch.stack([weight.sum() for weight in found.parameters_of(layer)]).sum() + torch.ones(4, 5)
        h.register_hook(lambda _: seen.append(len(channel.started)))  # type: ignore[no-untyped-call]
    loss = h.sum()
    buffer.begin(0, loss, torch.tensor(0), LocalSums())
    loss.backward()  # type: ignore[no-untyped-call]
    assert seen == [0, 1, 2], "a layer's sum starts while those below it are still undone"
    assert len(channel.started) == 3
    for piece, layer in zip(channel.started, (2, 1, 0), strict=True):
        numbers = sum(weight.numel() for weight in found.parameters_of(layer))
        assert piece.numel() == numbers + (len(EXTRAS) if layer == 0 else 0)
        inside = range(piece.data_ptr(), piece.data_ptr() + piece.numel() * piece.element_size())
        grads = [weight.grad for weight in found.parameters_of(layer)]
        assert all(grad is not None and grad.data_ptr() in inside for grad in grads)
    assert channel.settled == 0
    buffer.finish()
    assert channel.settled == 3


@pytest.mark.parametrize("without", ["layers.2", "layers.1.linear.bias", "layers.0", "norms"])
def test_a_weight_without_a_gradient_is_reduced_as_zeros(without: str) -> None:
    found, channel = network(), Alone()
    buffer = flat(found, channel)
    full = loss_of(found)
    buffer.begin(0, full, torch.tensor(0), LocalSums())
    full.backward()  # type: ignore[no-untyped-call]
    buffer.finish()
    channel.started.clear()
    channel.settled = 0
    loss = loss_of(found, without)
    buffer.begin(1, loss, torch.tensor(0), LocalSums())
    loss.backward()  # type: ignore[no-untyped-call]
    buffer.finish()
    assert len({piece.data_ptr() for piece in channel.started}) == len(channel.started) == channel.settled == 3
    for name, weight in found.named_parameters():
        assert weight.grad is not None
        wanted = torch.zeros_like(weight) if without in name else 2 * weight.detach()
        assert torch.equal(weight.grad, wanted)


EXACT = [0, 1, 65_535, 65_536, 65_537, 2**24 + 1, 2**32 - 1, 2**40 - 1, 2**40]


@pytest.mark.parametrize("nbytes", EXACT)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extras_of_one_worker_are_exact(nbytes: int, dtype: torch.dtype) -> None:
    found = network(layers=1).to(dtype)
    buffer = flat(found)
    loss = loss_of(found)
    buffer.begin(0, loss, torch.tensor(123_457), LocalSums(True, nbytes, 2**24 - 1, 2**24))
    loss.backward()  # type: ignore[no-untyped-call]
    assert buffer.finish() == GlobalSums(loss.item(), 123_457, True, nbytes, 2**24 - 1, 2**24)
    buffer.begin(1, loss, torch.tensor(0), LocalSums())
    assert buffer.finish() == GlobalSums(loss.item(), 0, False, 0, 0, 0)


def test_sums_over_ranks_are_exact_and_a_missing_gradient_hangs_nobody(crew: Crew) -> None:
    options = Options(layers=3, hidden=6, norm="layer")
    own = [
        LocalSums(False, 2**38 + 12_345_677, 3, 5),
        LocalSums(True, 2**39 - 1, 0, 7),
        LocalSums(False, 65_535, 2**20, 2**21),
    ]
    content = crew.run(3, summed, options, own)
    total = GlobalSums(6.0, 33, True, sum(local_sums.nbytes for local_sums in own), 3 + 2**20, 12 + 2**21)
    for sums, gradients, views in content:
        assert sums == total
        assert views == list(gradients)
        for name, gradient in gradients.items():
            assert (gradient == (4.0 if "layers.1" in name else 6.0)).all()


CLASSES = 5


def masks_of(nodes: int, *, without: str = "") -> dict[str, BoolArray]:
    place = stream(8, "masks").permutation(nodes)
    parts = dict(zip(("train", "val", "test"), np.split(place, [60, 85]), strict=True))
    return {name: np.isin(np.arange(nodes), ids) & (name != without) for name, ids in parts.items()}


def written(case: Case, path: Path, labels: AnyArray, masks: dict[str, BoolArray]) -> str:
    """The small graph with other labels and masks, as a file."""
    arrays: dict[str, Any] = {
        "indptr": case.graph.indptr,
        "indices": case.graph.indices,
        "x": case.problem.features.numpy().astype(np.float32),
        "labels": labels,
        **{f"{name}_mask": mask.astype(np.uint8) for name, mask in masks.items()},
    }
    np.savez(path, **arrays)
    return str(path)


@pytest.fixture(scope="module")
def several(case: Case) -> AnyArray:
    """Labels of which each class holds for a third of the nodes; some nodes have none."""
    return (stream(8, "several").random((case.graph.nodes, CLASSES)) < 0.33).astype(np.int8)


def gathered(content: list[tuple[Scores, AnyArray, AnyArray]], nodes: int) -> AnyArray:
    logits = np.full((nodes, content[0][2].shape[1]), np.nan)
    for _, inner, rows in content:
        logits[inner] = rows
    return logits


@pytest.mark.parametrize("workers", [1, 3])
def test_accuracy(crew: Crew, case: Case, options: MakeOptions, tmp_path: Path, workers: int) -> None:
    from sklearn.metrics import accuracy_score

    labels = case.problem.labels.numpy()
    masks = masks_of(case.graph.nodes)
    path = written(case, tmp_path / "one.npz", labels.astype(np.int16), masks)
    content = crew.run(workers, scored, options(graph=path, workers=workers))
    text = gathered(content, case.graph.nodes).argmax(1)
    assert np.unique(text).size > 1
    for scores, _, _ in content:
        for name, mask in masks.items():
            assert getattr(scores, name) == pytest.approx(accuracy_score(labels[mask], text[mask]), abs=1e-12)


@pytest.mark.parametrize("workers", [1, 4])
def test_micro_f1_where_nodes_may_have_several_labels(
    crew: Crew, case: Case, options: MakeOptions, several: AnyArray, tmp_path: Path, workers: int
) -> None:
    from sklearn.metrics import f1_score

    masks = masks_of(case.graph.nodes)
    path = written(case, tmp_path / "many.npz", several, masks)
    content = crew.run(workers, scored, options(graph=path, workers=workers))
    text = gathered(content, case.graph.nodes) > 0
    assert 0.1 < text.mean() < 0.9
    for scores, _, _ in content:
        for name, mask in masks.items():
            wanted = f1_score(several[mask], text[mask], average="micro")
            assert getattr(scores, name) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("without", ["val", "test"])
def test_a_set_without_nodes_has_no_score(
    crew: Crew, case: Case, options: MakeOptions, several: AnyArray, tmp_path: Path, without: str
) -> None:
    masks = masks_of(case.graph.nodes, without=without)
    for labels in (case.problem.labels.numpy().astype(np.int16), several):
        path = written(case, tmp_path / f"{labels.ndim}.npz", labels, masks)
        for scores, _, _ in crew.run(2, scored, options(graph=path, workers=2)):
            assert getattr(scores, without) is None
            assert all(getattr(scores, name) is not None for name in masks if name != without)


def entropy(logits: AnyArray, labels: AnyArray, train: BoolArray) -> float:
    """Binary cross-entropy summed over classes, its mean over training nodes."""
    own: FloatArray = logits[train]
    each = np.logaddexp(0.0, own) - labels[train] * own
    return float(each.sum() / np.count_nonzero(train))


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gat"])
def test_several_labels_train_alike_on_three_workers_and_one(
    crew: Crew, case: Case, options: MakeOptions, several: AnyArray, tmp_path: Path, model: str
) -> None:
    masks = masks_of(case.graph.nodes)
    path = written(case, tmp_path / "many.npz", several, masks)
    alone = crew.run(1, trained, options(graph=path, workers=1, model=model))
    three = crew.run(3, trained, options(graph=path, workers=3, model=model))
    if model == "gat":
        # Gradients of its target scores cancel to nothing here: only rounding would be compared.
        close(np.array(three[0].losses), np.array(alone[0].losses), "losses")
        close(whole(three, case.graph.nodes), whole(alone, case.graph.nodes), "outputs")
    else:
        same_run(three, alone, case.graph.nodes)
    assert alone[0].losses[-1] < alone[0].losses[0]
    still = crew.run(3, trained, options(graph=path, workers=3, model=model, lr=0.0, iterations=2))
    wanted = entropy(whole(still, case.graph.nodes), several, masks["train"])
    close(np.array(still[0].losses), np.array([wanted, wanted]), "loss")


def test_labels_that_are_shares_count_in_the_loss_as_they_are(
    crew: Crew, case: Case, options: MakeOptions, several: AnyArray, tmp_path: Path
) -> None:
    soft = (several * 0.75).astype(np.float32)
    masks = masks_of(case.graph.nodes)
    path = written(case, tmp_path / "soft.npz", soft, masks)
    content = crew.run(2, trained, options(graph=path, workers=2, lr=0.0, iterations=1))
    wanted = entropy(whole(content, case.graph.nodes), soft, masks["train"])
    close(np.array(content[0].losses), np.array([wanted]), "loss")
