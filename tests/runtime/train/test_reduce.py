"""Gradients and run-wide sums in one flat buffer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from runtime.exchange import Channel
from runtime.model import Network, initialise
from runtime.options import Options
from runtime.record import Recorder
from runtime.train.reduce import EXTRAS, FlatGradients, GlobalSums, LocalSums
from tests.runtime.crew import Crew
from tests.runtime.reduce_jobs import summed


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
