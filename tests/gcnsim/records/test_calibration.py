from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import FileError
from gcnsim.records.calibration import Source, read_calibration, write_calibration
from tests.gcnsim.evidence.made_calibration import calibration, fitted, of_gpu

HINT = "; gcnsim calibrate writes such a file"


def document(path: Path) -> dict[str, Any]:
    write_calibration(path, of_gpu())
    raw: dict[str, Any] = json.loads(path.read_text())
    return raw


def refusal(path: Path) -> str:
    with pytest.raises(FileError) as caught:
        read_calibration(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


def changed(path: Path, raw: dict[str, Any]) -> str:
    path.write_text(json.dumps(raw))
    return refusal(path)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"error": 0.04, "spread": 0.01},
        {"curve": (), "graphs": {}, "ranges": {}, "residuals": ()},
        {"figures": {"device": {}, "host": {}, "network": {}}},
        {"device": "t4", "figures": {"device": {}, "host": {}, "network": {}, "copies": fitted({"bandwidth": 1e10})}},
    ],
)
def test_what_was_written_is_read(tmp_path: Path, changes: dict[str, Any]) -> None:
    record = calibration(**changes)
    write_calibration(tmp_path / "c.json", record)
    assert read_calibration(tmp_path / "c.json") == record
    assert json.loads((tmp_path / "c.json").read_text())["schema"] == "gcnsim.calibration/1"
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


def older(path: Path, part: str, size: float, **figures: float) -> dict[str, Any]:
    """A record as it was written before: with bytes that a message occupied its link for besides its own."""
    raw = document(path)
    raw["figures"][part] = {
        name: {"value": value, "reference": "made up", "error": None}
        for name, value in {**figures, "half_size": size}.items()
    }
    return raw


def test_an_older_records_half_size_is_read_as_seconds(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    raw = older(path, "copies", 1e5, bandwidth=1e10, efficiency=0.5, latency_s=1e-5)
    path.write_text(json.dumps(raw))
    copies = read_calibration(path).figures["copies"]
    assert set(copies) == {"bandwidth", "efficiency", "latency_s"}
    assert copies["latency_s"].value == pytest.approx(1e-5 + 1e5 / 5e9)
    path.write_text(json.dumps(older(path, "network", 0.0, latency_s=2e-4)))
    assert {name: value.value for name, value in read_calibration(path).figures["network"].items()} == {
        "latency_s": 2e-4
    }


def test_an_older_records_half_size_that_is_no_seconds_is_refused(tmp_path: Path) -> None:
    text = (
        "figures.network.half_size: no longer a figure, and without bandwidth, efficiency and latency_s it cannot be "
        "read as seconds; write the record again with gcnsim calibrate"
    )
    path = tmp_path / "c.json"
    assert changed(path, older(path, "network", 4096.0, latency_s=2e-4)) == text
    text = f"figures.network.half_size.value is -1.0, wanted 0 or more{HINT}"
    assert changed(path, older(path, "network", -1.0, latency_s=2e-4)) == text
    raw = document(path)
    raw["figures"]["host"]["half_size"] = {"value": 0.0, "reference": "made up", "error": None}
    assert changed(path, raw) == f"figures.host.half_size is unknown{HINT}"


def test_a_record_knows_its_inputs() -> None:
    record = calibration(inputs=(Source("run", "a", "12" * 32),))
    assert record.used("12" * 32)
    assert not record.used("34" * 32)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (1e308, "1e+308"),
        (10**399, "a whole number of 400 digits"),
    ],
)
def test_numbers_that_no_machine_has_are_refused_by_place(tmp_path: Path, value: float, shown: str) -> None:
    raw = document(tmp_path / "c.json")
    raw["figures"]["host"]["message_s"]["value"] = value
    text = changed(tmp_path / "c.json", raw)
    assert text == f"figures.host.message_s.value is {shown}; allowed: finite numbers up to 1e+30"


