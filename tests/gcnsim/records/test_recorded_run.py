"""Run folders as the simulator reads them: what they say, and one line for each that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import FileError
from gcnsim.records.recorded_run import read_learning_curve, read_recorded_run
from gcnsim.records.run_files import Shares
from gcnsim.timeline.breakdown import PHASES
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.knobs import KnobValue
from runtime.options import Options
from tests.gcnsim.evidence.conftest import EMULATED, WIDTHS, run_document, write_folder

OPTIONS = Options(threads=1, hidden=32)
SHARES = (
    {"compute_s": 0.04, "wait_s": 0.03, "exposed_sampling_s": 0.01, "unpack_s": 0.005},
    {"compute_s": 0.05, "wait_s": 0.001, "exposed_sampling_s": 0.01, "unpack_s": 0.002},
)


def folder(path: Path, seconds: list[float] | None = None, **more: Any) -> Path:
    times = seconds or [0.1] * 10
    return write_folder(path / "run", run_document(OPTIONS, **({"iterations": len(times)} | more)), times)


def refusal(path: Path, file: str) -> str:
    with pytest.raises(FileError) as caught:
        read_recorded_run(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path / file}: ")
    return str(caught.value).removeprefix(f"{path / file}: ")


def test_a_run_says_what_was_trained_and_on_what(tmp_path: Path) -> None:
    run = read_recorded_run(folder(tmp_path))
    assert (run.workers, run.widths, run.emulation) == (2, WIDTHS, EMULATED)
    assert run.options["method"] == "full-graph"
    assert run.hardware["cpu"] == "Xeon"
    assert set(run.graph) == {"name", "hash"}


@pytest.mark.parametrize(
    ("number", "count", "workers", "threads"),
    [(3, None, 2, 3), (None, 5, 2, 5), (None, None, 2, 1), (None, None, 1, 2), (3, 5, 2, 3)],
)
def test_threads_are_the_records_then_those_asked_for_then_a_share_of_the_cores(
    tmp_path: Path, number: int | None, count: int | None, workers: int, threads: int
) -> None:
    document = run_document(Options(threads=count, hidden=32, workers=workers), emulation=None)
    document |= {} if number is None else {"threads": number}
    assert read_recorded_run(write_folder(tmp_path / "run", document, [0.1] * 10)).threads == threads


def test_the_warm_up_that_the_run_was_asked_for_is_left_out(tmp_path: Path) -> None:
    seconds = [9.0, 9.0, 9.0, 9.0, 9.0, 0.1, 0.2, 0.3]
    assert read_recorded_run(folder(tmp_path, seconds, warmup=0)).iterations.tolist() == seconds
    run = read_recorded_run(folder(tmp_path, seconds, warmup=5))
    assert run.iterations.tolist() == [0.1, 0.2, 0.3]
    assert run.iteration_s == pytest.approx(0.2)
    assert read_recorded_run(folder(tmp_path, seconds, warmup=7)).iterations.tolist() == [0.3]
    assert read_recorded_run(folder(tmp_path, [3.0, 2.0], warmup=1)).iterations.tolist() == [2.0], (
        "a short run: its last"
    )


def test_phases_are_those_of_the_slowest_worker_and_add_up(tmp_path: Path) -> None:
    run = read_recorded_run(folder(tmp_path, shares=SHARES))
    assert run.phases == pytest.approx({"compute": 0.04, "exposed_comm": 0.025, "exposed_other": 0.035})
    slow = read_recorded_run(folder(tmp_path, shares=SHARES, slowest=1))
    # Its waits were all for its sampler.
    assert slow.phases == pytest.approx({"compute": 0.05, "exposed_comm": 0.002, "exposed_other": 0.048})
    assert tuple(run.phases) == PHASES
    assert sum(slow.phases.values()) == pytest.approx(slow.iteration_s)


def test_what_bns_gcn_samples_it_samples_on_its_main_thread(tmp_path: Path) -> None:
    options = Options(method="bns-gcn", knobs={"rate": 0.1, "boundary_scale": "rate"}, threads=1, hidden=32)
    path = write_folder(tmp_path / "drawn", run_document(options, shares=SHARES, slowest=1), [0.1] * 10)
    run = read_recorded_run(path)
    other = read_recorded_run(folder(tmp_path, shares=SHARES, slowest=1))
    waited = run.shares.wait_s + run.shares.unpack_s
    assert run.phases["exposed_comm"] == pytest.approx(waited)
    assert other.phases["exposed_comm"] < waited
    assert run.settings["rate"] == 0.1


def test_settings_are_what_a_calibration_has_ranges_for(tmp_path: Path) -> None:
    seen = read_recorded_run(folder(tmp_path))
    names = {"method.full-graph": 1, "model.gcn": 1, f"graph.{seen.graph['hash']}": 1}
    place = {"workers": 2, "hosts": 2, "workers_per_host": 1}
    widths = {"features": 32, "layers": 2, "hidden": 32}
    assert seen.settings == names | place | widths | {"bandwidth": 2.5e7, "latency_s": 0}
    knobs: dict[str, KnobValue | CacheSize] = {"tau": 2, "epsilon": 0.1, "sampler": "vr", "cache": CacheSize(0.3)}
    options = Options(method="psc-gcn", knobs=knobs, threads=1, hidden=32)
    alone = write_folder(tmp_path / "drawn", run_document(options, emulation=None), [0.1] * 10)
    del names["method.full-graph"]
    one = {"workers": 2, "hosts": 1, "workers_per_host": 2}
    content = {"method.psc-gcn": 1, "tau": 2, "epsilon": 0.1, "cache": 0.3}
    assert read_recorded_run(alone).settings == names | one | widths | content


def test_runs_are_told_apart_by_what_they_measured(tmp_path: Path) -> None:
    hashes = {read_recorded_run(folder(tmp_path, seconds)).sha256 for seconds in ([0.1] * 10, [0.1] * 9 + [0.2])}
    hashes.add(read_recorded_run(folder(tmp_path, shares=SHARES)).sha256)
    assert len(hashes) == 3
    assert read_recorded_run(folder(tmp_path, shares=SHARES)).sha256 in hashes


def test_the_trace_is_beside_the_run_or_where_it_was_saved(tmp_path: Path) -> None:
    path = folder(tmp_path)
    assert read_recorded_run(path).trace == path / "access.trace"
    elsewhere = Options(threads=1, hidden=32, save_trace=str(tmp_path / "a.trace"))
    write_folder(path, run_document(elsewhere), [0.1] * 10)
    assert read_recorded_run(path).trace == tmp_path / "a.trace"
    (path / "access.trace").touch()
    assert read_recorded_run(path).trace == path / "access.trace"


def test_an_interrupted_run(tmp_path: Path) -> None:
    document = run_document(OPTIONS, iterations=7) | {"finished": False, "summary": None}
    path = write_folder(tmp_path / "run", document, [0.1] * 7)
    assert refusal(path, "run.json") == "the run was interrupted after 7 iterations; train it again"


@pytest.mark.parametrize("text", ["", "iteration,seconds\n"])
def test_a_run_without_iterations(tmp_path: Path, text: str) -> None:
    path = folder(tmp_path)
    (path / "iterations.csv").write_text(text)
    assert refusal(path, "iterations.csv") == "has no iterations"


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "iteration,seconds\n0,soon\n", "iteration,seconds\n0\n"])
def test_iterations_without_numbers(tmp_path: Path, text: str) -> None:
    path = folder(tmp_path)
    (path / "iterations.csv").write_text(text)
    assert refusal(path, "iterations.csv") == "has no numbers in the columns 'iteration' and 'seconds'"


def test_missing_iterations(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "iterations.csv").unlink()
    assert refusal(path, "iterations.csv").startswith("cannot be read: No such file or directory")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"options": {"knobs": {"tau": "two"}}}, 'options.knobs.tau is "two", wanted integer'),
        ({"options": {"knobs": []}}, "options.knobs is [], wanted object"),
        ({"options": {"method": None}}, "options.method is null, wanted string"),
        ({"emulation": {"bandwidth": float("nan")}}, "emulation.bandwidth is nan; allowed: finite numbers up to 1e+30"),
        ({"emulation": {"bandwidth": 0}}, "emulation.bandwidth is 0; allowed: above 0"),
        ({"emulation": {"hosts": 3}}, "emulation is of 3 hosts x 1 workers, workers is 2"),
        ({"summary": {"workers": float("nan")}}, "summary.workers is nan; allowed: finite numbers up to 1e+30"),
        ({"summary": {"workers": [dict.fromkeys(Shares.__slots__, 0)]}},
         "summary is of 1 workers, workers is 2"),
        ({"summary": {"slowest": 2}}, "summary.slowest is 2, it has 2 workers"),
        ({"summary": {"warmup": 10}}, "summary.warmup is 10; allowed: less than the 10 iterations"),
        ({"seed": 10**400}, "seed is a whole number of 401 digits; allowed: finite numbers up to 1e+30"),
        ({"inner": [1500]}, "inner is of 1 workers, workers is 2"),
        ({"options": {"sage_aggregator": "pool"}},
         "options.sage_aggregator: pool is not allowed; GraphSAGE takes the mean; allowed: mean"),
        ({"widths": [32, 0, 8]}, "widths is [32, 0, 8]; allowed: 1 or more each"),
    ],
)  # fmt: skip
def test_what_a_run_json_cannot_mean_is_named(tmp_path: Path, change: dict[str, Any], text: str) -> None:
    document = run_document(OPTIONS)
    for name, value in change.items():
        document[name] = document[name] | value if isinstance(value, dict) else value
    path = write_folder(tmp_path / "run", document, [0.1] * 10)
    assert refusal(path, "run.json").removesuffix("; python -m runtime.train writes such a file") == text


def test_an_aggregator_of_earlier_versions_is_read(tmp_path: Path) -> None:
    document = run_document(OPTIONS)
    document["options"]["sage_aggregator"] = "mean"
    read_recorded_run(write_folder(tmp_path / "run", document, [0.1] * 10))


def test_a_document_nested_too_deep(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "run.json").write_text('{"a":' * 500 + "1" + "}" * 500)
    assert refusal(path, "run.json") == "not a JSON document of at most 32 levels"


@pytest.mark.parametrize("count", [1, 9, 11])
def test_iterations_are_those_that_run_json_counts(tmp_path: Path, count: int) -> None:
    path = write_folder(tmp_path / "run", run_document(OPTIONS), [0.1] * count)
    text = f"has {count} iterations, 0 to {count - 1}; allowed: the 10 of run.json, in a row"
    assert refusal(path, "iterations.csv") == text


def test_a_resumed_run_may_have_its_last_iterations_alone(tmp_path: Path) -> None:
    rows = "".join(f"{number},0.1\n" for number in range(4, 10))
    for resume in (None, "other"):
        document = run_document(Options(threads=1, hidden=32, resume=resume))
        path = write_folder(tmp_path / "run", document, [0.1] * 10)
        (path / "iterations.csv").write_text("iteration,seconds\n" + rows)
        if resume is None:
            assert refusal(path, "iterations.csv").startswith("has 6 iterations, 4 to 9; allowed: ")
        else:
            assert read_recorded_run(path).iterations.size == 1


@pytest.mark.parametrize("seconds", [1e308, 0.0, -1.0, float("nan"), float("inf")])
def test_iterations_take_a_time_that_can_be(tmp_path: Path, seconds: float) -> None:
    path = folder(tmp_path, [0.1] * 9 + [seconds])
    assert refusal(path, "iterations.csv") == (
        f"seconds of iteration 9: {seconds:.12g} is not allowed; a number above 0 and at most 10000000"
    )


def test_an_accuracy_is_a_share(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "iterations.csv").write_text("iteration,val_accuracy\n0,nan\n")
    with pytest.raises(FileError, match="has a row without iteration and accuracy"):
        read_learning_curve(path)


def test_a_run_is_the_same_however_its_json_is_laid_out(tmp_path: Path) -> None:
    path = folder(tmp_path)
    before = read_recorded_run(path).sha256
    document = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(dict(reversed(document.items())), indent=7) + "\n\n")
    assert read_recorded_run(path).sha256 == before
    (path / "run.json").write_text(json.dumps(document | {"parameters": 1001}))
    assert read_recorded_run(path).sha256 != before


def test_an_unrecorded_run(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "run", run_document(OPTIONS) | {"summary": None}, [0.1] * 10)
    assert refusal(path, "run.json") == "has no summary: the run was not recorded (--no-record)"


def test_a_field_without_end(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "iterations.csv").write_text("iteration,seconds\n0," + "1" * 200_000 + "\n")
    assert refusal(path, "iterations.csv").startswith("not a CSV file: field larger than field limit")
