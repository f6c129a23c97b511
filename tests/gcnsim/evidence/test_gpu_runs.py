"""Coefficients of a GPU cluster are found again from runs that one with other coefficients would have made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gcnsim
from gcnsim.api.evidence import validate
from gcnsim.core.errors import ScenarioError
from gcnsim.evidence.fit import calibrate
from gcnsim.evidence.fit_runs import OF_GPUS, Coefficient, moved
from gcnsim.evidence.recorded_run import scenario_of
from gcnsim.evidence.validation import judge
from gcnsim.records.calibration import Calibration, Fitted, write_calibration
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.records.run_files import Cluster
from gcnsim.scenario import to_mapping
from tests.gcnsim.evidence.conftest import WriteRun, parts_measured, runs_in, simulated, small_graph
from tests.gcnsim.evidence.made_calibration import World, write_measurements
from tests.gcnsim.evidence.made_calibration import measurements as of_cores
from tests.gcnsim.evidence.made_gpu import CALL_S, measurements, on_gpus

SLOW, FAST = Cluster(2, 1, 1.25e9, 1.15e9), Cluster(2, 1, 6.25e9, 5.75e9)
FACTORS = {("host", "call_s"): 1.6, ("copies", "efficiency"): 0.5}
WIDE = (512, 1024, 1024, 8)
"""Copies of so many values take time by their bytes, or runs would not tell how fast copies are."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Measurements of a server with T4s, and runs on two whose coefficients are FACTORS times as much."""
    home = tmp_path_factory.mktemp("world")
    write_run = runs_in(home)
    measured = write_measurements(home / "profile.json", measurements())
    write_calibration(home / "truth.json", _altered(calibrate(measured)))

    def trained(name: str, method: str, place: Cluster, widths: tuple[int, ...] = WIDE) -> Path:
        folder = write_run(name, method=method, device="cuda", emulation=None, widths=widths)
        simulated(on_gpus(folder, place), home / "truth.json")
        return folder

    seen = [
        trained("a", "full-graph", SLOW),
        trained("b", "full-graph", FAST),
        trained("c", "pipegcn", FAST, (32, 32, 8)),
        trained("d", "pipegcn", SLOW, (512, 512, 8)),
    ]
    unseen = [trained("e", "pipegcn", FAST), trained("f", "full-graph", FAST, (512, 512, 8))]
    found = calibrate(measured, seen)
    write_calibration(home / "found.json", found)
    return World(measured, seen, unseen, found, home / "found.json")


def _altered(record: Calibration) -> Calibration:
    network = {**record.figures["network"], "efficiency": Fitted(0.92, "measured before the runs")}
    graph = Coefficient("graphs", small_graph().content_hash(), "sums over neighbours on this graph")
    chosen = [one for one in OF_GPUS if (one.part, one.name) in FACTORS]
    return moved(
        replace(record, figures={**record.figures, "network": network}),
        [*chosen, graph],
        np.log([*(FACTORS[one.part, one.name] for one in chosen), 1.3]),
    )


def test_runs_on_gpus_are_reproduced_and_so_are_others(world: World, tmp_path: Path) -> None:
    write_calibration(tmp_path / "before.json", calibrate(world.measurements))
    raw, _ = judge(world.unseen, tmp_path / "before.json")
    assert max(abs(run_check.error) for run_check in raw) > 0.1, "the benchmarks alone do not know these runs"
    held_out, warnings = judge(world.unseen, world.file)
    assert max(abs(run_check.error) for run_check in held_out) < 0.03
    assert warnings == []
    figures = world.found.figures
    assert figures["copies"]["efficiency"].value == pytest.approx(FACTORS["copies", "efficiency"], rel=0.1)
    assert figures["host"]["call_s"].value == pytest.approx(FACTORS["host", "call_s"] * CALL_S, rel=0.1)
    assert "; then calls" in figures["host"]["call_s"].reference
    assert world.found.graphs[small_graph().content_hash()] > 1.0
    assert world.found.error is not None


