"""The rounds of a measurement: part after part, again and again, until each mean is known or the time is over.

Parts take turns so that a machine that grows slower or quicker does so for all. Whenever its turn begins, a part trains
an iteration that is left out: the caches hold another part's rows.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from gcnsim.graph.parts import Partitioning, part_of
from gcnsim.workload.caching import CacheSize
from runtime.data import Dataset, DatasetCache
from runtime.exchange import Mail
from runtime.launch import Place
from runtime.measuring.part import (
    PartRecord,
    PartRun,
    Skipped,
    asked_bytes,
    free_bytes,
    free_on_gpu,
    needed_bytes,
    sizes_of,
)
from runtime.measuring.request import AIM
from runtime.methods import method_of
from runtime.methods.method import MiniBatch
from runtime.options import Options
from runtime.train.loop import DivergedError
from runtime.train.setup import DTYPES, weights_of, with_kernels

ALONE: Final = Place(0, 1, 0, 1, launched=True)
"""A worker without others."""

FEWEST_ROUNDS: Final = 2
"""Taken even where the time is over: of fewer nothing could be said of the mean's error."""

SETTLED_ROUNDS: Final = 4
"""Rounds before a mean may count as known: few may agree by chance."""

ROUNDS: Final = 12
"""Into which the time is divided."""

GPU_ROOM: Final = 2
"""Of all parts' needs as foretold, what must be free on a GPU before they stay there together."""

LONGEST: Final = 50
"""Iterations of one turn."""

FEWEST_AT_ONCE: Final = 3
"""Iterations of a turn for which a part is prepared anew."""

WARMUP: Final = 5
"""Iterations of a part's first turn, none of them measured; fewer where they take long."""

LEAST_WARMUP: Final = 2

Tell = Callable[[str], None]


@dataclass(frozen=True)
class SettingRecord:
    """One setting, measured. seconds: how long it took."""

    options: Options
    parts: tuple[PartRecord, ...]
    seconds: float

    @property
    def known(self) -> bool:
        """Whether each part's mean is known as closely as was aimed at."""
        return all_known(self.parts)


def widths_of(options: Options, dataset: Dataset) -> tuple[int, ...]:
    """Of the rows before the first and after each layer."""
    return dataset.features.width, *[options.hidden] * (options.layers - 1), dataset.classes


def relative_error(rounds: Sequence[float]) -> float:
    """Half of the 90 % interval of the mean over the mean of independent `rounds`, by Student's t; of one infinite."""
    from scipy.special import stdtrit

    count = len(rounds)
    if count < FEWEST_ROUNDS:
        return math.inf
    return float(stdtrit(count - 1, 0.95) * np.std(rounds, ddof=1) / math.sqrt(count) / np.mean(rounds))


def all_known(parts: Sequence[PartRecord]) -> bool:
    """Whether the mean of each part that can be measured is known to AIM."""
    return all(relative_error(part.rounds) <= AIM for part in parts if part.skipped is None)


def with_fastest_kernels(options: Options, dataset: Dataset, partitioning: Partitioning) -> Options:
    """The options with the fastest kernels here, where they are to be chosen."""
    if options.aggregator != "auto":
        return options
    part = part_of(dataset.graph, partitioning, 0)
    return with_kernels(options, part, weights_of(options), DTYPES[options.dtype], None)


