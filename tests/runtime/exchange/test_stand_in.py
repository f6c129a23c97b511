"""Estimates of sampled sums, and transfers that stand in for real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
import pytest
import torch

from gcnsim.core.ids import Float32Array, FloatArray
from gcnsim.core.streams import stream
from gcnsim.graph.parts import Part
from gcnsim.timeline import OpKind
from gcnsim.workload.draws import draw_edges
from gcnsim.workload.samplers import INNER_PREFERENCE, sampler
from runtime.exchange import Mail, StandIns
from runtime.exchange.channels import Channel, Message
from runtime.exchange.stand_in import KEPT, fill
from tests.runtime.conftest import Case
from tests.runtime.exchange.dense import builder, local, loops, propagation, spread


def exchanged(channel: Channel, numbers: list[int]) -> list[int]:
    """Tell the other one `numbers`, and hear its own."""
    peer = 1 - channel.rank
    count = torch.zeros(1, dtype=torch.int32)
    channel.exchange(
        [Message(peer, count, False), Message(peer, torch.tensor([len(numbers)], dtype=torch.int32), True)]
    )
    heard = torch.empty(int(count), dtype=torch.int32)
    channel.exchange([Message(peer, heard, False), Message(peer, torch.tensor(numbers, dtype=torch.int32), True)])
    return [int(number) for number in heard]


def both(mail: Mail) -> tuple[Channel, Channel]:
    first, second = (StandIns(rank, 2, "gloo", mail).open("ids") for rank in range(2))
    return first, second


@pytest.mark.parametrize("rows", [0, 1, 2, 5, 9])
def test_what_comes_is_filled_with_own_rows_over_and_over(rows: int) -> None:
    target = torch.full((rows, 2), torch.nan)
    fill(target, torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert target.tolist() == [[1.0, 2.0] if row % 2 == 0 else [3.0, 4.0] for row in range(rows)]
    for nothing in (None, torch.empty(0, 2)):
        fill(target, nothing)
        assert target.tolist() == [[0.0, 0.0]] * rows


def test_lists_are_those_that_the_other_part_sent_in_its_last_turn() -> None:
    mail = Mail()
    first, second = both(mail)
    assert exchanged(first, [4, 5, 6]) == []
    assert exchanged(second, [7]) == [4, 5, 6]
    assert exchanged(first, [1]) == [7]
    # A part that was prepared anew hears the same.
    again, _ = both(mail)
    assert exchanged(again, []) == [7]


def test_several_lists_are_handed_out_in_turn_the_latest_ones() -> None:
    first, second = both(Mail())
    for number in range(KEPT + 2):
        exchanged(first, [number])
    assert [exchanged(second, []) for _ in range(KEPT + 1)] == [[2 + k % KEPT] for k in range(KEPT + 1)]


def test_lists_that_serve_other_ops_are_kept_apart() -> None:
    first, second = both(Mail())
    exchanged(first.serving(OpKind.INDEX), [1, 2])
    exchanged(first.serving(OpKind.CACHE_REFRESH), [3])
    assert exchanged(second.serving(OpKind.CACHE_REFRESH), []) == [3]
    assert exchanged(second.serving(OpKind.INDEX), []) == [1, 2]
    assert first.serving(OpKind.INDEX) is first.serving(OpKind.INDEX)


def normed(channel: Channel, own: list[float], count: int) -> list[float]:
    """Send norms of own rows, and receive `count`."""
    got, peer = torch.full((count,), torch.nan), 1 - channel.rank
    channel.exchange([Message(peer, got, False), Message(peer, torch.tensor(own), True)])
    return got.tolist()


def test_norms_are_those_of_the_same_exchange() -> None:
    first, second = both(Mail())
    assert normed(first, [1.0, 2.0], 3) == [1.0, 2.0, 1.0]
    assert normed(first, [10.0, 20.0], 3) == [10.0, 20.0, 10.0]
    assert normed(second, [7.0, 8.0, 9.0], 2) == [1.0, 2.0]
    assert normed(second, [70.0, 80.0, 90.0], 2) == [10.0, 20.0]


def test_norms_that_were_not_sent_yet_have_grown_as_ones_own() -> None:
    mail = Mail()
    first, second = both(mail)
    normed(first, [1.0, 3.0], 1)
    normed(second, [5.0], 2)
    # One's own have become four times as large; the other one has not had its turn since.
    assert normed(first, [8.0, 8.0], 1) == [20.0]
    # A worker prepared anew begins with its first exchange.
    again, _ = both(mail)
    assert normed(again, [1.0, 3.0], 1) == [5.0]


def test_only_the_last_norms_are_kept() -> None:
    mail = Mail()
    first, _ = both(mail)
    for number in range(KEPT + 3):
        normed(first, [float(number)], 1)
    (kept,) = mail.norms.values()
    assert list(kept) == list(range(3, KEPT + 3))


def test_every_message_is_told_as_through_and_sums_are_ones_own() -> None:
    channel = StandIns(0, 3, "gloo", Mail()).open("f", bulk=True)
    messages = [Message(peer, torch.ones(2, 2), outgoing) for peer in (1, 2) for outgoing in (False, True)]
    through: list[Message] = []
    channel.exchange([*messages, Message(1, torch.empty(0, 2), False)], through.append)
    assert through == messages
    tensor = torch.tensor([2.0])
    channel.wait(channel.all_reduce(tensor))
    channel.broadcast(tensor, 2)
    channel.barrier()
    assert tensor.tolist() == [2.0]
    assert [array.tolist() for array in channel.gather(tensor)] == [[2.0]] * 3


def test_there_is_nobody_to_agree_with() -> None:
    assert StandIns(1, 4, "gloo", Mail()).control() is None


DRAWS = 2000
EPSILON = 0.35
Z = 4.5
"""Standard errors: 1 in 150,000 means lies farther out, and each case below has about 100 of them."""

MODELS = {"gcn": "symmetric", "graphsage": "mean"}


def rows_of(part: Part) -> FloatArray:
    """Rows of every local id, [I + B, 2], whose norms differ by a factor of hundreds."""
    draw = stream(6, "rows")
    count = part.inner_nodes + part.boundary_nodes
    values: FloatArray = draw.standard_normal((count, 2)) * np.exp(1.5 * draw.standard_normal((count, 1)))
    return values


def probabilities(part: Part, model: str, rule: str) -> Float32Array:
    """As `psc-gcn` takes them from measured norms."""
    norms = np.linalg.norm(rows_of(part), axis=1)
    if model == "graphsage":
        norms = norms * np.sqrt(np.concatenate([part.inner_degree, part.boundary_degree]) + 1.0)
    return sampler(rule)(part, norms.astype(np.float32)).probabilities(EPSILON).p


def drawn_sums(part: Part, model: str, rule: str) -> FloatArray:
    """The sum over neighbours of every draw, [DRAWS, I, 2]."""
    p = probabilities(part, model, rule)
    made = builder(part, MODELS[model])
    weights = made.weights(1.0 / p.astype(np.float64))
    rows = torch.from_numpy(rows_of(part))
    found = np.empty((DRAWS, part.inner_nodes, 2))
    for graph in range(DRAWS):
        sampled_graph = made.thinned(graph, draw_edges(part, p, stream(0, "trace", part.rank, graph)), weights)
        out = torch.from_numpy(found[graph])
        sampled_graph.inner.multiply(rows[: part.inner_nodes], out)
        if sampled_graph.boundary is not None:
            sampled_graph.boundary.multiply(
                rows[part.inner_nodes + torch.from_numpy(sampled_graph.needed)], out, add=True
            )
    return found


Sums = Callable[[str, str], FloatArray]


@pytest.fixture(scope="module")
def part(case: Case) -> Part:
    """The part whose graphs are drawn."""
    return case.parts(3)[1]


@pytest.fixture(scope="module")
def sums(part: Part) -> Iterator[Sums]:
    """The sums of all draws of `sums(model, rule)`."""
    before = torch.get_num_threads()
    # Products this small take a hundred times longer where two threads wait for each other on a busy machine.
    torch.set_num_threads(1)
    yield cache(partial(drawn_sums, part))
    torch.set_num_threads(before)


@pytest.mark.parametrize("rule", ["uniform", "vr"])
@pytest.mark.parametrize("model", list(MODELS))
def test_the_mean_of_many_draws_is_the_exact_sum(case: Case, part: Part, sums: Sums, model: str, rule: str) -> None:
    found = sums(model, rule)
    whole = local(propagation(case.graph, MODELS[model]), part)
    p = probabilities(part, model, rule).astype(np.float64)
    missing = np.divide(1.0, p) - 1.0
    variance = (whole * ~loops(part)) ** 2 * spread(part, missing) @ rows_of(part) ** 2
    error = found.mean(0) - whole @ rows_of(part)
    random = variance > 1e-20
    assert np.abs(error[~random]).max(initial=0.0) < 1e-12
    deviation = np.sqrt(variance[random] / DRAWS)
    z = error[random] / deviation
    assert np.abs(z).max() < Z
    # Not just inside: as wide as it should be, or the interval would prove nothing.
    assert 0.6 < float(z.std()) < 1.4
    spread_found = found.var(0)[random].sum() / variance[random].sum()
    assert 0.85 < spread_found < 1.15


@pytest.mark.parametrize("model", list(MODELS))
def test_variance_under_vr_is_at_most_that_of_uniform(case: Case, model: str) -> None:
    """Row by row in the measure that the rule minimises, sum_j a_j ||P_ij h_j||^2 (1/p_ij - 1), at the same budget."""
    for part in case.parts(3):
        whole = local(propagation(case.graph, MODELS[model]), part) * ~loops(part)
        preference = np.ones(whole.shape[1])
        preference[: part.inner_nodes] = INNER_PREFERENCE
        size = preference * (rows_of(part) ** 2).sum(1)
        measure, budget = {}, {}
        for rule in ("uniform", "vr"):
            p = probabilities(part, model, rule).astype(np.float64)
            measure[rule] = whole**2 * spread(part, 1.0 / p - 1.0) @ size
            budget[rule] = spread(part, p).sum(1)
        assert (measure["vr"] <= measure["uniform"] * (1 + 1e-5) + 1e-12).all()
        assert measure["vr"].sum() < 0.7 * measure["uniform"].sum()
        np.testing.assert_allclose(budget["vr"], budget["uniform"], rtol=1e-5)


@pytest.mark.parametrize("model", list(MODELS))
def test_variance_found_in_draws_is_less_under_vr(sums: Sums, model: str) -> None:
    assert sums(model, "vr").var(0).sum() < 0.8 * sums(model, "uniform").var(0).sum()
