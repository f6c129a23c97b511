"""The base classes of trained methods: frozen dataclasses whose fields are their knobs.

The method's worker (`worker.py`) runs its iteration and needs torch. A method does not, because the command line reads
every method's knobs before anything else starts. `BlockMethod` is the base of methods that broadcast whole blocks of
rows, `MiniBatch` that of methods that train mini-batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import QuantityRange, Share
from gcnsim.workload.knobs import BATCH, FANOUT, LAYER_SIZES, Knob, PerLayer, knob, knob_of, usual_fanout
from runtime.options import Held, Options, flag

if TYPE_CHECKING:
    from runtime.methods.worker import Context, MethodWorker


@dataclass(frozen=True)
class Method(ABC):
    """Base of all methods. name: as typed; its fields, in order, are its knobs.

    waits: whether waits may replace the workers' computation (`runtime.accelerator`). one_server: whether its workers
    share a graph in the memory of one server. alone: whether a part can be measured alone (`runtime.measure`).
    """

    name: ClassVar[str]
    waits: ClassVar[bool] = False
    one_server: ClassVar[bool] = False
    alone: ClassVar[bool] = True

    @classmethod
    def knobs(cls) -> tuple[Knob, ...]:
        """Its knobs, in the order of the fields."""
        return tuple(knob for field in fields(cls) if (knob := knob_of(field)) is not None)

    @classmethod
    def settled(cls, values: Mapping[str, Any]) -> dict[str, Held]:
        """All knobs by name: those in `values`, as typed on the command line, the others at their defaults.

        Raises ScenarioError for an unknown knob, and for a value out of range.
        """
        have = {knob.name: knob for knob in cls.knobs()}
        for name in values:
            if name not in have:
                known = f"its knobs: {', '.join(flag(item) for item in have)}" if have else "it has no knobs"
                raise ScenarioError(f"{flag(name)}: {cls.name} has no {name.replace('_', ' ')}; {known}")
        return {name: _value(knob, values) for name, knob in have.items()}

    @property
    def copies(self) -> int:
        """Workers that store and train the same rows."""
        return 1

    @property
    def period(self) -> int | None:
        """Iterations from one refresh of its sampling probabilities to the next; None: it refreshes none."""
        return None

    @property
    def asks_once(self) -> bool:
        """Whether the requested rows are fixed, so that workers exchange ids once before the first iteration."""
        return False

    def refuse(self, options: Options) -> None:  # noqa: B027 - most methods refuse nothing
        """Raise ScenarioError for options of the run that are incompatible with these knobs."""

    @abstractmethod
    def worker(self, context: Context) -> MethodWorker:
        """The worker that runs this method's iterations."""


def _value(knob: Knob, values: Mapping[str, Any]) -> Any:
    """The value of one knob: the given one if it is allowed, otherwise its default."""
    if knob.name not in values:
        return knob.standard
    value = values[knob.name]
    if isinstance(value, str) and read_as_text(knob):
        return knob.rule.read(value, flag(knob.name))
    knob.rule.check(value, flag(knob.name))
    return value


def read_as_text(knob: Knob) -> bool:
    """Whether it may be typed with a unit: sizes of caches, shares, a number for each layer."""
    return knob.kind in ("size", "list") or isinstance(knob.rule, QuantityRange | Share)


@dataclass(frozen=True)
class BlockMethod(Method):
    """Base of the methods whose workers broadcast blocks."""

    alone: ClassVar[bool] = False

    def refuse(self, options: Options) -> None:
        """Refuse attention, which needs more than one block, and dropout at the receiver, which has no gradient."""
        if options.gathers:
            raise ScenarioError(
                f"--model: {options.model} with {self.name}, which sums blocks; allowed: gcn, graphsage"
            )
        if options.dropout and options.dropout_order != "dropout-first":
            raise ScenarioError(
                f"--dropout-order: {options.dropout_order} with {self.name}, whose gradients are summed block by block "
                "for rows that all workers have alike; allowed with dropout: dropout-first"
            )


@dataclass(frozen=True)
class MiniBatch(Method):
    """A method that updates the model once per mini-batch.

    everywhere: every worker reads all input rows from its own memory; otherwise rows of other parts are requested from
    their owners. ahead: batches loaded before they are trained. draws_ahead: whether the next one is sampled meanwhile.
    """

    everywhere: ClassVar[bool] = False
    draws_ahead: ClassVar[bool] = True

    @property
    def ahead(self) -> int:
        """0: loading and training take turns."""
        return 0

    def refuse(self, options: Options) -> None:
        """Refuse sums computed once for all iterations: each batch reads other rows."""
        if options.preaggregate:
            raise ScenarioError(
                f"--preaggregate: {self.name} draws new neighbours for every batch; allowed: without it"
            )


@dataclass(frozen=True)
class NeighbourBatches(MiniBatch):
    """Batches of training nodes and the neighbours sampled around them.

    trains: the training nodes of a worker: any, shuffled together; those of its `own` part;
    or those `dealt` to a part that contains their neighbourhoods.
    """

    trains: ClassVar[Literal["shuffled", "own", "dealt"]] = "shuffled"

    batch: int = knob(BATCH)
    fanout: PerLayer | None = knob(FANOUT)
    layer_sizes: PerLayer | None = knob(LAYER_SIZES)

    def refuse(self, options: Options) -> None:
        """Refuse lists that do not match the model's layers, and both lists together."""
        super().refuse(options)
        if self.fanout is not None and self.layer_sizes is not None:
            raise ScenarioError("--layer-sizes: given beside --fanout; give one of them")
        for name, value in (("fanout", self.fanout), ("layer_sizes", self.layer_sizes)):
            if value is not None and len(value) != options.layers:
                raise ScenarioError(
                    f"{flag(name)}: {len(value)} numbers, but the model has {options.layers} layers; allowed: "
                    f"{options.layers} numbers"
                )

    @property
    def ready(self) -> int:
        """First layers whose sums are computed before training; they sample nothing."""
        return 0

    def amounts(self, layers: int) -> tuple[PerLayer, PerLayer]:
        """Neighbours per node and nodes per layer, for each layer; one of them is empty."""
        if self.layer_sizes is not None:
            return (), self.layer_sizes
        return self.fanout or usual_fanout(layers), ()
