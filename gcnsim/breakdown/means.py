"""Computation, exposed communication and the rest of a run of which only means are known, not its spans."""

from __future__ import annotations

from typing import Final, Protocol

from gcnsim.ids import Seconds

PHASES: Final = ("compute", "exposed_comm", "exposed_other")
"""The three that every source tells, of which predictions are judged by."""


class Means(Protocol):
    """Seconds per iteration of one worker, as the summary in run.json has them."""

    @property
    def compute_s(self) -> Seconds:
        """Its kernels."""

    @property
    def wait_s(self) -> Seconds:
        """Its main thread was blocked."""

    @property
    def exposed_sampling_s(self) -> Seconds:
        """Sampling while it was, or that it did itself."""

    @property
    def unpack_s(self) -> Seconds:
        """Received rows were taken in, on any thread."""


def phases_of_means(means: Means, iteration_s: Seconds, *, samples_itself: bool) -> dict[str, Seconds]:
    """The three phases of an iteration, by PHASES; samples_itself: the main thread samples.

    What `breakdown` says of spans, said of their sums: waits that are not for sampling, and all taking in of received
    rows, are exposed communication. It differs from `breakdown` where received rows are taken in on a helper thread,
    and by the time between iterations.
    """
    sampler = 0.0 if samples_itself else means.exposed_sampling_s
    comm = max(means.wait_s - sampler, 0.0) + means.unpack_s
    other = max(iteration_s - means.compute_s - comm, 0.0)
    return dict(zip(PHASES, (means.compute_s, comm, other), strict=True))
