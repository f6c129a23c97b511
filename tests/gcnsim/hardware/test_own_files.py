"""Devices and hosts of the user's own files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import gcnsim
from gcnsim import hardware
from gcnsim.cli import main
from gcnsim.core.errors import FileError, GcnsimError, ScenarioError
from gcnsim.hardware import PriceBook
from gcnsim.hardware.catalogue import DATA
from gcnsim.planning.machines import instance_name
from gcnsim.planning.sweep_work import files_of
from gcnsim.scenario import ClusterSpec, from_mapping
from gcnsim.scenario.machine import resolve_machine

T4 = (DATA / "devices" / "t4.yaml").read_text()
Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes my_gpu.yaml into the working directory."""
    monkeypatch.chdir(tmp_path)

    def written(text: str) -> str:
        (tmp_path / "my_gpu.yaml").write_text(text)
        return "my_gpu.yaml"

    return written


def test_a_copy_of_a_device_is_that_device_by_another_name(write: Write) -> None:
    own, shipped = hardware.device(write(T4)), hardware.device("t4")
    assert (own.name, own.title, own.link) == ("my_gpu.yaml", shipped.title, shipped.link)
    assert hardware.figures_of(own) == hardware.figures_of(shipped)
    requested = {"gpus": 2, "method": "full-graph", "iterations": 2, "processes": 1}
    first, second = (gcnsim.what_if(device=name, **requested) for name in ("my_gpu.yaml", "t4"))  # type: ignore[arg-type]
    assert first.results[0]["iteration_s"] == second.results[0]["iteration_s"]
    assert first.payload["scenario"]["cluster"]["device"] == "my_gpu.yaml"
    assert "; my_gpu.yaml (SHA-256 " in first.payload["provenance"]["device"]


def test_it_may_say_how_large_its_cache_is(write: Write) -> None:
    figure = '{value: "%s", source: datasheet, reference: sheet, date: 2024}'
    own = hardware.device(write(T4.replace("4MiB", "6MiB")))
    assert own.l2_cache is not None
    assert own.l2_cache.value == 6 * 2**20
    plain = "".join(line + "\n" for line in T4.splitlines() if not line.startswith("l2_cache"))
    assert hardware.device(write(plain)).l2_cache is None
    for given, text in ((figure % "0B", "above 0"), (figure % "6", "has no unit"), ('"6MiB"', "a figure is {value")):
        with pytest.raises(FileError, match=r"^my_gpu\.yaml, l2_cache: ") as caught:
            hardware.device(write(f"{plain}l2_cache: {given}\n"))
        assert text in str(caught.value)


def test_a_file_that_changes_is_read_again(write: Write) -> None:
    spec = ClusterSpec(gpus=4, device=write(T4))
    before = resolve_machine(spec).device.memory_bandwidth.value
    write(T4.replace('"320GB/s"', '"640GB/s"'))
    assert (before, resolve_machine(spec).device.memory_bandwidth.value) == (320e9, 640e9)


def test_servers_may_have_devices_of_files(write: Write) -> None:
    own = write(T4.replace('"320GB/s"', '"160GB/s"'))
    found = resolve_machine(ClusterSpec(gpus=4, devices=(own, "t4"))).devices
    assert [item.memory_bandwidth.value for item in found] == [160e9, 160e9, 320e9, 320e9]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "my_gpu.yaml: is not a device; it has the keys title, kind, link, sold_in, memory"),
        ("title: x", "my_gpu.yaml: kind, link, memory, memory_bandwidth, flops_fp32 are missing"),
        (T4.replace("kind: gpu\n", ""), "my_gpu.yaml: kind is missing"),
        (T4 + "memmory: 1", "my_gpu.yaml, memmory: unknown key; did you mean 'memory'?"),
        (T4.replace("pcie3-x16", "pcie3"), "my_gpu.yaml, link: 'pcie3' is not allowed; did you mean 'pcie3-x16'?"),
        (T4.replace("kind: gpu", "kind: cpu"), "my_gpu.yaml: spmm_efficiency, gather_efficiency, "),
        (T4.replace('"16GB"', "16"), "my_gpu.yaml, memory: 16 has no unit; write a size in bytes with its unit"),
        (T4.replace("source: datasheet", "source: heard", 1), "my_gpu.yaml, memory: unknown source 'heard'"),
        (T4 + 'launch_s: "5us"', "my_gpu.yaml, launch_s: a figure is {value, source, reference, date}"),
        (
            T4 + 'gather_efficiency: {value: "120%", source: measured, reference: x, date: "2026"}',
            "my_gpu.yaml, gather_efficiency: 120% is not allowed; above 0% and at most 100%",
        ),
        (
            T4 + 'idle_power: {value: "31%", source: measured, reference: x, date: "2026"}',
            "my_gpu.yaml, idle_power: 31% is not allowed; at most waiting_power (30%)",
        ),
    ],
)
def test_a_bad_file_is_one_line(text: str, message: str, write: Write) -> None:
    with pytest.raises(FileError) as caught:
        ClusterSpec(device=write(text))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


