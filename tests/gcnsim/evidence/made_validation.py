"""Four judged runs whose figures can be worked out by hand."""

from __future__ import annotations

from typing import Any

from gcnsim.evidence.validation import RunCheck
from gcnsim.timeline.breakdown import PHASES

SETTING = "small, gcn 32-32-8, 2 x 1 at 200 Mbit/s"


def judged(run: str, configuration: str, measured: float, predicted: float, **changes: Any) -> RunCheck:
    """One run; a tenth either way is its interval, and half of it is compute."""
    given: dict[str, Any] = {
        "run": run,
        "setting": SETTING,
        "configuration": configuration,
        "measured_s": measured,
        "predicted_s": predicted,
        "low_s": 0.9 * predicted,
        "high_s": 1.1 * predicted,
        "measured": dict(zip(PHASES, (0.5 * measured, 0.25 * measured, 0.25 * measured), strict=True)),
        "predicted": dict(zip(PHASES, (0.5 * predicted, 0.5 * predicted, 0.0), strict=True)),
        "outside": (),
    }
    return RunCheck(**given | changes)


def four() -> list[RunCheck]:
    """Configuration a twice, b predicted to be the quickest, c the slowest."""
    return [
        judged("a1", "a", 1.0, 1.1),
        judged("a2", "a", 1.2, 1.1),
        judged("b1", "b", 2.0, 1.0),
        judged("c1", "c", 3.0, 3.3, outside=("tau 5 (calibrated: 0 to 2)",)),
    ]
