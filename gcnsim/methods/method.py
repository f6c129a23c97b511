"""The base class of methods: a published system as one object, whose fields are its knobs.

A method is a frozen dataclass in a file of its own. It defines what it samples (`sampling`), its iteration (`schedule`)
and the memory of a worker (`memory`). It also defines the supported options of cluster and model (`uses`,
`supports_gat`), and what a question may try (`candidates`, `steps`). No other code tests a method's name. How to write
one: docs/new_method.md.

A `Sampling` says what a method draws of its graph in each iteration. `Facts` hold the inputs of a schedule: the
machine, the model and the sampled accesses of one run. A `Placement` says where mini-batches of GPUs are drawn, and
where the input rows that they read lie; a `Loading` says what runs ahead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import Choice, check_fields, entry
from gcnsim.core.ids import IntArray, Iteration, Rank, Seconds
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.hardware.topology import Cluster
from gcnsim.timeline import Direction
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload import EXCHANGE_FIRST, LayerShape
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.draws import NODES
from gcnsim.workload.knobs import Knob, knob_of
from gcnsim.workload.reach import DEGREE_SPREAD

if TYPE_CHECKING:
    from gcnsim.cost import Memory
    from gcnsim.schedule import Schedule

HOST: Final = "host"
UVA: Final = "uva"
ON_GPU: Final = "gpu"
FEATURES: Final = (HOST, UVA, ON_GPU)
"""The place of input rows: host memory, gathered by CPU cores; host memory, read by the GPU (unified addressing); or
every GPU.
"""


@dataclass(frozen=True, slots=True)
class Placement:
    """How one worker's batches reach its GPU.

    on_gpu: the GPU samples them, from the graph in its memory if the rows are there too, otherwise from host memory by
    unified addressing. threads: host threads that sample batches ahead of training; 0: the trainer samples each before
    it trains. features: one of FEATURES; None: on the GPU if graph, rows and a batch fit, otherwise UVA.
    """

    on_gpu: bool = False
    threads: int = 1
    features: str | None = HOST

    @property
    def ahead(self) -> bool:
        """Whether the next batch is sampled while one is loaded and trained."""
        return not self.on_gpu and self.threads > 0

    @property
    def graph_on_gpu(self) -> bool:
        """Whether the graph is in GPU memory."""
        return self.on_gpu and self.features == ON_GPU


IN_TURN: Final = Placement(threads=0)
"""The trainer's process samples every batch before it trains; rows are in host memory."""


