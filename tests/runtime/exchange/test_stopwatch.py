"""What the watch notes of a pass through two layers, and that it changes no gradient."""

from __future__ import annotations

import pytest
import torch

from gcnsim.timeline import Direction, OpKind
from runtime.exchange import Stopwatch


class Notes:
    """A recorder whose clock counts its readings, and what it was told."""

    def __init__(self) -> None:
        self.now, self.stop_signal = 0, list[tuple[object, ...]]()

    def mark_compute(self) -> int:
        self.now += 1
        return self.now

    def add(self, kind: OpKind, stream: str, t: int, start: int, end: int, *, layer: int, direction: Direction) -> None:
        assert (stream, t) == ("compute", 7)
        self.stop_signal.append((kind, layer, direction, start < end))


@pytest.mark.parametrize("kind", [OpKind.UPDATE, OpKind.ATTENTION])
def test_maps_are_noted_forward_and_back_and_gradients_pass_unchanged(kind: OpKind) -> None:
    notes = Notes()
    watch = Stopwatch(notes, 7, kind)  # type: ignore[arg-type]
    weight = torch.tensor([2.0, 3.0], requires_grad=True)
    rows = weight
    for layer in range(2):
        watch.summed()
        rows = watch.mapped(layer, rows * weight)
    watch.backward(rows.sum(), notes.mark_compute())
    assert weight.grad is not None
    assert weight.grad.tolist() == pytest.approx([12.0, 27.0])  # of w^3
    there, back = Direction.FORWARD, Direction.BACKWARD
    first = [(kind, 0, there, True), (kind, 1, there, True), (OpKind.LOSS, -1, back, True)]
    assert notes.stop_signal[:3] == first
    assert notes.stop_signal[-1] == (kind, 0, back, True)


def test_what_needs_no_gradient_is_given_back_itself() -> None:
    rows = torch.ones(2)
    assert Stopwatch(Notes(), 7, OpKind.UPDATE).mapped(0, rows) is rows  # type: ignore[arg-type]
