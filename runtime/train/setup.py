"""From options to one worker that is ready to train: data, partition, matrices, network, method.

`--aggregator auto` selects the fastest aggregation kernels on this machine. Kernels differ in the order of their sums,
so in the last bits; a run uses the same from start to end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import torch

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.core.ids import AnyArray, Float32Array, frozen
from gcnsim.graph import Graph, graph_notes
from gcnsim.graph.assign import KWAY, metis_label
from gcnsim.graph.parts import Part, Partitioning, Replicas
from runtime.accelerator.exchange import WaitingExchange
from runtime.accelerator.machine import WaitMachine
from runtime.aggregate import matrix_kind
from runtime.data import Dataset, DatasetCache, Share, share_of
from runtime.emulation import Emulation
from runtime.exchange import Channel, Channels, Exchange, GraphBuilder, static_requests
from runtime.launch import Place
from runtime.methods import Method, method_of
from runtime.methods.batches.worker import BatchWorker
from runtime.methods.worker import Context, MethodWorker
from runtime.model import Network, initialise, load_weights, save_weights
from runtime.options import Options, flag
from runtime.record import Recorder
from runtime.train.earlier_run import IDENTITY
from runtime.train.evaluate import Evaluator
from runtime.train.loop import BatchTrainer, Targets, Trainer
from runtime.train.preflight import threads_of
from runtime.train.simulated_gpu import WaitingTrainer

KERNELS: Final = ("plain", "numba", "dgl")
ROUNDS: Final = 3
"""Products that are timed per kernel; the fastest counts."""


def with_kernels(options: Options, part: Part, weights: str, dtype: torch.dtype, control: Channel | None) -> Options:
    """The options with `auto` replaced by kernels; all workers call it together, and worker 0 measures on its part."""
    if options.aggregator != "auto":
        return options
    if options.device != "cpu":
        return replace(options, aggregator="plain")
    chosen = torch.zeros(1, dtype=torch.int32)
    if part.rank == 0:
        chosen[0] = KERNELS.index(quickest(options, part, weights, dtype))
    if control is not None:
        control.broadcast(chosen)
    return replace(options, aggregator=KERNELS[int(chosen)])


def quickest(options: Options, part: Part, weights: str, dtype: torch.dtype) -> str:
    """The fastest kernels for a sum over all neighbours of `part` and its gradient, at the hidden width.

    If edges are sampled or weights are learnt, the timed sums have a weight per entry.
    """
    took = {}
    for name in KERNELS:
        try:
            kind = matrix_kind(name)
        except ScenarioError:
            continue
        matrix = GraphBuilder(part, weights, kind, dtype, torch.device("cpu")).whole().inner
        values = torch.ones(matrix.rows.columns.size, dtype=dtype) if _weighed(options) else None
        x = torch.ones(part.inner_nodes, options.hidden, dtype=dtype)
        out = torch.zeros_like(x)
        seconds = []
        for _ in range(1 + ROUNDS):
            start = time.perf_counter()
            matrix.multiply(x, out, values=values)
            matrix.multiply_transposed(x, out, values=values)
            seconds.append(time.perf_counter() - start)
        took[name] = min(seconds[1:])
    return min(took, key=lambda name: took[name])


def _weighed(options: Options) -> bool:
    """Whether sums of the run read a weight per entry."""
    epsilon = options.knobs.get("epsilon", 1.0)
    sampled = isinstance(epsilon, int | float) and epsilon < 1.0 and options.knobs.get("estimator") != "mean"
    return sampled or options.model == "gat"


DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class WorkerState:
    """One worker before its first iteration. control: a channel for small data; None for a single worker.

    held: the rows it trains (see `Context`). evaluator: None if nothing is computed. emulation: the emulated cluster it
    belongs to, for its record.
    """

    options: Options
    place: Place
    device: torch.device
    graph: Graph
    partitioning: Partitioning
    share: Share
    held: Share
    network: Network
    method: MethodWorker
    trainer: Trainer
    evaluator: Evaluator | None
    recorder: Recorder
    channels: Channels
    control: Channel | None
    classes: int
    emulation: Mapping[str, Any] | None = None

    def by_rank(self, array: AnyArray) -> list[AnyArray]:
        """Every worker's array of the same type, shapes may differ in the first axis; all workers call it together."""
        if self.control is None:
            return [array]
        flat = np.ascontiguousarray(array)
        arrays = self.control.gather_arrays(flat.tobytes())
        return [np.frombuffer(raw, flat.dtype).reshape((-1, *flat.shape[1:])) for raw in arrays]

    def whole(self, inner: AnyArray) -> Float32Array:
        """Values of every node, float32[N], from all workers' values of inner nodes; all workers call it together."""
        found = np.empty(self.graph.nodes, np.float32)
        values = self.by_rank(inner.astype(np.float32))
        for nodes, own in zip(self.by_rank(self.share.part.inner), values, strict=True):
            found[nodes] = own
        return found

    def identity(self) -> dict[str, Any]:
        """The options on which a checkpoint and a resumed run must agree."""
        options = self.options.asdict()
        return {
            **{flag(name): options[name] for name in IDENTITY},
            **{flag(name): value for name, value in options["knobs"].items()},
            "features": self.network.widths[0],
            "classes": self.classes,
            "graph": self.partitioning.graph_hash,
            "partition": self.partitioning.owner_hash,
        }


