"""One side of a comparison: an iteration in parts, what its links carry, what its workers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final

from gcnsim.breakdown import Parts
from gcnsim.errors import plural
from gcnsim.evidence.facts import facts_of
from gcnsim.ids import Rank, Seconds
from gcnsim.results import Row, SimulationReport
from gcnsim.units import format_gbps

WHOLE: Final = ("compute_s", "exposed_comm_s", "exposed_other_s")
"""The three parts that every source tells; of some it is known what is in the second and the third."""


@dataclass(frozen=True, slots=True)
class Link:
    """What a link carries in an iteration. seconds: what that takes at its capacity; None where none is known."""

    nbytes: float
    seconds: Seconds | None


@dataclass(frozen=True, slots=True)
class IterationReport:
    """One iteration. kind: `scenario`, `result`, `what-if`, or measured: `run`, `trace` (of a profiler).

    whole: seconds by the names of WHOLE, of the slowest worker; they add up to iteration_s. beneath: seconds that run
    beside them. workers: by rank; none where only the slowest one's three parts are known. low_s, high_s: the 90 %
    interval of a prediction. per_epoch: iterations in an epoch. facts: what it was asked of, by field.
    notes: what a reader must know of it. spread_s: of a measured side, the standard deviation of its iterations.
    """

    label: str
    kind: str
    setting: str
    iteration_s: Seconds
    whole: Mapping[str, Seconds]
    beneath: Mapping[str, Seconds]
    links: Mapping[str, Link]
    workers: tuple[Parts, ...] = ()
    slowest: Rank | None = None
    low_s: Seconds | None = None
    high_s: Seconds | None = None
    per_epoch: int = 1
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    spread_s: Seconds | None = None

    @property
    def parts(self) -> Parts | None:
        """The slowest worker's iteration in detail, where it is known."""
        return self.workers[self.slowest] if self.workers and self.slowest is not None else None

    def epoch(self) -> IterationReport:
        """The same side with the seconds and bytes of an epoch."""
        times = self.per_epoch
        seconds = [item.name for item in fields(Parts) if item.name != "worker"]
        return replace(
            self,
            iteration_s=times * self.iteration_s,
            whole={name: times * value for name, value in self.whole.items()},
            beneath={name: times * value for name, value in self.beneath.items()},
            links={
                name: Link(times * link.nbytes, None if link.seconds is None else times * link.seconds)
                for name, link in self.links.items()
            },
            workers=tuple(
                replace(each, **{name: times * getattr(each, name) for name in seconds}) for each in self.workers
            ),
            low_s=None if self.low_s is None else times * self.low_s,
            high_s=None if self.high_s is None else times * self.high_s,
            spread_s=None if self.spread_s is None else times**0.5 * self.spread_s,
        )


def report_of_result(report: SimulationReport, label: str, kind: str = "result") -> IterationReport:
    """The side of one simulated scenario."""
    seconds = report.result.iteration_s
    links = {name: Link(each.bytes, each.utilization * seconds) for name, each in report.links.items()}
    side = replace(report_of_row(report.result, label, kind, links), facts=facts_of(report.scenario))
    if not report.workers or report.slowest is None:
        return side
    return replace(side, workers=report.workers, slowest=report.slowest)


def report_of_row(
    row: Row,
    label: str,
    kind: str = "what-if",
    links: Mapping[str, Link] | None = None,
) -> IterationReport:
    """The side of one row of a what-if."""
    # Rounding of a file's numbers stays in the part that is the rest by definition.
    rest = row.iteration_s - row.compute_s - row.exposed_comm_s
    parts = (float(row.compute_s), float(row.exposed_comm_s), rest)
    return IterationReport(
        label=label,
        kind=kind,
        setting=f"{knobs_of(row)} on {plural(row.gpus, 'GPU')} at {format_gbps(row.bandwidth_bytes_per_s)}",
        iteration_s=float(row.iteration_s),
        whole=dict(zip(WHOLE, parts, strict=True)),
        beneath={"hidden_comm_s": float(row.hidden_comm_s), "sampling_s": float(row.sampling_s)},
        links=links or {},
        low_s=row.iteration_s_low,
        high_s=row.iteration_s_high,
        per_epoch=int(row.iterations_per_epoch),
    )


def knobs_of(row: Row) -> str:
    """Method and those of its knobs that say what it does, in words."""
    said = [row.method]
    if row.tau:
        said.append(f"tau {row.tau}")
    if row.epsilon < 1:
        said.append(f"epsilon {row.epsilon:g}")
    if row.rate < 1:
        said.append(f"rate {row.rate:g}")
    if row.cache_fraction:
        said.append(f"cache {100 * row.cache_fraction:g}%")
    return ", ".join(said)


def told(workers: Sequence[Parts]) -> list[dict[str, Any]]:
    """Workers as plain data."""
    return [asdict(each) for each in workers]
