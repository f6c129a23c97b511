"""All judged runs in a few figures, beside what repeated runs differ by themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from gcnsim.breakdown import PHASES
from gcnsim.validation.run_check import RunCheck


def summarise(judged: Sequence[RunCheck]) -> dict[str, Any]:
    """Errors over runs: mean, median, 90th percentile and largest absolute relative error, signed mean (bias).

    phases: mean signed and 90th percentile absolute error of each, as shares of the iteration. kendall: rank agreement
    of configurations within their settings, tau-a over all their pairs; regret: how much slower than the measured best
    the predicted best was, mean and largest over settings (both None where no setting has two configurations).
    coverage: share of runs within their interval, None where none has one. spread: how far repeats are from their mean.
    """
    errors = np.array([each.error for each in judged])
    size = np.abs(errors)
    return {
        "runs": len(judged),
        "configurations": len({(each.setting, each.configuration) for each in judged}),
        "mape": float(size.mean()),
        "median_ape": float(np.median(size)),
        "p90_ape": float(np.percentile(size, 90)),
        "max_ape": float(size.max()),
        "bias": float(errors.mean()),
        "phases": {phase: _phase(judged, phase) for phase in PHASES},
        "kendall": kendall(judged),
        "regret": regret(judged),
        "coverage": coverage(judged),
        "spread": spread(judged),
    }


def by_configuration(judged: Sequence[RunCheck]) -> dict[str, dict[str, tuple[float, float]]]:
    """Per setting and configuration, mean measured and predicted seconds of its repeats."""
    groups: dict[str, dict[str, list[RunCheck]]] = defaultdict(lambda: defaultdict(list))
    for each in judged:
        groups[each.setting][each.configuration].append(each)
    return {
        setting: {
            name: (
                float(np.mean([each.measured_s for each in repeats])),
                float(np.mean([each.predicted_s for each in repeats])),
            )
            for name, repeats in found.items()
        }
        for setting, found in groups.items()
    }


def kendall(judged: Sequence[RunCheck]) -> float | None:
    """(concordant - discordant) / pairs, over pairs of configurations of one setting."""
    signs = [
        np.sign(a[0] - b[0]) * np.sign(a[1] - b[1])
        for found in by_configuration(judged).values()
        for a, b in combinations(found.values(), 2)
    ]
    return float(np.mean(signs)) if signs else None


def regret(judged: Sequence[RunCheck]) -> dict[str, float] | None:
    """Measured time of the predicted best over the measured best, minus one."""
    lost = []
    for found in by_configuration(judged).values():
        if len(found) > 1:
            chosen = min(found.values(), key=lambda pair: pair[1])
            lost.append(chosen[0] / min(pair[0] for pair in found.values()) - 1.0)
    return {"mean": float(np.mean(lost)), "max": float(np.max(lost))} if lost else None


def coverage(judged: Sequence[RunCheck]) -> float | None:
    """Share of the runs within their interval, of those that have one."""
    found = [each.covered for each in judged if each.covered is not None]
    return float(np.mean(found)) if found else None


def spread(judged: Sequence[RunCheck]) -> dict[str, float] | None:
    """Relative distance of repeated runs from their configuration's mean."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for each in judged:
        groups[each.setting, each.configuration].append(each.measured_s)
    far = [abs(value / np.mean(times) - 1.0) for times in groups.values() if len(times) > 1 for value in times]
    return {"mean": float(np.mean(far)), "p90": float(np.percentile(far, 90))} if far else None


def _phase(judged: Sequence[RunCheck], phase: str) -> dict[str, float]:
    errors = np.array([each.phase_error(phase) for each in judged])
    return {"bias": float(errors.mean()), "p90": float(np.percentile(np.abs(errors), 90))}