def device_of(options: Options, place: Place) -> torch.device:
    """This worker's device. Raises ScenarioError as in `check_gpus`."""
    torch.set_num_threads(threads_of(options, place))
    if options.device == "cpu":
        return torch.device("cpu")
    device = torch.device("cuda", 0 if check_gpus(place) else place.local_rank)
    torch.cuda.set_device(device)
    return device


def check_gpus(place: Place) -> bool:
    """Whether the worker at `place` sees one GPU alone, its own.

    A launcher that shows each worker one GPU by any means (a variable, a container, a slice of a GPU) is taken at its
    word; `refuse_shared_gpus` compares them. Ours shows all to all. Raises ScenarioError for CUDA without CUDA, or for
    fewer GPUs than local workers.
    """
    if not torch.cuda.is_available():
        raise ScenarioError("--device: cuda is not available here (no GPU, or torch without CUDA); allowed: cpu")
    count = torch.cuda.device_count()
    own = not place.launched and count == 1
    if place.local_world > count and not own:
        raise ScenarioError(
            f"--workers: {place.local_world} on this server, which has {plural(count, 'GPU')}; allowed: 1 to {count}"
        )
    return own


def gpu_identity(device: torch.device) -> bytes:
    """What no two GPUs have in common; empty on a CPU and for a slice of a GPU (MIG), which shares the GPU's id.

    Tried with stand-ins only, not yet on GPUs.
    """
    if device.type == "cpu" or "MIG" in torch.cuda.get_device_name(device):
        return b""
    return str(getattr(torch.cuda.get_device_properties(device), "uuid", "")).encode()


def refuse_shared_gpus(identities: Sequence[bytes]) -> None:
    """Raise ScenarioError if two workers have the same GPU. identities: of every worker's, by rank; empty: unknown."""
    first: dict[bytes, int] = {}
    for rank, identity in enumerate(identities):
        if identity and first.setdefault(identity, rank) != rank:
            raise ScenarioError(
                f"--device: workers {first[identity]} and {rank} were given the same GPU; allowed: one for each worker"
            )


def backend_of(options: Options) -> str:
    """The backend of rows and gradients.

    Auto is gloo, because NCCL warns about communicators used in no common order.
    """
    return "gloo" if options.backend == "auto" else options.backend


def prepare(
    options: Options, place: Place, device: torch.device, shelf: DatasetCache, alone: Channels | None = None
) -> WorkerState:
    """Everything up to the first iteration; all ranks at the same time, in the joined process group.

    shelf: data cached from earlier runs. alone: locally answered channels, for a rank without peers.
    """
    channels = alone or Channels(place.rank, place.world, options.timeout, backend_of(options))
    control = _control(channels, device)
    dataset = shelf.dataset(options)
    if place.rank == 0 and alone is None:
        _tell_notes(dataset)
    partitioning = _agreed(options, dataset, place, control, shelf)
    share = share_of(dataset, partitioning, place.rank)
    chosen = _method(options, place)
    held = _held(dataset, partitioning, share, chosen.copies)
    dtype = DTYPES[options.dtype]
    options = with_kernels(options, share.part, weights_of(options), dtype, control)
    machine = WaitMachine.here(place)
    recorder = _recorder(options, place, device, machine, channels.now)
    network = Network(options, dataset.features.width, dataset.classes).to(device, dtype)
    _first_weights(options, network, place)
    weights = weights_of(options)
    builder = GraphBuilder(share.part, weights, matrix_kind(options.aggregator), dtype, device)
    whole = builder.whole().with_requests(static_requests(share.send_sets, device))
    x = torch.from_numpy(held.features.copy()).to(device, dtype)
    made = Exchange if machine is None else partial(WaitingExchange, machine)
    data = held, weights, dataset, partitioning
    context = Context(options, share, channels, recorder, builder, whole, x, network.widths, dtype, device, *data, made)
    method = chosen.worker(context)
    kind = dtype if dataset.multilabel else torch.int64
    evaluator = _evaluator(context, control, kind) if machine is None else None
    channel = channels.open("reduce", bulk=True) if place.world > 1 else None
    arguments = options, network, method, x, _targets(context, kind), channel, control, recorder, held.part.rank
    if machine is not None:
        trainer: Trainer = WaitingTrainer(*arguments, machine=machine, context=context)
    else:
        trainer = BatchTrainer(*arguments) if isinstance(method, BatchWorker) else Trainer(*arguments)
    if options.sums_input and evaluator is not None:
        trainer.fixed = evaluator.first_sum(x)
    if machine is None:
        method.start()
    return WorkerState(
        options=options,
        place=place,
        device=device,
        graph=dataset.graph,
        partitioning=partitioning,
        share=share,
        held=held,
        network=network,
        method=method,
        trainer=trainer,
        evaluator=evaluator,
        recorder=recorder,
        channels=channels,
        control=control,
        classes=dataset.classes,
        emulation=_emulation(machine, channels, control),
    )


