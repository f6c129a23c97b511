"""What every method's schedule is written from, and the registry that finds a method by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

import numpy as np

from gcnsim.cluster import Cluster
from gcnsim.ids import IntArray, Rank
from gcnsim.knobs import METHOD_KNOBS, knobs_of
from gcnsim.profile import DeviceProfile, HostProfile
from gcnsim.schedule import Schedule
from gcnsim.staleness import BlockRule
from gcnsim.timeline import Direction
from gcnsim.trace import AccessCounts
from gcnsim.workload import LayerShape


@dataclass(frozen=True, slots=True)
class Facts:
    """The machine, the model and the sampled accesses of one run.

    counts: of the graphs drawn (one all-ones graph for methods that do not sample). tau: staleness in iterations.
    sampled: whether graphs are drawn every iteration (epsilon below 1). weighted: whether the sampler recomputes
    probabilities every `refresh` iterations. overlap: inner columns are summed beneath this iteration's transfers.
    norm: a LayerNorm stands before each hidden activation. rate: share of the boundary nodes that is drawn. seed: of
    how much equal work varies. rate_beside_copies: share of its rate at which a GPU computes while transfers are under
    way. payload: how boundary rows travel. devices: by rank, where GPUs are unequal; empty where all are `device`.
    serial: a worker's messages of a direction follow one another. queue: mini-batches loaded ahead. input_width: of the
    rows that mini-batches load. smooths: directions in which received rows enter a moving average. sample: what bns-gcn
    draws; rebuild_s: host time of making a graph of it, besides. Of methods that broadcast blocks of rows: replicas
    that hold the same one, block_rule, when it is sent, and streaming, the share of the memory bandwidth at which their
    products read entries. sampler_threads: CPU threads that share the drawing of one worker's graph. samples_on_gpu:
    the GPU draws it. unrelated: the graphs do not follow one another: each stands for a run of its like.
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
    payload: str = "fp32"
    devices: tuple[DeviceProfile, ...] = ()
    serial: bool = False
    queue: int = 1
    input_width: int = 0
    smooths: tuple[Direction, ...] = ()
    rebuild_s: float = 0.0
    sample: str = "nodes"
    streaming: float = 0.8
    replicas: int = 2
    block_rule: BlockRule = field(default_factory=BlockRule)
    unrelated: bool = False
    sampler_threads: int = 1
    samples_on_gpu: bool = False

    def ahead(self, graphs: IntArray) -> IntArray:
        """At each iteration t what graph t + tau has, int64[T, ...]."""
        return graphs if self.unrelated else np.roll(graphs, -self.tau, axis=0)

    def earlier(self, graphs: IntArray) -> IntArray:
        """At each iteration t what graph t - tau has, int64[T, ...]."""
        return graphs if self.unrelated else np.roll(graphs, self.tau, axis=0)

    def device_of(self, rank: Rank) -> DeviceProfile:
        """The device of one worker."""
        return self.devices[rank] if self.devices else self.device


Build = Callable[[Facts], Schedule]


def method(name: str) -> Build:
    """The function that writes the schedule of method `name`: `build` in the module of that name.

    Raises ScenarioError for an unknown method.
    """
    knobs_of(name)
    build: Build = import_module(f"gcnsim.methods.{name.replace('-', '_').replace('.', '_')}").build
    return build


def methods() -> tuple[str, ...]:
    """Names of all methods, the synchronous baseline first."""
    return tuple(METHOD_KNOBS)
