"""Files of measured times: what is read, in which words."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gcnsim.core.errors import FileError
from gcnsim.core.streams import stream
from gcnsim.records.calibration import beyond, settings
from gcnsim.records.compute_facts import OpKey, iteration_weights, replayed
from gcnsim.records.compute_reading import measured_compute, read_measured_compute
from gcnsim.timeline import Direction, OpKind
from tests.measured_files import ITERATIONS, even, header, measured_file, rows, write, write_graph


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return write_graph(tmp_path)


def test_times_are_read_by_setting_part_and_operation(tmp_path: Path, graph: Path) -> None:
    settings = [("full-graph", {}), ("psc-gcn", {"epsilon": 0.1, "tau": 2})]
    path = measured_file(tmp_path, graph, 2, settings, lambda kind, layer, part, way, t: 1.0 + part + 0.1 * t)
    measured = read_measured_compute(str(path))
    assert (measured.parts, measured.methods, measured.on_gpu) == (2, ("full-graph", "psc-gcn"), True)
    part = measured.settings[0].parts[1]
    assert part.seconds.shape == (ITERATIONS, len(part.keys))
    step = part.keys.index(OpKey(OpKind.STEP, -1, Direction.NONE))
    assert part.seconds[:, step] == pytest.approx([2.0, 2.1, 2.2, 2.3])
    assert OpKey(OpKind.SAMPLE, -1, Direction.NONE) in measured.settings[1].parts[0].keys
    assert not part.refreshing.any()


def test_iterations_that_refresh_weigh_as_often_as_they_come() -> None:
    refreshing = np.array([False, True, False, False])
    assert iteration_weights(refreshing, 10) == pytest.approx([0.3, 0.1, 0.3, 0.3])
    assert iteration_weights(np.zeros(4, np.bool_), 10) == pytest.approx([0.25] * 4)
    assert iteration_weights(np.ones(2, np.bool_), 10) == pytest.approx([0.5] * 2)


@pytest.mark.parametrize("numbers", [[4], [1, 1]])
def test_iterations_that_refresh_are_measured_ones(tmp_path: Path, graph: Path, numbers: list[int]) -> None:
    about = header(graph)
    about["parts"][0]["refreshing"] = numbers
    with pytest.raises(FileError, match=r"refreshing has .*; allowed: each once, less than its iterations, 4"):
        read_measured_compute(str(write(tmp_path / "m.parquet", about, rows(about, even))))


def test_an_operation_that_an_iteration_does_not_have_took_no_time(tmp_path: Path, graph: Path) -> None:
    about = header(graph)
    columns = rows(about, even)
    columns = {name: values[1:] for name, values in columns.items()}
    measured = read_measured_compute(str(write(tmp_path / "m.parquet", about, columns)))
    assert measured.settings[0].parts[0].seconds.min() == 0.0


def test_a_file_is_read_again_only_where_it_has_changed(tmp_path: Path, graph: Path) -> None:
    path = str(measured_file(tmp_path, graph))
    first = measured_compute(path)
    assert measured_compute(path) is first
    measured_file(tmp_path, graph, seconds=lambda *_: 0.5)
    assert measured_compute(path).sha256 != first.sha256


def _changed(**sections: Any) -> Callable[[Any], Any]:
    def change(about: Any) -> Any:
        return about | {
            name: about[name] | value if isinstance(value, dict) else value for name, value in sections.items()
        }

    return change


def _part(**values: Any) -> Callable[[Any], Any]:
    return lambda about: about | {"parts": [about["parts"][0] | values]}


HEADERS = [
    (_changed(format="gcnsim.measured_compute/1"), 'format is "gcnsim.measured_compute/1"'),
    (_changed(more=1), "more is unknown"),
    (lambda about: {name: value for name, value in about.items() if name != "device"}, "has no device"),
    (
        _changed(model={"sage_aggregator": "pool"}),
        "model.sage_aggregator: pool is not allowed; GraphSAGE takes the mean",
    ),
    (_changed(partition={"parts": 10**9}), "partition.parts is 1000000000"),
    (_changed(settings=[]), "settings has 0 items"),
    (_changed(partition={"parts": 2}), "setting 0 has no part 1"),
    (_part(iterations=1), "parts[0].iterations is 1"),
    (_part(part=7), "parts[0].part is 7"),
    (_part(iterations=3), "has iteration 3"),
    (_part(iterations=5), "has no row of iteration 4"),
    (_part(relative_error=-1), "parts[0].relative_error is -1"),
    (lambda about: about | {"parts": [about["parts"][0]] * 2}, "is there twice"),
    (lambda about: about | {"skipped": [{"setting": 0, "part": 0, "reason": "too large"}]}, "is there twice"),
]


@pytest.mark.parametrize(("change", "text"), HEADERS)
def test_a_wrong_header_is_refused(tmp_path: Path, graph: Path, change: Callable[[Any], Any], text: str) -> None:
    about = header(graph)
    path = write(tmp_path / "m.parquet", change(about), rows(about, even))
    with pytest.raises(FileError) as caught:
        read_measured_compute(str(path))
    assert text in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_aggregator_of_earlier_versions_is_left_out(tmp_path: Path, graph: Path) -> None:
    about = header(graph)
    older = header(graph, model={"sage_aggregator": "mean"})
    found = read_measured_compute(str(write(tmp_path / "m.parquet", older, rows(about, even))))
    assert found.model == about["model"]


COLUMNS = [
    ("seconds", float("nan"), "seconds is nan"),
    ("seconds", -0.1, "seconds is -0.1"),
    ("seconds", 1e9, "allowed: 0.0 to 1e+07"),
    ("part", 1, "part is 1"),
    ("layer", 2, "layer is 2"),
    ("setting", 5, "setting 5, part 0 is not in the metadata's parts"),
    ("kind", "agregate", "unknown kind 'agregate'; did you mean"),
    ("iteration", 1, "has an operation twice"),
]


@pytest.mark.parametrize(("name", "value", "text"), COLUMNS)
def test_a_wrong_row_is_refused(tmp_path: Path, graph: Path, name: str, value: Any, text: str) -> None:
    about = header(graph)
    columns = rows(about, even)
    columns[name][0] = value
    with pytest.raises(FileError) as caught:
        read_measured_compute(str(write(tmp_path / "m.parquet", about, columns)))
    assert text in str(caught.value)


def test_other_columns_and_missing_ones_are_refused(tmp_path: Path, graph: Path) -> None:
    about = header(graph)
    columns = rows(about, even)
    more = write(tmp_path / "more.parquet", about, columns | {"colour": columns["part"]})
    with pytest.raises(FileError, match="unknown column 'colour'"):
        read_measured_compute(str(more))
    fewer = write(
        tmp_path / "fewer.parquet", about, {key: column for key, column in columns.items() if key != "seconds"}
    )
    with pytest.raises(FileError, match="has no column 'seconds'"):
        read_measured_compute(str(fewer))
    table = pq.read_table(tmp_path / "more.parquet").drop_columns("colour")
    wide = table.set_column(0, "setting", table["setting"].cast(pa.int64()))
    pq.write_table(wide, tmp_path / "wide.parquet")
    with pytest.raises(FileError, match="column 'setting' is int64, wanted int32"):
        read_measured_compute(str(tmp_path / "wide.parquet"))
    gaps = table.set_column(6, "seconds", pa.array([None] * table.num_rows, pa.float64()))
    pq.write_table(gaps, tmp_path / "gaps.parquet")
    with pytest.raises(FileError, match="column 'seconds' has empty values"):
        read_measured_compute(str(tmp_path / "gaps.parquet"))


@pytest.mark.parametrize(
    ("metadata", "text"),
    [(None, "has no key 'gcnsim'"), (b"{", "not a JSON document"), (b"\xff", "not UTF-8"), (b"[" * 5000, "not a JSON")],
)
def test_metadata_that_is_none_is_refused(tmp_path: Path, graph: Path, metadata: bytes | None, text: str) -> None:
    with pytest.raises(FileError) as caught:
        read_measured_compute(str(write(tmp_path / "m.parquet", metadata, rows(header(graph), even))))
    assert text in str(caught.value)


def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    damaged = [b"", b"PAR1", whole[: len(whole) // 2], whole[:-1]]
    for _ in range(60):
        found = bytearray(whole)
        for place in random.integers(0, len(whole), 3):
            found[place] ^= int(random.integers(1, 256))
        damaged.append(bytes(found))
    for data in damaged:
        path.write_bytes(data)
        # Damage may also leave a file that can be read.
        with suppress(FileError):
            read_measured_compute(str(path))
    path.write_bytes(whole[:-1])
    with pytest.raises(FileError) as caught:
        read_measured_compute(str(path))
    assert "\n" not in str(caught.value)
    for missing in (tmp_path, tmp_path / "none.parquet"):
        with pytest.raises(FileError):
            read_measured_compute(str(missing))


@pytest.mark.parametrize(
    ("refreshing", "period", "iterations", "due", "others"),
    [
        ([False, True, False, False], 4, None, [1], [0, 2, 3]),
        ([False, True, False, True], 4, None, [1, 3], [0, 0, 0, 2, 2, 2]),
        ([False, True, False, True], 4, 5, [1, 3], [0, 2, 2]),
        ([False, True, False], 1, None, [1], []),
        ([False, False], 4, None, [], [0, 1]),
        ([True, True], 4, None, [0, 1], []),
    ],
)
def test_iterations_that_refresh_come_as_often_as_they_do_in_training(
    refreshing: list[bool], period: int, iterations: int | None, due: list[int], others: list[int]
) -> None:
    order = replayed(np.array(refreshing), period, stream(0, "test"), iterations)
    first = order[::period] if due and others else order[: len(due)]
    assert sorted(first) == due
    assert sorted(np.setdiff1d(order, due)) == sorted(set(others))
    assert order.size == len(due) + len(others)


def test_the_order_is_drawn() -> None:
    orders = [replayed(np.zeros(20, np.bool_), 1, stream(seed, "test")).tolist() for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == list(range(20))


PLACE = {"hosts": 2, "workers_per_host": 2, "bandwidth": 1e8, "latency_s": 0.0}
NAMES = {"method": "psc-gcn", "model": "gcn", "graph": "feed"}
KNOBS = {"tau": 2, "epsilon": 0.1, "cache": "30%", "sampler": "vr"}


def test_numbers_are_kept_as_they_are_and_names_as_keys() -> None:
    found = settings(NAMES, PLACE, (32, 64, 16, 8), KNOBS)
    assert found == {
        "method.psc-gcn": 1,
        "model.gcn": 1,
        "graph.feed": 1,
        "workers": 4,
        "hosts": 2,
        "workers_per_host": 2,
        "bandwidth": 1e8,
        "latency_s": 0,
        "features": 32,
        "layers": 3,
        "hidden": 64,
        "tau": 2,
        "epsilon": 0.1,
        "cache": 0.3,
    }


def test_a_cache_in_bytes_is_no_share() -> None:
    found = settings(NAMES, PLACE, (8, 8), {"cache": "2MiB"})
    assert found["cache_bytes"] == 2 * 2**20
    assert "cache" not in found


def test_what_is_beyond_is_told_in_words() -> None:
    requested = {"method.psc-gcn": 1.0, "graph.feed": 1.0, "tau": 3.0, "rate": 0.1, "epsilon": 0.5}
    seen = {"method.psc-gcn": (1.0, 1.0), "tau": (1.0, 2.0), "epsilon": (0.1, 0.1)}
    assert list(beyond(requested, seen, "papers")) == [
        "graph papers (never calibrated)",
        "tau 3 (calibrated: 1 to 2)",
        "rate 0.1 (never calibrated)",
        "epsilon 0.5 (calibrated: 0.1)",
    ]
    assert list(beyond(requested, {}, "papers")) == ["every setting (calibrated without runs)"]


def test_an_older_record_does_not_make_names_unseen() -> None:
    requested = {"method.psc-gcn": 1.0, "hosts": 2.0, "tau": 3.0, "rate": 0.1}
    assert list(beyond(requested, {"tau": (1.0, 2.0)}, "papers")) == [
        "method, model, graph, hosts, latency and cache (an older record without them; calibrate again)",
        "tau 3 (calibrated: 1 to 2)",
        "rate 0.1 (never calibrated)",
    ]


def test_a_file_without_rows_is_refused(tmp_path: Path, graph: Path) -> None:
    about = header(graph)
    empty = {name: values[:0] for name, values in rows(about, even).items()}
    with pytest.raises(FileError, match="setting 0, part 0 has no rows"):
        read_measured_compute(str(write(tmp_path / "m.parquet", about, empty)))
