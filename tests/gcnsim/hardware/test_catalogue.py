"""The catalogue: figures with sources, names that find a device or a host."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gcnsim import hardware
from gcnsim.core import units
from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.hardware import Curve, device, devices, gpu_named, gpu_of, profiles

SHARES = ("spmm_efficiency", "gemm_efficiency", "gather_efficiency", "elementwise_efficiency", "efficiency")


def every() -> list[Any]:
    pairs: list[tuple[tuple[str, ...], Callable[[str], Any]]] = [
        (hardware.devices(), hardware.device),
        (hardware.links(), hardware.link),
        (hardware.hosts(), hardware.host),
    ]
    return [load(name) for names, load in pairs for name in names]


@pytest.mark.parametrize("item", every(), ids=lambda item: item.name)
def test_every_figure_has_an_origin_and_a_possible_value(item: Any) -> None:
    for name, figure in hardware.figures_of(item).items():
        assert figure.value > 0 or name == "queue", name
        assert figure.source in hardware.SOURCES
        assert figure.reference
        assert figure.date[:2] == "20"
        assert (figure.low is not None) == (figure.source == "assumed")
        if name in SHARES:
            assert (figure.high or figure.value) <= 1
    assert item.title
    assert item.provenance()[0] == hardware.SOURCES[min(hardware.SOURCES.index(s) for s in item.provenance())]


def test_known_figures() -> None:
    t4 = hardware.device("t4")
    assert (t4.memory.value, t4.memory_bandwidth.value, t4.flops_fp32.value) == (16e9, 320e9, 8.1e12)
    assert t4.link == "pcie3-x16"
    assert hardware.device("gtx-1080-ti").flops_fp16 is None
    assert hardware.device("cpu-core").kind == "cpu"
    assert "measured" in hardware.device("cpu-core").provenance()
    pcie = hardware.link("pcie3-x16").bandwidth.value
    assert pcie == pytest.approx(8e9 * 16 * 128 / 130 / 8, rel=1e-3)
    assert hardware.link("ethernet-10g").efficiency.value == pytest.approx(1448 / 1538, abs=1e-5)
    assert hardware.link(hardware.GENERIC_LINK).bandwidth.value == units.bandwidth("15Gbps")


@pytest.mark.parametrize(
    ("name", "mebibytes"),
    [("t4", 4), ("gtx-1080-ti", 2.75), ("v100-16", 6), ("a100-80", 40), ("h100", 50), ("h200", 60), ("rtx-4090", 72)],
)
def test_sizes_of_caches(name: str, mebibytes: float) -> None:
    cache = hardware.device(name).l2_cache
    assert cache is not None
    assert cache.value == mebibytes * 2**20


@pytest.mark.parametrize(
    ("name", "memory", "bandwidth", "fp32", "fp16"),
    [
        ("m40", 24e9, 288e9, 6.8e12, None),
        ("p100", 16e9, 732e9, 10.6e12, 21.2e12),
        ("rtx-a6000", 48e9, 768e9, 38.7e12, 154.8e12),
        ("rtx-5090", 32e9, 1792e9, 104.8e12, 209.5e12),
        ("a100-pcie-80", 80e9, 1935e9, 19.5e12, 312e12),
        ("h100-nvl", 94e9, 3.9e12, 60e12, 835e12),
        ("b200", 180e9, 8e12, 75e12, 2250e12),
        ("mi250x", 64e9, 1638.4e9, 47.85e12, 191.5e12),
        ("mi300x", 192e9, 5.3e12, 163.4e12, 1307.4e12),
    ],
)
def test_figures_of_data_sheets(name: str, memory: float, bandwidth: float, fp32: float, fp16: float | None) -> None:
    profile = hardware.device(name)
    assert (profile.memory.value, profile.memory_bandwidth.value, profile.flops_fp32.value) == (memory, bandwidth, fp32)
    assert (None if profile.flops_fp16 is None else profile.flops_fp16.value) == fp16


@pytest.mark.parametrize(
    ("name", "processors", "channels", "transfers", "of", "share"),
    [
        ("p4d.24xlarge", 2, 6, 2933e6, 96, 96),
        ("g4dn.12xlarge", 2, 6, 2933e6, 96, 48),
        ("g5.xlarge", 2, 8, 3200e6, 192, 4),
        ("p3.8xlarge", 2, 4, 2400e6, 64, 32),
        ("Standard_ND96asr_v4", 2, 8, 3200e6, 96, 96),
        ("dgx-a100", 2, 8, 3200e6, 256, 256),
        ("server-4x-m40", 2, 4, 1866e6, 24, 24),
        ("server-4x-a100", 2, 8, 4800e6, 224, 224),
        ("server-4x-a6000", 1, 8, 3200e6, 32, 32),
    ],
)
def test_memory_of_hosts_is_channels_times_rate(
    name: str, processors: int, channels: int, transfers: float, of: int, share: int
) -> None:
    host = hardware.host(name)
    assert host.cores.value == share
    assert host.memory_bandwidth.value == pytest.approx(processors * channels * 8 * transfers * share / of, rel=1e-3)
    assert (host.memory_bandwidth.source == "datasheet") == (of == share)


def test_hosts_name_links_of_the_catalogue() -> None:
    for host in map(hardware.host, hardware.hosts()):
        assert host.network is None or host.network in hardware.networks()
        assert host.pcie is None or host.pcie in hardware.links()
    assert hardware.host("a2-highgpu-8g").pcie == "pcie3-x16"


def test_hosts_are_instance_types_with_gpus_cores_and_a_nic() -> None:
    host = hardware.host("g4dn.12xlarge")
    assert host.gpus is not None
    assert host.nic is not None
    assert (host.device, host.gpus.value, host.cores.value) == ("t4", 4, 48)
    assert host.nic.value == units.bandwidth("50Gbps")
    assert host.sample_edges_per_s.source == "assumed"
    generic = hardware.host("generic-16")
    assert (generic.device, generic.gpus, generic.nic) == (None, None, None)
    assert host.sample_edges_per_s.value == generic.sample_edges_per_s.value
    for name in set(hardware.hosts()) - {"generic-16"}:
        each = hardware.host(name)
        assert each.device is None or each.device in hardware.devices()
        assert each.gpus is not None
        assert each.nic is not None
        assert each.cores.value >= 4 * each.gpus.value


@pytest.mark.parametrize("name", [name for name in hardware.devices() if hardware.device(name).kind == "gpu"])
def test_a_gpu_names_the_server_that_it_is_sold_in(name: str) -> None:
    """T4 and RTX 2080 Ti are those of the published clusters, which the default question is of."""
    sold_in = hardware.device(name).sold_in
    if sold_in is None:
        assert name in ("t4", "rtx-2080-ti")
        return
    server = hardware.host(sold_in)
    assert server.device in (name, None)
    assert server.device is not None or hardware.device(name).nvlink is None, "a module's server knows its links"


def test_gpus_in_use_have_the_adapters_next_to_them() -> None:
    """p4d.24xlarge: 4 adapters of 100 Gbit/s, each below one switch with two of its 8 GPUs; p5: 32, four a GPU."""
    server, more = hardware.host("p4d.24xlarge"), hardware.host("p5.48xlarge")
    rates = [hardware.network_of(server, used) for used in (None, 8, 4, 3, 2, 1)]
    assert rates == [units.bandwidth(f"{rate}Gbps") for rate in (400, 400, 200, 200, 100, 100)]
    assert hardware.network_of(more, 3) == units.bandwidth("1200Gbps")
    assert hardware.network_of(hardware.host("generic-16"), 1) is None


def test_prices_are_per_gpu_and_absent_where_nobody_rents() -> None:
    (price,) = hardware.prices("v100-32")
    assert price.gpus == 8
    assert price.usd_per_gpu_hour == pytest.approx(31.212 / 8)
    assert hardware.prices("rtx-4090") == ()
    assert {price.device for price in hardware.prices()} <= set(hardware.devices())
    with pytest.raises(ScenarioError, match="did you mean 'rtx-4090'"):
        hardware.prices("rxt-4090")


@pytest.mark.parametrize("load", [hardware.device, hardware.link, hardware.host])
def test_unknown_names_are_refused_with_the_nearest(load: Callable[[str], object]) -> None:
    with pytest.raises(ScenarioError, match=r"unknown (device|link|host) '../t4'; .*known: "):
        load("../t4")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("320GB/s", "a figure is"),
        ({"value": "1GB/s", "source": "datasheet"}, "a figure is"),
        ({"value": "1GB/s", "source": "rumour", "reference": "r", "date": "2026"}, "unknown source 'rumour'"),
        ({"value": "1", "source": "datasheet", "reference": "r", "date": "2026"}, "has no unit"),
        ({"value": "1GB/s", "source": "assumed", "reference": "r", "date": "2026"}, "low and high"),
        (
            {"value": "1GB/s", "source": "datasheet", "reference": "r", "date": "2026", "lo": 1},
            "unknown key 'lo'",
        ),
    ],
)
def test_a_figure_without_its_origin_is_refused(raw: object, message: str) -> None:
    with pytest.raises(FileError) as caught:
        profiles.read_figure(raw, units.BANDWIDTH, "t4.memory_bandwidth")
    assert str(caught.value).startswith("t4.memory_bandwidth: ")
    assert message in str(caught.value)


CURVE = Curve((1e3, 1e5, 1e6), (0.9, 0.5, 0.1), "fitted", "chosen for a test", "2026")


def test_a_curve_is_straight_between_its_points_in_the_logarithm_of_the_size() -> None:
    found = CURVE.at(np.array([1e3, 1e4, 1e5, math.sqrt(1e11), 1e6]))
    assert found.tolist() == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1], rel=1e-12)


def test_a_curve_is_flat_beyond_its_ends() -> None:
    assert CURVE.at(np.array([0.0, 0.5, 10.0, 1e7, 1e12])).tolist() == [0.9, 0.9, 0.9, 0.1, 0.1]


def test_a_curve_keeps_the_shape_of_the_sizes() -> None:
    assert CURVE.at(np.full((2, 3), 1e4)).shape == (2, 3)
    assert CURVE.at(np.asarray(1e4)).shape == ()


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Tesla T4", "t4"),
        ("NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"),
        ("Tesla V100-SXM2-16GB", "v100-16"),
        ("NVIDIA A100-SXM4-40GB", "a100-40"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA L4", "l4"),
        ("AMD Radeon Instinct MI60", "mi60"),
        ("Tesla M40 24GB", "m40"),
        ("Tesla P100-PCIE-16GB", "p100-pcie"),
        ("Tesla V100-PCIE-32GB", "v100-pcie-32"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80"),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA B300 SXM6 AC", "b300"),
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
        "NVIDIA A10M",
        "NVIDIA L40G",
        "NVIDIA H200 NVL",
        "NVIDIA A100-PCIE-80GB MIG 1g.10gb",
        "NVIDIA RTX A6000 Laptop GPU",
        "NVIDIA GeForce RTX 3080 Ti",
        "NVIDIA RTX 5000 Ada Generation",
        "NVIDIA H20 NVL",
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
        ScenarioError, match=r"^run: the catalogue has no GPU 'NVIDIA L40G'; known: .*l4, l40, l40s, .*v100-pcie-32$"
    ):
        gpu_of(["NVIDIA L40G"], "run")
