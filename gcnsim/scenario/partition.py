"""The settings of a graph's partition into one part per GPU."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import Choice, Number, QuantityRange, check_fields, entry
from gcnsim.core.units import FRACTION
from gcnsim.graph.assign import ALGORITHMS, BALANCES, KWAY, NODES, RECURSIVE

METIS_OPTIONS: Final = ("algorithm", "imbalance", "balance")
"""Fields of a partition that older scenarios lack; without them, the answer stays the same."""
AS_NUMBERED: Final = "as-numbered"
BALANCED: Final = "balanced"
RANDOM: Final = "random"
PLACEMENTS: Final = (AS_NUMBERED, BALANCED, RANDOM)
"""Orders of the parts on the GPUs: part n on GPU n, the busiest network card carries least, or any."""

IMBALANCE: Final = QuantityRange(FRACTION, 0.001, 1.0)
"""By how much METIS may let the largest part exceed the mean; it takes thousandths."""
_FILE: Final = Choice("a file name")


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The partition of the graph into one part per GPU."""

    method: str = entry(Choice("a partition method", lambda: ("metis", "random", "block")), "partitioner", "metis")
    objective: str = entry(Choice("an objective", lambda: ("vol", "cut")), "METIS minimises volume or cut edges", "vol")
    seed: int = entry(Number(True, 0, 2**31 - 1), "seed of the partitioner", 0)
    algorithm: str = entry(
        Choice("an algorithm", lambda: ALGORITHMS), "METIS makes all parts at once, or by recursive bisection", KWAY
    )
    imbalance: float | None = entry(
        IMBALANCE,
        "allowed excess of the largest part over the mean; null: METIS' own",
        None,
        optional=True,
    )
    balance: str = entry(
        Choice("a balance", lambda: BALANCES),
        "METIS balances the parts' nodes, their edges, or nodes and training nodes",
        NODES,
    )
    file: str | None = entry(_FILE, "an existing partition to use", None, optional=True)
    statistics: str = entry(
        Choice("statistics", lambda: ("profile", "published")),
        "source of the sizes of a dataset's parts: its profile, or published tables",
        "profile",
    )
    placement: str | None = entry(
        Choice("a placement", lambda: PLACEMENTS),
        "which part runs on which GPU; null: as numbered in a partition.file, a trace and a published table, else any",
        None,
        optional=True,
    )
    parts: int | None = entry(
        Number(True, 2, 10_000),
        "total number of parts, if only some of them are simulated; null: one per GPU",
        None,
        optional=True,
    )

    def __post_init__(self) -> None:
        check_fields(self, "partition")
        if self.parts is not None and self.statistics != "published":
            raise ScenarioError(f"partition.parts: {self.parts} needs partition.statistics: published")
        for name in METIS_OPTIONS:
            if name in self.besides and (self.method != "metis" or self.file is not None):
                other = f"method {self.method}" if self.file is None else f"file {self.file}"
                raise ScenarioError(f"partition.{name}: only valid with METIS, not with partition.{other}")
        if self.algorithm == RECURSIVE and self.objective != "cut":
            raise ScenarioError(
                f"partition.algorithm: {RECURSIVE} needs partition.objective: cut; it is {self.objective}"
            )

    @property
    def besides(self) -> tuple[str, ...]:
        """The fields of `METIS_OPTIONS` that the user set."""
        plain = {item.name: item.default for item in fields(self)}
        return tuple(name for name in METIS_OPTIONS if getattr(self, name) != plain[name])
