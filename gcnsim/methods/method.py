"""What a method is: a published system as one object, whose fields are its knobs.

A method is a frozen dataclass, one file each. It says what it samples (`sampling`), what its iteration is (`schedule`),
what a worker holds (`memory`), what of a cluster and a model its schedule has (`uses`, `attends`), and what a question
may try of it (`candidates`, `steps`). Nobody else tests a method's name. How to write one: docs/new_method.md.

A `Sampling` is what it draws of its graph in each iteration.

What a method writes its schedule from: the machine, the model and the sampled accesses of one run.

A `Placement` says where mini-batches of GPUs are drawn, and where the input rows that they read lie.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from gcnsim.boundary import AccessCounts
from gcnsim.caching import CacheSize
from gcnsim.cluster import Cluster
from gcnsim.errors import ScenarioError
from gcnsim.fields import Word, check_fields, entry
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.ids import IntArray, Iteration, Rank
from gcnsim.knobs import Knob, knob_of
from gcnsim.sampling import DEGREE_SPREAD, NODES
from gcnsim.workload import EXCHANGE_FIRST, LayerShape

if TYPE_CHECKING:
    from gcnsim.cost import Memory
    from gcnsim.schedule import Schedule

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


FULL = "full"
"""The rule that keeps every edge."""

WHOLE_NODES = "nodes"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a graph is drawn.

    rule: `full`, `vr` or `uniform` (edges, PSC-GCN), or `nodes` (boundary nodes, BNS-GCN). rate: the expected share of
    each node's edges, or of the boundary nodes, that is drawn; 1 where nothing is. sample: what `nodes` draws (its
    edge-sampling baselines draw `boundary-edges` or `edges`). norms: a file of node norms that `vr` draws by.
    """

    rule: str = FULL
    rate: float = 1.0
    sample: str = WHOLE_NODES
    norms: str | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is drawn: every edge of every graph is kept."""
        return self.rule == FULL

    @property
    def drawn_by(self) -> tuple[str, float]:
        """The rule and the rate, as an access trace keeps them."""
        return self.rule, self.rate

    @property
    def by_edge(self) -> bool:
        """Whether a node's edges are drawn, each for itself, by PSC-GCN's rules."""
        return self.rule not in (FULL, NODES)

    @property
    def drops_edges(self) -> bool:
        """Whether edges are dropped at the rate that BNS-GCN draws nodes at."""
        return self.rule == NODES and self.sample != WHOLE_NODES


OVERLAP: Final = "overlap"
"""The field of every method that is no knob of its own."""

NO_OVERLAP: Final = "none"
CENTRAL: Final = "central"

STANDING: Final = ("tau", "epsilon", "cache", "rate")
"""Knobs of some methods that every method stands somewhere on: one that lacks them has a value that is what it is."""

RATE_STEPS: Final = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Rates that a step more of sampling goes through."""


