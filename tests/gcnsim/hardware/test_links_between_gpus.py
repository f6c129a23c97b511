"""What the catalogue says of the links between GPUs: rates per direction, with a source and a date."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim import hardware
from gcnsim.core.errors import FileError

WITH_NVLINK = {"p3.8xlarge", "p3.16xlarge", "p3dn.24xlarge", "p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge"}
WITH_NVLINK |= {"a2-highgpu-8g", "Standard_ND96asr_v4", "Standard_ND96amsr_A100_v4"}
WITH_NVLINK |= {"dgx-1-v100", "dgx-a100-320", "dgx-a100", "dgx-station-a100", "dgx-h100", "dgx-h200", "dgx-b200"}
WITH_NVLINK |= {"hgx-h100-8", "server-4x-a100", "server-8x-mi300x"}


def test_the_instances_with_nvlink_are_those_whose_makers_say_so() -> None:
    found = {name for name in hardware.hosts() if hardware.host(name).nvlink is not None}
    assert found == WITH_NVLINK


@pytest.mark.parametrize("name", sorted(WITH_NVLINK))
def test_a_host_has_no_faster_nvlink_than_its_device(name: str) -> None:
    host = hardware.host(name)
    assert host.device is not None
    device = hardware.device(host.device)
    assert host.nvlink is not None
    assert device.nvlink is not None
    assert host.nvlink.value <= device.nvlink.value
    if device.nvlink_generation is None:
        assert host.nvlink_generation is None, "Infinity Fabric"
        return
    assert host.nvlink_generation is not None
    assert host.nvlink_generation.value == device.nvlink_generation.value


@pytest.mark.parametrize(
    ("name", "rate", "generation"),
    [
        ("p100", 80e9, 1),
        ("v100-16", 150e9, 2),
        ("a100-40", 300e9, 3),
        ("a100-80", 300e9, 3),
        ("h100", 450e9, 4),
        ("h200", 450e9, 4),
        ("gh200", 450e9, 4),
        ("b200", 900e9, 5),
        ("b300", 900e9, 5),
    ],
)
def test_rates_are_of_one_direction(name: str, rate: float, generation: int) -> None:
    device = hardware.device(name)
    assert device.nvlink is not None
    assert device.nvlink_generation is not None
    assert (device.nvlink.value, device.nvlink_generation.value) == (rate, generation)


@pytest.mark.parametrize(
    "name", ["t4", "a10g", "l4", "l40s", "rtx-4090", "m40", "p100-pcie", "rtx-a6000", "h100-nvl", "mi210"]
)
def test_cards_have_no_nvlink(name: str) -> None:
    assert hardware.device(name).nvlink is None


def test_adapters_together_are_the_network_of_the_instance() -> None:
    hosts = {name: hardware.host(name) for name in ("p4d.24xlarge", "p5.48xlarge", "Standard_ND96asr_v4", "dgx-h100")}
    each = {name: host.nic.value / host.nics.value for name, host in hosts.items() if host.nic and host.nics}
    assert each == {"p4d.24xlarge": 12.5e9, "p5.48xlarge": 12.5e9, "Standard_ND96asr_v4": 25e9, "dgx-h100": 50e9}
    assert all(host.gpudirect is not None and host.gpudirect.value for host in hosts.values())
    assert hardware.host("g5.48xlarge").gpudirect is None


@pytest.mark.parametrize(
    ("name", "gbps"),
    [
        ("infiniband-edr", 100),
        ("infiniband-hdr", 200),
        ("infiniband-ndr", 400),
        ("roce-100g", 100),
        ("roce-200g", 200),
        ("roce-400g", 400),
        ("efa", 100),
        ("ethernet-200g", 200),
        ("ethernet-400g", 400),
    ],
)
def test_links_of_data_centers_are_there(name: str, gbps: int) -> None:
    assert hardware.link(name).bandwidth.value * 8 / 1e9 == gbps


CARD = """title: "A card"
kind: gpu
link: pcie4-x16
memory: {value: 24GB, source: datasheet, reference: sheet, date: 2024}
memory_bandwidth: {value: 900GB/s, source: datasheet, reference: sheet, date: 2024}
flops_fp32: {value: 30TFLOP/s, source: datasheet, reference: sheet, date: 2024}
"""


def test_a_device_file_may_say_what_its_gpus_have_between_them(tmp_path: Path) -> None:
    path = tmp_path / "card.yaml"
    more = "nvlink: {value: 56.25GB/s, source: datasheet, reference: sheet, date: 2024}\n"
    more += "peer_to_peer: {value: false, source: datasheet, reference: sheet, date: 2024}\n"
    path.write_text(CARD + more)
    profile = hardware.device(str(path))
    assert profile.nvlink is not None
    assert profile.nvlink.value == 56.25e9
    assert profile.peer_to_peer is not None
    assert not profile.peer_to_peer.value


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("peer_to_peer: {value: maybe, source: datasheet, reference: sheet, date: 2024}", "is not true or false"),
        ("peer_to_peer: true", "is not {value: true or false"),
        ("peer_to_peer: {value: true, source: hearsay, reference: sheet, date: 2024}", "unknown source"),
        ("nvlink: {value: 0GB/s, source: datasheet, reference: sheet, date: 2024}", "above 0"),
    ],
)
def test_what_a_device_file_says_wrong_is_refused_in_one_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "card.yaml"
    path.write_text(CARD + line + "\n")
    with pytest.raises(FileError, match=r"card\.yaml, ") as caught:
        hardware.device(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
