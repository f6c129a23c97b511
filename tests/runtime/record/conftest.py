"""The facts of a small run of two workers, made afresh for every test."""

from __future__ import annotations

import pytest

from runtime.options import Options
from runtime.record import RunRecord, merge, summarise


@pytest.fixture
def record() -> RunRecord:
    pairs = ((0, 10), (12, 0))
    return RunRecord(
        versions={"gcnsim": "0.1.0", "python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.0"},
        hardware={"cpu": "Xeon", "cores": 2, "quota": None, "memory_bytes": 2**34, "gpus": []},
        emulation=None,
        backend="gloo",
        options=Options().asdict(),
        seed=3,
        workers=2,
        graph={"name": "digits", "hash": "ab12"},
        partition={"method": "metis-vol", "hash": "cd34"},
        inner=(900, 897),
        boundary=(120, 133),
        widths=(64, 128, 10),
        parameters=9610,
        iterations=2,
        finished=True,
        bytes={
            "rows": pairs,
            "gradients": pairs,
            "ids": ((0, 0), (0, 0)),
            "norms": ((0, 0), (0, 0)),
            "cache": ((0, 0), (0, 0)),
        },
        hit_rate=None,
        peak_memory=({"host_bytes": 2**28, "device_bytes": None}, {"host_bytes": 2**28, "device_bytes": 5}),
        accuracy={"train": 1.0, "val": 0.97, "test": None},
        norms=(0,),
        summary=summarise(merge([]), [0.1, 0.2], workers=2, warmup=1).asdict(),
    )
