"""What is to be measured and how long it may take; the kernels, each named once, and the facts of one measurement."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Final, NotRequired, TypeAlias, TypedDict, TypeVar

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.fields import Number
from gcnsim.core.ids import Seconds
from gcnsim.core.shapes import As, OneOrMore, Within
from gcnsim.core.terminal import aligned
from gcnsim.core.units import BANDWIDTH, format_seconds
from gcnsim.hardware import AGGREGATORS
from runtime.emulation.spec import PAYLOAD_SHARE
from runtime.options import CHOICES, RULES
from runtime.record.machine import MachineFacts, Versions, hardware, versions

T = TypeVar("T")

LEVELS: Final = ("tiny", "quick", "full")
AT_ONCE: Final = Number(True, 1, 64)
"""Each is a process that imports torch."""


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """How thoroughly to measure.

    level: which sizes. sample_s, samples: each kernel is repeated until it has at least both, in seconds and in number.
    window_s: how long processes run at once to measure what they cost one another. rounds: in how many parts, minutes
    apart, those of one process alone are taken: one slow minute is not all that is known of a kernel.
    """

    level: str
    sample_s: float
    samples: int
    window_s: float
    rounds: int = 1

    def of(self, tiny: T, quick: T, full: T) -> T:
        """The one of three that belongs to this level."""
        return (tiny, quick, full)[LEVELS.index(self.level)]

    def of_a_round(self) -> TimeBudget:
        """What one of the rounds may take."""
        return replace(self, sample_s=self.sample_s / self.rounds, samples=ceil(self.samples / self.rounds))


TINY: Final = TimeBudget("tiny", 0.002, 5, 0.02)
"""For tests: the smallest sizes, too few repeats to mean anything."""

QUICK: Final = TimeBudget("quick", 0.05, 5, 0.25)
FULL: Final = TimeBudget("full", 0.2, 5, 0.8, rounds=3)


@dataclass(frozen=True, slots=True)
class MicrobenchRequest:
    """One run of the micro-benchmarks; raises ScenarioError for what is not allowed.

    threads: of each process. workers: numbers of processes to run at once, ascending. network: whether to measure
    transfers between processes. aggregator: one of AGGREGATORS, which kernels sum neighbours. kernels: whether to
    measure those of one process alone; else only what processes cost one another.
    """

    budget: TimeBudget = FULL
    device: str = "cpu"
    threads: int = 1
    workers: tuple[int, ...] = (1, 2, 3, 4, 6)
    network: bool = True
    aggregator: str = "plain"
    kernels: bool = True

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        if self.device not in CHOICES["device"]:
            raise ScenarioError(f"--device: unknown {self.device!r}; {nearest(self.device, CHOICES['device'])}")
        if self.aggregator not in AGGREGATORS:
            raise ScenarioError(f"--aggregator: unknown {self.aggregator!r}; {nearest(self.aggregator, AGGREGATORS)}")
        if self.aggregator == "numba" and self.device != "cpu":
            raise ScenarioError("--aggregator: numba sums on CPUs, --device is cuda; allowed: plain, dgl")
        RULES["threads"].check(self.threads, "--threads")
        for count in self.workers:
            AT_ONCE.check(count, "--workers")
        if not self.workers:
            raise ScenarioError("--workers: an empty list; give numbers separated by commas, e.g. 1,2,4")

    @property
    def members(self) -> int:
        """Processes to start: as many as ever run at once, two at least where transfers are measured."""
        return max(*self.workers, 2 if self.network else 1)

    def options(self) -> dict[str, Any]:
        """What was asked, as plain JSON values."""
        return {
            **asdict(self),
            "budget": self.budget.level,
            "rounds": self.budget.rounds,
            "workers": list(self.workers),
        }

    def to_json(self) -> str:
        """Everything, for a member."""
        return json.dumps(asdict(self))


def from_json(text: str) -> MicrobenchRequest:
    """What `to_json` wrote."""
    raw: Mapping[str, Any] = json.loads(text)
    return MicrobenchRequest(**{**raw, "budget": TimeBudget(**raw["budget"]), "workers": tuple(raw["workers"])})


_KERNELS: Final[Mapping[str, str]] = {
    "spmm": "sum over neighbours: sparse matrix times rows",
    "spmm_t": "its gradient: the transposed matrix times rows",
    "gemm": "learnt map of a layer",
    "gemm_backward": "its gradients, of weights and (input_grad 1) of its input",
    "relu": "activation",
    "relu_backward": "its gradient",
    "pack": "rows gathered to be sent",
    "scatter": "received gradients added to rows",
    "draw": "edges drawn by their probabilities",
    "thin": "graph of the drawn edges built",
    "reweigh": "weights of drawn edges, and what draws need, from probabilities",
    "probabilities": "edge probabilities of least variance, from norms",
    "inclusion": "chance that each boundary node is needed",
    "launch": "a sum with almost nothing to do: one call of the host",
    "shared_spmm": "spmm in several processes at once",
    "shared_gemm": "gemm in several processes at once",
    "shared_relu": "relu in several processes at once",
    "shared_iteration": "one iteration of a worker that exchanges nothing, in several processes at once",
    "p2p_oneway": "message to a peer and its 4-byte answer",
    "p2p_oneway_cpu_sender": "processor time of it, at the sender of the message",
    "p2p_oneway_cpu_receiver": "processor time of it, at its receiver",
    "all_reduce": "sum over all processes",
    "all_reduce_cpu": "processor time of it, per process",
    "links_filled": "messages from each server to the next, of all workers at once",
    "copy_to_device": "host to device",
    "copy_to_host": "device to host",
    "spmm_copying": "spmm while a stream copies both ways",
    "gemm_copying": "gemm while a stream copies both ways",
}

_OVER_NCCL: Final = {
    f"nccl_{name}": f"{words}; between GPUs over NCCL"
    for name, words in _KERNELS.items()
    if name.startswith(("p2p_", "all_"))
}
KERNELS: Final[Mapping[str, str]] = {**_KERNELS, **_OVER_NCCL}
"""What each is, by name."""

CUDA_ONLY: Final = frozenset({"copy_to_device", "copy_to_host", "spmm_copying", "gemm_copying", *_OVER_NCCL})
BETWEEN_SERVERS: Final = "links_filled"
"""Measured only where there are several."""

NETWORK: Final = frozenset(name for name in KERNELS if name.startswith(("p2p_", "all_", "nccl_", "links_")))

UpToAnHour: TypeAlias = Annotated[float, Within(minimum=0, maximum=3600)]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One kernel at one size."""

    kernel: str
    """One of the kernels in docs/calibration.md."""
    params: Mapping[str, float]
    """What its time depends on: sizes and the like."""
    threads: OneOrMore
    """Of each process."""
    processes: OneOrMore
    """At work at once."""
    seconds: UpToAnHour
    """Of one call: the mean; of messages the median of the samples. Without `rounds` in the options, the median of all
    of one process alone."""
    low: UpToAnHour
    """10th percentile."""
    high: UpToAnHour
    """90th percentile."""
    repeats: OneOrMore
    """Samples; a sample of a kernel under 20 us is the mean of several calls."""

    def __post_init__(self) -> None:
        """Refuse a kernel that is not in the table."""
        assert self.kernel in KERNELS, self.kernel

    def asdict(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return {**asdict(self), "params": dict(self.params)}

    def to_json(self) -> str:
        """One line."""
        return json.dumps(self.asdict(), allow_nan=False)


SCHEMA: Final = "gcnsim.measurements/1"


class MeasuredWith(TypedDict):
    """What was asked."""

    budget: str
    """quick or full."""
    device: str
    threads: OneOrMore
    workers: Annotated[list[OneOrMore], Within(min_items=1)]
    """Numbers of processes run at once, ascending."""
    network: bool
    """Whether transfers were measured."""
    aggregator: NotRequired[Annotated[str, Within(enum=AGGREGATORS)]]
    """Which kernels sum neighbours; not there: plain."""
    kernels: NotRequired[bool]
    """Whether kernels of one process alone were measured; not there: they were."""
    rounds: NotRequired[OneOrMore]
    """In how many parts, minutes apart, kernels of one process alone were measured; not there: in one, and their
    seconds are the median of the samples."""


class MeasurementsFile(TypedDict):
    """What the kernels of training cost on one machine, as `python -m runtime.profile --out FILE` writes it. Seconds,
    bytes."""

    machine: MachineFacts
    versions: Versions
    options: MeasuredWith
    seconds: Seconds
    """That the profile took, the start of its processes included."""
    measurements: Annotated[list[dict[str, Any]], As(list[Measurement])]


def document(
    microbench_request: MicrobenchRequest, measurements: Sequence[Measurement], seconds: float
) -> dict[str, Any]:
    """What was measured in `seconds`, a `MeasurementsFile` with its schema."""
    return {
        "schema": SCHEMA,
        "machine": hardware(microbench_request.device == "cuda"),
        "versions": versions(),
        "options": microbench_request.options(),
        "seconds": seconds,
        "measurements": [measurement.asdict() for measurement in measurements],
    }


def write(path: str | Path, results: Mapping[str, Any]) -> None:
    """Write the document, a measurement a line. Raises FileError."""
    head = {name: value for name, value in results.items() if name != "measurements"}
    text = json.dumps(head, indent=1, allow_nan=False).rstrip("}\n")
    lines = ",\n".join(f"  {json.dumps(measurement, allow_nan=False)}" for measurement in results["measurements"])
    with atomic_write(path, text=True) as file:
        file.write(f'{text},\n "measurements": [\n{lines}\n ]\n}}\n')


def table(results: Mapping[str, Any], path: str) -> str:
    """How many sizes of each kernel were measured, and the quickest and slowest; without a newline at its end."""
    found: dict[str, list[float]] = {}
    for measurement in results["measurements"]:
        found.setdefault(measurement["kernel"], []).append(measurement["seconds"])
    rows = [
        (name, str(len(times)), format_seconds(min(times)), format_seconds(max(times)), KERNELS[name])
        for name, times in found.items()
    ]
    heads = ("kernel", "sizes", "quickest", "slowest", "what it does")
    head = f"{len(results['measurements'])} measurements in {format_seconds(results['seconds'])}, written to {path}"
    return "\n".join(
        [head, *aligned(rows, heads, left=(True, False, False, False, True), indent=2), *_between(results)]
    )


def _between(results: Mapping[str, Any]) -> list[str]:
    """What the network between servers carries, in a line; none where they are not several."""
    found = {name: [item for item in results["measurements"] if item["kernel"] == name] for name in KERNELS}
    if not found[BETWEEN_SERVERS]:
        return []
    (filled,) = found[BETWEEN_SERVERS]
    rate = filled["params"]["bytes"] / filled["seconds"]
    small = min(found["p2p_oneway"], key=lambda item: float(item["params"]["bytes"]))["seconds"] / 2
    return [
        f"between {filled['params']['servers']:.0f} servers: {BANDWIDTH.shown_as(rate)} of payload each way, as with "
        f"--bandwidth {8e-6 * rate / PAYLOAD_SHARE:.0f}Mbps; a small message takes {format_seconds(small)}"
    ]
