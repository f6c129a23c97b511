"""What a run leaves: its machine, progress, merged rows, last report, schema."""

from __future__ import annotations

import io
import json
import math
import re
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.resources import Resources
from gcnsim.timeline import OpKind, Timeline
from runtime.record import (
    IterationRow,
    Progress,
    Recorder,
    breakdown,
    from_arrays,
    hardware,
    merge,
    peak_memory,
    to_arrays,
    versions,
)
from tests.terminals import Terminal, drawn


def test_the_machine_without_its_name() -> None:
    facts = hardware()
    assert sorted(facts) == ["cores", "cpu", "gpus", "memory_bytes", "quota"]
    assert facts["gpus"] == []
    assert facts["cpu"]
    assert facts["cores"] >= 1
    assert facts["memory_bytes"] > 2**28
    assert socket.gethostname() not in json.dumps(facts)


def test_gpus_are_named_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"Card {index}")
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 77)
    assert hardware(cuda=True)["gpus"] == ["Card 0", "Card 1"]
    assert peak_memory(cuda=True)["device_bytes"] == 77


def test_a_machine_that_does_not_say_its_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("runtime.record.machine._CPU_INFO", tmp_path / "none")
    assert hardware()["cpu"]


def test_what_a_container_may_use_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.record.machine.usable_resources", lambda: Resources(1, 0.5, 2**30))
    facts = hardware()
    assert (facts["cores"], facts["quota"], facts["memory_bytes"]) == (1, 0.5, 2**30)


def test_versions() -> None:
    import torch

    found = versions()
    assert sorted(found) == ["gcnsim", "numpy", "python", "torch"]
    assert (found["numpy"], found["torch"]) == (np.__version__, str(torch.__version__))
    assert found["python"] == sys.version.split()[0]


def test_peak_memory_grows_with_what_is_held() -> None:
    before = peak_memory()
    assert before["device_bytes"] is None
    held = np.ones(before["host_bytes"] or 0, np.uint8)
    after = peak_memory()["host_bytes"]
    assert after is not None
    assert after >= held.nbytes > 2**20


