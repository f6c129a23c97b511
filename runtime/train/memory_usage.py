"""What a worker's tensors take, by component: counted where they are held, since torch has no such counter on a CPU.

Memory that outlives an iteration is found by walking through the objects that hold it; autograd reports what the
backward pass keeps, in one iteration of the warm-up. Storage that several tensors share counts once. Temporaries
of a kernel are in neither; on a GPU `peak_memory` has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import torch
from torch import Tensor

from gcnsim.ids import Iteration
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
"""Evaluation: what the evaluator holds of its own, no part of training."""

_KINDS: Final[Mapping[type, str]] = {
    PlainMatrix: "adjacency",
    NumbaMatrix: "adjacency",
    Requests: "adjacency",
    Buffer: "boundary",
    CachedRows: "cache",
    BatchWorker: "features",
    StaticCache: "cache",
}
"""What is inside such an object belongs to this component."""

_OURS: Final = "runtime."


class MemoryUsage:
    """Counts one worker's tensors. begun: the first iteration of this process."""

    def __init__(self, options: Options, begun: Iteration) -> None:
        """Nothing is counted yet; what autograd keeps will be in the last iteration that is not measured."""
        self._at = max(begun, min(begun + options.warmup, options.iterations) - 1)
        self._ours = options.aggregator != "dgl"
        self._last = options.iterations - 1
        self._activations = 0
        self._held: dict[str, int] | None = None

    def of(self, t: Iteration, worker: WorkerState) -> AbstractContextManager[Any]:
        """Count what autograd keeps within the block, if iteration t is the one for that."""
        if t != self._at:
            return nullcontext()
        held = _Holdings()
        held.all_of(worker)

        def keep(tensor: Tensor) -> Tensor:
            self._activations += held.new(tensor)
            return tensor

        return torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)

    def after(self, t: Iteration, worker: WorkerState) -> None:
        """Count what is held at the end of the last iteration, before an evaluation needs buffers of its own.

        What is still under way is waited for: a graph being drawn has no size yet.
        """
        if t == self._last:
            worker.method.drain()
            self._held = _counted(worker)

    def report(self, worker: WorkerState) -> dict[str, int] | None:
        """Bytes by COMPONENTS; None where another library holds the matrices."""
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
        """Kept alive: the id of one that is gone may be another's."""

    def all_of(self, worker: WorkerState) -> None:
        """Everything that a worker holds between iterations."""
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
        """Count `found` and all that it holds; what has no component of its own, or the `whole`, is `component`'s."""
        if isinstance(found, Tensor):
            for part in _dense(found):
                self.nbytes[component] += self.new(part)
        elif id(found) not in self._objects:
            self._objects[id(found)] = found
            component = component if whole else _KINDS.get(type(found), component)
            for item in _inside(found):
                self.add(item, component, whole=whole)


def _dense(tensor: Tensor) -> Iterable[Tensor]:
    """The tensors that a compressed one is made of; else itself."""
    if tensor.layout is torch.sparse_csr:
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return (tensor,)


def _inside(found: object) -> Iterator[object]:
    """What an object of ours, a container or a finished future holds."""
    if isinstance(found, Mapping):
        yield from found.values()
    elif isinstance(found, list | tuple | set | frozenset):
        yield from found
    elif isinstance(found, Future):
        if found.done() and found.exception() is None:
            yield found.result()
    elif type(found).__module__.startswith(_OURS):
        yield from vars(found).values() if hasattr(found, "__dict__") else ()
