"""The memory of a worker's tensors by component, counted in the objects that hold them; torch has no such counter on a
CPU.

Memory that outlives an iteration is found by walking through these objects; autograd reports the tensors saved for the
backward pass, in one iteration of the warm-up. Storage that several tensors share counts once. Temporaries of a kernel
are in neither; on a GPU `peak_memory` includes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import torch
from torch import Tensor

from gcnsim.core.ids import Iteration
from runtime.aggregate import NumbaMatrix, PlainMatrix
from runtime.exchange.sampled_graph import CachedRows, Requests
from runtime.exchange.staging import Buffer
from runtime.methods.batches.stores import StaticCache
from runtime.methods.batches.worker import BatchWorker
from runtime.options import Options
from runtime.train.setup import WorkerState

COMPONENTS: Final = (
    "features",
    "adjacency",
    "activations",
    "boundary",
    "cache",
    "model",
    "gradients",
    "optimizer",
    "evaluation",
)
"""Evaluation: the evaluator's own tensors, which are not part of training."""

_KINDS: Final[Mapping[type, str]] = {
    PlainMatrix: "adjacency",
    NumbaMatrix: "adjacency",
    Requests: "adjacency",
    Buffer: "boundary",
    CachedRows: "cache",
    BatchWorker: "features",
    StaticCache: "cache",
}
"""The component of everything inside such an object."""

_OURS: Final = "runtime."


class MemoryUsage:
    """Counts one worker's tensors. begun: the first iteration of this process."""

    def __init__(self, options: Options, begun: Iteration) -> None:
        """Nothing is counted yet; saved tensors are counted in the last iteration that is not measured."""
        self._at = max(begun, min(begun + options.warmup, options.iterations) - 1)
        self._ours = options.aggregator != "dgl"
        self._last = options.iterations - 1
        self._activations = 0
        self._held: dict[str, int] | None = None

    def of(self, t: Iteration, worker: WorkerState) -> AbstractContextManager[Any]:
        """Count the tensors that autograd saves in the block, if iteration t is the one for that."""
        if t != self._at:
            return nullcontext()
        held = _Holdings()
        held.all_of(worker)

        def keep(tensor: Tensor) -> Tensor:
            self._activations += held.new(tensor)
            return tensor

        return torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)

    def after(self, t: Iteration, worker: WorkerState) -> None:
        """Count the tensors at the end of the last iteration, before an evaluation needs extra buffers.

        It waits for active work, because a graph that is being sampled has no size yet.
        """
        if t == self._last:
            worker.method.drain()
            self._held = _counted(worker)

    def report(self, worker: WorkerState) -> dict[str, int] | None:
        """Bytes by COMPONENTS; None if another library holds the matrices."""
        if not self._ours:
            return None
        return (self._held or _counted(worker)) | {"activations": self._activations}


def _counted(worker: WorkerState) -> dict[str, int]:
    held = _Holdings()
    held.all_of(worker)
    return held.nbytes


class _Holdings:
    """Storages found so far, and their bytes by component."""

    def __init__(self) -> None:
        self.nbytes = dict.fromkeys(COMPONENTS, 0)
        self._storages: set[int] = set()
        self._objects: dict[int, object] = {}
        """Kept alive, because the id of a freed object may be reused."""

    def all_of(self, worker: WorkerState) -> None:
        """All objects that a worker holds between iterations."""
        trainer = worker.trainer
        self.add(list(worker.network.parameters()), "model")
        self.add(trainer.gradients.flat, "gradients")
        self.add(dict(trainer.optimizer.state), "optimizer")
        self.add([trainer.x, trainer.targets, trainer.fixed], "features")
        self.add(worker.method, "boundary")
        self.add(worker.evaluator, "evaluation", whole=True)

    def new(self, tensor: Tensor) -> int:
        """Bytes of the tensor's storage, 0 if it was seen before."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() in self._storages:
            return 0
        self._storages.add(storage.data_ptr())
        return storage.nbytes()

    def add(self, found: object, component: str, *, whole: bool = False) -> None:
        """Count `found` and everything inside it; parts without a component (or the `whole`) belong to `component`."""
        if isinstance(found, Tensor):
            for part in _dense(found):
                self.nbytes[component] += self.new(part)
        elif id(found) not in self._objects:
            self._objects[id(found)] = found
            component = component if whole else _KINDS.get(type(found), component)
            for item in _inside(found):
                self.add(item, component, whole=whole)


def _dense(tensor: Tensor) -> Iterable[Tensor]:
    """The tensors of a compressed one; otherwise the tensor."""
    if tensor.layout is torch.sparse_csr:
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return (tensor,)


def _inside(found: object) -> Iterator[object]:
    """The contents of one of our objects, a container or a finished future."""
    if isinstance(found, Mapping):
        yield from found.values()
    elif isinstance(found, list | tuple | set | frozenset):
        yield from found
    elif isinstance(found, Future):
        if found.done() and found.exception() is None:
            yield found.result()
    elif type(found).__module__.startswith(_OURS):
        yield from vars(found).values() if hasattr(found, "__dict__") else ()
