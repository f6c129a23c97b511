"""The staleness rule, shared by simulator and training runtime: which iteration's boundary values are read when.

At iteration t (from 0) a worker reads boundary values of iteration t - tau, once t >= tau; before that there is none to
read and the start-up values apply. The published listing guards with t > tau, an off-by-one taken over from a loop that
counts from 1: it would drop the values of iteration 0, so the guard here is t >= tau. With tau = 0 the values are
this iteration's own.
"""

from __future__ import annotations

from gcnsim.ids import Iteration


def source_iteration(t: Iteration, tau: int) -> Iteration | None:
    """The iteration whose boundary values (and boundary gradients) iteration `t` uses; None at a cold start, t < tau.

    >>> [source_iteration(t, 2) for t in range(4)]
    [None, None, 0, 1]
    """
    return t - tau if t >= tau else None


def slot(t: Iteration, tau: int) -> int:
    """The slot of a ring of `tau` buffers that receives the values of iteration `t`; needs tau >= 1.

    Iteration t + tau reads the slot just before it receives its own values, so no value is overwritten unread.

    >>> [slot(t, 3) for t in range(5)]
    [0, 1, 2, 0, 1]
    """
    if tau < 1:
        raise ValueError(f"tau {tau}: a ring needs tau >= 1")
    return t % tau


def age(t: Iteration, tau: int) -> int | None:
    """Age in iterations of the boundary values that iteration `t` reads: tau, or None at a cold start."""
    source = source_iteration(t, tau)
    return None if source is None else t - source
