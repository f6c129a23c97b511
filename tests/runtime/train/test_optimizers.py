"""Weights change as torch's own classes change them, to the last bit, and torch's compiler is not imported for it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch.nn import Parameter

from runtime.train.reduce import Adam, Optimizer, Sgd
from tests.runtime.shell import ROOT

PAIRS: dict[str, tuple[type[Optimizer], type[torch.optim.Optimizer]]] = {
    "adam": (Adam, torch.optim.Adam),
    "sgd": (Sgd, torch.optim.SGD),
}


@pytest.mark.parametrize("decay", [0.0, 0.03])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", sorted(PAIRS))
def test_as_torch_does(kind: str, dtype: torch.dtype, decay: float) -> None:
    generator = torch.Generator().manual_seed(3)
    first = [torch.randn(size, generator=generator, dtype=dtype) for size in ((4, 3), (3,), (2,))]
    ours, theirs = ([Parameter(item.clone()) for item in first] for _ in range(2))
    own = PAIRS[kind][0](ours, lr=0.1, weight_decay=decay)
    reference = PAIRS[kind][1](theirs, lr=0.1, weight_decay=decay)  # type: ignore[call-arg]
    for _ in range(4):
        for one, other in zip(ours[:2], theirs[:2], strict=True):  # the last has no gradient
            one.grad = torch.randn(one.shape, generator=generator, dtype=dtype)
            other.grad = one.grad.clone()
        own.step()
        reference.step()
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
    assert not torch.equal(ours[0], first[0])
    assert torch.equal(ours[2], first[2])
    for one, other in zip(ours, theirs, strict=True):
        expected = {name: value for name, value in reference.state[other].items() if value is not None}
        assert own.state[one].keys() == expected.keys()
        assert all(torch.equal(own.state[one][name], value) for name, value in expected.items())


@pytest.mark.parametrize("kind", sorted(PAIRS))
def test_one_kernel_for_all_weights_computes_the_same(kind: str) -> None:
    generator = torch.Generator().manual_seed(4)
    first = [torch.randn(size, generator=generator, dtype=torch.float64) for size in ((4, 3), (3,))]
    fused, single = ([Parameter(item.clone()) for item in first] for _ in range(2))
    both = [PAIRS[kind][0](weights, lr=0.1, weight_decay=0.03) for weights in (fused, single)]
    assert not both[0].fused  # on a CPU
    both[0].fused = True
    for _ in range(4):
        for one, other in zip(fused, single, strict=True):
            one.grad = torch.randn(one.shape, generator=generator, dtype=torch.float64)
            other.grad = one.grad.clone()
        for optimizer in both:
            optimizer.step()
    for one, other in zip(fused, single, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
        assert both[0].state[one].keys() == both[1].state[other].keys()


def test_a_step_does_not_import_the_compiler() -> None:
    code = (
        "import sys, torch, runtime.train.worker\n"
        "from runtime.train.reduce import Adam, Sgd\n"
        "weight = torch.nn.Parameter(torch.ones(3)); weight.grad = torch.ones(3)\n"
        "for kind in (Adam, Sgd): kind([weight], lr=0.1, weight_decay=0.1).step()\n"
        "print([name for name in sys.modules if name.startswith('torch._dynamo')])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