@dataclass(frozen=True, slots=True)
class Loading:
    """How a system loads batches. ahead: batches loaded before they are trained; 0: in turn. draws_ahead: whether the
    next batch is sampled meanwhile. asks: whether each batch requests rows of other servers over the network.
    """

    ahead: int = 0
    draws_ahead: bool = True
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """The machine, the model and the sampled accesses of one run, without the method's knobs.

    counts: of the sampled graphs (one all-ones graph for methods that do not sample). norm: a LayerNorm precedes each
    hidden activation. dropout: where a layer's input is dropped, one of `gcnsim.workload.DROPOUTS`. seed: of the
    variation of equal work. rate_beside_copies: relative speed of a GPU during transfers. payload: number format of
    boundary rows in messages. devices: by rank, if GPUs differ; otherwise empty. serial: a worker's messages of a
    direction follow one another. streaming: share of the memory bandwidth for products of whole blocks that go column
    by column, as those of published code do; None: row by row.
    sampler_threads: CPU threads that share the sampling of one worker's graph. samples_on_gpu: the GPU samples it.
    placement: sampling device and place of rows of mini-batches; None for the method's default. unrelated: the graphs
    are not consecutive; each represents a separate run. released: with the overhead of the published systems' code on
    GPUs (`gcnsim.cost.host_work`). degree_spread: approximate standard deviation of the logarithm of node degrees.
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
    streaming: float | None = None
    unrelated: bool = False
    sampler_threads: int = 1
    samples_on_gpu: bool = False
    placement: Placement | None = None
    released: bool = False
    degree_spread: float = DEGREE_SPREAD

    def ahead(self, graphs: IntArray, tau: Iteration) -> IntArray:
        """For each iteration t the values of graph t + tau, int64[T, ...]."""
        return graphs if self.unrelated else np.roll(graphs, -tau, axis=0)

    def earlier(self, graphs: IntArray, tau: Iteration) -> IntArray:
        """For each iteration t the values of graph t - tau, int64[T, ...]."""
        return graphs if self.unrelated else np.roll(graphs, tau, axis=0)

    def device_of(self, rank: Rank) -> DeviceProfile:
        """The device of one worker."""
        return self.devices[rank] if self.devices else self.device

    @property
    def call_s(self) -> Seconds:
        """Seconds of a host call that the GPU waits for; none in released code, whose own overheads have it."""
        return 0.0 if self.released else self.host.call_s.value


FULL = "full"
"""The rule that keeps every edge."""

WHOLE_NODES = "nodes"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a method samples the graph in each iteration.

    rule: `full` (no sampling), `vr` or `uniform` (edges, PSC-GCN), or `nodes` (boundary nodes, BNS-GCN). rate: the
    expected share of each node's edges, or of the boundary nodes, that is drawn; 1 without sampling. sample: what
    `nodes` draws (BNS-GCN's edge-sampling baselines draw `boundary-edges` or `edges`). norms: a file with node norms
    for `vr`.
    """

    rule: str = FULL
    rate: float = 1.0
    sample: str = WHOLE_NODES
    norms: str | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is sampled: every edge is kept."""
        return self.rule == FULL

    @property
    def drawn_by(self) -> tuple[str, float]:
        """The rule and the rate, as stored in access traces."""
        return self.rule, self.rate

    @property
    def by_edge(self) -> bool:
        """Whether edges are drawn independently, by the rules of PSC-GCN."""
        return self.rule not in (FULL, NODES)

    @property
    def drops_edges(self) -> bool:
        """Whether edges instead of nodes are dropped at BNS-GCN's rate."""
        return self.rule == NODES and self.sample != WHOLE_NODES


OVERLAP: Final = "overlap"
"""The field of every method that is not a knob."""

NO_OVERLAP: Final = "none"
CENTRAL: Final = "central"

SHARED_KNOBS: Final = ("tau", "epsilon", "cache", "rate")
"""Knobs for which every method has a value; it is fixed in methods without the knob."""

