"""The overhead of the published systems' code, added to the ops of workers on GPUs (`Facts.released`,
`gcnsim.cost.host_work`).

Ops grow with the square of the workers, so rounds over peers are merged: the calls, launches and passes of all P - 1
rounds are in the length of one op that packs or unpacks the rows of a layer; those of ids are in the sampling op. Their
order is kept: copies follow the packing, messages the copies, from the next worker on. The all-reduces of a layer's
tensors, which are ready together, form one ring of all their bytes after an op with the extra cost.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Layer
from gcnsim.cost import (
    INDEX,
    WIDE_ID,
    drawing_core_seconds,
    issued,
    layer_gradient_bytes,
    rebuild_seconds,
    receiving_seconds,
    reduce_seconds,
    sending_seconds,
    step_launch_seconds,
    step_seconds,
    tensors,
)
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.methods.families.gpu_ops import GpuOps
from gcnsim.methods.method import Facts
from gcnsim.schedule import allreduce
from gcnsim.timeline import OpKind


class ReleasedOps(GpuOps):
    """The ops of workers on GPUs, with the overhead of the released code if it is simulated."""

    @property
    def step(self) -> FloatArray:
        """Seconds of an optimiser step, with the host's calls; in the released code, tensor by tensor."""
        return self.on_devices(lambda device, _: step_of(self.facts, device, self.host))

    @property
    def calls(self) -> FloatArray:
        """Host seconds of framework calls during sampling; 0 for lean code."""
        found = drawing_core_seconds(self.host, self.size - 1) if self.facts.released else 0.0
        return np.asarray(found, dtype=np.float64)

    @cached_property
    def rebuilt(self) -> FloatArray:
        """Seconds to rebuild the trained graph, float64[T, P]; 0 for lean code, where the host builds it."""
        if not self.facts.released:
            return np.zeros(self.size)
        entries = self.kept + self.inner
        return self.on_devices(
            lambda device, ranks: rebuild_seconds(device, self.host, entries[:, ranks], self.size - 1)
        )

    def sent(self, packed: FloatArray, rows: IntArray, width: int) -> FloatArray:
        """Seconds to pack `rows`[t, n] rows in rounds over peers; packed: the time of one kernel for all."""
        sampled = not self.method.sampling().whole
        return self.joined(
            [
                sending_seconds(
                    device, self.host, packed[:, ranks], rows[:, ranks], width, self.size - 1, drawn=sampled
                )
                for device, ranks in self.devices
            ]
        )

    def received(self, unpacked: FloatArray) -> FloatArray:
        """Seconds to unpack received rows in rounds over peers; unpacked: the time of one kernel for all."""
        return self.joined(
            [receiving_seconds(device, self.host, unpacked[:, ranks], self.size - 1) for device, ranks in self.devices]
        )


def reduced_layer(ops: GpuOps, layer: Layer, ready: IntArray) -> IntArray:
    """The all-reduces of a layer's tensors, once their gradients are `ready`; per worker, the op that ends them."""
    if ops.size == 1:
        return ready
    cluster, shape = ops.facts.cluster, ops.facts.shapes[layer]
    hops = (cluster.between(rank, (rank + 1) % ops.size) for rank in ops.workers)
    latency_s = max(map(cluster.latency, hops))
    more = reduce_seconds(ops.host, layer_tensors(ops.facts, layer), ops.size, latency_s)
    started = ops.compute(OpKind.ALLREDUCE, more, after=[ready], stream="reduce.host")
    return np.array(allreduce(ops.builder, layer_gradient_bytes(shape), started.tolist()))


def layer_tensors(facts: Facts, layer: Layer) -> int:
    """Parameter tensors of a layer; all but the last have a norm."""
    return tensors(facts.shapes[layer], norm=facts.norm and layer + 1 < len(facts.shapes))


def step_of(facts: Facts, device: DeviceProfile, host: HostProfile) -> FloatArray:
    """Seconds of an optimiser step, with the host's calls; in the released code, tensor by tensor."""
    fused = step_seconds(device, facts.shapes)
    if not facts.released:
        return issued(OpKind.STEP, fused, host.call_s.value)
    count = sum(layer_tensors(facts, layer) for layer in range(len(facts.shapes)))
    return np.asarray(fused + step_launch_seconds(device, count), dtype=np.float64)


def id_width(facts: Facts) -> int:
    """Bytes of a transferred node id."""
    return WIDE_ID if facts.released else INDEX


def id_streams(facts: Facts) -> list[str]:
    """By peer, the stream of the ids that a worker sends it: the released code sends them in rounds."""
    return ["ids.tx" if facts.released else f"ids.tx{peer}" for peer in range(facts.cluster.gpus)]
