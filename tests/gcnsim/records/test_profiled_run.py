"""Runs that the PyTorch profiler recorded: iterations and parts out of hand-made traces, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import FileError
from gcnsim.records import trace_events, trace_text
from gcnsim.records.profiled_run import ProfiledRun, read_profiled_run
from gcnsim.records.trace_events import is_profiler_trace
from gcnsim.records.trace_names import Names
from gcnsim.timeline import KIND_CODE, OpKind
from gcnsim.timeline.breakdown import iteration_s
from tests.gcnsim.records.made_traces import CUDA_PARTS, Event, by_part, cuda_events, document, event, folder, write


def adds_up(run: ProfiledRun) -> None:
    for own in run.parts:
        assert iteration_s(own) == pytest.approx(run.iteration_s, rel=1e-6)


def only(run: ProfiledRun) -> dict[str, float]:
    (own,) = run.parts
    return {name: round(seconds, 9) for name, seconds in by_part(own).items() if seconds}


def test_the_parts_of_gpus_in_a_folder_of_ranks(tmp_path: Path) -> None:
    run = read_profiled_run(folder(tmp_path / "traces"))
    assert run.workers == 2
    assert run.iterations.tolist() == pytest.approx([0.1] * 4, rel=1e-9), "the first is left out"
    assert run.steps == (1, 2, 3, 4)
    assert by_part(run.parts[0]) == pytest.approx(CUDA_PARTS, abs=1e-9), (
        "rank 0 is the file that says so, not the first"
    )
    assert by_part(run.parts[1]) == pytest.approx(CUDA_PARTS | {"compute": 0.05, "waiting": 0.0}, abs=1e-9)
    assert run.slowest == 1, "the one that computes longest"
    assert run.devices == ("GPU 0 Tesla T4",) * 2
    assert run.phases == pytest.approx({"compute": 0.05, "exposed_comm": 0.025, "exposed_other": 0.025})
    assert [note for note in run.notes if "iteration 0, the first recorded, is left out" in note]
    adds_up(run)


def test_a_rank_alone_cannot_tell_a_wait_from_its_all_reduce(tmp_path: Path) -> None:
    run = read_profiled_run(write(tmp_path / "t.json", document(cuda_events(0), 0)))
    assert run.parts[0].reduce_s == pytest.approx(0.015)
    assert run.parts[0].waiting_s == 0.0
    assert [note for note in run.notes if "has traces of 1 of 2 ranks" in note]


def test_the_timeline_is_of_our_kinds_within_the_measured_iterations(tmp_path: Path) -> None:
    run = read_profiled_run(write(tmp_path / "t.json.gz", document(cuda_events())))
    spans = run.timeline
    kinds = {OpKind.SAMPLE, OpKind.H2D, OpKind.AGGREGATE, OpKind.WIRE, OpKind.UPDATE, OpKind.ALLREDUCE, OpKind.STEP}
    assert {span.kind for span in spans} == kinds
    assert (spans.start_ps >= 0).all()
    assert (spans.start_ps[1:] >= spans.start_ps[:-1]).all()
    assert int(spans.end_ps.max()) == 400 * 10**9
    assert spans.iteration.tolist() == sorted(spans.iteration.tolist())
    copies = spans.nbytes[spans.kind == KIND_CODE[OpKind.H2D]]
    assert copies.tolist() == [1e6] * 4


def test_several_gpus_in_one_file_are_a_worker_each_and_a_stray_one_none(tmp_path: Path) -> None:
    both = cuda_events(0) + [
        cuda_event for cuda_event in cuda_events(1, device=3, first=1000) if cuda_event["cat"] != "user_annotation"
    ]
    stray = event("kernel", "init", 10.0, 0.1, 7, 1, device=1, stream=7, correlation=-1)
    run = read_profiled_run(write(tmp_path / "t.json", document([*both, stray])))
    assert run.workers == 2
    assert by_part(run.parts[0]) == pytest.approx(CUDA_PARTS, abs=1e-9)
    assert run.devices == ("GPU 0 Tesla T4", "GPU 3")
    assert [note for note in run.notes if "hardly anything ran on GPU 1, which is left out" in note]


def test_without_launches_the_iterations_are_the_cpus(tmp_path: Path) -> None:
    events = [cuda_event for cuda_event in cuda_events() if cuda_event["cat"] != "cuda_runtime"]
    run = read_profiled_run(write(tmp_path / "t.json", document(events)))
    assert run.iterations.tolist() == pytest.approx([0.1] * 4)
    assert [note for note in run.notes if "launches on GPU 0 are not known" in note]
    assert run.parts[0].optimizer_s == 0.0, "what runs in the optimizer's range is known by its launch"
    adds_up(run)


def cpu_events(steps: int = 4, marks: bool = True) -> list[Event]:
    """Iterations of 50 ms: 4 ms of sampling, 10 of sums with an operator inside, 6 in which gloo receives (2 beneath a
    product of 12), 8 of an all-reduce on another thread, 5 of the optimizer; 7 of nothing."""
    events: list[Event] = []
    for n in range(steps):
        at = 50.0 * n
        events += [event("user_annotation", f"ProfilerStep#{n + 3}", at, 49.0)] if marks else []
        events += [
            event("user_annotation", "Neighbour sampler", at, 4.0),
            event("cpu_op", "aten::randperm", at + 1, 2.0),
            event("cpu_op", "aten::_sparse_mm", at + 4, 10.0),
            event("cpu_op", "aten::addmm", at + 5, 8.0),
            event("user_annotation", "gloo:recv", at + 14, 6.0),
            event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", at + 18, 13.0),
            event("cpu_op", "aten::mm", at + 18, 12.0),
            event("cpu_op", "c10d::allreduce_", at + 31, 0.1),
            event("user_annotation", "gloo:all_reduce", at + 31, 8.0, tid=4002),
            event("cpu_op", "aten::mm", at + 31, 8.0, tid=4003),
            event("user_annotation", "Optimizer.step#SGD.step", at + 39, 5.0),
            event("cpu_op", "aten::add_", at + 40, 2.0),
        ]
    return events


CPU_PARTS = {
    "compute": 0.022,
    "optimizer": 0.005,
    "exposed_sampling": 0.004,
    "network": 0.004,
    "reduce": 0.008,
    "rest": 0.007,
    "hidden_comm": 0.002,
}


def test_the_parts_of_a_worker_on_a_cpu(tmp_path: Path) -> None:
    run = read_profiled_run(write(tmp_path / "t.json", document(cpu_events())))
    assert run.iterations.tolist() == pytest.approx([0.05, 0.05, 0.049])
    run = read_profiled_run(write(tmp_path / "t.json", document(cpu_events()[:39])))
    assert only(run) == pytest.approx(CPU_PARTS | {"rest": 0.0065}), "the last one ends with its step"
    assert run.devices == ("",)
    adds_up(run)


def test_old_names_of_categories_are_read(tmp_path: Path) -> None:
    old = {"cpu_op": "Operator", "user_annotation": "Operator", "kernel": "Kernel", "gpu_memcpy": "Memcpy"}
    old |= {"cuda_runtime": "Runtime"}
    named = [cuda_event for cuda_event in cuda_events() if cuda_event["name"] not in ("my_sampling", "nccl:all_reduce")]
    events = [entry | {"cat": old.get(entry["cat"], entry["cat"])} for entry in named]
    run = read_profiled_run(write(tmp_path / "t.json", document(events)))
    content = CUDA_PARTS | {"reduce": 0.015, "waiting": 0.0, "exposed_sampling": 0.0, "rest": 0.02}
    assert by_part(run.parts[0]) == pytest.approx(content, abs=1e-9)


def test_without_steps_the_optimizer_marks_iterations(tmp_path: Path) -> None:
    run = read_profiled_run(write(tmp_path / "t.json", document(cpu_events(5, marks=False))))
    assert run.iterations.tolist() == pytest.approx([0.05] * 3)
    assert only(run) == pytest.approx(CPU_PARTS)
    assert "from the end of one optimizer step to the next" in run.notes[0]


def test_own_names(tmp_path: Path) -> None:
    events = cpu_events(5)
    for n in range(5):
        events.append(event("user_annotation", "train_one", 50.0 * n + 1, 40.0))
        events.append(event("user_annotation", "fetch", 50.0 * n + 17.5, 13.0))
    path = write(tmp_path / "t.json", document(events))
    own = tmp_path / "names.yaml"
    own.write_text("schema: gcnsim.trace-names/1\niteration: train_*\nnames: {gather: [FETCH], ignore: 'gloo:*'}\n")
    run = read_profiled_run(path, own)
    assert run.steps == (1, 2, 3)
    assert only(run) == pytest.approx(
        {"compute": 0.010, "optimizer": 0.005, "exposed_sampling": 0.004, "copies": 0.013, "rest": 0.018}
    ), "the range takes what runs within it; iterations from one mark to the next"
    assert read_profiled_run(path, Names((("fetch", OpKind.GATHER), ("gloo:*", None)), "train_*")).parts == run.parts


def test_own_names_of_kernels_come_first(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", document(cuda_events()))
    own = Names((("ampere_sgemm*", OpKind.SCATTER), ("*multi_tensor*", None), ("my_sampling", None)))
    assert by_part(read_profiled_run(path, own).parts[0]) == pytest.approx(
        CUDA_PARTS
        | {"compute": 0.03, "handling": 0.01, "optimizer": 0.0, "exposed_sampling": 0.0, "rest": 0.025}
        | {"reduce": 0.015, "waiting": 0.0, "hidden_comm": 0.0},
        abs=1e-9,
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "schema is missing; allowed: gcnsim.trace-names/1"),
        ("schema: gcnsim.trace-names/1\nnam: {}", "nam: is not known; did you mean 'names'?"),
        ("schema: gcnsim.trace-names/1\niteration: 3", "iteration: 3 is not a pattern"),
        ("schema: gcnsim.trace-names/1\nnames: [a]", "names: a list is not a mapping"),
        (
            "schema: gcnsim.trace-names/1\nnames: {sampel: a}",
            "names.sampel: is not a kind of operation; did you mean 'sample'?",
        ),
        ("schema: gcnsim.trace-names/1\nnames: {sample: [1]}", "names.sample: not a list of patterns"),
    ],
)
def test_wrong_names_are_refused(tmp_path: Path, text: str, says: str) -> None:
    own = tmp_path / "names.yaml"
    own.write_text(text)
    with pytest.raises(FileError) as caught:
        read_profiled_run(tmp_path / "t.json", own)
    assert str(caught.value).startswith(f"{own}: {says}")


def test_unlike_iterations_are_told(tmp_path: Path) -> None:
    events = cpu_events(5)
    late = [entry | {"ts": entry["ts"] + 2e5} if entry["ts"] >= 2e5 else entry for entry in events]
    run = read_profiled_run(write(tmp_path / "t.json", document(late)))
    assert "iteration 6 took 250 ms, the median is 50 ms" in run.notes[-1]


KERNEL = event("kernel", "k", 0.0, 1.0, 7, 0, device=0, stream=7, correlation=1)


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([KERNEL | {"dur": -1}], "event 0 ('k'): dur is -1; allowed: 0 or more microseconds"),
        ([KERNEL | {"dur": None}], "event 0 ('k'): has no dur; allowed: 0 or more microseconds"),
        ([KERNEL | {"ts": float("nan")}], "event 0 ('k'): ts is nan; allowed: a number of microseconds"),
        ([KERNEL | {"ts": "1"}], "event 0 ('k'): ts is '1'; allowed: a number of microseconds"),
        ([KERNEL | {"ts": True}], "event 0 ('k'): ts is True; allowed: a number of microseconds"),
        ([KERNEL | {"ts": 10**400}], "event 0 ('k'): ts is 1000"),
        ([KERNEL, KERNEL | {"name": 7}], "event 1: name is 7; allowed: text"),
        ([KERNEL, 7], "damaged at byte "),
        ([KERNEL], "no ProfilerStep#N (profiler.step() after each iteration); allowed: two iterations or more"),
        ([], "no ProfilerStep#N"),
        (cpu_events(1, marks=False), "no ProfilerStep#N"),
        ([event("user_annotation", "ProfilerStep#1", 0, 0)], "its iterations last 0 s; allowed: more"),
        ([event("user_annotation", "ProfilerStep#1", 0, 1e14)], "its iterations last more than 1,000,000 s"),
        ([event("user_annotation", "ProfilerStep#1", 0, 1)] * 2, "ProfilerStep#1 is there twice"),
    ],
)
def test_events_that_cannot_be_are_refused_in_one_line(tmp_path: Path, events: list[Any], says: str) -> None:
    path = write(tmp_path / "t.json", document(events))
    with pytest.raises(FileError) as caught:
        read_profiled_run(path)
    assert str(caught.value).startswith(f"{path}: {says}")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "it is cut off: the file ends before its document does (byte 0)"),
        (b"hello", "not a JSON document: 'h' where '{' is needed"),
        (b"{}", "has no traceEvents: not a trace of the PyTorch profiler"),
        (b'{"a": 1}', "has no traceEvents"),
        (b'{"a": 1, 2: 3}', "damaged at byte 11: a key that is not text"),
        (
            b'{"traceEvents": [{"ph": "X"}',
            "it is cut off: the file ends before its document does (byte 28)",
        ),
        (
            b'{"traceEvents": [{"ph": "X"',
            "it is cut off: the file ends before its document does (byte 27)",
        ),
        (b'{"traceEvents": []} x', "damaged at byte 20: text after its end"),
        (b'{"traceEvents": [{"a": ' + b"[" * 100_000, "damaged at byte 17: values nested too deep"),
        (b'{"traceEvents": 7}', "damaged at byte 16: '7' where '[' is needed"),
        (b"\x1f\x8bnothing", "it is cut off: the gzip file ends early (byte 0)"),
        (b"\x1f\x8bnothing that is gzip", "a damaged gzip file (byte 0)"),
        (b"\x80\x02}q", "not a JSON document: '\ufffd' where '{' is needed"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(data)
    with pytest.raises(FileError) as caught:
        read_profiled_run(path)
    assert str(caught.value).startswith(f"{path}: {says}")
    assert "\n" not in str(caught.value)


def test_a_gzip_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json.gz", document(cuda_events()))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(
        FileError, match=r"cut off: the gzip file ends early .*; its last whole event is event 92 \('nccl"
    ):
        read_profiled_run(path)


def test_ranks_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.json", document(cuda_events(), 1))
    write(tmp_path / "b.json", document(cuda_events(), 1))
    with pytest.raises(FileError, match=r"b\.json: of rank 1, as a\.json; allowed: one file for each rank"):
        read_profiled_run(tmp_path)
    later = [cuda_event | {"name": cuda_event["name"].replace("Step#", "Step#1")} for cuda_event in cuda_events()]
    write(tmp_path / "b.json", document(later, 0))
    with pytest.raises(FileError, match="no iteration is in the traces of all 2 workers"):
        read_profiled_run(tmp_path)
    write(tmp_path / "b.json", document(cuda_events(1, steps=3), 0))
    run = read_profiled_run(tmp_path)
    assert run.steps == (1, 2)
    assert [note for note in run.notes if "2 of 5 iterations are not in every worker's trace" in note]


@pytest.mark.parametrize("characters", [1, 7, 64])
def test_a_file_read_in_pieces_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, characters: int) -> None:
    path = write(tmp_path / "t.json", document(cpu_events(3)) | {"numbers": [12345, -1e-7], "n": 123456})
    whole = read_profiled_run(path)
    monkeypatch.setattr(trace_text, "CHUNK", characters)
    assert read_profiled_run(path).parts == whole.parts
    events = trace_events.TraceEvents(path)
    assert [*events] == json.loads(path.read_text())["traceEvents"]
    assert (events.header["numbers"], events.header["n"]) == ([12345, -1e-7], 123456)


def test_sizes_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.json", document(cpu_events()))
    monkeypatch.setattr(trace_text, "CHUNK", 512)
    with monkeypatch.context() as inside:
        inside.setattr(trace_text, "LARGEST_VALUE", 100)
        with pytest.raises(FileError, match=r"damaged at byte \d+: a value of more than"):
            read_profiled_run(write(tmp_path / "long.json", {"a": "x" * 2000, "traceEvents": []}))
    monkeypatch.setattr(trace_text, "LARGEST_TEXT", 2048)
    with pytest.raises(FileError, match=r"t\.json: more than 0 GiB of text; allowed: less"):
        read_profiled_run(path)


def test_events_far_away_are_no_part_of_an_iteration(tmp_path: Path) -> None:
    far = [event("cpu_op", "aten::mm", at, 1.0) for at in (1e14, -1e14)]
    run = read_profiled_run(write(tmp_path / "t.json", document([*cpu_events(4), *far])))
    assert run.parts == read_profiled_run(write(tmp_path / "u.json", document(cpu_events(4)))).parts


def test_traces_are_known_from_other_files(tmp_path: Path) -> None:
    assert is_profiler_trace(write(tmp_path / "t.json", document([])))
    assert is_profiler_trace(write(tmp_path / "list.json", [event("kernel", "k", 0, 1)]))
    assert not is_profiler_trace(write(tmp_path / "empty.json", []))
    assert is_profiler_trace(write(tmp_path / "t.json.gz", document([])))
    assert not is_profiler_trace(write(tmp_path / "config.json.gz", {"lr": 0.1}))
    assert is_profiler_trace(tmp_path)
    assert not is_profiler_trace(write(tmp_path / "r.json", {"schema": "gcnsim.result/1"}))
    assert not is_profiler_trace(tmp_path / "gone.json")
    (tmp_path / "t.yaml").write_text("[]")
    assert not is_profiler_trace(tmp_path / "t.yaml")


def test_places_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"gone\.json: cannot be read: No such file"):
        read_profiled_run(tmp_path / "gone.json")
    with pytest.raises(FileError, match=r"has no trace \(\*\.json, \*\.json\.gz\); allowed"):
        read_profiled_run(tmp_path)
    write(tmp_path / "config.json", {"lr": 0.1})
    with pytest.raises(FileError, match=r"has no trace .* \(found: config.json, without traceEvents\); allowed"):
        read_profiled_run(tmp_path)


def test_the_list_alone_is_a_trace_too(tmp_path: Path) -> None:
    whole = read_profiled_run(write(tmp_path / "a.json", document(cpu_events())))
    alone = read_profiled_run(write(tmp_path / "b.json", cpu_events(), indent=None))
    assert alone.parts == whole.parts
