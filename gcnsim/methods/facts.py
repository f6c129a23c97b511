"""What a method writes its schedule from: the machine, the model and the sampled accesses of one run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.boundary import AccessCounts
from gcnsim.cluster import Cluster
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.ids import IntArray, Iteration, Rank
from gcnsim.methods.placement import Placement
from gcnsim.sampling import DEGREE_SPREAD
from gcnsim.workload import EXCHANGE_FIRST, LayerShape


@dataclass(frozen=True, slots=True)
class Facts:
    """The machine, the model and the sampled accesses of one run; what the method's knobs are is the method's to know.

    counts: of the graphs drawn (one all-ones graph for methods that do not sample). norm: a LayerNorm stands before
    each hidden activation. dropout: what of a layer's input is dropped, one of `gcnsim.workload.DROPOUTS`. seed: of how
    much equal work varies. rate_beside_copies: share of its rate at which a GPU computes while transfers are under way.
    payload: how boundary rows travel. devices: by rank, where GPUs are unequal; empty where all are `device`. serial: a
    worker's messages of a direction follow one another. streaming: share of the memory bandwidth at which products of
    whole blocks read entries. sampler_threads: CPU threads that share the drawing of one worker's graph.
    samples_on_gpu: the GPU draws it. placement: where mini-batches are drawn and their rows lie; None: as is usual with
    the method, on the GPU what may be there. unrelated: the graphs do not follow one another: each stands for a run of
    its like. released: with what the published systems' own code costs on GPUs (`gcnsim.cost.released`). degree_spread:
    standard deviation of the logarithm of nodes' degrees, about.
    """

    cluster: Cluster
    device: DeviceProfile
    host: HostProfile
    shapes: tuple[LayerShape, ...]
    counts: AccessCounts
    norm: bool = True
    dropout: str = EXCHANGE_FIRST
    rate_beside_copies: float = 1.0
    seed: int = 0
    payload: str = "fp32"
    devices: tuple[DeviceProfile, ...] = ()
    serial: bool = False
    streaming: float = 0.8
    unrelated: bool = False
    sampler_threads: int = 1
    samples_on_gpu: bool = False
    placement: Placement | None = None
    released: bool = False
    degree_spread: float = DEGREE_SPREAD

    def ahead(self, graphs: IntArray, tau: Iteration) -> IntArray:
        """At each iteration t what graph t + tau has, int64[T, ...]."""
        return graphs if self.unrelated else np.roll(graphs, -tau, axis=0)

    def earlier(self, graphs: IntArray, tau: Iteration) -> IntArray:
        """At each iteration t what graph t - tau has, int64[T, ...]."""
        return graphs if self.unrelated else np.roll(graphs, tau, axis=0)

    def device_of(self, rank: Rank) -> DeviceProfile:
        """The device of one worker."""
        return self.devices[rank] if self.devices else self.device