@dataclass(frozen=True, slots=True)
class KnobStep:
    """One step of one knob: from `start` to `end`, as they are shown, which gives `method`."""

    knob: str
    start: int | float | str
    end: int | float | str
    method: Method


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(ABC):
    """A published system and where its knobs stand.

    name: as users write it. about: one line of what it does. baseline: it is what others are compared with. variants:
    settings of its knobs that a comparison of all methods shows. uses: options of the cluster that its schedule models
    besides the plain machine. attends: whether it models attention (GAT). pools: whether it models GraphSAGE's pooling,
    on CPU cores. overlaps: whether it can sum rows that are here beneath transfers it waits for. needs_boundary: it
    exchanges boundary rows, so it cannot be answered for where no boundary is known. cut_at_random: its publications
    deal nodes to workers in their order. sends_blocks: it sends whole blocks of rows, whatever the boundary.
    exchanges_rows: it sends boundary rows from worker to worker. on_cores: it has a schedule for workers on CPU cores.
    mini_batches: it updates the model once per mini-batch, several times an epoch. draws_on_host: CPU threads of their
    own draw its graphs.

    Raises ScenarioError for a knob out of range, or an overlap that it does not have.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    baseline: ClassVar[bool] = False
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    uses: ClassVar[frozenset[str]] = frozenset()
    attends: ClassVar[bool] = False
    pools: ClassVar[bool] = False
    overlaps: ClassVar[bool] = False
    needs_boundary: ClassVar[bool] = True
    cut_at_random: ClassVar[bool] = False
    sends_blocks: ClassVar[bool] = False
    exchanges_rows: ClassVar[bool] = False
    on_cores: ClassVar[bool] = False
    mini_batches: ClassVar[bool] = False
    draws_on_host: ClassVar[bool] = False

    overlap: str = entry(
        Word("an overlap", lambda: (NO_OVERLAP, CENTRAL)), "what runs during synchronous transfers", NO_OVERLAP
    )

    def __post_init__(self) -> None:
        check_fields(self, "method")
        if self.overlap != NO_OVERLAP and not self.waits:
            from gcnsim.methods.registry import named

            allowed = ", ".join(named(lambda kind: kind.overlaps))
            raise ScenarioError(
                f"method.overlap: {self.overlap} is not allowed; {self.name} at tau {self.tau} does not wait "
                f"for its transfers, so it is none; allowed with {allowed} at tau 0"
            )

    # What the method is, where it has no knob for it.

    @property
    def tau(self) -> int:
        """Staleness: age in iterations of the boundary values that a layer reads."""
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
    def worker_multiple(self) -> int:
        """The number of workers is a multiple of this."""
        return 1

    def sampling(self) -> Sampling:
        """What is drawn of the graph in each iteration."""
        return Sampling()

    @property
    def sampler_devices(self) -> tuple[str, ...]:
        """What may draw it, of a worker that computes on a GPU: `cpu`, `gpu`; nothing where nothing is drawn."""
        return () if self.sampling().whole else ("cpu", "gpu")

    # What its iteration is.

    @abstractmethod
    def schedule(self, facts: Facts) -> Schedule:
        """The iteration of all workers side by side. Raises ScenarioError for a machine or a model it does not have."""

    def memory(
        self, counts: AccessCounts, shapes: tuple[LayerShape, ...], *, norm: bool, payload: str
    ) -> tuple[Memory, ...] | None:
        """Per worker what its GPU holds; None where there is no law for it."""
        return None

    # What a question may try.

    def canonical(self) -> Method:
        """The simplest method that runs the same schedule, so that equal questions are asked once."""
        return self

    @classmethod
    def general(cls, method: Method) -> Self | None:
        """`method` as a case of this one; None where it is none."""
        return method if isinstance(method, cls) else None

    def candidates(self, rates: Sequence[float]) -> Iterator[Method]:
        """Settings worth trying for a recommendation, with sampling rates out of `rates`."""
        yield self

    def steps(self) -> Iterator[KnobStep]:
        """One step more of each knob that changes an iteration's time."""
        yield from ()

    # Its knobs.

    @property
    def waits(self) -> bool:
        """Whether it waits for rows of its own iteration, beneath whose transfers others could be summed."""
        return self.overlaps and not self.tau

    def overlapping(self, overlap: str) -> Self:
        """The method with this overlap where it waits for anything, else with none."""
        return replace(self, overlap=overlap if self.waits else NO_OVERLAP)

    def at_tau(self, tau: int) -> Self:
        """The method at another staleness where it has that knob, else as it is."""
        return replace(self, tau=tau) if self.has("tau") and self.tau != tau else self  # type: ignore[call-arg]

    def moved(self, **values: Any) -> Self:
        """The method with these knobs, its overlap kept where it still waits for anything."""
        return replace(self, overlap=NO_OVERLAP, **values).overlapping(self.overlap)

    @classmethod
    def knobs(cls) -> tuple[Knob, ...]:
        """Its knobs, in the order in which they are declared."""
        return tuple(found for item in fields(cls) if (found := knob_of(item)) is not None)

    @classmethod
    def has(cls, knob: str) -> bool:
        """Whether it has this knob."""
        return any(each.name == knob for each in cls.knobs())

    def values(self) -> dict[str, Any]:
        """Where its knobs stand, by name."""
        return {each.name: getattr(self, each.name) for each in self.knobs()}
