"""Addresses as questions: there and back, and what no slider could have set."""

from __future__ import annotations

import shlex

import pytest

from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.dashboard.state import PageQuestion, moved, read_address


def test_the_first_question_has_no_query() -> None:
    assert PageQuestion().address() == ""
    assert read_address("") == read_address(None) == PageQuestion()


@pytest.mark.parametrize(
    "question",
    [
        PageQuestion(gpus=24, bandwidth=2.5, beside=25.0, tau=0, epsilon=1.0, cache=30.0, figure="gpus"),
        PageQuestion(dataset="yelp", device="a100-80", methods=("psc-gcn", "pipegcn")),
        PageQuestion(graph="folder with space/my graph.profile"),
        PageQuestion(link="infiniband-ndr", pcie="pcie5-x16", nvlink="none"),
        PageQuestion(gpus_per_server="4", host="g4dn.12xlarge", model="gat", layers="3", rate="10%"),
    ],
)
def test_an_address_restores_its_question(question: PageQuestion) -> None:
    assert read_address(question.address()) == question


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?gpus=-3", "gpus: '-3' is not allowed; a whole number from 1 to 64"),
        ("?bandwidth=nan", "bandwidth: 'nan'"),
        ("?epsilon=0", "a number above 0 to 1"),
        ("?cache=101", "cache: '101'"),
        ("?gpu=6", "address: unknown 'gpu'; did you mean 'gpus'?"),
        ("?tau=1&tau=2", "tau is given twice"),
        ("?device=../t4.yaml", "device: unknown"),
        ("?dataset=<script>", "dataset: unknown"),
        ("?gpus_per_server=0", "gpus_per_server: 0 is not allowed"),
        ("?gpus_per_server=1,2", "gpus_per_server: '1,2' is not allowed; one value"),
        ("?host=/etc/host.yaml", "host: unknown"),
        ("?model=gan", "model: unknown"),
        ("?link=pcie4-x16", "link: unknown 'pcie4-x16'; known: efa"),
        ("?pcie=16GB/s", "pcie: unknown"),
        ("?nvlink=300", "nvlink: '300' has no unit"),
        ("?rate=2", "rate: "),
        ("?layers=17", "layers: 17 is not allowed; at most 16 here, more on the command line"),
        ("?graph=" + "x" * 301, "at most 300 printable characters"),
        ("?graph=a%00b", "printable"),
    ],
)
def test_what_no_slider_could_have_set_is_refused(query: str, message: str) -> None:
    with pytest.raises(GcnsimError) as error:
        read_address(query)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_moving_checks_as_an_address_does() -> None:
    assert moved(PageQuestion(), gpus=8).gpus == 8
    assert moved(PageQuestion(beside=25.0), beside="").beside is None
    with pytest.raises(ScenarioError):
        moved(PageQuestion(), cache=-1.0)


def test_the_command_line_asks_the_same() -> None:
    assert PageQuestion().command() == "gcnsim what-if --gpus 6 --bandwidth 15Gbps --tau 2 --epsilon 0.1 --cache 0%"
    content = PageQuestion(dataset="yelp", beside=25.0, methods=("full-graph",), graph="").command()
    assert shlex.split(content)[2:] == [
        *("--gpus", "6", "--bandwidth", "15Gbps,25Gbps", "--dataset", "yelp", "--method", "full-graph")
    ]
    linked = PageQuestion(methods=("full-graph",), link="efa", pcie="pcie5-x16", nvlink="300GB/s").command()
    assert linked.endswith(" --method full-graph --link efa --pcie pcie5-x16 --nvlink 300GB/s")
    assert "'$(rm x).npz'" in PageQuestion(graph="$(rm x).npz").command()


def test_further_fields_are_options_of_the_methods_that_have_them() -> None:
    question = PageQuestion(layers="3", rate="0.3", calibration="record.json")
    assert question.row_options(None, "bns-gcn", calibration="x.json")["rate"] == "0.3"
    found = question.row_options(None, "pipegcn", calibration="x.json")
    assert "rate" not in found
    assert (found["layers"], found["calibration"]) == (3, "x.json")
    assert "--calibration record.json --layers 3 --tau" in question.command()


def test_a_row_is_asked_with_the_knobs_that_its_method_has() -> None:
    question = PageQuestion(tau=3, cache=10.0)
    assert question.row_options(None, "full-graph").keys() == {"gpus", "bandwidth", "device", "method", "dataset"}
    found = question.row_options("x.npz", "psc-gcn", cache=50.0)
    assert (found["tau"], found["cache"], found["graph"]) == (3, "50%", "x.npz")


def test_a_pinned_question_is_part_of_the_address_and_has_none_itself() -> None:
    first = PageQuestion(gpus=8)
    second = moved(PageQuestion(), pin=first.address())
    assert second.pinned == first
    assert read_address(second.address()) == second
    assert moved(PageQuestion(), pin="?").pinned == PageQuestion()
    assert PageQuestion().pinned is None
    assert second.command() == PageQuestion().command(), "the command line asks one question"
    with pytest.raises(ScenarioError, match="pin: a pinned question has itself one"):
        moved(PageQuestion(), pin=second.address())
    with pytest.raises(ScenarioError, match="address: unknown 'nothing'"):
        read_address("?pin=%3Fnothing%3D1")
