"""The training loop of workers on emulated GPUs: waits replace computation, in the same session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gcnsim.core.ids import Iteration
from gcnsim.workload import layer_shapes
from runtime.accelerator.exchange import WaitingExchange
from runtime.accelerator.iteration import DeviceIteration, EdgeSampler, NodeSampler, Sampler
from runtime.accelerator.lengths import GraphCounts, MeasuredSeconds, OpSeconds
from runtime.accelerator.machine import NS, ScaledRecorder, WaitMachine
from runtime.accelerator.measured_file import measured_setting, refuse_other_graph
from runtime.exchange import SampledGraph
from runtime.launch.watch import realtime_priority
from runtime.methods import method_of
from runtime.methods.worker import Context
from runtime.train.loop import Trainer
from runtime.train.reduce import GlobalSums, LocalSums


class WaitingTrainer(Trainer):
    """Trains nothing: weights stay unchanged, and there is no loss."""

    def __init__(self, *arguments: Any, machine: WaitMachine, context: Context) -> None:
        """Sample all graphs; all workers call it together. Other arguments as in `Trainer`."""
        super().__init__(*arguments)
        assert isinstance(self.recorder, ScaledRecorder)
        self._channel, self._seconds = arguments[5], 0.0
        self._graphs = _drawn(context, self.method.graphs(self.options.iterations))
        exchange = self.method.exchange
        assert exchange is None or isinstance(exchange, WaitingExchange)
        waits = exchange is not None and not exchange.tau
        lengths = _lengths(context, machine, self._graphs, waits_in_layers=waits)
        self._sampler = Sampler()
        if exchange is not None:
            exchange.graphs, exchange.lengths = self._graphs, lengths
            self._sampler = _sampler(context, machine, exchange, lengths, self.recorder)
        self._device = DeviceIteration(
            machine,
            self.recorder,
            lengths,
            exchange,
            self._sampler,
            self.options.overlap == "central",
            sum(weight.numel() * weight.element_size() for weight in self.network.parameters()),
        )
        self._nothing = self.gradients.flat.new_zeros(())

    def iteration(self, t: Iteration, own: LocalSums) -> tuple[GlobalSums, SampledGraph]:
        """Wait as long as iteration t takes; returns run-wide sums without a loss, and its graph."""
        graph = self._graphs[t]
        own = replace(own, hits=graph.hits, lookups=graph.rows)
        self.gradients.begin(t, self._nothing, self._nothing, own)
        self._seconds = self._device.run(t, self._reduce) / NS
        return replace(self.gradients.sums(), loss=None), graph

    def took(self, seconds: float) -> float:
        """The time that the iteration's waits represent, from the end of the previous one."""
        return self._seconds

    def close(self) -> None:
        """Stop the sampler's threads, and return to normal scheduling priority."""
        self._sampler.close()
        realtime_priority(False)

    def _reduce(self) -> None:
        assert self._channel is not None
        self._channel.wait(self._channel.all_reduce(self.gradients.flat))


def _drawn(context: Context, graphs: Any) -> Sequence[SampledGraph]:
    """The graphs without their matrices, which are not multiplied. The real time of sampling is not recorded."""
    recorder = context.recorder
    enabled, recorder.enabled = recorder.enabled, False
    found = [replace(graph, inner=context.whole.inner, boundary=None) for graph in graphs]
    recorder.enabled = enabled
    return found


def _lengths(
    context: Context, machine: WaitMachine, graphs: Sequence[SampledGraph], *, waits_in_layers: bool
) -> OpSeconds:
    """Of this worker's kernels, by the laws or as measured. waits_in_layers: as of `OpSeconds`.

    Raises ScenarioError where the graph, its parts or the run are not those that were measured.
    """
    options, widths, share = context.options, context.widths, context.share
    hidden = widths[1] if len(widths) > 2 else widths[0]
    shapes = layer_shapes(options.model, widths[0], hidden, len(widths) - 1, widths[-1])
    arguments = machine.device, machine.host, shapes, share.part, GraphCounts.of(graphs)
    norm, path = options.norm == "layer", machine.accelerator.measured_compute
    if path is None:
        return OpSeconds(*arguments, norm=norm, waits_in_layers=waits_in_layers, factor=machine.factor)
    refuse_other_graph(path, options, context.partitioning.graph_hash, context.partitioning.owner_hash)
    setting = measured_setting(path, machine.device.name, options)
    epsilon, rate = _drawn_at(context)
    picks = 0.0 < rate < 1.0
    return MeasuredSeconds(
        setting.parts[share.part.rank],
        *arguments,
        exchanges=context.world > 1,
        samples=epsilon < 1.0 or picks,
        picks=picks,
        period=method_of(options.method, options.knobs).period,
        seed=options.seed,
        norm=norm,
        waits_in_layers=waits_in_layers,
        factor=machine.factor,
    )


def _drawn_at(context: Context) -> tuple[float, float]:
    """The rates at which edges and boundary nodes are drawn."""
    knobs = context.options.knobs
    return float(str(knobs.get("epsilon", 1.0))), float(str(knobs.get("rate", 1.0)))


def _sampler(
    context: Context, machine: WaitMachine, exchange: WaitingExchange, lengths: OpSeconds, recorder: ScaledRecorder
) -> Sampler:
    """The sampler of the method's graphs, by its knobs."""
    knobs, channel = context.options.knobs, context.channels.open("ids")
    epsilon, rate = _drawn_at(context)
    if epsilon < 1.0:
        refresh, weighted = int(str(knobs["refresh"])), knobs["sampler"] == "vr"
        return EdgeSampler(machine, exchange, channel, recorder, lengths, refresh, weighted=weighted)
    return NodeSampler(machine, exchange, channel, recorder, lengths, rate) if 0.0 < rate < 1.0 else Sampler()
