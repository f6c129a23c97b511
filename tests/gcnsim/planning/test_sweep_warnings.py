"""Rates above what there is are named before a sweep begins, whichever axis has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim import api
from gcnsim.cli import main

BASE = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 2, "device": "h100", "transport": "direct"}}


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"cluster.nvlink": "450GB/s,900GB/s"}, "cluster.nvlink: 900 GB/s is more than h100 has"),
        ({"cluster.bandwidth": "log(10Gbps,6400Gbps,3)"}, "cluster.bandwidth: 6400Gbps is more than"),
        ({"method.tau": "0..2"}, None),
        ({"cluster.nvlink": "null,none,450GB/s"}, None),
    ],
)
def test_each_value_of_an_axis_is_looked_at(axes: dict[str, str], words: str | None) -> None:
    found = api.sweep_warnings(api.ask({"schema": "gcnsim.sweep/1", "base": BASE}, axes))
    assert len(found) == (words is not None)
    assert all(text.startswith(words or "") for text in found)


def test_the_command_says_it_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["sweep", "--axis", "cluster.nvlink=900GB/s", "--set", "cluster.device=h100", "--set", "cluster.gpus=2"]
    assert main([*names, "--transport", "direct", "--dry-run", "--out", str(tmp_path / "out")]) == 0
    assert "note: cluster.nvlink: 900 GB/s is more than h100 has in one direction" in capsys.readouterr().err
