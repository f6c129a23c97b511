"""Facts of a run together with where a method's knobs stand, so that a test says both at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from gcnsim.methods import Facts, Method, create_method, method_type
from gcnsim.schedule import Schedule
from gcnsim.workload.staleness import BlockRule


@dataclass(frozen=True, slots=True)
class Case(Facts):
    """Facts and knobs. sampled: whether psc-gcn draws its graphs (their counts are the facts'); weighted: by vr."""

    tau: int = 0
    sampled: bool = False
    weighted: bool = False
    refresh: int = 20
    rate: float = 1.0
    sample: str = "nodes"
    overlap: bool = False
    queue: int = 1
    replicas: int = 2
    block_rule: BlockRule = field(default_factory=BlockRule)


def facts_of(case: Facts) -> Facts:
    """The facts alone."""
    return Facts(**{entry.name: getattr(case, entry.name) for entry in fields(Facts)})


def method_of(name: str, case: Facts) -> Method:
    """The method `name` with those of the case's knobs that it has."""
    assert isinstance(case, Case)
    kind, rule = method_type(name), case.block_rule
    knobs: dict[str, Any] = {
        "tau": case.tau,
        "epsilon": 0.5 if case.sampled else 1.0,
        "sampler": "vr" if case.weighted else "uniform",
        "refresh": case.refresh,
        "rate": case.rate,
        "sample": case.sample,
        "queue": case.queue,
        "replication": case.replicas,
        "stale_test": rule.test,
        "threshold": rule.threshold,
        "drift": rule.drift,
        "warmup": rule.warmup,
        "detection": "delayed" if rule.delayed else "at-once",
        "skip_backward": "yes" if rule.skips_backward else "no",
    }
    given = {knob: value for knob, value in knobs.items() if kind.has(knob)}
    made = create_method(name, **given)
    # Stale rows leave nothing to overlap.
    return create_method(name, **given, overlap="central") if case.overlap and not made.tau else made


def method(name: str) -> Callable[[Facts], Schedule]:
    """What writes the schedule of method `name` for a case."""

    def write(case: Facts) -> Schedule:
        return method_of(name, case).schedule(facts_of(case))

    return write
