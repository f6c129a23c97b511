"""Checkpoints of earlier versions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gcnsim.core.errors import FileError
from runtime.train.checkpoint import STATE, WORKERS, complete, latest, read_checkpoint, write_part


def written(folder: Path, aggregator: str) -> Path:
    """A checkpoint of one worker that names GraphSAGE's aggregator."""
    digest = write_part(folder, 4, 0, {"shared.weight": torch.zeros(1)})
    identity = {WORKERS: 1, "--model": "graphsage", "--sage-aggregator": aggregator}
    complete(folder, 4, identity, {"best": [None] * 3, "scores": [None] * 3, "norms": []}, [digest])
    found = latest(folder)
    assert found is not None
    return found


def test_the_mean_is_read(tmp_path: Path) -> None:
    assert read_checkpoint(written(tmp_path, "mean"), 0, {"--model": "graphsage"}).done == 4


def test_pooling_is_refused(tmp_path: Path) -> None:
    place = written(tmp_path, "pool")
    with pytest.raises(FileError) as caught:
        read_checkpoint(place, 0, {"--model": "graphsage"})
    assert str(caught.value) == (
        f"{place / STATE}: identity.--sage-aggregator: pool is not allowed; GraphSAGE takes the mean; allowed: mean"
    )
