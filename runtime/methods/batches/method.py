"""The knobs that systems of mini-batches share, and what none of them trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from gcnsim.errors import ScenarioError
from gcnsim.fields import PerLayer
from gcnsim.knobs import BATCH, FANOUT, LAYER_SIZES, knob
from runtime.methods.method import Method
from runtime.options import Options, flag

if TYPE_CHECKING:
    from runtime.methods.batches.worker import BatchWorker
    from runtime.methods.worker import Context


@dataclass(frozen=True)
class MiniBatch(Method):
    """A method that updates the model once per mini-batch.

    everywhere: every worker reads all input rows out of its own memory; else those of other parts are asked of their
    owners. ahead: batches loaded before they are trained. draws_ahead: whether the next one is drawn meanwhile.
    """

    everywhere: ClassVar[bool] = False
    draws_ahead: ClassVar[bool] = True

    @property
    def ahead(self) -> int:
        """Loading and training take turns."""
        return 0

    def refuse(self, options: Options) -> None:
        """Sums made once for all iterations: a batch reads rows of its own."""
        if options.preaggregate:
            raise ScenarioError(
                f"--preaggregate: {self.name} draws the neighbours of every batch anew; allowed: without it"
            )


@dataclass(frozen=True)
class NeighbourBatches(MiniBatch):
    """Batches of training nodes and the neighbours drawn around them.

    usual_fanout: where nobody says another. trains: which training nodes a worker goes through: any, shuffled together;
    those of its `own` part; or those `dealt` to a part that holds their neighbourhoods.
    """

    usual_fanout: ClassVar[int] = 2
    trains: ClassVar[Literal["shuffled", "own", "dealt"]] = "shuffled"

    batch: int = knob(BATCH)
    fanout: PerLayer | None = knob(FANOUT)
    layer_sizes: PerLayer | None = knob(LAYER_SIZES)

    def refuse(self, options: Options) -> None:
        """Lists of another length than the model's layers, and both of them."""
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
        """Layers, the first ones, whose sums are made before training: they draw nothing."""
        return 0

    def amounts(self, layers: int) -> tuple[PerLayer, PerLayer]:
        """Neighbours that a node draws and nodes that a layer draws, per layer; one of them is empty."""
        if self.layer_sizes is not None:
            return (), self.layer_sizes
        return self.fanout or (self.usual_fanout,) * layers, ()

    def worker(self, context: Context) -> BatchWorker:
        """Batches drawn, loaded, trained."""
        from runtime.methods.batches.worker import neighbour_worker

        return neighbour_worker(context, self)
