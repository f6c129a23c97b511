"""Fitted platforms: what ships is within its bounds, and a bad file is said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.hardware import devices, platform, platforms
from gcnsim.hardware.platforms import FOLDER


def test_every_platform_is_of_a_device_of_the_catalogue_and_within_its_bounds() -> None:
    assert {platform(name).device for name in platforms()} <= set(devices())
    for found in map(platform, platforms()):
        assert 0.0 < found.spmm_efficiency.value <= 1.0
        assert 0.0 < found.rate_beside_copies.value <= 1.0
        assert found.staging_bandwidth is None or found.staging_bandwidth.value > 0.0
        assert 0.0 <= found.error.value < 1.0
        assert found.spmm_efficiency.source in ("fitted", "assumed")


def test_a_device_has_one_share_of_its_bandwidth_for_each_family_of_kernels() -> None:
    by_device: dict[str, set[tuple[float, float | None]]] = {}
    for found in map(platform, platforms()):
        streamed = None if found.stream_efficiency is None else found.stream_efficiency.value
        by_device.setdefault(found.device, set()).add((found.spmm_efficiency.value, streamed))
    assert len(by_device) < len(platforms())
    assert all(len(shares) == 1 for shares in by_device.values())


def test_what_a_platform_does_not_say_is_as_without_it(tmp_path: Path) -> None:
    text = (FOLDER / "rtx-2080-ti-server.yaml").read_text(encoding="utf-8")
    (tmp_path / "whole.yaml").write_text(text, encoding="utf-8")
    for key in ("stream_efficiency", "staging_bandwidth", "operation_s"):
        assert getattr(platform(str(tmp_path / "whole.yaml")), key).source == "fitted"
        raw = yaml.safe_load(text)
        del raw[key]
        (tmp_path / f"{key}.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
        assert getattr(platform(str(tmp_path / f"{key}.yaml")), key) is None


def test_an_unknown_platform_names_the_nearest() -> None:
    with pytest.raises(ScenarioError, match="known: bns-gcn-v100, "):
        platform("psc-gcn-t5")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("device: t4", "gpu: t4", "a platform has the keys"),
        ("100%", "120%", "above 0% and at most 100%"),
        ("100%", "fast", "rate_beside_copies"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (FOLDER / "psc-gcn-t4.yaml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "own.yaml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(FileError, match=message):
        platform(str(tmp_path / "own.yaml"))
