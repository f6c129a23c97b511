"""The kernels that are measured, each named once, and the facts of one measurement.

The module also writes the file of the micro-benchmarks (schema `gcnsim.measurements/1`) and its summary for people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NotRequired, TypeAlias, TypedDict

from gcnsim.core.atomic import atomic_write
from gcnsim.core.ids import Seconds
from gcnsim.core.shapes import As, OneOrMore, Within
from gcnsim.core.terminal import aligned
from gcnsim.core.units import BANDWIDTH, format_seconds
from gcnsim.hardware import AGGREGATORS
from runtime.emulation.spec import PAYLOAD_SHARE
from runtime.microbench.request import MicrobenchRequest
from runtime.record.machine import MachineFacts, Versions, hardware, versions

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
    "reweigh": "weights of drawn edges from probabilities",
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
