"""Faults as they are written: in a scenario, behind --inject, and what is refused by its place."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.scenario import read_injected
from gcnsim.scenario.faults import (
    FAULTS,
    MOST_FAULTS,
    Background,
    Jitter,
    LossyLink,
    Pause,
    SlowGpu,
    SlowLink,
    check_faults,
    fault_lines,
    fault_words,
    read_faults,
    write_fault,
)

WRITTEN = [
    ("slow-gpu:worker=2,factor=1.5,first=3,last=7", SlowGpu(2, 1.5, 3, 7), "worker 2, factor 1.5, first 3, last 7"),
    ("slow-gpu", SlowGpu(0, 2.0, 0, None), "worker 0, factor 2.0, first 0"),
    ("slow-link:link=nic1.tx,factor=4", SlowLink("nic1.tx", 4.0), "link nic1.tx, factor 4.0"),
    ("lossy-link:lost=5%", LossyLink("nic0", 0.05), "link nic0, lost 5%"),
    ("background:rate=2Gbps", Background("nic0", 2.5e8), "link nic0, rate 2Gbps"),
    ("pause: worker = 1 , seconds=250ms,iteration=4", Pause(1, 0.25, 4), "worker 1, seconds 250ms, iteration 4"),
    ("jitter:on=sampling,cv=0.3", Jitter("sampling", 0.3), "on sampling, cv 0.3"),
]


@pytest.mark.parametrize(("text", "fault", "words"), WRITTEN, ids=[text for text, _, _ in WRITTEN])
def test_every_kind_is_read_written_and_told(text: str, fault: Any, words: str) -> None:
    (found,) = read_injected([text])
    assert found == fault
    assert read_faults([write_fault(fault)]) == (fault,)
    assert fault_words(fault) == f"{text.partition(':')[0]} {words}"
    assert found.path == f"--inject {text.partition(':')[0]}"
    assert fault.path == text.partition(":")[0], "made by hand, it is called by its kind"


def test_defaults_are_lines_that_are_read_back() -> None:
    lines = fault_lines()
    assert lines == [
        "slow-gpu:worker=0,factor=2,first=0,last=null",
        "slow-link:link=nic0,factor=2",
        "lossy-link:link=nic0,lost=1%",
        "background:link=nic0,rate=1Gbps",
        "pause:worker=0,seconds=1s,iteration=0",
        "jitter:on=compute,cv=0.1",
    ]
    assert read_injected(lines) == tuple(kind() for kind in FAULTS.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("paus", "--inject paus: unknown fault 'paus'; did you mean 'pause'"),
        ("pause:worker", "--inject pause:worker: write KIND:name=value"),
        ("pause:worker=1,worker=2", "worker is given twice; once is allowed"),
        ("pause:kind=jitter", "kind is given twice; the kind stands before the colon"),
        ("pause:wroker=1", "did you mean 'worker'"),
        ("slow-gpu:factor=1", "--inject slow-gpu.factor: 1 is not allowed; a number above 1 and at most 1000"),
        ("slow-gpu:worker=128", "at least 0 and at most 127"),
        ("lossy-link:lost=0%", "above 0% and at most 99%"),
        ("background:rate=100001Gbps", "at most 100000Gbps"),
        ("pause:seconds=3601s", "above 0s and at most"),
        ("jitter:on=sleeping", "compute, sampling"),
    ],
)
def test_what_no_fault_can_be(text: str, message: str) -> None:
    with pytest.raises(GcnsimError) as caught:
        check_faults(read_injected([text]), 128, 1_000_000)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("pause", "faults: 'pause' is not a list; write - kind: slow-gpu"),
        ([{"kind": "pause"}, {"worker": 1}], "faults[1]: "),
        ([3], "faults[0]: 3 is not a fault; give its kind: slow-gpu, slow-link"),
    ],
)
def test_a_scenarios_list_is_named_by_its_place(raw: object, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_faults(raw)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pause:worker=4", "--inject pause.worker: 4: no such worker; allowed: 0 to 3 (cluster.gpus is 4)"),
        ("pause:iteration=10", "--inject pause.iteration: 10 is outside the run; allowed: 0 to 9"),
        ("slow-gpu:first=10", "--inject slow-gpu.first: 10 is outside the run"),
        ("slow-gpu:last=10", "--inject slow-gpu.last: 10 is outside the run"),
        ("slow-gpu:first=5,last=4", "--inject slow-gpu.last: 4 is before first, 5"),
    ],
)
def test_what_is_not_in_this_run(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        check_faults(read_injected([text]), 4, 10)
    assert message in str(caught.value)


def test_the_last_worker_and_the_last_iteration_are_in_it() -> None:
    check_faults(read_injected(["pause:worker=3,iteration=9", "slow-gpu:first=9,last=9"]), 4, 10)


def test_there_are_at_most_64() -> None:
    assert MOST_FAULTS == 64
    check_faults([Pause()] * 64, 4, 10)
    with pytest.raises(ScenarioError, match="faults: 65 are given; allowed: at most 64"):
        check_faults([Pause()] * 65, 4, 10)
