"""What ranks do to test the reduction of gradients, evaluation, dropout and spans."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np
import torch

from gcnsim.core.ids import AnyArray
from gcnsim.timeline import Timeline
from runtime.exchange import Channels, SampledGraph
from runtime.launch import Place, connect
from runtime.model import Network, initialise
from runtime.options import Options
from runtime.record import Recorder
from runtime.train.evaluate import Scores
from runtime.train.reduce import FlatGradients, GlobalSums, LocalSums
from tests.runtime.jobs import ready_at


def summed(place: Place, options: Options, own: list[LocalSums]) -> tuple[GlobalSums, dict[str, AnyArray], list[str]]:
    """Sums and gradients of a network of which rank 1 leaves layer 1 without a gradient; the loss is the rank + 1."""
    connect(place, 60.0, "gloo")
    channel = Channels(place.rank, place.world, 60.0, "gloo").open("reduce", bulk=True)
    network = Network(options, 5, 3)
    initialise(network, 0)
    flat = FlatGradients(network, channel, Recorder(place.rank, enabled=False))
    for _ in range(2):
        some = [weight for name, weight in network.named_parameters() if place.rank != 1 or "layers.1" not in name]
        loss = torch.stack([weight.sum() for weight in some]).sum() * (place.rank + 1)
        shift = place.rank + 1 - loss.detach()
        flat.begin(0, loss + shift, torch.tensor(10 + place.rank), own[place.rank])
        (loss + shift).backward()  # type: ignore[no-untyped-call]
        sums = flat.finish()
    inside = flat.flat.untyped_storage().data_ptr()
    views = [
        name
        for name, weight in network.named_parameters()
        if weight.grad is not None and weight.grad.untyped_storage().data_ptr() == inside
    ]
    found = {name: _array(weight.grad) for name, weight in network.named_parameters()}
    return sums, found, views


def scored(place: Place, options: Options) -> tuple[Scores, AnyArray, AnyArray]:
    """Scores of the first weights, and the logits they come from with the nodes they belong to."""
    ready = ready_at(place, options)
    assert ready.evaluator is not None
    scores = ready.evaluator.scores(ready.network, ready.trainer.x)
    logits = ready.evaluator.logits(ready.network, ready.trainer.x)
    ready.method.close()
    return scores, ready.share.part.inner.copy(), logits.numpy()


@dataclass(frozen=True)
class Probed:
    """found: gradients of some weights, summed over ranks. numerical: their central differences."""

    found: AnyArray
    numerical: AnyArray


def probed(place: Place, options: Options, count: int) -> Probed:
    """Gradients of `count` values of every weight in iteration 0, and those that the loss itself says.

    The masks of iteration 0 are the same however often it is trained; the options' learning rate must be 0.
    """
    assert options.lr == 0.0
    ready = ready_at(place, options)
    ready.trainer.iteration(0, LocalSums())
    weights = list(ready.network.parameters())
    gradients = [_array(weight.grad).ravel() for weight in weights]
    found, numerical = [], []
    step = 1e-7
    for weight, gradient in zip(weights, gradients, strict=True):
        for at in np.unique(np.linspace(0, gradient.size - 1, count).astype(int)):
            losses = []
            for sign in (1.0, -1.0):
                with torch.no_grad():
                    weight.view(-1)[at] += sign * step
                losses.append(ready.trainer.iteration(0, LocalSums())[0].loss or 0.0)
                with torch.no_grad():
                    weight.view(-1)[at] -= sign * step
            found.append(gradient[at])
            numerical.append((losses[0] - losses[1]) / (2 * step))
    ready.method.close()
    return Probed(np.array(found), np.array(numerical))


@dataclass(frozen=True)
class Recorded:
    """One rank's spans. begins[t]: start of iteration t, and the end of the last, ps since the run's.

    rows[t][m], asked[t][m]: rows that the graph of iteration t needs of worker m, and gives to m. widths: d_0 ... d_L.
    """

    timeline: Timeline
    begins: list[int]
    rows: list[list[int]]
    asked: list[list[int]]
    misses: list[list[int]]
    widths: tuple[int, ...]


def recorded(place: Place, options: Options) -> Recorded:
    """Train and keep every span."""
    ready = ready_at(place, options)
    begins, rows, requested, misses = [perf_counter_ns()], [], [], []
    for t in range(options.iterations):
        _, sampled_graph = ready.trainer.iteration(t, LocalSums())
        assert isinstance(sampled_graph, SampledGraph)
        begins.append(perf_counter_ns())
        rows.append(np.diff(sampled_graph.ptr).tolist())
        requests = sampled_graph.incoming_requests()
        requested.append(np.diff(requests.ptr).tolist())
        misses.append(list(requests.misses))
    ready.method.drain()
    ready.method.close()
    timeline = ready.recorder.timeline(begins[0])
    return Recorded(timeline, [1000 * (at - begins[0]) for at in begins], rows, requested, misses, ready.network.widths)


def _array(tensor: torch.Tensor | None) -> AnyArray:
    assert tensor is not None
    return tensor.detach().numpy().copy()
