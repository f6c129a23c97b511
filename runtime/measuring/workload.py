"""All settings of a measurement, one after the other.

On a CPU other processes train parts of the same setting on the other cores meanwhile (`runtime.measuring.neighbours`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

from gcnsim.core.units import format_fraction
from gcnsim.graph import graph_notes
from gcnsim.graph.parts import Partitioning
from runtime.data import Dataset, DatasetCache
from runtime.launch import disable_malloc_trim
from runtime.measuring.neighbours import Neighbours, cores_apart, on_cores
from runtime.measuring.part import free_bytes
from runtime.measuring.request import MeasureRequest
from runtime.measuring.rounds import ALONE, Setting, SettingRecord, Tell, widths_of, with_fastest_kernels
from runtime.train.setup import device_of

SHORTEST_S: Final = 5.0
"""Of a shorter measurement nothing is left when other processes have begun."""

QUIET: Final = 0.95
"""Of the time a part's threads run at least so much where nothing else wants the cores."""

_NOT_QUIET: Final = (
    "other programs used the cores: training ran only {} of the time; measure again when the machine is quiet"
)
_FEWER_BESIDE: Final = (
    "{} of {} processes that trained on the other cores ended early; kernels may be slower in a cluster"
)


@dataclass(frozen=True)
class MeasuredWorkload:
    """All settings of a request. widths: of the rows before the first and after each layer. beside: processes that
    trained on other cores meanwhile, of those that were started."""

    dataset: Dataset
    partitioning: Partitioning
    widths: tuple[int, ...]
    threads: int
    beside: int
    started: int
    settings: tuple[SettingRecord, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user must know of how the data were read."""
        partition = (self.partitioning.note,) if self.partitioning.note else ()
        shared = () if (ran := self.ran_share) is None or ran >= QUIET else (_NOT_QUIET.format(format_fraction(ran)),)
        ended = self.started - self.beside
        alone = (_FEWER_BESIDE.format(ended, self.started),) if ended else ()
        return (*graph_notes(self.dataset.graph), *self.dataset.notes, *partition, *shared, *alone)

    @property
    def ran_share(self) -> float | None:
        """The share of the time that a thread of ours was running, where nothing else can be waited for: on a CPU.

        About 1 or more on a quiet machine. None on a GPU, and where nothing was measured.
        """
        parts = [part for setting in self.settings for part in setting.parts if part.skipped is None]
        if self.settings[0].options.device != "cpu" or not parts:
            return None
        return sum(sum(part.processor_s) for part in parts) / sum(sum(part.seconds) for part in parts)


def measured(measure_request: MeasureRequest, tell: Tell) -> MeasuredWorkload:
    """Measure all settings, one after the other, in equal shares of the time that is left.

    Raises GcnsimError for data that cannot be read, or a device that is not here.
    """
    shared = measure_request.shared
    device = device_of(shared, ALONE)
    shelf = DatasetCache()
    tell("reading the graph")
    dataset = shelf.dataset(shared)
    tell("partitioning the graph")
    partitioning = shelf.owners(shared, dataset)
    if device.type == "cpu":
        disable_malloc_trim()
    settings = [
        Setting(with_fastest_kernels(item, dataset, partitioning), device, shelf, tell)
        for item in measure_request.settings
    ]
    groups: list[list[int]] = [[]]
    share: int | None = None
    if device.type == "cpu":
        groups, share = _groups(settings, 1 if measure_request.seconds < SHORTEST_S else shared.workers)
    for setting in settings:
        setting.share = share
    neighbours = Neighbours(measure_request.settings, groups[1:], share)
    try:
        if groups[1:]:
            tell("waiting for the processes on the other cores")
            neighbours.wait()
        with on_cores(groups[0]):
            setting_records = _all_measured(settings, neighbours, measure_request.seconds)
        beside = neighbours.count
    finally:
        neighbours.close()
    return MeasuredWorkload(
        dataset,
        partitioning,
        widths_of(shared, dataset),
        torch.get_num_threads(),
        beside,
        len(groups) - 1,
        setting_records,
    )


def _groups(settings: Sequence[Setting], most: int) -> tuple[list[list[int]], int | None]:
    """The cores of each process, and the bytes that it may take for parts; of one process None.

    As many processes, up to `most`, as have memory for the graph, which each of them reads, and for their largest part.
    """
    groups = cores_apart(torch.get_num_threads(), most)
    free, largest = free_bytes(), max(setting.largest for setting in settings)
    if free is None:
        return groups, None
    own = 0
    if len(groups) > 1:
        import resource  # Unix alone has it

        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    while len(groups) > 1 and len(groups) * largest + (len(groups) - 1) * own > free:
        groups = groups[:-1]
    return groups, None if len(groups) == 1 else (free - (len(groups) - 1) * own) // len(groups)


def _all_measured(settings: Sequence[Setting], neighbours: Neighbours, seconds: float) -> tuple[SettingRecord, ...]:
    end = time.perf_counter() + seconds
    found = []
    for number, setting in enumerate(settings):
        neighbours.train(number)
        left = (end - time.perf_counter()) / (len(settings) - number)
        found.append(setting.measured(left))
    return tuple(found)
