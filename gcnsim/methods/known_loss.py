"""What a setting is known to lose in accuracy against full-graph training: measured, never predicted.

The caches of static features change no values, so a setting's loss depends on its method, its rate and its tau.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from typing import Final

from gcnsim.core.yaml_files import read_yaml
from gcnsim.methods.method import Method

FILE: Final = Path(__file__).resolve().parent.parent / "data" / "accuracy_loss.yaml"

SMALL: Final = 1.0
"""Percentage points. A setting of which nothing is known ranks after those that are known to lose at most so much."""


@dataclass(frozen=True, slots=True)
class KnownLoss:
    """points: percentage points of test accuracy behind full-graph training, and the spread of the seeds, by data set.
    source: of which model and runs.
    """

    points: Mapping[str, tuple[float, float]]
    source: str

    @property
    def worst(self) -> float:
        """The largest loss of a data set; one within the spread of the seeds counts as none."""
        return max((lost for lost, spread in self.points.values() if lost > spread), default=0.0)

    @property
    def text(self) -> str:
        """The loss on each data set, in a clause."""
        each = (
            f"{lost:.1f} points on {name}" if lost > spread else f"none on {name} beyond the spread of seeds"
            for name, (lost, spread) in self.points.items()
        )
        return f"measured loss against full-graph: {', '.join(each)} ({self.source})"


EXACT: Final = ("full-graph", "cagnet-1d", "cagnet-1.5d", "roc")
"""Methods that compute what full-graph training does: they neither sample nor use old values."""

NOTHING: Final = KnownLoss({}, "the same training")


def known_loss(method: Method) -> KnownLoss | None:
    """What the setting is known to lose with payloads of full precision; None: it was not measured."""
    if method.name in EXACT:
        return NOTHING
    return _measured().get((method.name, method.tau, method.sampling().rate))


def loss_rank(method: Method) -> tuple[int, float]:
    """A sort key: small losses first, then unknown ones, then large ones.

    A setting that samples more and waits longer than a measured one of its method is taken to lose as much at least,
    and one that samples less and waits less, as little at most.
    """
    known = known_loss(method)
    if known is None:
        rate, tau = method.sampling().rate, method.tau
        own = [(*key, loss.worst) for key, loss in _measured().items() if key[0] == method.name]
        least = max((lost for _, stale, sent, lost in own if stale <= tau and sent >= rate), default=0.0)
        most = min((lost for _, stale, sent, lost in own if stale >= tau and sent <= rate), default=inf)
        if least > SMALL or most <= SMALL:
            return (2, least) if least > SMALL else (0, most)
        return 1, 0.0
    return (0 if known.worst <= SMALL else 2), known.worst


@cache
def _measured() -> Mapping[tuple[str, int, float], KnownLoss]:
    raw = read_yaml(FILE)
    return {
        (row["method"], row["tau"], row["rate"]): KnownLoss(
            {name: (lost, spread) for name, (lost, spread) in row["points"].items()}, raw["source"]
        )
        for row in raw["settings"]
    }
