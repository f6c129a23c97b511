"""What a method is: a published system as one object, whose fields are its knobs.

A method is a frozen dataclass, one file each. It says what it samples (`sampling`), what its iteration is (`schedule`),
what a worker holds (`memory`), what of a cluster and a model its schedule has (`uses`, `attends`), and what a question
may try of it (`candidates`, `steps`). Nobody else tests a method's name. How to write one: docs/new_method.md.

A `Sampling` is what it draws of its graph in each iteration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from gcnsim.caching import CacheSize
from gcnsim.errors import ScenarioError
from gcnsim.fields import Word, check_fields, entry
from gcnsim.knobs import Knob, knob_of
from gcnsim.sampling import NODES

if TYPE_CHECKING:
    from gcnsim.boundary import AccessCounts
    from gcnsim.cost import Memory
    from gcnsim.methods.facts import Facts
    from gcnsim.schedule import Schedule
    from gcnsim.workload import LayerShape

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
