"""Masks of dropout: reproducible, of the right mean, and one for each purpose."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from gcnsim.timeline import Direction, OpKind, Phase
from runtime.exchange import DropoutConfig, IterationContext, Stopwatch
from runtime.record import Recorder

LIKE = torch.zeros(400, 50, dtype=torch.float64)


def test_the_same_names_give_the_same_mask_and_others_another() -> None:
    dropping = DropoutConfig(0.3, False, 7, 1)
    mask = dropping.mask(LIKE, 2, 1, "inner")
    assert torch.equal(mask, DropoutConfig(0.3, True, 7, 1).mask(LIKE, 2, 1, "inner"))
    others = [
        dropping.mask(LIKE, 3, 1, "inner"),
        dropping.mask(LIKE, 2, 0, "inner"),
        dropping.mask(LIKE, 2, 1, "boundary"),
        DropoutConfig(0.3, False, 8, 1).mask(LIKE, 2, 1, "inner"),
        DropoutConfig(0.3, False, 7, 2).mask(LIKE, 2, 1, "inner"),
    ]
    kept = 0.7**2 + 0.3**2
    for other in others:
        agree = float((other == mask).double().mean())
        assert abs(agree - kept) < 5 * math.sqrt(kept * (1 - kept) / LIKE.numel()), "independent"


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_masks_are_zero_or_the_inverse_of_the_share_kept_and_one_in_the_mean(rate: float, dtype: torch.dtype) -> None:
    mask = DropoutConfig(rate, False, 0, 0).mask(LIKE.to(dtype), 0, 0, "inner")
    assert mask.dtype == dtype
    assert mask.shape == LIKE.shape
    kept = mask > 0
    assert bool(torch.isclose(mask[kept], torch.tensor(1.0 / (1.0 - rate), dtype=dtype)).all())
    error = math.sqrt(rate / (1.0 - rate) / LIKE.numel())
    assert abs(float(mask.double().mean()) - 1.0) <= 5 * error + 1e-7


def test_the_ambient_generator_is_left_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    DropoutConfig(0.3, False, 7, 1).mask(LIKE, 2, 1, "inner")
    assert torch.equal(torch.get_rng_state(), before)


def test_dropping_is_timed_forward_and_backward() -> None:
    recorder = Recorder(rank=1)
    watch = Stopwatch(recorder, 4, OpKind.UPDATE)
    drawn: Any = None
    step = IterationContext(4, drawn, None, recorder, watch, DropoutConfig(0.3, False, 7, 1))
    h = torch.ones(50, 8, dtype=torch.float64, requires_grad=True)
    kept = step.dropped(2, h)
    mask = DropoutConfig(0.3, False, 7, 1).mask(h, 4, 2, "inner")
    assert torch.equal(kept, h * mask)
    kept.sum().backward()  # type: ignore[no-untyped-call]
    assert h.grad is not None
    assert torch.equal(h.grad, mask)
    spans = recorder.timeline(0)
    assert spans.layer.tolist() == [2, 2]
    assert spans.direction.tolist() == [Direction.FORWARD, Direction.BACKWARD]
    assert all(spans.of_phase(Phase.COMPUTE))
    assert (spans.end_ps > spans.start_ps).all()
