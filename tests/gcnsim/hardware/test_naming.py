"""GPUs by the names their drivers give."""

from __future__ import annotations

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.hardware import device, devices, gpu_named, gpu_of


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Tesla T4", "t4"),
        ("NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"),
        ("GeForce GTX 1080 Ti", "gtx-1080-ti"),
        ("Tesla V100-SXM2-16GB", "v100-16"),
        ("Tesla V100-SXM2-32GB", "v100-32"),
        ("NVIDIA A100-SXM4-40GB", "a100-40"),
        ("NVIDIA A100-SXM4-80GB", "a100-80"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("AMD Radeon Instinct MI60", "mi60"),
        ("Tesla M40 24GB", "m40"),
        ("Tesla P100-SXM2-16GB", "p100"),
        ("Tesla P100-PCIE-16GB", "p100-pcie"),
        ("Tesla V100-PCIE-32GB", "v100-pcie-32"),
        ("NVIDIA TITAN RTX", "titan-rtx"),
        ("NVIDIA RTX A6000", "rtx-a6000"),
        ("NVIDIA GeForce RTX 3080", "rtx-3080"),
        ("NVIDIA GeForce RTX 5090", "rtx-5090"),
        ("NVIDIA A30", "a30"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80"),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA L20", "l20"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA B300 SXM6 AC", "b300"),
        ("AMD Instinct MI210", "mi210"),
        ("AMD Instinct MI250X", "mi250x"),
        ("AMD Instinct MI300X", "mi300x"),
    ],
)
def test_drivers_names_are_known(name: str, known: str) -> None:
    assert gpu_named(name) == known


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 2080",
        "NVIDIA GeForce RTX 2080 SUPER",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA A10",
        "NVIDIA L40",
        "NVIDIA H200 NVL",
        "NVIDIA A100-PCIE-80GB MIG 1g.10gb",
        "NVIDIA RTX A6000 Laptop GPU",
        "NVIDIA GeForce RTX 3080 Ti",
        "NVIDIA RTX 6000 Ada Generation",
        "NVIDIA H20",
        "AMD Instinct MI250",
        "NVIDIA A100-SXM4-80GB MIG 3g.40gb",
        "Tesla V100-SXM2-64GB",
        "Tesla",
        "",
    ],
)
def test_another_board_is_another_gpu(name: str) -> None:
    assert gpu_named(name) is None


def test_every_gpu_of_the_catalogue_is_found_by_its_own_name() -> None:
    gpus = [name for name in devices() if device(name).kind == "gpu"]
    memory = {name: round(device(name).memory.value / 1e9) for name in gpus}
    lines = [name.replace("-", " ").removesuffix(f" {memory[name]}") + f" {memory[name]}GB" for name in gpus]
    assert [gpu_named(name) for name in lines] == gpus
    assert gpu_named("cpu-core") is None


def test_gpus_of_a_machine_are_of_one_kind() -> None:
    assert gpu_of(["Tesla T4", "Tesla T4"], "run") == "t4"
    with pytest.raises(ScenarioError, match=r"^run: names no GPU; allowed: GPUs of one kind$"):
        gpu_of([], "run")
    with pytest.raises(ScenarioError, match=r"^run: has GPUs of several kinds \(NVIDIA L4, Tesla T4\); allowed"):
        gpu_of(["Tesla T4", "NVIDIA L4"], "run")
    with pytest.raises(
        ScenarioError, match=r"^run: the catalogue has no GPU 'NVIDIA L40'; known: .*l4, l40s, .*v100-pcie-32$"
    ):
        gpu_of(["NVIDIA L40"], "run")
