"""What the sums over neighbours ask of a method, and how one iteration's view of an exchange answers."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from torch import Tensor

from gcnsim.ids import Iteration, Layer
from runtime.exchange.sampled_graph import SampledGraph

if TYPE_CHECKING:
    from runtime.exchange.exchange import Exchange


class Boundary(Protocol):
    """What the sums over neighbours need of a method: rows and gradients of other workers, of whatever age."""

    @property
    def synchronous(self) -> bool:
        """Whether an iteration reads what the same iteration sent."""
        ...

    def send_rows(self, t: Iteration, layer: Layer, rows: Tensor) -> None:
        """Start to send this worker's rows H^(t,layer), [I, d], to those who want them."""
        ...

    def rows(self, t: Iteration, layer: Layer) -> Tensor:
        """The boundary rows that iteration t reads, [U, d]; waits for them."""
        ...

    def gradient_buffer(self, t: Iteration, layer: Layer) -> Tensor:
        """Where to put the gradients of iteration t's boundary rows, [U, d]."""
        ...

    def send_gradients(self, t: Iteration, layer: Layer) -> None:
        """Start to send what was put into `gradient_buffer`."""
        ...

    def await_gradients(self, t: Iteration, layer: Layer) -> None:
        """Wait for the gradients that `add_gradients` will add."""
        ...

    def add_gradients(self, t: Iteration, layer: Layer, grad: Tensor) -> None:
        """Add the other workers' gradients to those of the inner rows, [I, d]; waits for them."""
        ...


@dataclass(frozen=True)
class BoundaryView:
    """An exchange as one iteration sees it: `drawn` is trained now, `upcoming` in tau iterations."""

    exchange: Exchange
    drawn: SampledGraph
    upcoming: Future[SampledGraph]

    @property
    def synchronous(self) -> bool:
        """See `Boundary`."""
        return self.exchange.synchronous

    def send_rows(self, t: Iteration, layer: Layer, rows: Tensor) -> None:
        """See `Boundary`."""
        self.exchange.send_rows(t, layer, rows, self.upcoming)

    def rows(self, t: Iteration, layer: Layer) -> Tensor:
        """See `Boundary`."""
        return self.exchange.rows(t, layer, self.drawn)

    def gradient_buffer(self, t: Iteration, layer: Layer) -> Tensor:
        """See `Boundary`."""
        return self.exchange.gradient_buffer(t, layer, self.drawn)

    def send_gradients(self, t: Iteration, layer: Layer) -> None:
        """See `Boundary`."""
        self.exchange.send_gradients(t, layer, self.drawn)

    def await_gradients(self, t: Iteration, layer: Layer) -> None:
        """See `Boundary`."""
        self.exchange.await_gradients(t, layer)

    def add_gradients(self, t: Iteration, layer: Layer, grad: Tensor) -> None:
        """See `Boundary`."""
        self.exchange.add_gradients(t, layer, grad)
