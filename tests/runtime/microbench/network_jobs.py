"""What ranks do to test the transfers of micro-benchmarks."""

from __future__ import annotations

import torch

from runtime.launch import Place
from runtime.microbench import TINY, Measurement, MicrobenchRequest
from runtime.microbench.bench import Bench
from runtime.microbench.network import NCCL, Carrier, all_reduces, pairs
from tests.runtime.exchange.channel_jobs import lanes_at


def transfers(place: Place) -> list[str]:
    """Names of what is measured where another library than gloo carries the messages; here gloo stands for it."""
    channels = lanes_at(place)
    control, own = channels.open("control"), channels.open("own")
    carrier, found = Carrier(own, control, torch.device("cpu"), NCCL), list[Measurement]()
    bench = Bench(MicrobenchRequest(TINY), torch.device("cpu"), found.append)
    pairs(bench, carrier, 1 - place.rank)
    all_reduces(bench, carrier, place.world)
    return [measurement.kernel for measurement in found]
