"""Traces with the faults that profilers write, files that are cut off, and other files beside traces."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gcnsim.core.errors import FileError
from gcnsim.records import trace_text
from gcnsim.records.profiled_run import ProfiledRun, read_profiled_run
from gcnsim.records.trace_events import is_profiler_trace
from gcnsim.records.trace_file import read_trace_file
from gcnsim.records.trace_names import Names
from gcnsim.timeline import OpKind
from tests.gcnsim.records.made_traces import Event, by_part, cuda_events, document, event, write

UNREAD = '{"ph": "X", "cat": "python_function", "name": %s, "pid": 1, "tid": 1, "ts": 5, "dur": 1, "args": {%s}}'


def trace(*added: bytes) -> bytes:
    """A sound trace, before whose last event stand others as they are."""
    text = json.dumps(document(cuda_events())).encode()
    at = text.index(b'{"ph": "X"', len(text) // 2)
    return text[:at] + b"".join(data + b", " for data in added) + text[at:]


def unread(name: str = '"f"', args: str = "") -> bytes:
    return (UNREAD % (name, args)).encode()


def read(path: Path, data: bytes) -> ProfiledRun:
    path.write_bytes(data)
    return read_profiled_run(path)


@pytest.mark.parametrize(
    "odd",
    [
        unread(args='"loss": NaN, "least": -Infinity'),
        unread('"a\x08b"'),
        unread().replace(b'"f"', b'"\xf0\xc7\x80"'),
        unread() + b"\r\n\t",
    ],
)
@pytest.mark.parametrize("characters", [7, 1 << 22])
def test_odd_text_where_nothing_is_read_leaves_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: bytes, characters: int
) -> None:
    whole = read(tmp_path / "whole.json", trace(unread()))
    monkeypatch.setattr(trace_text, "CHUNK", characters)
    run = read(tmp_path / "t.json", trace(odd))
    assert (run.parts, len(run.notes)) == (whole.parts, len(whole.notes))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"ts": 491000.0', b'"ts": null', "has no ts; allowed: a number of microseconds"),
        (b'"dur": 10000.0', b'"dur": NaN', "dur is nan; allowed: 0 or more microseconds"),
        (b'"dur": 10000.0', b'"dur": Infinity', "dur is inf; allowed: 0 or more microseconds"),
        (b'"ts": 491000.0', b'"ts": "491000.0"', "ts is '491000.0'; allowed: a number of microseconds"),
    ],
)
def test_a_time_that_is_none_is_refused(tmp_path: Path, old: bytes, new: bytes, says: str) -> None:
    data = trace()
    assert old in data
    with pytest.raises(FileError) as caught:
        read(tmp_path / "t.json", data.replace(old, new, 1))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        (b'"cat": "kernel"', b'"cat": , "a": 1', 7),
        (b'"cat": "kernel"', b'"cat" "kernel"', 6),
        (b'"cat": "kernel"', b"cat: 1", 0),
        (b'"cat": "kernel"', b'"cat": "C:\\dir"', 10),
        (b'"cat": "kernel"', b'"cat": "a "b" c"', 11),
        (b'"cat": "kernel"', b'"cat": nan', 7),
        (b'"cat": "kernel", ', b'"cat": "kernel" ', 16),
        (b'"cat": "kernel", ', b'"cat": "kernel",, ', 16),
        (b"}}, {", b"}} {", 3),
        (b"}}, {", b"}},, {", 3),
    ],
)
@pytest.mark.parametrize("characters", [61, 1 << 22])
def test_damage_is_refused_with_its_byte_and_is_not_called_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bytes, new: bytes, at: int, characters: int
) -> None:
    monkeypatch.setattr(trace_text, "CHUNK", characters)
    data = trace(unread('"größe"'))
    place = data.index(old)
    with pytest.raises(FileError) as caught:
        read(tmp_path / "t.json", data.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 't.json'}: damaged at byte {place + at:,}: ")
    assert "export it again" in str(caught.value)
    assert "cut off" not in str(caught.value)


def _overrun(path: Path, microseconds: float) -> ProfiledRun:
    """A run in which one kernel of GPU 0 lasts so long."""
    events = cuda_events()
    kernels = [item for item in events if item.get("cat") == "kernel"]
    kernels[len(kernels) // 2]["dur"] = microseconds
    return read_profiled_run(write(path, document(events)))


@pytest.mark.parametrize("seconds", [0.5, 18.0])
def test_a_kernel_that_its_stream_contradicts_ends_at_the_next_one(tmp_path: Path, seconds: float) -> None:
    run = _overrun(tmp_path / "t.json", seconds * 1e6)
    whole = read_profiled_run(write(tmp_path / "whole.json", document(cuda_events())))
    (note,) = [note for note in run.notes if "overlaps the next event of its stream by" in note]
    assert note.startswith("t.json: '")
    assert run.iterations.tolist() == whole.iterations.tolist()
    assert run.parts[0].compute_s == pytest.approx(whole.parts[0].compute_s, rel=0.1)


def _on_stream(cat: str, lasted_ms: list[float]) -> list[Event]:
    """Events of one stream, one a millisecond."""
    return [event(cat, "work", 1.0 * n, lasted, device=0, stream=3) for n, lasted in enumerate(lasted_ms)]


def test_an_overlap_of_some_microseconds_is_normal_and_stays(tmp_path: Path) -> None:
    found = read_trace_file(write(tmp_path / "t.json", document(_on_stream("kernel", [1.0, 1.02, 1.04, 1.0]))))
    assert found.notes == ()
    assert found.sorts["kernel"].lasted_us.tolist() == [1000.0, 1020.0, 1040.0, 1000.0]


def test_a_long_copy_among_short_ones_is_cut_and_counted(tmp_path: Path) -> None:
    found = read_trace_file(
        write(tmp_path / "t.json", document(_on_stream("gpu_memcpy", [0.01, 1200, 0.01, 900, 0.01])))
    )
    assert found.sorts["copy"].lasted_us.tolist() == [10.0, 1000.0, 10.0, 1000.0, 10.0]
    assert found.notes == (
        "t.json: 'work' at 1000.0 us on stream 3 of GPU 0 overlaps the next event of its stream by 1,199.0 ms (and 1 "
        "more): a doubtful duration, so it counts up to the next event",
    )


def test_a_file_that_is_cut_off_anywhere_says_so_and_names_the_last_whole_event(tmp_path: Path) -> None:
    data = json.dumps(document([event("kernel", f"k{n}", n, 1) for n in range(3)])).encode()
    for end in range(data.index(b'"k1"'), len(data) - 1):
        with pytest.raises(
            FileError, match=r"t\.json: it is cut off: the file ends before its document does"
        ) as caught:
            read(tmp_path / "t.json", data[:end])
        assert "; its last whole event is event" in str(caught.value)
        assert str(caught.value).endswith("; copy it again, or record it again")


@pytest.mark.parametrize("left_out", [40, 200])
def test_a_gzip_file_that_is_cut_off_names_the_last_whole_event(tmp_path: Path, left_out: int) -> None:
    packed = gzip.compress(trace())
    with pytest.raises(FileError, match=r"cut off: the gzip file ends early \(byte .*last whole event is event \d+ \("):
        read(tmp_path / "t.json.gz", packed[:-left_out])
    damaged = bytearray(packed)
    damaged[-6] ^= 255
    with pytest.raises(FileError, match="a damaged gzip file"):
        read(tmp_path / "t.json.gz", bytes(damaged))


def test_other_json_files_beside_traces_are_named_and_left_out(tmp_path: Path) -> None:
    for rank in range(2):
        write(tmp_path / f"rank{rank}.json", document(cuda_events(rank), rank))
    whole = read_profiled_run(tmp_path)
    write(tmp_path / "config.json", {"lr": 0.01})
    write(tmp_path / "index.json", {"ranks": {"traceEvents": 7}})
    write(tmp_path / "env.json.gz", {"PATH": ""})
    (tmp_path / "metrics.json").write_text('{"loss": 1}\n{"loss": 0.5}\n')
    run = read_profiled_run(tmp_path)
    assert run.parts == whole.parts
    (note,) = set(run.notes) - set(whole.notes)
    assert note.endswith("not read, since no trace of the profiler: config.json, env.json.gz, index.json, metrics.json")
    sound = (tmp_path / "rank1.json").read_bytes()
    for bad, says in (
        (sound[:5000], r"it is cut off"),
        (b"", r"it is cut off"),
        (sound.decode().encode("utf-16"), r"is UTF-16 text"),
        (gzip.compress(sound)[:200], r"it is cut off"),
    ):
        (tmp_path / "rank1.json").write_bytes(bad)
        with pytest.raises(FileError, match=rf"rank1\.json: {says}"):
            read_profiled_run(tmp_path)


NO_RUNS = {
    "empty.json": "",
    "none.json": '{"traceEvents": []}',
    "list.json": "[]",
    "chrome.json": '[{"ph": "X", "cat": "c", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]',
    "cpu.json": json.dumps(document([event("cpu_op", "aten::mm", 1, 2)])),
    "run.json": '{"lr": 0.1}',
}


def _two_ranks(folder: Path) -> ProfiledRun:
    for rank in range(2):
        write(folder / f"rank{rank}.json", document(cuda_events(rank), rank))
    return read_profiled_run(folder)


@pytest.mark.parametrize("name", NO_RUNS)
def test_a_file_without_a_run_beside_whole_traces_is_named_and_left_out(tmp_path: Path, name: str) -> None:
    whole = _two_ranks(tmp_path / "run")
    (tmp_path / "run" / name).write_text(NO_RUNS[name])
    assert is_profiler_trace(tmp_path / "run")
    run = read_profiled_run(tmp_path / "run")
    assert run.parts == whole.parts
    (note,) = set(run.notes) - set(whole.notes)
    why = "no trace of the profiler" if name in ("run.json", "result.json", "list.json") else "without iterations"
    assert note == f"{tmp_path / 'run'}: not read, since {why}: {name}"


@pytest.mark.parametrize("name", [name for name in NO_RUNS if name not in ("run.json", "result.json", "list.json")])
def test_where_a_rank_is_missing_a_file_without_a_run_is_refused(tmp_path: Path, name: str) -> None:
    _two_ranks(tmp_path / "run")
    (tmp_path / "run" / "rank1.json").write_text(NO_RUNS[name])
    with pytest.raises(
        FileError, match=r"rank1\.json: (it is cut off|no ProfilerStep#N|(damaged at byte|not a JSON document))"
    ):
        read_profiled_run(tmp_path / "run")
    (tmp_path / "run" / "rank0.json").unlink()
    with pytest.raises(
        FileError, match=r"rank1\.json: (it is cut off|no ProfilerStep#N|(damaged at byte|not a JSON document))"
    ):
        read_profiled_run(tmp_path / "run")


def test_a_trace_of_a_cpu_alone_beside_traces_of_gpus_is_left_out(tmp_path: Path) -> None:
    whole = _two_ranks(tmp_path / "run")
    steps = [event("user_annotation", f"ProfilerStep#{n}", 100.0 * n, 100.0) for n in range(5)]
    write(tmp_path / "run" / "loader.json", document(steps))
    run = read_profiled_run(tmp_path / "run")
    assert run.parts == whole.parts
    assert f"{tmp_path / 'run'}: not read, since without a GPU: loader.json" in run.notes


def test_a_run_of_ours_is_none_of_the_profiler(tmp_path: Path) -> None:
    _two_ranks(tmp_path / "run")
    for schema in ("gcnsim.run/1", "gcnsim.result/1"):
        write(tmp_path / "run" / "run.json", {"seed": 1, "schema": schema})
        assert not is_profiler_trace(tmp_path / "run")
    for rank in range(2):
        (tmp_path / "run" / f"rank{rank}.json").unlink()
    write(tmp_path / "run" / "run.json", {"lr": 0.1})
    assert not is_profiler_trace(tmp_path / "run")


def test_collectives_whose_kind_the_trace_does_not_say_are_noted(tmp_path: Path) -> None:
    named, unnamed = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "ncclDevKernel_Generic_1(ncclDevComm*)"
    events = [cuda_event | {"name": cuda_event["name"].replace(named, unnamed)} for cuda_event in cuda_events()]
    path = write(tmp_path / "t.json", document(events))
    run = read_profiled_run(path)
    assert [note for note in run.notes if "an iteration are collectives" in note] == [
        f"{path}: 15 ms an iteration are collectives whose kind the trace does not say; counted as messages "
        "(--names can say it)"
    ]
    assert by_part(run.parts[0])["reduce"] == 0.0
    for entry in events:
        if entry["name"] == unnamed:
            entry["args"]["Collective name"] = "allreduce"
    known = read_profiled_run(write(tmp_path / "known.json", document(events)))
    assert by_part(known.parts[0])["reduce"] == pytest.approx(0.015)
    own = read_profiled_run(path, Names((("ncclDevKernel_Generic*", OpKind.ALLREDUCE),)))
    assert own.parts == known.parts
    assert not [note for profiled_run in (known, own) for note in profiled_run.notes if "are collectives" in note]
