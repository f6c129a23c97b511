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
from gcnsim.records.trace_names import Names
from gcnsim.records.trace_repair import DamageError, IncompleteError, mended_value
from gcnsim.timeline import OpKind
from tests.gcnsim.records.made_traces import by_part, cuda_events, document, event, write

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


def mended(run: ProfiledRun) -> list[str]:
    return [note for note in run.notes if "mended while reading" in note]


@pytest.mark.parametrize(
    ("damaged", "says"),
    [
        (unread(args='"Process Group Description": , "a": 1'), "an empty value after 'Process Group Description' in"),
        (unread(args='"last": '), "an empty value after 'last' in"),
        (unread('"torch\\cuda\\__init__.py(219): _lazy_init"'), "a backslash that is not escaped in"),
        (unread(args='"path": "C:\\dir\\"'), "a backslash that is not escaped in"),
        (unread('"<lambda "x">"'), "a quote that is not escaped in"),
        (unread('"a\x08b"'), "a control character in"),
        (unread(args='"loss": NaN'), "the number 'NaN', which JSON does not have, in"),
        (unread(args='"a": [1, 2,], "b": 3,'), "the first of them a comma too many in"),
        (unread(args='"Process Group Name": default_pg'), "text without quotes after 'Process Group Name' in"),
        (unread().replace(b'"f"', b'"\xf0\xc7\x80"'), "bytes that are not UTF-8 in"),
        (unread() + b",", "a comma too many in"),
    ],
)
@pytest.mark.parametrize("characters", [7])
def test_damage_where_nothing_is_read_leaves_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: bytes, says: str, characters: int
) -> None:
    whole = read(tmp_path / "whole.json", trace(unread()))
    monkeypatch.setattr(trace_text, "CHUNK", characters)
    data = trace(damaged)
    run = read(tmp_path / "t.json", data)
    assert run.parts == whole.parts
    assert not mended(whole)
    (note,) = mended(run)
    assert note.startswith("t.json: ")
    assert says in note
    assert "line " in note
    unusual = ("a quote that", "the number", "a comma", "text without", "an empty value in a list")
    known = not any(f"{kind}" in says for kind in unusual)
    assert note.endswith(": a known fault of the profiler, which leaves times as they are") == known
    assert ("; not known of the profiler: " in note) == (not known)
    assert len(note) < 300
    if characters > 7:
        (tmp_path / "t.json.gz").write_bytes(gzip.compress(data))
        assert read_profiled_run(tmp_path / "t.json.gz").parts == whole.parts


def test_a_note_says_event_line_and_character(tmp_path: Path) -> None:
    data = (
        b'{"traceEvents": [\n{"a": 1},\n  {"name": "f", "d": }, {"e": }\n, '
        + trace().partition(b"[")[2].partition(b"[")[2]
    )
    (note,) = mended(read(tmp_path / "t.json", data))
    assert note.startswith(
        "t.json: 2 damaged places were mended while reading, the first of them an empty value after 'd' in event 1, "
        "'f' (line 3, character 22): a known fault"
    )


def test_damage_that_is_not_the_profilers_is_listed(tmp_path: Path) -> None:
    added = unread(args='"a": , "b": [1,, 2], "c": word'), unread(args='"d": other')
    (note,) = mended(read(tmp_path / "t.json", trace(*added)))
    assert note.startswith("t.json: 4 damaged places were mended while reading, the first of them an empty value after")
    assert note.endswith("); not known of the profiler: a comma too many, text without quotes")


def test_several_damaged_ranks_are_one_note(tmp_path: Path) -> None:
    for rank in range(3):
        data = json.dumps(document(cuda_events(rank), rank, 3)).encode()
        (tmp_path / f"rank{rank}.json").write_bytes(data[:-1] + b',"end": }')
    (note,) = mended(read_profiled_run(tmp_path))
    assert "an empty value after 'end' in the header (line 1, character " in note
    assert note.endswith("; likewise in 2 more of the files")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"ts": 491000.0', b'"ts": ', "has no ts; allowed: a number of microseconds"),
        (b'"dur": 10000.0', b'"dur": nan', "dur is nan; allowed: 0 or more microseconds"),
        (b'"ts": 491000.0', b'"ts": "491000.0"', "ts is '491000.0'; allowed: a number of microseconds"),
        (b'"stream": 20', b'"stream": ', "an empty value after 'stream', which is read"),
        (b'"cat": "kernel"', b'"cat": ', "an empty value after 'cat', which is read"),
        (b'"name": "Tesla T4"', b'"rank": ', "its header: an empty value after 'rank', which is read"),
    ],
)
def test_damage_where_something_is_read_is_refused(tmp_path: Path, old: bytes, new: bytes, says: str) -> None:
    data = trace()
    assert old in data
    with pytest.raises(FileError) as caught:
        read(tmp_path / "t.json", data.replace(old, new, 1))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"cat": "kernel"', b'"cat" "kernel"', "',' where ':' is needed (line 1, character "),
        (b'"cat": "kernel"', b"cat: 1", "'c' where a key in quotes is needed (line 1, character "),
        (b'"cat": "kernel", ', b'"cat": "kernel" ', "is needed (line 1, character "),
        (b"}}, {", b"}} {", "'{' where ',' or ']' is needed (line 1, character "),
    ],
)
def test_other_damage_is_refused_with_its_place_and_is_not_called_cut_off(
    tmp_path: Path, old: bytes, new: bytes, says: str
) -> None:
    data = trace()
    assert old in data
    with pytest.raises(FileError) as caught:
        read(tmp_path / "t.json", data.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 't.json'}: not a JSON document: ")
    assert says in str(caught.value)
    assert "cut off" not in str(caught.value)


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
    with pytest.raises(FileError, match=r"cut off: the gzip file ends early \(line .*last whole event is event \d+ \("):
        read(tmp_path / "t.json.gz", packed[:-left_out])
    damaged = bytearray(packed)
    damaged[-6] ^= 255
    with pytest.raises(FileError, match="a damaged gzip file"):
        read(tmp_path / "t.json.gz", bytes(damaged))


@pytest.mark.parametrize(
    "sound", ['{"a": [1, "x\\"y", {"b": null}, -2.5e3], "c": "\\\\"} ', '["\\u00e9", true, [], {}] ']
)
def test_sound_text_is_read_as_the_strict_reader_does(sound: str) -> None:
    value, end, mends = mended_value(sound, 0)
    assert (value, end, mends) == (json.loads(sound), len(sound) - 1, [])
    for cut in range(1, len(sound) - 1):
        with pytest.raises(IncompleteError):
            mended_value(sound[:cut], 0)


def test_what_is_mended_keeps_its_text() -> None:
    assert mended_value('{"a": "C:\\new\\dir\\", "b": "say "hi"", "c": , "d": word}', 0)[0] == {
        "a": "C:\\new\\dir\\",
        "b": 'say "hi"',
        "c": None,
        "d": "word",
    }
    with pytest.raises(DamageError):
        mended_value('{"a": 1 "b": 2}', 0)


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
    with pytest.raises(FileError, match=r"rank1\.json: (it is cut off|no ProfilerStep#N|not a JSON document)"):
        read_profiled_run(tmp_path / "run")
    (tmp_path / "run" / "rank0.json").unlink()
    with pytest.raises(FileError, match=r"rank1\.json: (it is cut off|no ProfilerStep#N|not a JSON document)"):
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
