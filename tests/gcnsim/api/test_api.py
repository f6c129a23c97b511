"""The Python API: a what-if in three lines, the same answers as the command line."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import gcnsim
from gcnsim.cli import main
from gcnsim.core.errors import GraphError, ScenarioError


def test_what_if_in_three_lines_equals_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    answer = gcnsim.what_if(bandwidth="10Gbps", gpus=2, method="psc-gcn")
    assert main(["what-if", "--bandwidth", "10Gbps", "--gpus", "2", "--method", "psc-gcn", "--json"]) == 0
    assert dict(answer.payload) == json.loads(capsys.readouterr().out)
    assert answer.recommendation["iteration_s"] > 0
    assert "Recommendation" in str(answer)


def test_simulate_takes_a_mapping() -> None:
    mapping = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 2}, "method": {"name": "pipegcn"}}
    simulation = gcnsim.simulate(mapping)
    assert simulation.payload["result"]["method"] == "pipegcn"
    assert simulation.result.metrics.iteration_s == simulation.payload["result"]["iteration_s"]
    assert "pipegcn" in str(simulation)


def test_an_empty_list_and_a_bad_value_are_refused() -> None:
    from gcnsim.core.errors import GcnsimError

    with pytest.raises(GcnsimError, match="empty list"):
        gcnsim.what_if(gpus=[])
    with pytest.raises(GcnsimError, match="has no unit"):
        gcnsim.what_if(bandwidth="10")


def test_long_work_tells_how_many_runs_are_done() -> None:
    lines: list[str] = []
    gcnsim.what_if(dataset="reddit", gpus=2, iterations=1, processes=1, progress=lines.append)
    counted = [line for line in lines if re.search(r": \d+ of \d+ runs\b", line)]
    assert re.match("simulating 4 settings and [1-9][0-9]* candidates: 1 of ", counted[0])
    assert any(line.startswith("trying the next step of each knob: ") for line in counted)
    done, total = counted[-1].split(": ")[1].split(" runs")[0].split(" of ")
    assert done == total


@pytest.fixture(scope="module")
def answer() -> gcnsim.Answer:
    return gcnsim.what_if(bandwidth="10Gbps", gpus=2, method="pipegcn", iterations=2)


def test_repr_is_the_short_table_and_str_all_of_it(answer: gcnsim.Answer) -> None:
    short = repr(answer).splitlines()
    assert short[0].startswith("reddit, 2 x T4 in 1 server, 10 Gbit/s")
    whole = " ".join(line.strip() for line in str(answer).splitlines())
    assert short[-1].startswith("Use ")
    assert short[-1] in whole, "the table's verdict is wrapped"
    assert len(short) < 10 < len(str(answer).splitlines())
    assert "<table>" in answer._repr_html_()


def test_rows_as_tables_of_other_libraries(answer: gcnsim.Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    table = answer.to_arrow()
    assert table.column_names[:5] == ["dataset", "device", "gpus", "bandwidth", "method"]
    assert table.column("iteration_s")[0].as_py() == answer.results[0]["iteration_s"]
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))
    assert answer.to_frame() == table.to_pydict()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ScenarioError, match="to_frame: needs pandas"):
        answer.to_frame()


def test_an_answer_is_written_to_files(answer: gcnsim.Answer, tmp_path: Path) -> None:
    answer.to_csv(tmp_path / "rows.csv")
    answer.to_timeline(tmp_path / "timeline.json")
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8").startswith("dataset,device,gpus,bandwidth,")
    assert json.loads((tmp_path / "timeline.json").read_text(encoding="utf-8"))["traceEvents"]


def test_the_curve_holds_the_recommended_setting(answer: gcnsim.Answer) -> None:
    from gcnsim.api import bandwidth_curve

    curve = bandwidth_curve(answer)
    assert [series.recommended for series in curve.series][:1] == [True]
    assert sum(series.recommended for series in curve.series) == 1
    assert len(curve.series) <= 2


def test_a_sparse_matrix_is_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    class AskedError(Exception):
        """The question was put together."""

    def requested(
        base: object, grid: object, progress: object, processes: int, graph: gcnsim.Graph, *_: object
    ) -> None:
        assert (graph.name, graph.nodes, graph.entries) == ("scipy", 3, 4)
        raise AskedError

    monkeypatch.setattr("gcnsim.api.question._what_if", requested)
    with pytest.raises(AskedError):
        gcnsim.what_if(graph=sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 0, 0]])), gpus=2)
    with pytest.raises(GraphError, match="'int' is not a graph"):
        gcnsim.what_if(graph=3)


def test_a_simulation_is_shown_in_a_few_lines() -> None:
    simulation = gcnsim.simulate({"schema": "gcnsim.scenario/1", "cluster": {"gpus": 2}, "run": {"iterations": 2}})
    assert len(repr(simulation).splitlines()) == 3
    assert repr(simulation).splitlines()[1] in str(simulation)
