"""Files are written whole or not at all, and read without running code: atomic writes, YAML, JSON, Parquet."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from gcnsim.core.atomic import atomic_write, probe
from gcnsim.core.errors import FileError
from gcnsim.core.json_files import canonical, mistake, read_json
from gcnsim.core.schemas import DOCUMENTS, schema_of
from gcnsim.core.yaml_files import LIMIT, parse_yaml, read_yaml
from gcnsim.hardware import DeviceProfile, HostProfile, LinkProfile

WRITER = """
import sys
from gcnsim.core.atomic import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    print("writing", flush=True)
    sys.stdin.read()
"""


def writer(path: Path) -> subprocess.Popen[bytes]:
    """A process that has begun to write `path` and waits."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    return process


def written(path: Path, data: bytes) -> None:
    with atomic_write(path) as file:
        file.write(data)


def test_what_a_killed_writer_left_goes_with_the_next_write_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a[1]"
    killed = writer(path)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    others = {".a[1].mine", ".a1.x.part", "a[1].x.part", ".a[1]-.x.part"}
    for name in others:
        (tmp_path / name).touch()
    assert len(os.listdir(tmp_path)) == len(others) + 1
    written(path, b"whole")
    assert set(os.listdir(tmp_path)) == {"a[1]", *others}
    assert path.read_bytes() == b"whole"


def test_what_somebody_is_writing_stays(tmp_path: Path) -> None:
    path = tmp_path / "a"
    other = writer(path)
    written(path, b"first")
    probe(path)
    assert len(os.listdir(tmp_path)) == 2
    other.communicate(b"")
    assert other.returncode == 0
    assert os.listdir(tmp_path) == ["a"]
    assert path.read_bytes() == b"half"


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError), atomic_write(tmp_path / "a") as file:
        file.writelines([b"half", 1])
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileError, match="none/a: cannot be written"):
        written(tmp_path / "none" / "a", b"")


BOMB = "\n".join(f"a{i}: &a{i} [{', '.join(9 * [f'*a{i - 1}'] if i else 9 * ['x'])}]" for i in range(9))
"""435 bytes that stand for 9 ** 9 values."""


def test_scalars_have_one_reading() -> None:
    text = "{a: 1, b: 1e-3, c: .5, d: on, e: 1:30, f: 2026-11-20, g: ~, h: true, i: 010, j: '1', k: 1_000}"
    assert parse_yaml(text, "t") == {
        "a": 1,
        "b": 0.001,
        "c": 0.5,
        "d": "on",
        "e": "1:30",
        "f": "2026-11-20",
        "g": None,
        "h": True,
        "i": 10.0,
        "j": "1",
        "k": "1_000",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "t:2: not a valid YAML document: key 'a' is given twice"),
        ("a: [1", "t:"),
        ("a: 1\n---\nb: 2", "document"),
        ("? [1]\n: 2", "a key must be a plain word"),
        (BOMB, "t:2: not a valid YAML document: an alias (*a0)"),
        ("!!python/object/apply:os.system [ls]", "a tag ('tag:yaml.org,2002:python/object/apply:os')"),
        ('a: 1\nb: !!int ""', "t:2: not a valid YAML document: a tag ('tag:yaml.org,2002:int'); write the value alone"),
        ("a: 1\nb: 1" + 400 * "0", "t:2: not a valid YAML document: a whole number of 401 digits; allowed: at most 30"),
        ("[" * 50_000, "nested more than 16 levels deep"),
        ("- " * 50_000, "nested more than 16 levels deep"),
        ("a: \x00", "not a valid YAML document"),
    ],
)
def test_what_is_not_one_plain_document_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        parse_yaml(text, "t")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files(tmp_path: Path) -> None:
    good = tmp_path / "good.yaml"
    good.write_text("a: µ\n", encoding="utf-8")
    assert read_yaml(good) == {"a": "µ"}
    with pytest.raises(FileError, match="cannot be read"):
        read_yaml(tmp_path / "absent.yaml")
    with pytest.raises(FileError, match="cannot be read"):
        read_yaml(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(FileError, match="not UTF-8"):
        read_yaml(tmp_path / "latin.yaml")
    (tmp_path / "large.yaml").write_bytes(b"a" * (LIMIT + 1))
    with pytest.raises(FileError, match="larger than"):
        read_yaml(tmp_path / "large.yaml")


VERSIONS = {"measured_compute": 3}
"""Of schemas that have had others before."""
CLUSTER = {"schema": "gcnsim.cluster/1", "hosts": 2, "workers_per_host": 2, "bandwidth": 1.25e9, "measured": 1.1e9}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_schema_is_one_and_says_what_it_is_of(name: str) -> None:
    schema = dict(schema_of(name))
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
        (b'{"hosts": NaN}', "hosts is nan; allowed: finite numbers up to 1e+30"),
        (b'{"hosts": 1e999}', "hosts is inf; allowed: finite numbers up to 1e+30"),
        (
            b'{"hosts": 1' + 400 * b"0" + b"}",
            "hosts is a whole number of 401 digits; allowed: finite num",
        ),
        (b'{"hosts": 1' + 5000 * b"0" + b"}", "not a JSON document"),
        (b'{"hosts": 1, "hosts": 2}', "key 'hosts' is there more than once; allowed: once"),
    ],
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


