"""`python -m runtime.survey` on a server with T4s that are not there: waits in place of what they would compute.

For tests, which say in SURVEYED_GPUS how many: torch has them, kernels take in the micro-benchmarks what the laws of
the simulator say, and training waits as long (runtime/accelerator). All else is what a user's survey runs.
SURVEYED_FAILURE names a run that fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

import runtime.microbench.network
import runtime.survey.__main__
import runtime.train.worker
from gcnsim.core.processes import cores
from gcnsim.hardware import device
from runtime.emulation import Accelerator, Emulation
from runtime.launch import Place
from runtime.microbench import Measurement, MicrobenchRequest
from runtime.options import Options
from runtime.train.setup import check_gpus
from tests.gcnsim.evidence.made_gpu import measurements

GPUS, FAILURE = "SURVEYED_GPUS", "SURVEYED_FAILURE"
NAME: Final = "Tesla T4"
BANDWIDTH, SCALE = 1.25e9, 2.0


def by_laws(microbench_request: MicrobenchRequest, show: Callable[[Measurement], None]) -> list[Measurement]:
    """What the micro-benchmarks would measure."""
    assert microbench_request.device == "cuda"
    found = measurements(device("t4"))["measurements"]
    return [Measurement(**item) for item in found]


def device_of(options: Options, place: Place) -> torch.device:
    """Where tensors lie that nothing computes with. Raises as that of training, and for the run that fails."""
    check_gpus(place)
    assert options.device == "cuda"
    named = os.environ.get(FAILURE)
    if named and named in str(options.out) and place.rank == place.world - 1:
        raise torch.OutOfMemoryError("CUDA out of memory (/home/somebody/.venv)")
    return torch.device("cpu")


def emulation(gpus: int) -> Emulation:
    """Servers of T4s, as many as torchrun says, one where it does not."""
    servers = int(os.environ.get("WORLD_SIZE", gpus)) // int(os.environ.get("LOCAL_WORLD_SIZE", gpus))
    accelerator = Accelerator("t4", SCALE, BANDWIDTH, "generic-16")
    facts: dict[str, Any] = {"measured": None, "burst": 0, "latency_s": 0.0, "latency_by": "none", "limiter": "netns"}
    facts |= {"cores": cores(), "congestion": "reno", "accelerator": accelerator.asdict(), "one_session": True}
    return Emulation(servers, gpus, BANDWIDTH / SCALE, **facts)


def main(argv: Sequence[str]) -> int:
    """As the command that it stands for."""
    gpus = int(os.environ[GPUS])
    os.environ |= emulation(max(gpus, 1)).environment()
    changed: list[tuple[object, str, object]] = [
        (torch.cuda, "is_available", lambda: gpus > 0),
        (torch.cuda, "device_count", lambda: gpus),
        (torch.cuda, "get_device_name", lambda _: NAME),
        (runtime.microbench.network, "measured", by_laws),
        (runtime.train.worker, "device_of", device_of),
        (runtime.survey.__main__, "PROGRAM", "tests.runtime.survey.waiting_gpus"),  # what workers are started as
    ]
    for owner, name, value in changed:
        setattr(owner, name, value)
    return runtime.survey.__main__.main(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