def _control(channels: Channels, device: torch.device) -> Channel | None:
    """The channel for small data, after workers have compared their GPUs; None for a single worker."""
    control = channels.control()
    if control is not None and device.type == "cuda":
        refuse_shared_gpus(control.gather_arrays(gpu_identity(device)))
    return control


def _tell_notes(dataset: Dataset) -> None:
    for line in (*graph_notes(dataset.graph), *dataset.notes):
        sys.stderr.write(f"note: {line}\n")


def _recorder(
    options: Options, place: Place, device: torch.device, machine: WaitMachine | None, now: Callable[[], int]
) -> Recorder:
    if machine is not None:
        return machine.recorder(enabled=options.record)
    return Recorder(place.rank, enabled=options.record, cuda=device.type == "cuda", now=now)


def _method(options: Options, place: Place) -> Method:
    """The method of `options`.

    Raises ScenarioError for incompatible options, or if it needs one server and has more.
    """
    method = method_of(options.method, options.knobs)
    method.refuse(options)
    if method.one_server and place.local_world < place.world:
        raise ScenarioError(
            f"--method: {method.name} keeps the graph in the memory of one server, which has {place.local_world} of "
            f"{place.world} workers; allowed: all on one server"
        )
    return method


def _emulation(machine: WaitMachine | None, channels: Channels, control: Channel | None) -> Mapping[str, Any] | None:
    """The emulated cluster, with the parts that only workers can measure; all of them call it together."""
    if machine is not None:
        return machine.measured(channels.open("ids"), control)
    found = Emulation.here()
    return None if found is None else found.asdict()


def _agreed(
    options: Options, dataset: Dataset, place: Place, control: Channel | None, shelf: DatasetCache
) -> Partitioning:
    """The partition that worker 0 computed: METIS runs once, and all workers have the same."""
    if control is None:
        return shelf.owners(options, dataset)
    if options.partition is not None:
        owners = shelf.owners(options, dataset)
        if owners.note and place.rank == 0:
            sys.stderr.write(f"note: {owners.note}\n")
        return owners
    owner = torch.zeros(dataset.graph.nodes, dtype=torch.int32)
    failed = torch.zeros(1, dtype=torch.int32)
    made: Partitioning | None = None
    error: Exception | None = None
    if place.rank == 0:
        try:
            made = shelf.owners(options, dataset)
            owner = torch.from_numpy(made.owner.copy())
        except Exception as raised:
            error, failed[0] = raised, 1
    control.broadcast(failed)
    if error is not None:
        raise error
    if int(failed):
        return shelf.owners(options, dataset)
    control.broadcast(owner)
    if made is not None:
        return made
    metis = options.partition_method == "metis"
    label = metis_label(options.objective, KWAY, None, options.balance) if metis else options.partition_method
    graph = dataset.graph
    same = frozen(np.asarray(owner.numpy()))
    return Partitioning(same, place.world, label, options.partition_seed, graph.name, graph.content_hash())


def _first_weights(options: Options, network: Network, place: Place) -> None:
    initialise(network, options.seed)
    if options.init_weights is not None:
        load_weights(options.init_weights, network)
    if options.save_init is not None and place.rank == 0:
        save_weights(options.save_init, network)


def weights_of(options: Options) -> str:
    """The kind of entry weights, as in `GraphBuilder`."""
    if options.model == "graphsage":
        return "mean" if options.sage_mean == "neighbours" else "mean-with-self"
    # Sampled graphs train a mean, so the whole graph for evaluation is a mean too.
    return "mean-with-self" if options.knobs.get("estimator") == "mean" else "symmetric"


def _held(dataset: Dataset, partitioning: Partitioning, share: Share, copies: int) -> Share:
    """The rows that a worker trains: its share, or the block that `copies` workers store."""
    if copies == 1:
        return share
    replicas = Replicas(partitioning.parts, copies)
    return share_of(dataset, replicas.merged(partitioning), replicas.block(share.part.rank))


def _evaluator(context: Context, control: Channel | None, kind: torch.dtype) -> Evaluator:
    share, held = context.share, context.held
    own = None if held is share else torch.from_numpy(np.searchsorted(held.part.inner, share.part.inner))
    labels = torch.from_numpy(share.labels.copy()).to(context.device, kind)
    on_device = None if own is None else own.to(context.device)
    return Evaluator(share, context.whole, context.channels, control, context.widths, labels, on_device)


def _targets(context: Context, kind: torch.dtype) -> Targets:
    """The training nodes of the rows that a worker trains; for accuracy it counts those of its share."""
    share, held = context.share, context.held
    chosen = np.flatnonzero(held.train)
    nodes = torch.from_numpy(chosen).to(context.device)
    labels = torch.from_numpy(held.labels.copy()).to(context.device, kind)
    if held is share:
        return Targets(nodes, labels[nodes], share.train_total)
    counted = np.flatnonzero(np.isin(held.part.inner[chosen], share.part.inner))
    copies = context.world // held.part.parts
    return Targets(nodes, labels[nodes], share.train_total * copies, torch.from_numpy(counted).to(context.device))
