"""The base class of trained methods: a frozen dataclass whose fields are its knobs.

The method's worker (`worker.py`) runs its iteration and needs torch. A method does not, because the command line reads
every method's knobs before anything else starts. `BlockMethod` is the base of methods that broadcast whole blocks of
rows, also without torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import QuantityRange, Share
from gcnsim.workload.knobs import Knob, knob_of
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
