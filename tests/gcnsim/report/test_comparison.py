"""A comparison as text: every section where the payload has it, and what each number is."""

from __future__ import annotations

from typing import Any

from gcnsim.report.comparison import render_comparison

WORKER = {"handling_s": 0.001, "network_s": 0.02, "copies_s": 0.003, "reduce_s": 0.0004, "waiting_s": 0.05}


def part(name: str, within: str | None, a: float, b: float) -> dict[str, Any]:
    return {"part": name, "within": within, "a": a, "b": b, "difference": b - a, "share": (b - a) / -0.5}


def payload(**changes: Any) -> dict[str, Any]:
    """One second against half of it; the second worker is known of A alone."""
    worker = WORKER | {"compute_s": 0.4, "exposed_sampling_s": 0.06}
    sides = {
        key: {"label": f"{key}.yaml", "setting": f"setting of {key}", "slowest": rank}
        for key, rank in (("a", 1), ("b", 0))
    }
    return {
        **sides,
        "per": "iteration",
        "differs": [{"field": "method.tau", "a": "0", "b": "1"}, {"field": "cluster.gpus", "a": "2", "b": "1"}],
        "iteration_s": {"a": 1.0, "b": 0.5, "difference": -0.5},
        "parts": [part("exposed_comm_s", None, 0.6, 0.1), part("network_s", "exposed_comm_s", 0.6, 0.6 + 1e-15)],
        "beneath": [{"name": "sampling_s", "a": 0.0, "b": 0.2, "difference": 0.2}],
        "links": [
            {
                "link": "nic0.tx",
                "a": {"bytes": 3 * 2**20, "busy": 0.25, "seconds": 0.25},
                "b": {"bytes": None, "busy": None, "seconds": None},
            }
        ],
        "workers": {"a": [worker, worker], "b": [worker]},
        "says": ["B takes half as long."],
        "notes": ["one side is measured"],
    } | changes


WHOLE = """\
A  a.yaml: setting of a
B  b.yaml: setting of b
differ in: method.tau 0 | 1; cluster.gpus 2 | 1

B takes half as long.

Seconds per iteration, slowest worker (1 and 0)
                                       A       B  difference    share
  iteration                       1.00 s  500 ms     -500 ms  100.0 %
    exposed communication         600 ms  100 ms     -500 ms  100.0 %
      row messages in flight      600 ms  600 ms        +0 s    0.0 %
  at the same time: all sampling     0 s  200 ms     +200 ms

Links per iteration: bytes, share of the time and seconds that they need
                  A    busy  seconds  B  busy  seconds
  nic0.tx  3.00 MiB  25.0 %   250 ms  -     -        -

Workers, seconds per iteration: computing, exposed communication, waits in it, sampling
            A compute   A comm  A waits  A samples  B compute   B comm  B waits  B samples
  worker 0     400 ms  74.4 ms  50.0 ms    60.0 ms     400 ms  74.4 ms  50.0 ms    60.0 ms
  worker 1     400 ms  74.4 ms  50.0 ms    60.0 ms          -        -        -          -

note: one side is measured
"""


def test_the_whole_text() -> None:
    text = render_comparison(payload())
    assert text == WHOLE


def test_sections_without_content_are_left_out() -> None:
    bare = payload(differs=[], links=[], workers={"a": [WORKER], "b": []}, notes=[], says=[])
    text = render_comparison(bare)
    assert not any(word in text for word in ("differ in", "Links per", "Workers, seconds", "note:"))
    assert text.splitlines()[2:4] == ["", "Seconds per iteration, slowest worker (1 and 0)"]
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_slowest_workers_are_named_where_both_are_known() -> None:
    unknown = payload(a={"label": "a", "setting": "s", "slowest": None}, per="epoch")
    assert "Seconds per epoch, slowest worker\n" in render_comparison(unknown)
