"""The options of `python -m runtime.emulate` that put waits of a GPU in the place of each worker's computing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gcnsim.errors import ScenarioError
from gcnsim.fields import Measure, Number
from gcnsim.hardware import device, host, link
from gcnsim.ids import Rank
from gcnsim.units import BANDWIDTH
from runtime.emulation.accelerator import REACHED, Accelerator
from runtime.emulation.cluster import EmulationRequest
from runtime.emulation.network import calm_queue
from runtime.methods import METHODS
from runtime.options import flag
from runtime.train.plan import Task, naming

OPTIONS: Final = ("scale", "host", "gpus_per_switch", "slow_worker", "background", "receives")
SCALE: Final = 20.0
HOST: Final = "generic-16"

_SCALE: Final = Number(False, 1, 10_000)
_SWITCH: Final = Number(True, 0, 1024)
_FACTOR: Final = Number(False, 1, 1000, low_open=True)
_LEAST: Final = 625_000.0
"""Bytes/s of the slowest link that is made."""


def accelerated(asked: EmulationRequest, given: Mapping[str, Any]) -> EmulationRequest:
    """`asked` with the accelerator that the options name, links as much slower as its waits are longer.

    Raises ScenarioError, naming the option.
    """
    name = given["accelerator"]
    if name is None:
        for option in OPTIONS:
            if given[option] is not None:
                raise ScenarioError(f"{flag(option)}: {given[option]} needs --accelerator; allowed: with it only")
        return asked
    chosen = device(name)
    if chosen.kind != "gpu":
        raise ScenarioError(f"--accelerator: {name} is no GPU; its workers really compute: leave the option out")
    scale = SCALE if given["scale"] is None else given["scale"]
    _SCALE.check(scale, "--scale")
    if asked.bandwidth / scale < _LEAST:
        most = asked.bandwidth / _LEAST
        raise ScenarioError(f"--scale: {scale:g} makes links slower than 5 Mbit/s; allowed: 1 to {most:g}")
    servers = host(given["host"] or HOST)
    if asked.workers_per_host > servers.cores.value:
        raise ScenarioError(
            f"--workers-per-host: {asked.workers_per_host} is more than the {servers.cores.value:g} cores of "
            f"{servers.name}, one for each sampler; allowed: 1 to {servers.cores.value:g}"
        )
    if asked.latency_s:
        raise ScenarioError("--latency: is not modelled with --accelerator, whose latency is measured; leave it out")
    if given["limiter"] == "exchange":
        raise ScenarioError("--limiter: exchange has no links to measure; allowed with --accelerator: netns, userns")
    shared = given["gpus_per_switch"] or 0
    _SWITCH.check(shared, "--gpus-per-switch")
    worker, factor = _slow(given["slow_worker"], asked.workers)
    memory = link("host-memory")
    return replace(
        asked,
        bandwidth=asked.bandwidth / scale,
        local=memory.bandwidth.value * memory.efficiency.value / scale,
        accelerator=Accelerator(
            name=name,
            scale=scale,
            bandwidth=asked.bandwidth,
            host=servers.name,
            gpus_per_switch=shared,
            slow_worker=worker,
            slow_factor=factor,
            background=_background(given["background"], asked),
            receives=given["receives"] or REACHED,
            queue=calm_queue(asked.hosts),
        ),
    )


def _slow(text: str | None, workers: int) -> tuple[Rank | None, float]:
    if text is None:
        return None, 1.0
    rank, colon, factor = text.partition(":")
    try:
        found = int(rank), float(factor)
    except ValueError:
        colon = ""
    if not colon:
        raise ScenarioError(f"--slow-worker: {text!r} is not allowed; allowed: RANK:FACTOR, e.g. 1:1.5")
    Number(True, 0, workers - 1).check(found[0], "--slow-worker")
    _FACTOR.check(found[1], "--slow-worker")
    return found


def _background(text: str | None, asked: EmulationRequest) -> float:
    if text is None:
        return 0.0
    if asked.hosts < 2:
        raise ScenarioError("--background: goes from host 0 to host 1; allowed: with 2 hosts or more")
    return Measure(BANDWIDTH, 0.0, 0.9 * asked.bandwidth, low_open=True).read(text, "--background")


def refuse_training(tasks: Sequence[Task]) -> None:
    """Raise ScenarioError for what has no waits to stand for it."""
    for task in tasks:
        options = task.options
        allowed: dict[str, tuple[object, ...]] = {
            "method": tuple(name for name, method in METHODS.items() if method.waits),
            "model": ("gcn", "graphsage"),
            "sage_aggregator": ("mean",),
            "device": ("cpu",),
            "dtype": ("float32",),
            "preaggregate": (False,),
            "dropout": (0.0,),
            "checkpoint_every": (0,),
            "resume": (None,),
        }
        with naming(task.name):
            for name, values in allowed.items():
                if getattr(options, name) not in values:
                    words = ", ".join(map(str, values))
                    raise ScenarioError(
                        f"{flag(name)}: {getattr(options, name)} is not possible with --accelerator; allowed: {words}"
                    )
