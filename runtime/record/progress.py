"""The progress of a run on standard error: one live line, or a JSON object per iteration."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import asdict
from typing import Final, TextIO

from gcnsim.core.ids import Iteration
from gcnsim.core.terminal import LiveLine
from gcnsim.core.units import format_fraction
from runtime.record.run_folder import IterationRow

REDRAW_S: Final = 0.1
"""The line is redrawn at most ten times a second."""

_MEMORY: Final = 0.9
"""The weight of the past in the running mean of an iteration's seconds, about the last ten iterations."""


class Progress:
    """The progress of the iterations first..iterations - 1, printed by one worker.

    The line appears only if `stream` (standard error) is a terminal and `quiet` is not set. With `json_log` each
    iteration is one JSON object on a line instead, with the keys of `iterations.csv`. If the reader closes the stream,
    the output stops, not the run.
    """

    def __init__(
        self,
        iterations: int,
        first: Iteration = 0,
        *,
        quiet: bool = False,
        json_log: bool = False,
        stream: TextIO | None = None,
    ) -> None:
        self._iterations = iterations
        self._first = first
        self._stream = stream or sys.stderr
        self._json = json_log
        self._line = None if quiet or json_log else LiveLine(self._stream)
        self._drawn_at = -math.inf
        self._mean_s: float | None = None
        self._accuracy: float | None = None
        if self._line is not None:
            # Import the line's library before the first iteration, not in it.
            self._line.show(f"iteration {first}/{iterations}")

    def show(self, row: IterationRow) -> None:
        """Report a finished iteration."""
        if self._json:
            self._say(_object(row) + "\n")
        if self._line is None or not self._line.watched:
            return
        known = self._mean_s if self._mean_s is not None else row.seconds
        self._mean_s = _MEMORY * known + (1 - _MEMORY) * row.seconds
        self._accuracy = row.val_accuracy if row.val_accuracy is not None else self._accuracy
        now = time.monotonic()
        if now - self._drawn_at >= REDRAW_S or row.iteration + 1 == self._iterations:
            self._drawn_at = now
            self._line.show(self._text(row, self._mean_s))

    def close(self) -> None:
        """Wipe the line."""
        if self._line is not None:
            self._line.clear()

    def _text(self, row: IterationRow, mean_s: float) -> str:
        done = row.iteration + 1
        left = _clock((self._iterations - done) * mean_s)
        loss = "waits only" if row.loss is None else f"loss {row.loss:.4g}"
        parts = [f"iteration {done}/{self._iterations}", f"{left} left", loss]
        if self._accuracy is not None:
            parts.append(f"accuracy {format_fraction(self._accuracy)}")
        parts.append(f"{mean_s:.3g} s/iteration")
        if row.wait_s is not None and row.seconds > 0:
            parts.append(f"waiting {format_fraction(row.wait_s / row.seconds)}")
        if row.hit_rate is not None:
            parts.append(f"hits {format_fraction(row.hit_rate)}")
        return ", ".join(parts)

    def _say(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._json = False


def _object(row: IterationRow) -> str:
    """`row` as JSON; a loss that is not finite is null, which JSON can represent."""
    values = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(row).items()
    }
    return json.dumps(values, allow_nan=False)


def _clock(seconds: float) -> str:
    """Time left: `1:02:03`, `2:03`.

    >>> _clock(123.4)
    '2:03'
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