@pytest.mark.parametrize(
    ("part", "name", "value", "text"),
    [
        ("network", "efficiency", 1.5, ".value is 1.5, wanted 1 or less"),
        ("host", "busy_core_rate", 1.01, ".value is 1.01, wanted 1 or less"),
        ("host", "cores", 0.5, ".value is 0.5, wanted 1 or more"),
        ("host", "name", 1.0, " is unknown"),
        ("device", "spmm_curve", 1.0, " is unknown"),
        ("device", "memory_bandwidth", 1e-300, ".value is 1e-300, wanted 1e-12 or more"),
        ("device", "launch_s", True, ".value is true, wanted number"),
    ],
)
def test_figures_keep_the_range_of_what_they_are(tmp_path: Path, part: str, name: str, value: float, text: str) -> None:
    raw = document(tmp_path / "c.json")
    raw["figures"][part][name] = {"value": value, "reference": "made up", "error": None}
    assert changed(tmp_path / "c.json", raw) == f"figures.{part}.{name}{text}{HINT}"


@pytest.mark.parametrize(
    ("curve", "text"),
    [
        ([[1e6, 0.5], [1e4, 0.4]], "curve: sizes must ascend"),
        ([[1e4, 0.5], [1e4, 0.4]], "curve: sizes must ascend"),
        ([[1e4, 0.5], [1e6, 0.0]], f"curve[1][1] is 0.0, wanted more than 0{HINT}"),
        ([[0, 0.5]], f"curve[0][0] is 0, wanted more than 0{HINT}"),
    ],
)
def test_a_curve_ascends_and_its_shares_are_above_zero(tmp_path: Path, curve: list[list[float]], text: str) -> None:
    assert changed(tmp_path / "c.json", document(tmp_path / "c.json") | {"curve": curve}) == text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"graphs": {"feed": 0}}, "graphs.feed is 0, wanted 1e-12 or more"),
        ({"error": -0.1}, "error is -0.1, wanted 0 or more"),
        ({"seconds": None}, "seconds is null, wanted number"),
        ({"machine": []}, "machine is [], wanted object"),
        ({"figures": {"gpu": {}}}, "figures.gpu is unknown"),
        ({"inputs": [{"kind": "run"}]}, "has no inputs[0].name"),
        ({"ranges": {"tau": [1, 2, 3]}}, "ranges.tau has 3 items, wanted 2 or less"),
        ({"ranges": {"tau": [2, 1]}}, "ranges.tau: 2 is above 1"),
        (
            {"ranges": {"model.graphsage-pool": [1, 1]}},
            "ranges.model.graphsage-pool: GraphSAGE takes the mean; allowed: model.graphsage; calibrate again without "
            "runs of pooling",
        ),
    ],
)
def test_what_would_mean_nothing_later_is_refused_at_once(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    raw = document(tmp_path / "c.json")
    assert changed(tmp_path / "c.json", raw | change).removesuffix(HINT) == message


def test_figures_are_those_of_a_profile_and_rates_are_above_zero(tmp_path: Path) -> None:
    raw = document(tmp_path / "c.json")
    raw["figures"]["device"]["memory_bandwidth"]["value"] = 0
    text = changed(tmp_path / "c.json", raw)
    assert text == f"figures.device.memory_bandwidth.value is 0, wanted 1e-12 or more{HINT}"
    raw["figures"]["copies"] = {"bandwidth": {"value": 0, "reference": "made up"}}
    raw["figures"]["device"] = {}
    assert changed(tmp_path / "c.json", raw) == f"figures.copies.bandwidth.value is 0, wanted 1e-12 or more{HINT}"
    del raw["figures"]["copies"]
    raw["figures"]["device"] = {"speed": {"value": 1.0, "reference": "made up"}}
    assert changed(tmp_path / "c.json", raw) == f"figures.device.speed is unknown{HINT}"


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_a_record_of_kernels_of_cores_says_to_measure_anew(tmp_path: Path, version: int) -> None:
    text = "is a record of kernels of CPU cores, which are measured now: python -m runtime.measure"
    raw = document(tmp_path / "c.json")
    assert changed(tmp_path / "c.json", raw | {"schema": f"gcnsim.calibration/{version}", "sums": {}}) == text
    assert changed(tmp_path / "c.json", raw | {"device": "cpu-core"}) == text


def test_a_figure_is_a_number_of_at_least_zero(tmp_path: Path) -> None:
    raw = document(tmp_path / "c.json")
    raw["figures"]["host"]["message_s"]["value"] = -1.0
    text = changed(tmp_path / "c.json", raw)
    assert text == f"figures.host.message_s.value is -1.0, wanted 0 or more{HINT}"
