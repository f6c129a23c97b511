"""What ranks do to test lanes, and the asking that goes over them."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist

from gcnsim.ids import AnyArray, BoolArray
from gcnsim.streams import stream
from runtime.exchange import Held, Lanes, PeerError, ask, fetch_rows, swap_norms
from runtime.exchange.channels import Parcel
from runtime.exchange.sampled_graph import order_of
from runtime.launch import Place, connect
from runtime.options import Options
from tests.runtime.jobs import ready_at

WIDTH = 3


def lanes_at(place: Place, timeout_s: float = 60.0) -> Lanes:
    """Lanes of ranks that have all come."""
    connect(place, 60.0, "gloo")
    Lanes(place.rank, place.world, 60.0, "gloo").open("start").barrier()
    return Lanes(place.rank, place.world, timeout_s, "gloo")


def message(sender: int, receiver: int, rows: int, turn: int) -> AnyArray:
    """What `sender` sends, [rows, WIDTH]."""
    start = 1000.0 * sender + 100.0 * receiver + 10_000.0 * turn
    return start + np.arange(rows * WIDTH, dtype=np.float64).reshape(rows, WIDTH)


def swapped(place: Place, sizes: list[list[int]], turns: int) -> tuple[list[list[AnyArray]], list[tuple[int, bool]]]:
    """What came from every peer in every turn (sizes[n][m] rows from n to m), and the parcels said to be done."""
    lane = lanes_at(place).open("rows", bulk=True)
    done: list[tuple[int, bool]] = []
    found = []
    for turn in range(turns):
        own = sizes[place.rank]
        incoming = [torch.empty(sizes[m][place.rank], WIDTH, dtype=torch.float64) for m in range(place.world)]
        outgoing = [torch.from_numpy(message(place.rank, m, own[m], turn)) for m in range(place.world)]
        parcels = [Parcel(m, rows, True) for m, rows in enumerate(outgoing)]
        parcels += [Parcel(m, rows, False) for m, rows in enumerate(incoming)]
        lane.exchange(parcels, lambda parcel: done.append((parcel.peer, parcel.outgoing)))
        found.append([rows.numpy() for rows in incoming])
    return found, done


def gathered(place: Place, payloads: list[bytes]) -> list[bytes]:
    """Every rank's payload, as this one sees them."""
    return lanes_at(place).open("control").gather_arrays(payloads[place.rank])


def collected(place: Place) -> tuple[float, list[float], float, bool]:
    """A sum over all ranks, what each has, what rank 1 has, and whether a name opens one lane."""
    lanes = lanes_at(place)
    lane = lanes.open("control")
    mine = torch.tensor([2.0**place.rank])
    total = mine.clone()
    lane.settle(lane.all_reduce(total))
    everyone = [float(each) for each in lane.gather(mine)]
    told = mine.clone()
    lane.broadcast(told, 1)
    lane.barrier()
    return float(total), everyone, float(told), lanes.open("control") is lane


def apart(place: Place) -> tuple[float, float]:
    """What comes over two lanes whose messages are posted in another order on each rank."""
    lanes = lanes_at(place)
    first, second = lanes.open("first"), lanes.open("second")
    peer = 1 - place.rank
    found = {}
    posted = []
    for lane in (first, second) if place.rank else (second, first):
        found[lane.name] = torch.zeros(1)
        value = torch.tensor([1.0 if lane is first else 2.0])
        posted.append((lane, lane.post([Parcel(peer, found[lane.name], False), Parcel(peer, value, True)])))
    for lane, work in posted:
        lane.await_all(work)
    return float(found["first"]), float(found["second"])


def left_alone(place: Place, silent: int, timeout_s: float, kind: str) -> tuple[str, float]:
    """What a rank is told of a peer that never answers, and after how many seconds; `silent` is that peer."""
    lane = lanes_at(place, timeout_s).open("rows", bulk=True)
    lane.barrier()
    start = time.monotonic()
    if place.rank == silent:
        time.sleep(timeout_s + 1.5)
        return "", 0.0
    try:
        if kind == "rows":
            lane.exchange([Parcel(silent, torch.zeros(2, WIDTH), False)])
        else:
            lane.settle(lane.all_reduce(torch.zeros(4)))
    except PeerError as error:
        return str(error), time.monotonic() - start
    return "nothing was raised", 0.0


def deserted(place: Place, gone: int) -> str:
    """What a rank is told of a peer whose connections are closed."""
    lanes = lanes_at(place, 20.0)
    lane = lanes.open("rows", bulk=True)
    lane.barrier()
    if place.rank == gone:
        dist.destroy_process_group()
        return ""
    try:
        lane.exchange([Parcel(gone, torch.zeros(2, WIDTH), False)])
    except PeerError as error:
        return str(error)
    return "nothing was raised"


@dataclass(frozen=True)
class Asked:
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


def asking(place: Place, options: Options) -> Asked:
    """Ask for some rows of which some are held, fetch others, and swap norms."""
    ready = ready_at(place, options)
    share, lane = ready.share, ready.lanes.open("asking")
    part, cpu = share.part, torch.device("cpu")
    draw = stream(3, "asking", place.rank)
    # Rank 1 wants nothing at all, and nobody wants anything of rank 0 that is not held.
    needed: BoolArray = (draw.random(part.boundary_nodes) < 0.6) & (place.rank != 1)
    slot = np.where(draw.random(part.boundary_nodes) < 0.4, 0, -1)
    slot[part.boundary_ptr[0] : part.boundary_ptr[1]] = 0
    order, ptr, misses = order_of(needed, part.boundary_ptr, Held(slot, torch.zeros(1, 1)))
    sent: list[int] = []
    requests = ask(lane, share, order, ptr, misses, cpu, lambda parcel: sent.append(_bytes(parcel)))
    index, places = requests.index.numpy(), requests.ptr
    some = np.flatnonzero(needed)
    rows = torch.from_numpy(part.inner[:, None] * 10.0 + np.arange(WIDTH))
    features = fetch_rows(lane, share, rows, some)
    norms = swap_norms(lane, share, torch.from_numpy(part.inner * 0.5))
    ready.method.close()
    world = range(place.world)
    return Asked(
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


def _bytes(parcel: Parcel) -> int:
    return parcel.tensor.numel() * parcel.tensor.element_size() if parcel.outgoing else 0