def test_one_gpu_is_calibrated_and_judged_by_the_name_its_driver_tells(tmp_path: Path) -> None:
    """A survey of one worker, which exchanges nothing and has no network."""
    name = ("NVIDIA H100 80GB HBM3",)
    content = measurements()
    content["machine"]["gpus"] = list(name)
    measured = write_measurements(tmp_path / "profile.json", content)
    assert calibrate(measured).device == "h100"
    truth = moved(calibrate(measured), [Coefficient("host", "call_s", "r")], np.log([1.6]))
    write_calibration(tmp_path / "truth.json", truth)
    write_run = runs_in(tmp_path)

    def trained(folder: str, widths: tuple[int, ...], **options: str) -> Path:
        run = write_run(folder, device="cuda", emulation=None, workers=1, widths=widths, **options)
        simulated(on_gpus(run, gpus=name), tmp_path / "truth.json")
        return run

    seen = [trained(f"seen-{width}", (128, width, 8)) for width in (32, 256)]
    seen += [trained("seen-deep", (128, 64, 64, 64, 8), norm="layer"), trained("seen-sage", WIDE, model="graphsage")]
    unseen = [trained("deep", (128, 96, 96, 8)), trained("sage", (128, 128, 8), model="graphsage")]
    write_calibration(tmp_path / "found.json", calibrate(measured, seen))
    judged, warnings = judge(unseen, tmp_path / "found.json")
    assert max(abs(check.error) for check in judged) < 0.03
    assert warnings == []


def test_an_uncalibrated_interval_holds_what_is_assumed_as_in_every_answer(world: World) -> None:
    run = world.unseen[0]
    (row,) = validate([run])["rows"]
    told = gcnsim.simulate(to_mapping(scenario_of(read_recorded_run(run)))).payload["result"]
    assert (row["low_s"], row["high_s"]) == (told["iteration_s_low"], told["iteration_s_high"])
    ((stated,), _) = judge([run], None)
    assert row["predicted_s"] == stated.predicted_s
    assert row["high_s"] > 1.1 * stated.high_s, "the stated values alone say less"


def test_what_a_real_network_carried_comes_from_the_runs(world: World) -> None:
    assert 0.7 < world.found.figures["network"]["efficiency"].value <= 1.0
    assert world.found.ranges["bandwidth"] == (1.25e9, 6.25e9)
    for name in ("slice_s", "busy_core_rate"):
        assert name not in world.found.figures["host"], "no law of a GPU worker reads it"


def test_runs_of_another_device_are_refused(tmp_path: Path, write_run: WriteRun) -> None:
    measured = write_measurements(tmp_path / "profile.json", measurements())
    cores = write_measurements(tmp_path / "cores.json", of_cores())
    t4, other, core = (
        write_run(name, device=device) for name, device in zip("abc", ("cuda", "cuda", "cpu"), strict=True)
    )
    on_gpus(t4)
    on_gpus(other, gpus=("NVIDIA L4",))
    files = parts_measured(tmp_path, core)
    for profile, run, compute, text in (
        (measured, other, [], "ran on l4, but t4 was measured"),
        (measured, core, [], "ran on cpu-core, but t4 was measured"),
        (cores, t4, files, "ran on t4, but cpu-core was measured"),
    ):
        with pytest.raises(ScenarioError) as caught:
            calibrate(profile, [run], measured_compute=compute)
        assert str(caught.value) == f"{run}: {text}"


def test_a_run_on_gpus_is_judged_by_a_record_of_them_alone(tmp_path: Path, write_run: WriteRun) -> None:
    record = calibrate(write_measurements(tmp_path / "profile.json", measurements()))
    write_calibration(tmp_path / "t4.json", record)
    run = on_gpus(write_run("a", device="cuda"))
    (found,), warnings = judge([run], tmp_path / "t4.json")
    assert found.predicted_s > 0.0
    assert warnings == []
    on_gpus(run, gpus=("NVIDIA L4",))
    assert read_recorded_run(run).hardware["gpus"] == ["NVIDIA L4"]
    with pytest.raises(ScenarioError, match=r"t4\.json is for t4, cluster\.device is l4$"):
        judge([run], tmp_path / "t4.json")