class Setting:
    """One setting: its parts, in memory as long as their turn lasts, or all the time where all of them fit."""

    def __init__(self, options: Options, device: torch.device, shelf: DatasetCache, tell: Tell) -> None:
        self.options = options
        self.share: int | None = None
        """Bytes that its process may take of the memory, where others train beside; else what is free at the time."""
        self._device, self._shelf, self._tell = device, shelf, tell
        self._method = method_of(options.method, options.knobs)
        self._mail = Mail()
        self._parts = tuple(PartRecord(rank, period=self._method.period) for rank in range(options.workers))
        self._runs: dict[int, PartRun] = {}
        self._setup_s = 0.0
        self._needs: dict[int, int] = {}
        self._stay = False

    @property
    def largest(self) -> int:
        """Bytes that its largest part needs."""
        return max(self._needed(part.rank) for part in self._parts)

    def measured(self, seconds: float, first: int = 0, until: Callable[[], bool] | None = None) -> SettingRecord:
        """Measure for about so many seconds; at least a few iterations of each part.

        first: the part that begins. until: says when to end instead.
        """
        start = time.perf_counter()
        self._stay = self._fits()
        first %= len(self._parts)
        in_turn = self._parts[first:] + self._parts[:first]
        if self._method.asks_once:
            for part in self._parts:
                self._attempt(part, lambda run: run.train(1, measured=False), stay=False)
        each = 0.0
        for part in in_turn:
            each += self._rehearsed(part, seconds / ROUNDS / len(self._parts))
            if until is not None and until():
                break
        count = self._iterations(each, seconds - (time.perf_counter() - start))
        # Graphs that are drawn already were asked for before all parts had their first turn.
        lead = 1 + int(str(self.options.knobs.get("tau", 0)))
        rounds = 0
        while any(part.skipped is None for part in self._parts):
            begun = time.perf_counter()
            for part in in_turn:
                self._say(f"round {rounds + 1}, part {part.rank + 1} of {len(self._parts)}")
                self._turn(part, lead, count)
                if until is not None and until():
                    break
            lead, rounds = 1, rounds + 1
            now = time.perf_counter()
            if until is not None:
                if until():
                    break
                continue
            over = rounds >= FEWEST_ROUNDS and now - start + (now - begun) > seconds
            if over or (rounds >= SETTLED_ROUNDS and all_known(self._parts)):
                break
        for rank in list(self._runs):
            self._runs.pop(rank).close()
        self._free()
        return SettingRecord(self.options, self._parts, time.perf_counter() - start)

    def _rehearsed(self, part: PartRecord, seconds: float) -> float:
        """The first turn of a part, of which nothing is kept; seconds of one iteration, 0 where it does not fit."""
        self._say(f"warm-up, part {part.rank + 1} of {len(self._parts)}")
        start = time.perf_counter()
        found: list[float] = []
        while len(found) < WARMUP and (len(found) < LEAST_WARMUP or time.perf_counter() - start < seconds):
            taken = self._attempt(part, lambda run: run.train(1, measured=False), stay=True)
            if taken is None:
                return 0.0
            found += taken
        if not self._stay:
            self._leave(part.rank)
        self._setup_s += time.perf_counter() - start - sum(found)
        return min(found[1:])

    def _iterations(self, value: float, seconds: float) -> int:
        """Of one turn: so many that the time is enough for several rounds.

        value: seconds of an iteration of all parts together.
        """
        rounds, least = (ROUNDS, 1) if self._stay else (SETTLED_ROUNDS, FEWEST_AT_ONCE)
        fits = seconds / rounds - (0.0 if self._stay else self._setup_s)
        # Of a turn, an iteration comes before those that are measured, and perhaps one that refreshes after them.
        others = 1 if self._method.period is None else 3
        return min(max(int(fits / value) - others, least), LONGEST) if value else least

    def _turn(self, part: PartRecord, lead: int, iterations: int) -> None:
        def train(run: PartRun) -> list[float]:
            run.train(max(lead, 0 if self._stay else LEAST_WARMUP), measured=False)
            return run.turn(iterations)

        if part.skipped is None:
            self._attempt(part, train, stay=True)
            if not self._stay and part.rank in self._runs:
                self._leave(part.rank)

    def _attempt(self, part: PartRecord, work: Callable[[PartRun], list[float]], *, stay: bool) -> list[float] | None:
        """What `work` gives of the part in memory; None where it does not fit, or its loss is no number any more."""
        skipped = None if part.rank in self._runs else self._too_large(part.rank)
        found: list[float] = []
        full = False
        try:
            if skipped is None:
                found = work(self._run(part))
        except DivergedError as error:
            skipped = Skipped(str(error))
        except (MemoryError, RuntimeError) as error:
            skipped, full = self._full(error), True
            if skipped is None:
                raise
        # Here nothing of the error holds any tensor.
        if full and self._device.type == "cuda" and self._runs.keys() - {part.rank}:
            self._make_room(part)
            return self._attempt(part, work, stay=stay)
        if skipped is not None:
            self._drop(part, skipped)
            return None
        if not stay:
            self._leave(part.rank)
        return found

    def _run(self, part: PartRecord) -> PartRun:
        if part.rank not in self._runs:
            self._runs[part.rank] = PartRun(part, self.options, self._device, self._shelf, self._mail)
        return self._runs[part.rank]

    def _too_large(self, rank: int) -> Skipped | None:
        """Whether the part will need more than is free, on a CPU."""
        free = self._free_bytes()
        if self._device.type != "cpu" or free is None:
            return None
        needed = self._needed(rank)
        return Skipped("does not fit into memory", needed, free) if needed > free else None

    def _full(self, error: Exception) -> Skipped | None:
        """Of an error that says that there is no more memory; None of others."""
        if isinstance(error, torch.cuda.OutOfMemoryError):
            free, _ = torch.cuda.mem_get_info(self._device)
            needed = int(torch.cuda.max_memory_allocated(self._device)) + asked_bytes(str(error))
            free += int(torch.cuda.memory_reserved(self._device))
            return Skipped("does not fit into the memory of the GPU", needed, free)
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            return Skipped("does not fit into memory", None, free_bytes())
        return None

    def _make_room(self, part: PartRecord) -> None:
        """From now on one part at a time is on the GPU; `part`, which had no room beside others, begins anew."""
        self._stay = False
        run = self._runs.pop(part.rank, None)
        if run is not None:
            run.abandon()
        del run
        part.forget()
        for rank in list(self._runs):
            self._leave(rank)
        self._free()

    def _drop(self, part: PartRecord, skipped: Skipped) -> None:
        """Forget what was measured of a part that cannot be measured after all."""
        run = self._runs.pop(part.rank, None)
        if run is not None:
            run.abandon()
        part.forget()
        part.skipped = skipped
        del run
        self._free()

    def _leave(self, rank: int) -> None:
        self._runs.pop(rank).close()
        self._free()

    def _free(self) -> None:
        gc.collect()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _fits(self) -> bool:
        """Whether all parts fit into memory at once; on a GPU with room to spare, since needs are rough."""
        needed, free = sum(self._needed(part.rank) for part in self._parts), self._free_bytes()
        if self._device.type == "cuda":
            # A cache of size `auto` takes what is free, which is less beside other parts.
            cache = self.options.knobs.get("cache")
            fills = isinstance(cache, CacheSize) and cache.auto
            if fills or GPU_ROOM * needed > free_on_gpu(self._device):
                return False
        return free is None or needed <= free

    def _free_bytes(self) -> int | None:
        return free_bytes() if self.share is None else self.share

    def _needed(self, rank: int) -> int:
        if rank not in self._needs:
            self._needs[rank] = self._foretold(rank)
        return self._needs[rank]

    def _foretold(self, rank: int) -> int:
        options = self.options
        dataset = self._shelf.dataset(options)
        sizes = sizes_of(dataset.graph, self._shelf.owners(options, dataset), rank)
        everywhere = isinstance(self._method, MiniBatch) and self._method.everywhere
        stored = dataset.graph.nodes - sizes.inner if everywhere else 0
        return needed_bytes(sizes, options, widths_of(options, dataset), stored)

    def _say(self, text: str) -> None:
        errors = [relative_error(part.rounds) for part in self._parts if part.skipped is None]
        known = max(errors, default=math.inf)
        means = f", means known to {100 * known:.1f} %" if math.isfinite(known) else ""
        self._tell(f"{self.options.method}, {text}{means}")
