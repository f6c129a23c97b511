"""Failures and spot interruptions of a training: how long it takes with checkpoints, and where spot servers cost less.

The rates are the asker's; none is assumed. Where a checkpoint fits into a spot server's notice, interruptions lose no
work.

J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer
Systems 22 (2006), pages 303 to 312, which refines J. W. Young, "A first order approximation to the optimum checkpoint
interval", Communications of the ACM 17 (1974), pages 530 and 531. Failures come at random, at any time, also while a
checkpoint is written and while training restarts; what was computed since the last checkpoint is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Final, TypeVar

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, Seconds
from gcnsim.hardware import ON_DEMAND, SPOT, PriceBook, Rent
from gcnsim.planning.rows import rent_of
from gcnsim.results import FailuresReport, OtherPricing, TargetRow
from gcnsim.scenario import ClusterSpec

Amount = TypeVar("Amount", float, FloatArray)

NEVER_S: Final = 100 * 365.25 * 24 * 3600.0
"""Seconds of a training that practically never ends: 100 years."""

TIMES: Final = 1000.0
"""A training that takes this many times as long as without failures practically never ends either."""

LONG_S: Final = 1e9
"""Seconds of work that no machine survives without checkpoints, if it fails at all."""

STEPS: Final = 60
"""Halvings of the interval that holds the break-even rate."""


def best_interval(checkpoint_s: Seconds, mtbf_s: Seconds) -> Seconds:
    """Seconds of work between checkpoints that end the training soonest (Daly, equation 37)."""
    share = checkpoint_s / (2.0 * mtbf_s)
    if share >= 1.0:
        return mtbf_s
    return sqrt(2.0 * checkpoint_s * mtbf_s) * (1.0 + sqrt(share) / 3.0 + share / 9.0) - checkpoint_s


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


@dataclass(frozen=True, slots=True)
class Failures:
    """What ends a training early. failing, interrupted: failures and spot interruptions of one server per hour;
    checkpoint_s: to write a checkpoint; restart_s: from a failure until training goes on. saved: the notice of an
    interruption is long enough to write a checkpoint."""

    failing: float
    interrupted: float
    checkpoint_s: Seconds
    restart_s: Seconds
    saved: bool = False

    @classmethod
    def of(
        cls,
        option: str,
        pricing: str,
        mtbf: Seconds | None,
        interruptions: float | None,
        checkpoint: Seconds | None,
        restart: Seconds | None,
        interruption_notice: Seconds | None = None,
    ) -> Failures:
        """What options say, of which `option` is the first. mtbf: of a server; interruptions: of it per hour. Raises
        ScenarioError where something is left open."""
        if checkpoint is None or restart is None:
            raise ScenarioError(f"{option}: failures need --checkpoint and --restart, both")
        if interruptions is not None and pricing != SPOT:
            raise ScenarioError("--interruptions: only spot servers are interrupted; give --pricing spot")
        if interruption_notice is not None and interruptions is None:
            raise ScenarioError("--interruption-notice: is of interruptions; give --interruptions")
        if interruption_notice is not None and interruption_notice < checkpoint:
            short = f"no checkpoint of {checkpoint:g} s fits into {interruption_notice:g} s; leave it out"
            raise ScenarioError(f"--interruption-notice: {short}")
        failing = 0.0 if mtbf is None else 3600.0 / mtbf
        return cls(failing, interruptions or 0.0, checkpoint, restart, interruption_notice is not None)

    @property
    def per_hour(self) -> float:
        """Failures and interruptions of one server per hour."""
        return self.failing + self.interrupted

    @property
    def losing_per_hour(self) -> float:
        """Those that lose work."""
        return self.failing if self.saved else self.per_hour

    def interval(self, work_s: Seconds, servers: int) -> Seconds | None:
        """Seconds of work between checkpoints that end the training soonest; None: without any."""
        if not self.losing_per_hour:
            return None
        often, pieces, whole = self._means(work_s, servers)
        return often if pieces < whole else None

    def seconds(self, work_s: Amount, servers: int) -> Amount:
        """Mean seconds until that much work is done, with checkpoints as often as is best; infinite: never."""
        if not self.per_hour:
            return work_s
        _, pieces, whole = self._means(work_s, servers)
        shorter: Amount = np.minimum(pieces, whole)
        return shorter

    def total(self, work_s: Seconds, servers: int) -> Seconds | None:
        """The same of one training; None: it practically never ends."""
        seconds = float(self.seconds(work_s, servers))
        return None if seconds > min(NEVER_S, TIMES * work_s) else seconds

    def ends(self, servers: int) -> bool:
        """Whether the mean time of long trainings on so many servers is a number."""
        return self.seconds(LONG_S, servers) < inf

    def _means(self, work_s: Amount, servers: int) -> tuple[Seconds, Amount, Amount]:
        """The best interval between checkpoints, and the mean seconds with it and without a checkpoint."""
        losing = self.losing_per_hour * servers / 3600.0
        often = best_interval(self.checkpoint_s, 1.0 / losing) if losing else inf
        if self.saved and self.interrupted:
            own = (self.checkpoint_s, self.restart_s, losing, self.interrupted * servers / 3600.0)
            return often, time_with_notice(work_s, often, *own), time_with_notice(work_s, None, *own)
        rest = (self.checkpoint_s, self.restart_s, 1.0 / losing)
        return often, expected_time(work_s, often, *rest), expected_time(work_s, None, *rest)

    def report(self, row: TargetRow, servers: int) -> FailuresReport:
        """A row's training with its failures; `row` has seconds."""
        work_s, ends = row.seconds, (row.seconds_low, row.seconds_high)
        assert work_s is not None
        low, high = (None if end is None else self.total(end, servers) for end in ends)
        total = self.total(work_s, servers)
        return FailuresReport(
            checkpoint_every_s=self.interval(work_s, servers),
            seconds=total,
            seconds_low=low,
            seconds_high=high,
            failures=None if total is None else total * self.per_hour * servers / 3600.0,
            cost=None if total is None or row.cost is None else row.cost * total / work_s,
            saved=True if self.saved else None,
        )

    def other_pricing(self, work_s: Seconds, cluster: ClusterSpec, book: PriceBook) -> OtherPricing | None:
        """The same training on demand in place of spot, or the reverse; None without two different prices, or without
        an end."""
        on_demand, spot = _rents(cluster, book)
        if on_demand is None or spot is None or on_demand.per_hour == spot.per_hour:
            return None
        total = replace(self, interrupted=0.0).total(work_s, cluster.servers)
        if total is None:
            return None
        other = on_demand if book.pricing == SPOT else spot
        rate = self._rate(work_s, cluster.servers, total * on_demand.per_hour / spot.per_hour)
        return OtherPricing(ON_DEMAND if other is on_demand else SPOT, total, other.per_hour * total / 3600.0, rate)

    def _rate(self, work_s: Seconds, servers: int, most_s: Seconds) -> float | None:
        """Interruptions of a server per hour with which the training takes `most_s`; None: it takes more with none."""

        def takes(rate: float) -> Seconds:
            return float(replace(self, interrupted=rate).seconds(work_s, servers))

        if takes(0.0) >= most_s:
            return None
        low, high = 0.0, 3600.0 / work_s
        while takes(high) < most_s:
            low, high = high, 2.0 * high
        for _ in range(STEPS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if takes(middle) < most_s else (low, middle)
        return low


def one_price(cluster: ClusterSpec, book: PriceBook) -> bool:
    """Whether a machine has the same known price on demand and on spot, as where the asker gives it."""
    on_demand, spot = _rents(cluster, book)
    return on_demand is not None and spot is not None and on_demand.per_hour == spot.per_hour


def _rents(cluster: ClusterSpec, book: PriceBook) -> tuple[Rent | None, Rent | None]:
    """What a machine costs on demand and on spot."""
    return rent_of(cluster, replace(book, pricing=ON_DEMAND)), rent_of(cluster, replace(book, pricing=SPOT))
