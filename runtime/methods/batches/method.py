"""The shared knobs of mini-batch systems, and the options that none of them supports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gcnsim.core.errors import ScenarioError
from gcnsim.workload.knobs import BATCH, FANOUT, LAYER_SIZES, PerLayer, knob
from runtime.methods.method import Method
from runtime.options import Options, flag


@dataclass(frozen=True)
class MiniBatch(Method):
    """A method that updates the model once per mini-batch.

    everywhere: every worker reads all input rows from its own memory; otherwise rows of other parts are requested from
    their owners. ahead: batches loaded before they are trained. draws_ahead: whether the next one is sampled meanwhile.
    """

    everywhere: ClassVar[bool] = False
    draws_ahead: ClassVar[bool] = True

    @property
    def ahead(self) -> int:
        """0: loading and training take turns."""
        return 0

    def refuse(self, options: Options) -> None:
        """Refuse sums computed once for all iterations: each batch reads other rows."""
        if options.preaggregate:
            raise ScenarioError(
                f"--preaggregate: {self.name} draws new neighbours for every batch; allowed: without it"
            )


@dataclass(frozen=True)
class NeighbourBatches(MiniBatch):
    """Batches of training nodes and the neighbours sampled around them.

    usual_fanout: the default. trains: the training nodes of a worker: any, shuffled together; those of its `own` part;
    or those `dealt` to a part that contains their neighbourhoods.
    """

    usual_fanout: ClassVar[int] = 2
    trains: ClassVar[Literal["shuffled", "own", "dealt"]] = "shuffled"

    batch: int = knob(BATCH)
    fanout: PerLayer | None = knob(FANOUT)
    layer_sizes: PerLayer | None = knob(LAYER_SIZES)

    def refuse(self, options: Options) -> None:
        """Refuse lists that do not match the model's layers, and both lists together."""
        super().refuse(options)
        if self.fanout is not None and self.layer_sizes is not None:
            raise ScenarioError("--layer-sizes: given beside --fanout; give one of them")
        for name, value in (("fanout", self.fanout), ("layer_sizes", self.layer_sizes)):
            if value is not None and len(value) != options.layers:
                raise ScenarioError(
                    f"{flag(name)}: {len(value)} numbers, but the model has {options.layers} layers; allowed: "
                    f"{options.layers} numbers"
                )

    @property
    def ready(self) -> int:
        """First layers whose sums are computed before training; they sample nothing."""
        return 0

    def amounts(self, layers: int) -> tuple[PerLayer, PerLayer]:
        """Neighbours per node and nodes per layer, for each layer; one of them is empty."""
        if self.layer_sizes is not None:
            return (), self.layer_sizes
        return self.fanout or (self.usual_fanout,) * layers, ()
