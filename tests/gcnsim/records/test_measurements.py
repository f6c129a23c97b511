from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gcnsim.core.errors import FileError
from gcnsim.core.json_files import mistake, shipped_schema
from gcnsim.records.measurements import read_measurements
from tests.gcnsim.evidence.made_calibration import MACHINE, measurements, write_measurements
from tests.gcnsim.evidence.made_gpu import measurements as of_gpu


def refusal(path: Path) -> str:
    with pytest.raises(FileError) as caught:
        read_measurements(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    document = measurements()
    path = write_measurements(tmp_path / "profile.json", document)
    found = read_measurements(path)
    assert (found.machine, found.device, found.seconds) == (MACHINE, "cpu", 60.0)
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [(measurement.kernel, measurement.params, measurement.seconds) for measurement in found.found] == [
        (measurement["kernel"], measurement["params"], measurement["seconds"])
        for measurement in document["measurements"]
    ]


def test_kernels_are_found_by_name_and_size(tmp_path: Path) -> None:
    found = read_measurements(write_measurements(tmp_path / "profile.json", of_gpu()))
    assert {item.kernel for item in found.of("spmm")} == {"spmm"}
    assert [item.params["width"] for item in found.of("spmm", entries=10_000)] == [16, 64, 256]
    assert found.of("spmm", entries=1) == found.of("nothing") == []


def test_the_schema_is_one_and_the_document_keeps_it() -> None:
    schema = dict(shipped_schema("measurements"))
    Draft202012Validator.check_schema(schema)
    assert Draft202012Validator(schema).is_valid(measurements())
    assert mistake(measurements(), "measurements") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "gcnsim.measurements/2"}, "schema is"),
        ({"seconds": -1}, "seconds is -1"),
        ({"machine": {"cpu": "Xeon"}}, "has no machine.cores"),
        ({"measurements": [{"kernel": "spmm"}]}, "has no measurements[0].params"),
        ({"more": 1}, "more is unknown"),
    ],
)
def test_what_breaks_the_schema_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = write_measurements(tmp_path / "profile.json", measurements() | change)
    text = refusal(path)
    assert message in text
    assert text.endswith("python -m runtime.profile (GPUs) or python -m runtime.measure --links writes such a file")


def test_a_missing_key_a_missing_file_and_what_is_no_json(tmp_path: Path) -> None:
    document = measurements()
    del document["options"]
    assert "has no options" in refusal(write_measurements(tmp_path / "a.json", document))
    assert "cannot be read" in refusal(tmp_path / "none.json")
    (tmp_path / "b.json").write_text(json.dumps(measurements())[:-10])
    assert "not a JSON document" in refusal(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (float("nan"), "measurements[0].seconds is nan; allowed: finite numbers up to 1e+30"),
        (1e308, "measurements[0].seconds is 1e+308; allowed: finite numbers up to 1e+30"),
        (1e9, "measurements[0].seconds is 1000000000.0, wanted 3600 or less"),
    ],
)
def test_times_that_no_kernel_takes(tmp_path: Path, seconds: float, message: str) -> None:
    document = measurements()
    document["measurements"][0]["seconds"] = seconds
    assert message in refusal(write_measurements(tmp_path / "profile.json", document))