RATE_STEPS: Final = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""The sampling rates of successive steps."""


@dataclass(frozen=True, slots=True)
class KnobStep:
    """One step of one knob, from `start` to `end` (as shown to users); method: the method after it."""

    knob: str
    start: int | float | str
    end: int | float | str
    method: Method


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(ABC):
    """A training method with values for its knobs.

    name: as users type it. about: one line for lists. baseline: whether others are compared with it. variants: settings
    that `--method all` shows. uses: cluster options that its schedule models in addition to the plain machine.
    supports_gat: whether it models attention (GAT). overlaps: whether it can sum local rows during transfers it waits
    for. needs_boundary: whether it exchanges boundary rows and so needs a known boundary. random_partition: whether its
    publication assigns nodes to workers in order instead of by METIS. sends_blocks: whether it sends whole blocks of
    rows. exchanges_rows: whether it sends boundary rows between workers. supports_cpu: whether it has a schedule for
    workers on CPU cores. mini_batches: whether it updates the model once per mini-batch. draws_on_host: whether
    separate CPU threads draw its graphs. trained: whether `runtime.train` has it. simulated_only: knobs that
    `runtime.train` lacks. smooths: directions whose received values enter a moving average.

    Raises ScenarioError for a knob out of range, or an unsupported overlap.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    baseline: ClassVar[bool] = False
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    uses: ClassVar[frozenset[str]] = frozenset()
    supports_gat: ClassVar[bool] = False
    overlaps: ClassVar[bool] = False
    needs_boundary: ClassVar[bool] = True
    random_partition: ClassVar[bool] = False
    sends_blocks: ClassVar[bool] = False
    exchanges_rows: ClassVar[bool] = False
    supports_cpu: ClassVar[bool] = False
    mini_batches: ClassVar[bool] = False
    draws_on_host: ClassVar[bool] = False
    trained: ClassVar[bool] = True
    simulated_only: ClassVar[tuple[str, ...]] = ()
    smooths: ClassVar[tuple[Direction, ...]] = ()

    overlap: str = entry(
        Choice("an overlap", lambda: (NO_OVERLAP, CENTRAL)), "what runs during synchronous transfers", NO_OVERLAP
    )

    def __post_init__(self) -> None:
        check_fields(self, "method")
        if self.overlap != NO_OVERLAP and not self.waits:
            raise ScenarioError(
                f"method.overlap: {self.overlap} is not allowed; {self.name} at tau {self.tau} does not wait "
                "for its transfers, so it is none; allowed with methods that wait for boundary rows, at tau 0"
            )

    # Defaults for methods without the knob.

    @property
    def tau(self) -> int:
        """Staleness: age, in iterations, of the boundary rows that a layer reads."""
        return 0

    @property
    def epsilon(self) -> float:
        """Share of each node's edges that are drawn."""
        return 1.0

    @property
    def rate(self) -> float:
        """Share of the boundary nodes that are drawn."""
        return 1.0

    @property
    def cache(self) -> CacheSize:
        """Layer-0 rows kept on the GPU."""
        return CacheSize.none()

    @property
    def cache_policy(self) -> str:
        """Which rows the cache keeps."""
        return "inclusion"

    @property
    def weighted(self) -> bool:
        """Whether edge probabilities are computed from the norms of rows."""
        return False

    @property
    def refresh(self) -> int:
        """Iterations between recomputations of the edge probabilities."""
        return 1

    @property
    def worker_multiple(self) -> int:
        """The number of workers must be a multiple of this."""
        return 1

    def sampling(self) -> Sampling:
        """How the graph is sampled in each iteration."""
        return Sampling()

    def samples(self, facts: Facts) -> bool:
        """Whether graphs are sampled on this machine."""
        return not self.sampling().whole

    @property
    def sampler_devices(self) -> tuple[str, ...]:
        """The devices that can draw samples for a GPU worker: `cpu`, `gpu`; empty without sampling."""
        return () if self.sampling().whole else ("cpu", "gpu")

    # The iteration.

    @abstractmethod
    def schedule(self, facts: Facts) -> Schedule:
        """One iteration of all workers as a schedule of operations.

        Raises ScenarioError for a machine or a model that it does not support.
        """

    def memory(
        self, counts: AccessCounts, shapes: tuple[LayerShape, ...], *, norm: bool, payload: str
    ) -> tuple[Memory, ...] | None:
        """The memory of each worker's GPU by component, in bytes; None if there is no formula for it."""
        return None

    # Settings that a question may try.

    def canonical(self) -> Method:
        """The simplest method with the same schedule, so that equal settings are simulated once."""
        return self

    @classmethod
    def as_this_method(cls, method: Method) -> Self | None:
        """`method` as a special case of this one; None if it is not."""
        return method if isinstance(method, cls) else None

    def candidates(self, rates: Sequence[float]) -> Iterator[Method]:
        """Settings to try for a recommendation, with sampling rates from `rates`."""
        yield self

    def steps(self) -> Iterator[KnobStep]:
        """One further step of each knob that changes the iteration time."""
        yield from ()

    # The knobs.

    @property
    def waits(self) -> bool:
        """Whether it waits for rows of the same iteration, so that local rows could be aggregated meanwhile."""
        return self.overlaps and not self.tau

    def overlapping(self, overlap: str) -> Self:
        """The method with this overlap if it waits for transfers, else without."""
        return replace(self, overlap=overlap if self.waits else NO_OVERLAP)

    def at_tau(self, tau: int) -> Self:
        """The method with another staleness if it has that knob, else unchanged."""
        return replace(self, tau=tau) if self.has("tau") and self.tau != tau else self  # type: ignore[call-arg]

    def with_knobs(self, **values: Any) -> Self:
        """The method with these knob values; its overlap stays if it still waits for transfers."""
        return replace(self, overlap=NO_OVERLAP, **values).overlapping(self.overlap)

    @classmethod
    def knobs(cls) -> tuple[Knob, ...]:
        """Its knobs, in the order of declaration."""
        return tuple(knob for item in fields(cls) if (knob := knob_of(item)) is not None)

    @classmethod
    def has(cls, knob: str) -> bool:
        """Whether it has this knob."""
        return any(item.name == knob for item in cls.knobs())

    def values(self) -> dict[str, Any]:
        """The values of its knobs, by name."""
        return {knob.name: getattr(self, knob.name) for knob in self.knobs()}
