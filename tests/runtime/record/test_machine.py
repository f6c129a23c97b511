from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.resources import Resources
from runtime.record import hardware, peak_memory, versions


def test_the_machine_without_its_name() -> None:
    facts = hardware()
    assert sorted(facts) == ["cores", "cpu", "gpus", "memory_bytes", "quota"]
    assert facts["gpus"] == []
    assert facts["cpu"]
    assert facts["cores"] >= 1
    assert facts["memory_bytes"] > 2**28
    assert socket.gethostname() not in json.dumps(facts)


def test_gpus_are_named_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"Card {index}")
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 77)
    assert hardware(cuda=True)["gpus"] == ["Card 0", "Card 1"]
    assert peak_memory(cuda=True)["device_bytes"] == 77


def test_a_machine_that_does_not_say_its_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("runtime.record.machine._CPU_INFO", tmp_path / "none")
    assert hardware()["cpu"]


def test_what_a_container_may_use_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.record.machine.usable_resources", lambda: Resources(1, 0.5, 2**30))
    facts = hardware()
    assert (facts["cores"], facts["quota"], facts["memory_bytes"]) == (1, 0.5, 2**30)


def test_versions() -> None:
    import torch

    found = versions()
    assert sorted(found) == ["gcnsim", "numpy", "python", "torch"]
    assert (found["numpy"], found["torch"]) == (np.__version__, str(torch.__version__))
    assert found["python"] == sys.version.split()[0]


def test_peak_memory_grows_with_what_is_held() -> None:
    before = peak_memory()
    assert before["device_bytes"] is None
    held = np.ones(before["host_bytes"] or 0, np.uint8)
    after = peak_memory()["host_bytes"]
    assert after is not None
    assert after >= held.nbytes > 2**20