G4DN = (DATA / "hosts" / "g4dn.12xlarge.yaml").read_text()
FIGURE = '{value: %s, source: datasheet, reference: sheet, date: "2024"}'


@pytest.fixture
def write_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes my_host.yaml into the working directory."""
    monkeypatch.chdir(tmp_path)

    def written(text: str) -> str:
        (tmp_path / "my_host.yaml").write_text(text)
        return "my_host.yaml"

    return written


def test_a_copy_of_a_host_is_that_host_by_another_name(write_host: Write) -> None:
    own, shipped = hardware.host(write_host(G4DN)), hardware.host("g4dn.12xlarge")
    assert (own.name, own.title, own.device) == ("my_host.yaml", shipped.title, "t4")
    assert hardware.figures_of(own) == hardware.figures_of(shipped)
    requested = {"gpus": 8, "method": "full-graph", "iterations": 2, "processes": 1}
    first, second = (gcnsim.what_if(host=name, **requested) for name in ("my_host.yaml", "g4dn.12xlarge"))  # type: ignore[arg-type]
    assert first.results[0]["iteration_s"] == second.results[0]["iteration_s"]
    cluster = first.payload["scenario"]["cluster"]
    assert (cluster["host"], cluster["device"], cluster["gpus_per_server"]) == ("my_host.yaml", "t4", 4)
    assert cluster["bandwidth"] == second.payload["scenario"]["cluster"]["bandwidth"]
    assert "; my_host.yaml (SHA-256 " in first.payload["provenance"]["device"]


@pytest.mark.parametrize("name", sorted(path.name for path in (DATA / "hosts").glob("*.yaml")))
def test_every_host_of_the_catalogue_may_be_copied(name: str) -> None:
    own, shipped = hardware.host(str(DATA / "hosts" / name)), hardware.host(name.removesuffix(".yaml"))
    assert hardware.figures_of(own) == hardware.figures_of(shipped)
    assert (own.device, own.network, own.pcie) == (shipped.device, shipped.network, shipped.pcie)


def test_it_brings_a_device_of_a_file_and_its_network(write_host: Write) -> None:
    Path("my_gpu.yaml").write_text(T4)
    own = write_host(G4DN.replace("device: t4", "device: my_gpu.yaml") + "network: infiniband-hdr\n")
    spec = from_mapping({"schema": "gcnsim.scenario/1", "cluster": {"gpus": 8, "host": own}}, "s").cluster
    assert (spec.device, spec.gpus_per_server, spec.link) == ("my_gpu.yaml", 4, "infiniband-hdr")
    assert spec.bandwidth == 50e9 / 8


def test_what_it_does_not_say_is_that_of_the_catalogues_hosts(write_host: Write) -> None:
    plain = f'title: "Mine"\ncores: {FIGURE % 32}\nmemory_bandwidth: {FIGURE % "100GB/s"}\n'
    host = hardware.host(write_host(plain))
    assert (host.device, host.gpus, host.nic, host.nvlink, host.network) == (None,) * 5
    assert host.message_s == hardware.host("p4d.24xlarge").message_s
    assert hardware.host(write_host(plain + f"message_s: {FIGURE % '0s'}\n")).message_s.value == 0.0
    assert ClusterSpec(host="my_host.yaml", device="a10g").gpus_per_server == 2


def test_a_host_file_that_changes_is_read_again(write_host: Write) -> None:
    spec = ClusterSpec(gpus=4, host=write_host(G4DN))
    before = resolve_machine(spec).host.cores.value
    write_host(G4DN.replace("cores: {value: 48", "cores: {value: 24"))
    assert (before, resolve_machine(spec).host.cores.value) == (48, 24)


def test_its_pcie_counts_where_it_is_slower_than_the_devices(write_host: Write) -> None:
    own = write_host(G4DN + "pcie: pcie4-x16\n")
    links = {name: resolve_machine(ClusterSpec(gpus=2, host=own, device=name)).copies.name for name in ("t4", "h100")}
    assert links == {"t4": "pcie3-x16", "h100": "pcie4-x16"}
    spec = ClusterSpec(gpus=4, host=own, devices=("h100", "t4"))
    assert [copy.name for copy in resolve_machine(spec).own_copies] == ["pcie4-x16"] * 2 + ["pcie3-x16"] * 2
    assert resolve_machine(ClusterSpec(gpus=2, host=own, device="h100", pcie="pcie5-x16")).copies.name == "pcie5-x16"
    assert resolve_machine(ClusterSpec(gpus=2, host=own, device="cpu-core")).copies.name == "host-memory"


def test_its_figures_can_be_set(write_host: Write) -> None:
    own = write_host(G4DN)
    spec = ClusterSpec(gpus=2, host=own, figures=((f"{own}.cores", 8.0),))
    assert resolve_machine(spec).host.cores.value == 8.0
    with pytest.raises(ScenarioError, match=r"my_host\.yaml has no figure 'core'; did you mean 'cores'"):
        ClusterSpec(host=own, figures=((f"{own}.core", 8.0),))
    with pytest.raises(FileError, match=r"none\.yaml: cannot be read"):
        ClusterSpec(figures=(("none.yaml.cores", 8.0),))


def test_it_has_the_price_that_is_given(write_host: Write) -> None:
    own = write_host(G4DN)
    book = PriceBook.of(f"{own}=2USD/h")
    rent = book.rent("t4", 8, 2, 4, own)
    assert rent is not None
    assert rent.per_hour == 4.0
    nearest = PriceBook().rent("t4", 8, 2, 4, own)
    assert nearest is not None
    assert nearest.of == "g4dn.12xlarge", "its price per GPU, marked"
    assert instance_name(ClusterSpec(gpus=4, host=own, device="t4")) == own
    with pytest.raises(FileError, match=r"none\.yaml: cannot be read"):
        PriceBook.of("none.yaml=2USD/h")


def test_sweeps_know_the_files_that_they_read(write_host: Write) -> None:
    own = write_host(G4DN)
    Path("my_gpu.yml").write_text(T4)
    raw = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 2, "host": own, "device": "my_gpu.yml"}}
    assert sorted(files_of(from_mapping(raw, "s"))) == ["my_gpu.yml", own]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "my_host.yaml: is not a host; it has the keys title, device, network, pcie, cores"),
        ("title: x", "my_host.yaml: cores, memory_bandwidth are missing"),
        (G4DN + "coers: 1", "my_host.yaml, coers: unknown key; did you mean 'cores'?"),
        (G4DN.replace("device: t4", "device: [t4]"), "my_host.yaml, device: "),
        (G4DN + "network: pcie3-x16", "my_host.yaml, network: 'pcie3-x16' is not allowed; "),
        (G4DN.replace('"50Gbps"', "50"), "my_host.yaml, nic: 50 has no unit; write a bandwidth with its unit"),
        (
            G4DN.replace("gpus: {value: 4", "gpus: {value: 4.5"),
            "my_host.yaml, gpus: 4.5 is not allowed; a whole number",
        ),
        (
            G4DN + f"busy_core_rate: {FIGURE % '120%'}",
            "my_host.yaml, busy_core_rate: 120% is not allowed; above 0% and at most 100%",
        ),
        (G4DN + "pue: 1.2", "my_host.yaml, pue: unknown key"),
        (G4DN + f"wake_s: {FIGURE % '1ms'}", "my_host.yaml, wake_s: unknown key"),
        (G4DN + "gpudirect: true", "my_host.yaml, gpudirect: is not {value: true or false"),
    ],
)
def test_a_bad_host_file_is_one_line(text: str, message: str, write_host: Write) -> None:
    with pytest.raises(FileError) as caught:
        ClusterSpec(host=write_host(text))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(write_host: Write) -> None:
    text = r"^none\.yaml: cannot be read: No such file or directory$"
    with pytest.raises(GcnsimError, match=text):
        ClusterSpec(host="none.yaml")
    with pytest.raises(GcnsimError, match=text):
        gcnsim.what_if(host="none.yaml")
    with pytest.raises(ScenarioError, match=r"unknown host 'mine'; .*--host my_host\.yaml"):
        ClusterSpec(host="mine")
    Path("mine.yaml").write_text(G4DN)
    with pytest.raises(ScenarioError, match=r"the file mine\.yaml is given as mine\.yaml"):
        ClusterSpec(host="mine")


def test_commands_show_a_host_and_never_replace_it(write_host: Write, capsys: pytest.CaptureFixture[str]) -> None:
    own = write_host(G4DN)
    assert main(["catalog", "show", own]) == 0
    assert capsys.readouterr().out.startswith("my_host.yaml (host): AWS g4dn.12xlarge")
    assert main(["catalog", "compare", own, "g4dn.12xlarge", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["kind"], content["ratios"]["cores"]) == ("host", [1.0, 1.0])
    Path("s.yaml").write_text(f"schema: gcnsim.scenario/1\ncluster: {{gpus: 2, host: {own}}}\n")
    for words in (
        f"what-if --host {own} --csv {own}",
        f"what-if --set cluster.host={own} --csv {own}",
        f"recommend --host g5.12xlarge,{own} --csv {own}",
        f"simulate s.yaml --timeline {own}",
    ):
        assert main(words.split()) == 2
        assert capsys.readouterr().err.startswith("gcnsim: my_host.yaml: is read by this command")