def row(t: int, val: float | None = None, **facts: float) -> IterationRow:
    return IterationRow(
        t, facts.get("seconds", 0.5), 1.25, None, val, 100, facts.get("hit_rate"), facts.get("wait_s", 0.125)
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that `time.monotonic` tells, in a list of one."""
    now = [100.0]
    monkeypatch.setattr("runtime.record.progress.time.monotonic", lambda: now[0])
    return now


def test_the_line_says_where_the_run_is(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    progress = Progress(400, stream=terminal)
    progress.show(row(9, val=0.875, hit_rate=0.3))
    progress.close()
    first, line = drawn(terminal.getvalue())
    assert first == "iteration 0/400"
    assert line.startswith("iteration 10/400, 3:15 left, loss 1.25, accuracy 87.5 %, 0.5 s/iteration, waiti")
    assert (len(line), line[-1]) == (80, "…"), "cut at the edge"
    wide = Terminal()
    monkeypatch.setenv("COLUMNS", "120")
    progress = Progress(400, 9, stream=wide)
    progress.show(row(9, val=0.875, hit_rate=0.3))
    progress.close()
    assert drawn(wide.getvalue())[1].endswith("s/iteration, waiting 25.0 %, hits 30.0 %")


def test_the_accuracy_stays_until_the_next_evaluation_and_absent_facts_are_left_out(clock: list[float]) -> None:
    terminal = Terminal()
    progress = Progress(100_000, stream=terminal)
    progress.show(IterationRow(0, 0.5, 2.0, None, None, 0, None, None))
    for t in (1, 2):
        clock[0] += 1
        progress.show(row(t, val=0.5 if t == 1 else None))
    progress.close()
    _, one, two, three = drawn(terminal.getvalue())
    assert one == "iteration 1/100000, 13:53:20 left, loss 2, 0.5 s/iteration"
    assert "accuracy 50.0 %" in two
    assert "accuracy 50.0 %" in three


def test_the_line_is_redrawn_at_most_ten_times_a_second_but_for_the_last(clock: list[float]) -> None:
    terminal = Terminal()
    progress = Progress(40, stream=terminal)
    for t in range(40):
        progress.show(row(t))
        clock[0] += 0.03
    progress.close()
    lines = [line.split(",")[0] for line in drawn(terminal.getvalue())]
    assert lines == [f"iteration {done}/40" for done in (0, 1, 5, 9, 13, 17, 21, 25, 29, 33, 37, 40)]


def test_silent_when_quiet_or_not_a_terminal(clock: list[float]) -> None:
    for stream, quiet in ((Terminal(), True), (io.StringIO(), False)):
        progress = Progress(2, quiet=quiet, stream=stream)
        progress.show(row(0))
        progress.close()
        assert stream.getvalue() == ""


def test_json_log_is_an_object_per_iteration_even_when_quiet() -> None:
    for stream in (io.StringIO(), Terminal()):
        progress = Progress(2, quiet=True, json_log=True, stream=stream)
        progress.show(row(0, val=0.5))
        progress.show(IterationRow(1, 0.5, math.nan, None, None, 7, None, None))
        progress.close()
        first, second = map(json.loads, stream.getvalue().splitlines())
        assert first == {
            "iteration": 0,
            "seconds": 0.5,
            "loss": 1.25,
            "train_accuracy": None,
            "val_accuracy": 0.5,
            "bytes_sent": 100,
            "hit_rate": None,
            "wait_s": 0.125,
        }
        assert (second["iteration"], second["loss"]) == (1, None)


def test_a_reader_that_goes_away_does_not_end_the_run() -> None:
    class Broken(Terminal):
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            raise BrokenPipeError

    for json_log in (False, True):
        stream = Broken()
        progress = Progress(3, json_log=json_log, stream=stream)
        for t in range(3):
            progress.show(row(t))
        progress.close()
        assert stream.writes == 1


def of(rank: int, *spans: tuple[OpKind, str, int, int]) -> Timeline:
    """A worker's timeline of (kind, stream, start, end in ns)."""
    recorder = Recorder(rank)
    for kind, stream, start, end in spans:
        recorder.add(kind, stream, 0, start, end, peer=1 - rank, nbytes=float(start))
    return recorder.timeline(0)


FIRST = of(0, (OpKind.AGGREGATE, "compute", 10, 30), (OpKind.WIRE, "f.tx1", 20, 25), (OpKind.STEP, "compute", 40, 50))
SECOND = of(1, (OpKind.WIRE, "f.tx0", 5, 25), (OpKind.AGGREGATE, "compute", 10, 20), (OpKind.PACK, "f.pack", 10, 11))


def test_spans_of_all_workers_in_one_order_on_shared_streams() -> None:
    merged = merge([FIRST, SECOND])
    assert merged.streams == ("f.tx0", "compute", "f.pack", "f.tx1")
    assert [(int(span.start_s * 1e9 + 0.5), span.worker, span.stream, span.kind) for span in merged] == [
        (5, 1, "f.tx0", OpKind.WIRE),
        (10, 0, "compute", OpKind.AGGREGATE),
        (10, 1, "compute", OpKind.AGGREGATE),
        (10, 1, "f.pack", OpKind.PACK),
        (20, 0, "f.tx1", OpKind.WIRE),
        (40, 0, "compute", OpKind.STEP),
    ]
    assert sorted(merged) == sorted([*FIRST, *SECOND])


def test_the_order_of_the_workers_does_not_matter() -> None:
    one, other = merge([FIRST, SECOND]), merge([SECOND, FIRST])
    assert (list(one), one.streams) == (list(other), other.streams)


def test_nothing_and_one_timeline_merge_too() -> None:
    assert len(merge([])) == 0
    assert merge([]).kind.dtype == np.uint8
    alone = merge([FIRST, Recorder(1).timeline(0)])
    assert (list(alone), alone.streams) == (list(FIRST), FIRST.streams)


def test_arrays_there_and_back() -> None:
    for before in (FIRST, merge([FIRST, SECOND]), Recorder(0).timeline(0)):
        arrays = {name: array.copy() for name, array in to_arrays(before).items()}
        after = from_arrays(arrays)
        assert (list(after), after.streams) == (list(before), before.streams)
        assert not after.kind.flags.writeable


def test_arrays_that_are_no_timeline_are_refused() -> None:
    arrays = to_arrays(FIRST)
    with pytest.raises(ValueError, match="lack 'peer'"):
        from_arrays({name: array for name, array in arrays.items() if name != "peer"})
    with pytest.raises(ValueError, match=r"end_ps: int64\[2\], wanted int64\[3\]"):
        from_arrays(arrays | {"end_ps": arrays["end_ps"][:2]})
    with pytest.raises(ValueError, match=r"layer: int64\[3\], wanted int32\[3\]"):
        from_arrays(arrays | {"layer": arrays["layer"].astype(np.int64)})


FINAL: dict[str, Any] = {
    "method": "psc-gcn",
    "workers": 2,
    "iterations": 1200,
    "test_accuracy": 0.963,
    "val_accuracy": 0.9711,
    "final_loss": 0.123456,
    "iteration_s": 0.02,
    "compute_s": 0.015,
    "wait_s": 0.0004,
    "transfer_s": 0.012,
    "sampling_s": 0.0,
    "bytes_sent": 1200 * 2**20,
    "cache_hit_rate": 0.3,
    "seconds": 25.2,
}


def test_the_table_is_aligned_with_units() -> None:
    assert breakdown(FINAL).splitlines() == [
        "psc-gcn: 1,200 iterations on 2 workers in 25.2 s",
        "",
        "  test accuracy        96.3 %",
        "  validation accuracy  97.1 %",
        "  final loss           0.1235",
        "  bytes sent           1.17 GiB, 1.00 MiB an iteration",
        "  cache hit rate       30.0 %",
        "",
        "Per iteration of the slowest worker:",
        "  iteration (mean)  20.0 ms  100.0 %",
        "  compute           15.0 ms   75.0 %",
        "  exposed waiting    400 us    2.0 %",
        "  other             4.60 ms   23.0 %",
        "",
        "During these, partly at the same time:",
        "  transfers  12.0 ms",
        "  sampling       0 s",
    ]


@pytest.mark.parametrize(
    ("compute", "wait", "shares"),
    [(0.015, 0.004, [75.0, 20.0, 5.0]), (0.015, 0.012, [75.0, 25.0, 0.0]), (0.03, 0.01, [100.0, 0.0, 0.0])],
)
def test_the_shares_add_up_to_the_iteration(compute: float, wait: float, shares: list[float]) -> None:
    text = breakdown(FINAL | {"compute_s": compute, "wait_s": wait, "transfer_s": 0.05})
    assert [float(found) for found in re.findall(r"([0-9.]+) %$", text, re.MULTILINE)[-4:]] == [100.0, *shares]


def test_what_is_not_known_is_a_dash_and_extras_have_their_lines() -> None:
    nothing = dict.fromkeys(FINAL) | {"method": "full-graph", "workers": 1, "iterations": 1, "seconds": 0.5}
    text = breakdown(nothing | {"reduce_s": 0.25, "optimizer_s": None, "evaluation_s": 1.0})
    assert "1 iterations on 1 worker in 500 ms" in text
    lines = {name.strip(): rest.strip() for name, _, rest in (line[2:].partition("  ") for line in text.splitlines())}
    dashes = (
        "test accuracy",
        "final loss",
        "bytes sent",
        "cache hit rate",
        "iteration (mean)",
        "compute",
        "optimizer",
    )
    assert [lines[title] for title in dashes] == ["-"] * len(dashes)
    assert (lines["all-reduce"], lines["evaluation"]) == ("250 ms", "1.00 s")
