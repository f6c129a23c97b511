from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gcnsim.core.errors import FileError
from gcnsim.core.json_files import canonical, mistake, read_json, shipped_schema
from gcnsim.hardware import DeviceProfile, HostProfile, LinkProfile

SCHEMAS = sorted(path.name.removesuffix(".schema.json") for path in files("gcnsim").joinpath("data").iterdir()
                 if path.name.endswith(".schema.json"))  # fmt: skip
VERSIONS = {"measured_compute": 3}
"""Of schemas that have had others before."""
CLUSTER = {"schema": "gcnsim.cluster/1", "hosts": 2, "workers_per_host": 2, "bandwidth": 1.25e9, "measured": 1.1e9}


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_that_ships_is_one_and_says_what_it_is_of(name: str) -> None:
    schema = dict(shipped_schema(name))
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:gcnsim:{name}:{VERSIONS.get(name, 1)}"
    assert schema["description"]


def test_a_document_of_its_schema_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(CLUSTER))
    assert read_json(path, "cluster") == CLUSTER


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a JSON document"),
        (b"\xff", "not UTF-8 text (byte 0)"),
        (b"[" * 100_000, "not a JSON document"),
        (b"[" * 40 + b"]" * 40, "not a JSON document of at most 32 levels"),
        (b"[]", "the document is [], wanted object; write it again"),
        (b"{}", "has no schema; write it again"),
        (canonical(CLUSTER | {"schema": "x"}).encode(), 'schema is "x", wanted "gcnsim.cluster/1"; write it again'),
        (canonical(CLUSTER | {"hosts": "y" * 99}).encode(), f'hosts is "{"y" * 56}..., wanted integer; write it again'),
        (canonical(CLUSTER | {"hosts": 2.0}).encode(), "hosts is 2.0, wanted integer; write it again"),
        (b'{"hosts": NaN}', "hosts is nan; allowed: finite numbers up to 1e+30"),
        (b'{"hosts": 1e999}', "hosts is inf; allowed: finite numbers up to 1e+30"),
        (
            b'{"hosts": 1' + 400 * b"0" + b"}",
            "hosts is a whole number of 401 digits; allowed: finite num",
        ),
        (b'{"hosts": 1' + 5000 * b"0" + b"}", "not a JSON document"),
    ],
    ids=range(13),
)
def test_what_is_not_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        read_json(path, "cluster", "; write it again")
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named_with_the_hint(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"c\.json: cannot be read: No such file or directory; write it$"):
        read_json(tmp_path / "c.json", "cluster", "; write it")


def test_places_name_keys_and_numbers_of_items() -> None:
    residual: dict[str, Any] = {"term": "spmm", "points": 3, "mape": 0.1, "p90": 0.2, "bias": 0}
    document = {"residuals": [residual, residual | {"bias": None}]}
    assert mistake(document["residuals"], "calibration", "residuals") == "residuals[1].bias is null, wanted number"
    assert mistake([residual | {"more": 1}], "calibration", "residuals") == "residuals[0].more is unknown"
    assert mistake([{}], "calibration", "residuals") == "has no residuals[0].term"
    assert mistake([], "measurements", "options") == "options is [], wanted object"


BUILT_IN = {"nvlink", "nvlink_generation", "nics", "l2_cache"}
"""What a machine is built with: no measurement is fitted to it."""

UNFITTED = {"cache_rate", "staging_bandwidth", "uva_efficiency", "neighbour_draws_per_s"}
"""What no calibration fits: its sums count every row as read from memory, its copies are what was measured."""


@pytest.mark.parametrize(
    ("part", "profile", "more"),
    [("device", DeviceProfile, set()), ("host", HostProfile, {"draw_s"}), ("network", LinkProfile, {"half_size"})],
)
def test_the_figures_of_a_calibration_are_those_of_the_profiles(part: str, profile: type, more: set[str]) -> None:
    schema = shipped_schema("calibration")
    given = schema["properties"]["figures"]["properties"][part]
    given = schema["$defs"]["link"] if "$ref" in given else given
    figures = {field.name for field in fields(profile) if str(field.type).startswith("Figure")} - BUILT_IN - UNFITTED
    assert set(given["properties"]) == figures | more


def test_who_reads_no_document_does_not_import_the_library_that_checks() -> None:
    code = "import gcnsim.records.recorded_run, gcnsim.api, gcnsim.cli, sys; sys.exit('jsonschema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
