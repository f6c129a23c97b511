"""What ranks do to test channels, and the asking that goes over them."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist

from gcnsim.core.ids import AnyArray, BoolArray
from gcnsim.core.streams import stream
from runtime.exchange import CachedRows, Channels, PeerError, exchange_norms, fetch_rows, request_rows
from runtime.exchange.channels import Message
from runtime.exchange.sampled_graph import order_of
from runtime.launch import Place, connect
from runtime.options import Options
from tests.runtime.jobs import ready_at

WIDTH = 3


def lanes_at(place: Place, timeout_s: float = 60.0) -> Channels:
    """Channels of ranks that have all come."""
    connect(place, 60.0, "gloo")
    Channels(place.rank, place.world, 60.0, "gloo").open("start").barrier()
    return Channels(place.rank, place.world, timeout_s, "gloo")


def message(sender: int, receiver: int, rows: int, turn: int) -> AnyArray:
    """What `sender` sends, [rows, WIDTH]."""
    start = 1000.0 * sender + 100.0 * receiver + 10_000.0 * turn
    return start + np.arange(rows * WIDTH, dtype=np.float64).reshape(rows, WIDTH)


def swapped(place: Place, sizes: list[list[int]], turns: int) -> tuple[list[list[AnyArray]], list[tuple[int, bool]]]:
    """What came from every peer in every turn (sizes[n][m] rows from n to m), and the messages said to be done."""
    channel = lanes_at(place).open("rows", bulk=True)
    done: list[tuple[int, bool]] = []
    found = []
    for turn in range(turns):
        own = sizes[place.rank]
        incoming = [torch.empty(sizes[m][place.rank], WIDTH, dtype=torch.float64) for m in range(place.world)]
        outgoing = [torch.from_numpy(message(place.rank, m, own[m], turn)) for m in range(place.world)]
        messages = [Message(m, rows, True) for m, rows in enumerate(outgoing)]
        messages += [Message(m, rows, False) for m, rows in enumerate(incoming)]
        channel.exchange(messages, lambda message: done.append((message.peer, message.outgoing)))
        found.append([rows.numpy() for rows in incoming])
    return found, done


def gathered(place: Place, payloads: list[bytes]) -> list[bytes]:
    """Every rank's payload, as this one sees them."""
    return lanes_at(place).open("control").gather_arrays(payloads[place.rank])


def collected(place: Place) -> tuple[float, list[float], float, bool]:
    """A sum over all ranks, what each has, what rank 1 has, and whether a name opens one channel."""
    channels = lanes_at(place)
    channel = channels.open("control")
    mine = torch.tensor([2.0**place.rank])
    total = mine.clone()
    channel.wait(channel.all_reduce(total))
    everyone = [float(tensor) for tensor in channel.gather(mine)]
    content = mine.clone()
    channel.broadcast(content, 1)
    channel.barrier()
    return float(total), everyone, float(content), channels.open("control") is channel


def apart(place: Place) -> tuple[float, float]:
    """What comes over two channels whose messages are posted in another order on each rank."""
    channels = lanes_at(place)
    first, second = channels.open("first"), channels.open("second")
    peer = 1 - place.rank
    found = {}
    posted = []
    for channel in (first, second) if place.rank else (second, first):
        found[channel.name] = torch.zeros(1)
        value = torch.tensor([1.0 if channel is first else 2.0])
        posted.append((channel, channel.post([Message(peer, found[channel.name], False), Message(peer, value, True)])))
    for channel, work in posted:
        channel.await_all(work)
    return float(found["first"]), float(found["second"])


def left_alone(place: Place, silent: int, timeout_s: float, kind: str) -> tuple[str, float]:
    """What a rank is told of a peer that never answers, and after how many seconds; `silent` is that peer."""
    channel = lanes_at(place, timeout_s).open("rows", bulk=True)
    channel.barrier()
    start = time.monotonic()
    if place.rank == silent:
        time.sleep(timeout_s + 1.5)
        return "", 0.0
    try:
        if kind == "rows":
            channel.exchange([Message(silent, torch.zeros(2, WIDTH), False)])
        else:
            channel.wait(channel.all_reduce(torch.zeros(4)))
    except PeerError as error:
        return str(error), time.monotonic() - start
    return "nothing was raised", 0.0


def deserted(place: Place, gone: int) -> str:
    """What a rank is told of a peer whose connections are closed."""
    channels = lanes_at(place, 20.0)
    channel = channels.open("rows", bulk=True)
    channel.barrier()
    if place.rank == gone:
        dist.destroy_process_group()
        return ""
    try:
        channel.exchange([Message(gone, torch.zeros(2, WIDTH), False)])
    except PeerError as error:
        return str(error)
    return "nothing was raised"


@dataclass(frozen=True)
class RankRequests:
    """One rank's questions and answers; all ids are global.

    wanted[m]: asked of m, in order. lacking: how many of those are not held.
    requested[m]: what m asked for. misses[m]: how many of them m lacks. features: of `fetched`. norms: local ids.
    """

    rank: int
    inner: AnyArray
    boundary: AnyArray
    wanted: list[AnyArray]
    lacking: list[int]
    requested: list[AnyArray]
    misses: list[int]
    fetched: AnyArray
    features: AnyArray
    norms: AnyArray
    bytes_out: int


def asking(place: Place, options: Options) -> RankRequests:
    """Ask for some rows of which some are held, fetch others, and swap norms."""
    ready = ready_at(place, options)
    share, channel = ready.share, ready.channels.open("asking")
    part, cpu = share.part, torch.device("cpu")
    draw = stream(3, "asking", place.rank)
    # Rank 1 wants nothing at all, and nobody wants anything of rank 0 that is not held.
    needed: BoolArray = (draw.random(part.boundary_nodes) < 0.6) & (place.rank != 1)
    slot = np.where(draw.random(part.boundary_nodes) < 0.4, 0, -1)
    slot[part.boundary_ptr[0] : part.boundary_ptr[1]] = 0
    order, ptr, misses = order_of(needed, part.boundary_ptr, CachedRows(slot, torch.zeros(1, 1)))
    sent: list[int] = []
    requests = request_rows(channel, share, order, ptr, misses, cpu, lambda message: sent.append(_bytes(message)))
    index, places = requests.index.numpy(), requests.ptr
    some = np.flatnonzero(needed)
    rows = torch.from_numpy(part.inner[:, None] * 10.0 + np.arange(WIDTH))
    features = fetch_rows(channel, share, rows, some)
    norms = exchange_norms(channel, share, torch.from_numpy(part.inner * 0.5))
    ready.method.close()
    world = range(place.world)
    return RankRequests(
        rank=place.rank,
        inner=part.inner.copy(),
        boundary=part.boundary.copy(),
        wanted=[part.boundary[order[ptr[m] : ptr[m + 1]]] for m in world],
        lacking=list(misses),
        requested=[part.inner[index[places[m] : places[m + 1]]] for m in world],
        misses=list(requests.misses),
        fetched=part.boundary[some],
        features=features.numpy(),
        norms=norms,
        bytes_out=sum(sent),
    )


def _bytes(message: Message) -> int:
    return message.tensor.numel() * message.tensor.element_size() if message.outgoing else 0
