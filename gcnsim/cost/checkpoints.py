"""Training with checkpoints while machines fail: how often to write one, and how long training then takes.

J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer
Systems 22 (2006), pages 303 to 312, which refines J. W. Young, "A first order approximation to the optimum checkpoint
interval", Communications of the ACM 17 (1974), pages 530 and 531. Failures come at random, at any time, also while a
checkpoint is written and while training restarts; what was computed since the last checkpoint is lost.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from gcnsim.core.ids import FloatArray, Seconds

Amount = TypeVar("Amount", float, FloatArray)


def best_interval(checkpoint_s: Seconds, mtbf_s: Seconds) -> Seconds:
    """Seconds of work between checkpoints that end the training soonest (Daly, equation 37)."""
    share = checkpoint_s / (2.0 * mtbf_s)
    if share >= 1.0:
        return mtbf_s
    return math.sqrt(2.0 * checkpoint_s * mtbf_s) * (1.0 + math.sqrt(share) / 3.0 + share / 9.0) - checkpoint_s


def expected_time(
    work_s: Amount, interval_s: Seconds | None, checkpoint_s: Seconds, restart_s: Seconds, mtbf_s: Seconds
) -> Amount:
    """Mean seconds until `work_s` of work are done (Daly, equation 20); infinite where it practically never is.

    work_s: one time or several; interval_s: None for no checkpoint, so that each failure loses all work.
    """
    with np.errstate(over="ignore"):
        restarts = mtbf_s * np.exp(restart_s / mtbf_s)
        if interval_s is None:
            found: Amount = restarts * np.expm1(work_s / mtbf_s)
        else:
            found = work_s / interval_s * (restarts * np.expm1((interval_s + checkpoint_s) / mtbf_s))
    return found


def time_with_notice(
    work_s: Amount,
    interval_s: Seconds | None,
    checkpoint_s: Seconds,
    restart_s: Seconds,
    failing: float,
    interrupted: float,
) -> Amount:
    """As `expected_time`, with interruptions that lose no work: a checkpoint is written within their notice.

    failing, interrupted: per second. An interruption costs the checkpoint and the restart, which begins anew at any
    event; a failure loses what was computed since the last checkpoint of the interval.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        restart = np.expm1(restart_s * (failing + interrupted)) / (failing + interrupted)
        longer = 1.0 + interrupted * (checkpoint_s + restart)
        if not failing:
            found: Amount = work_s * longer
        elif interval_s is None:
            found = np.expm1(work_s * failing) * (longer / failing + restart)
        else:
            lost = np.expm1((interval_s + checkpoint_s) * failing)
            found = work_s / interval_s * (lost * (longer / failing + restart))
    return found
