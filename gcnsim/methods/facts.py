"""What a method writes its schedule from: the machine, the model and the sampled accesses of one run.

A `Placement` says where mini-batches of GPUs are drawn, and where the input rows that they read lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gcnsim.boundary import AccessCounts
from gcnsim.cluster import Cluster
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.ids import IntArray, Iteration, Rank
from gcnsim.sampling import DEGREE_SPREAD
from gcnsim.workload import EXCHANGE_FIRST, LayerShape

HOST: Final = "host"
UVA: Final = "uva"
ON_GPU: Final = "gpu"
FEATURES: Final = (HOST, UVA, ON_GPU)
"""Where input rows lie: in host memory, picked out by its cores; there too, read by the GPU (unified addressing); on
every GPU."""


@dataclass(frozen=True, slots=True)
class Placement:
    """How one worker's batches come to its GPU.

    on_gpu: the GPU draws them, from the graph in its memory where the rows lie there too, else from host memory by
    unified addressing. threads: of the host, which draw batches ahead of training; 0: the trainer draws each before it
    trains. features: one of FEATURES; None: on the GPU where graph and rows fit beside a batch, else UVA.
    """

    on_gpu: bool = False
    threads: int = 1
    features: str | None = HOST

    @property
    def ahead(self) -> bool:
        """Whether the next batch is drawn while one is loaded and trained."""
        return not self.on_gpu and self.threads > 0

    @property
    def graph_on_gpu(self) -> bool:
        """Whether the GPU holds the graph."""
        return self.on_gpu and self.features == ON_GPU


IN_TURN: Final = Placement(threads=0)
"""The trainer's own process draws every batch before it trains, rows lie in host memory."""


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
