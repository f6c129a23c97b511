"""What every method's schedule is written from, and the registry that finds a method by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from gcnsim.cluster import Cluster
from gcnsim.knobs import METHOD_KNOBS, knobs_of
from gcnsim.profile import DeviceProfile, HostProfile
from gcnsim.schedule import Schedule
from gcnsim.trace import AccessCounts
from gcnsim.workload import LayerShape


@dataclass(frozen=True, slots=True)
class Facts:
    """The machine, the model and the sampled accesses of one run.

    counts: of the graphs drawn (one all-ones graph for methods that do not sample). tau: staleness in iterations.
    sampled: whether graphs are drawn every iteration (epsilon below 1). weighted: whether the sampler recomputes
    probabilities every `refresh` iterations. overlap: inner columns are summed beneath this iteration's transfers.
    norm: a LayerNorm stands before each hidden activation. rate: share of the boundary nodes that is drawn.
    seed: of how much equal work varies. rate_beside_copies: share of its rate at which a GPU computes while transfers
    are under way.
    """

    cluster: Cluster
    device: DeviceProfile
    host: HostProfile
    shapes: tuple[LayerShape, ...]
    counts: AccessCounts
    tau: int = 0
    sampled: bool = False
    weighted: bool = False
    refresh: int = 1
    overlap: bool = False
    norm: bool = True
    rate: float = 1.0
    rate_beside_copies: float = 1.0
    seed: int = 0


Build = Callable[[Facts], Schedule]


def method(name: str) -> Build:
    """The function that writes the schedule of method `name`: `build` in the module of that name.

    Raises ScenarioError for an unknown method.
    """
    knobs_of(name)
    build: Build = import_module(f"gcnsim.methods.{name.replace('-', '_')}").build
    return build


def methods() -> tuple[str, ...]:
    """Names of all methods, the synchronous baseline first."""
    return tuple(METHOD_KNOBS)
