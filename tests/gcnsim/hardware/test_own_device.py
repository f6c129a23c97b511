"""Devices in files: read like the catalogue's, refused in one line, and followed when they change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gcnsim
from gcnsim import hardware
from gcnsim.cli import main
from gcnsim.core.errors import FileError, GcnsimError, ScenarioError
from gcnsim.hardware.catalogue import DATA
from gcnsim.scenario import ClusterSpec
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


def test_its_figures_can_be_set_and_are_drawn_like_the_catalogues(write: Write) -> None:
    own = write(T4)
    spec = ClusterSpec(gpus=2, device=own, figures=((f"{own}.spmm_efficiency", 0.5),))
    assert resolve_machine(spec).device.spmm_efficiency.value == 0.5
    with pytest.raises(ScenarioError, match=r"my_gpu\.yaml has no figure 'spmm'; did you mean 'spmm_efficiency'"):
        ClusterSpec(device=own, figures=((f"{own}.spmm", 0.5),))
    with pytest.raises(FileError, match=r"none\.yaml: cannot be read"):
        ClusterSpec(figures=(("none.yaml.spmm_efficiency", 0.5),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "my_gpu.yaml: is not a device; it has the keys title, kind, link, memory"),
        ("title: x", "my_gpu.yaml: kind, link, memory, memory_bandwidth, flops_fp32 are missing"),
        (T4.replace("kind: gpu\n", ""), "my_gpu.yaml: kind is missing"),
        (T4 + "memmory: 1", "my_gpu.yaml, memmory: unknown key; did you mean 'memory'?"),
        (T4.replace("kind: gpu", "kind: tpu"), "my_gpu.yaml, kind: 'tpu' is not allowed; "),
        (T4.replace("pcie3-x16", "pcie3"), "my_gpu.yaml, link: 'pcie3' is not allowed; did you mean 'pcie3-x16'?"),
        (T4.replace("kind: gpu", "kind: cpu"), "my_gpu.yaml: spmm_efficiency, gemm_efficiency, "),
        (T4.replace('"16GB"', "16"), "my_gpu.yaml, memory: 16 has no unit; write a size in bytes with its unit"),
        (T4.replace('"16GB"', '"0GB"'), "my_gpu.yaml, memory: 0B is not allowed; above 0"),
        (T4.replace("source: datasheet", "source: heard", 1), "my_gpu.yaml, memory: unknown source 'heard'"),
        (T4 + 'launch_s: "5us"', "my_gpu.yaml, launch_s: a figure is {value, source, reference, date}"),
        (
            T4 + 'gemm_efficiency: {value: "120%", source: measured, reference: x, date: "2026"}',
            "my_gpu.yaml, gemm_efficiency: 120% is not allowed; above 0% and at most 100%",
        ),
        ("title: [", "my_gpu.yaml:2: not a valid YAML document"),
    ],
)
def test_a_bad_file_is_one_line(text: str, message: str, write: Write) -> None:
    with pytest.raises(FileError) as caught:
        ClusterSpec(device=write(text))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named_everywhere(write: Write) -> None:
    text = r"^none\.ya?ml: cannot be read: No such file or directory$"
    with pytest.raises(GcnsimError, match=text):
        ClusterSpec(device="none.yaml")
    with pytest.raises(GcnsimError, match=text):
        ClusterSpec(devices=("t4", "none.yml"))


def test_commands_show_it_and_never_replace_it(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    own = write(T4)
    assert main(["catalog", "show", own]) == 0
    assert capsys.readouterr().out.startswith("my_gpu.yaml (device): NVIDIA T4\n")
    (Path("s.yaml")).write_text(f"schema: gcnsim.scenario/1\ncluster: {{gpus: 2, device: {own}}}\n")
    for words in (
        f"what-if --device {own} --csv {own}",
        f"what-if --set cluster.devices=t4,{own} --csv {own}",
        f"simulate s.yaml --timeline {own}",
    ):
        assert main(words.split()) == 2
        assert capsys.readouterr().err.startswith("gcnsim: my_gpu.yaml: is read by this command")
