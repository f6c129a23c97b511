"""The kernels that are measured, each named once, and what one measurement says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, TypeAlias

from gcnsim.shapes import OneOrMore, Within

KERNELS: Final[Mapping[str, str]] = {
    "spmm": "sum over neighbours: sparse matrix times rows",
    "spmm_t": "its gradient: the transposed matrix times rows",
    "attention": "graph attention: scores of entries, softmax over each row, weighted sum",
    "attention_backward": "its gradients",
    "pool": "GraphSAGE's pooling: the largest value of each column over neighbours",
    "pool_backward": "its gradient, to the rows that the values came from",
    "gemm": "learnt map of a layer",
    "gemm_backward": "its gradients, of weights and (input_grad 1) of its input",
    "relu": "activation",
    "relu_backward": "its gradient",
    "layer_norm": "normalisation of rows",
    "layer_norm_backward": "its gradients",
    "dropout": "mask drawn and applied",
    "dropout_backward": "its gradient",
    "loss": "cross-entropy of the training nodes",
    "loss_backward": "its gradient, to the logits",
    "correct": "count of the right answers, the largest logit of each row",
    "optimizer_step": "one step of Adam over all parameters",
    "gradients": "flat buffer zeroed, sums entered and read",
    "pack": "rows gathered to be sent",
    "scatter": "received gradients added to rows",
    "draw": "edges drawn by their probabilities",
    "thin": "graph of the drawn edges built",
    "reweigh": "weights of drawn edges from probabilities",
    "probabilities": "edge probabilities of least variance, from norms",
    "inclusion": "chance that each boundary node is needed",
    "draw_batch": "mini-batch drawn",
    "build_batch": "rows of its layers built",
    "batch_matrix": "matrix of a layer made, with (turned 1) or without its transpose",
    "load_rows": "input rows picked into new memory",
    "launch": "a kernel with next to nothing to do",
    "launch_backward": "a backward pass with next to nothing to do",
    "span": "one recorded span",
    "handoff": "work given to another thread and awaited",
    "iteration": "one iteration of one worker, nothing to exchange",
    "shared_spmm": "spmm in several processes at once",
    "shared_gemm": "gemm in several processes at once",
    "shared_relu": "relu in several processes at once",
    "shared_iteration": "iteration in several processes at once",
    "p2p_oneway": "message to a peer and its 4-byte answer",
    "p2p_oneway_cpu_sender": "processor time of it, at the sender of the message",
    "p2p_oneway_cpu_receiver": "processor time of it, at its receiver",
    "p2p_both": "messages to and from a peer at once",
    "p2p_both_cpu": "processor time of it, per process",
    "p2p_both_softirq": "interrupt time of it, of the whole machine",
    "all_reduce": "sum over all processes",
    "all_reduce_cpu": "processor time of it, per process",
    "all_to_all": "messages to and from every peer at once",
    "all_to_all_cpu": "processor time of it, per process",
    "spmm_beside": "spmm while a thread transfers",
    "gemm_beside": "gemm while a thread transfers",
    "transfer_beside": "one of those transfers, both ways",
    "copy_to_device": "host to device",
    "copy_to_host": "device to host",
    "spmm_copying": "spmm while a stream copies both ways",
    "gemm_copying": "gemm while a stream copies both ways",
}

CUDA_ONLY: Final = frozenset({"copy_to_device", "copy_to_host", "spmm_copying", "gemm_copying"})
NETWORK: Final = frozenset(name for name in KERNELS if name.startswith(("p2p_", "all_")) or name.endswith("_beside"))
WHERE_VISIBLE: Final = frozenset({"p2p_both_softirq"})
"""Measured only where the system shows it."""


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
