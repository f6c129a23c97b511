"""The program on other cores while parts are measured: it trains parts of the same setting.

The standard input has one JSON object, then the number of a setting a line (`runtime.measuring.neighbours`).
"""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable, Sequence
from typing import Any, Final

from gcnsim.core.signals import die_with_parent
from runtime.data import DatasetCache
from runtime.launch import disable_malloc_trim
from runtime.measuring.neighbours import READY, on_cores
from runtime.measuring.request import options_from
from runtime.measuring.rounds import ALONE, Setting, with_fastest_kernels
from runtime.options import Options
from runtime.train.setup import device_of

NEIGHBOUR_S: Final = 10.0
"""What a neighbour divides into rounds; it goes on until it is told otherwise."""


class Neighbour:
    """Trains the parts of settings, one after the other, until it is told to go on."""

    def __init__(self, settings: Sequence[Options], share: int | None) -> None:
        """Read the graph and cut it. share: bytes that it may take for parts."""
        self._settings, self._share = settings, share
        self._shelf = DatasetCache()
        self._device = device_of(settings[0], ALONE)
        self._dataset = self._shelf.dataset(settings[0])
        self._partitioning = self._shelf.owners(settings[0], self._dataset)
        disable_malloc_trim()

    def train(self, number: int, first: int, until: Callable[[], bool]) -> None:
        """Train the parts of a setting, from part `first` on, until `until` says so."""
        options = with_fastest_kernels(self._settings[number], self._dataset, self._partitioning)
        setting = Setting(options, self._device, self._shelf, lambda _: None)
        setting.share = self._share
        setting.measured(NEIGHBOUR_S, first=first, until=until)


def main() -> None:
    """Train what the lines of the standard input say, until it ends."""
    with open(0, "rb", buffering=0, closefd=False) as lines:
        request: dict[str, Any] = json.loads(lines.readline())
        die_with_parent(request["parent"])
        with on_cores(request["cores"]):
            neighbour = Neighbour([options_from(setting) for setting in request["settings"]], request["share"])
            os.write(1, READY)
            while line := lines.readline():
                neighbour.train(int(line), request["first"], lambda: bool(select.select([lines], [], [], 0)[0]))


if __name__ == "__main__":
    main()