BUILT_IN = {"nvlink", "nvlink_generation", "nics", "l2_cache", "multiprocessors"}
"""What a machine is built with: no measurement is fitted to it."""

UNFITTED = {
    "power",
    "busy_power",
    "waiting_power",
    "idle_power",
    "host_power",
    "host_floor",
    "cache_bandwidth",
    "entries_per_s",
    "staging_bandwidth",
    "uva_efficiency",
    "neighbour_draws_per_s",
}
"""What no calibration fits: its sums count every row as read from memory, its copies are what was measured."""


@pytest.mark.parametrize(
    ("part", "profile", "more"),
    [("device", DeviceProfile, set()), ("host", HostProfile, {"draw_s"}), ("network", LinkProfile, {"half_size"})],
)
def test_the_figures_of_a_calibration_are_those_of_the_profiles(part: str, profile: type, more: set[str]) -> None:
    schema = schema_of("calibration")
    given = schema["properties"]["figures"]["properties"][part]
    given = schema["$defs"]["link"] if "$ref" in given else given
    # A survey reads the memory of a GPU, not that of a server.
    unread = {"memory"} if part == "host" else set()
    figures = {field.name for field in fields(profile) if "Figure" in str(field.type)} - BUILT_IN - UNFITTED - unread
    assert set(given["properties"]) == figures | more


def test_who_reads_no_document_does_not_import_the_library_that_checks() -> None:
    code = "import gcnsim.records.recorded_run, gcnsim.api, gcnsim.cli, sys; sys.exit('jsonschema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


TABLE = pa.table({"source": [0, 1, 2], "target": [1, 2, 0], "weight": [0.5, 1.0, 2.0]})

COUNT = """
import os, sys
import pyarrow, pyarrow.parquet
import pyarrow.compute, pyarrow.csv
from gcnsim.graph.formats.edges import read_parquet
from gcnsim.core.container import read_parquet_table
from pathlib import Path
threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
{read}
print(threads() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc, which Linux has")
@pytest.mark.parametrize(
    ("read", "begun"),
    [
        ("read_parquet_table(sys.argv[1])", 0),
        ("read_parquet(Path(sys.argv[1]), 'ring')", 0),
        ("pyarrow.parquet.ParquetFile(sys.argv[1]).read()", None),
    ],
)
def test_no_thread_of_arrows_is_left(tmp_path: Path, read: str, begun: int | None) -> None:
    """The last case shows that the count sees Arrow's threads where they read."""
    pq.write_table(TABLE, tmp_path / "a.parquet")
    ran = subprocess.run(
        [sys.executable, "-c", COUNT.format(read=read), str(tmp_path / "a.parquet")],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found = int(ran.stdout)
    assert found == begun if begun is not None else found > 0
