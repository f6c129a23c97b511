"""What the pages ask and show, without a browser."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import FileError, GcnsimError, ScenarioError
from gcnsim.dashboard import files as module
from gcnsim.dashboard.answers import Answers
from gcnsim.dashboard.app import found
from gcnsim.dashboard.context import of_question
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.jobs import Job, Jobs
from gcnsim.dashboard.pages import forms, what_if
from gcnsim.dashboard.pages.form_callbacks import added
from gcnsim.dashboard.state import PageQuestion, read_address, stops
from gcnsim.dashboard.work import FIGURES
from tests.dashboards import command_line, json_of
from tests.measured_files import Setting, measured_file, write_graph

SCENARIOS = Path(__file__).resolve().parents[3] / "scenarios"


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    made = Answers(1)
    yield made
    made.end()


def test_rows_are_those_of_the_command_line(answers: Answers, tmp_path: Path) -> None:
    question = PageQuestion(gpus=4, bandwidth=10.0, tau=1, epsilon=0.2, cache=10.0)
    rows = {row.method: row for row in what_if.rows_of(question, answers, Files(tmp_path, tmp_path))}
    content = command_line(*question.command().split()[2:])
    assert {result["method"] for result in content["results"]} == rows.keys()
    for result in content["results"]:
        row = rows[result["method"]]
        assert row.iteration_s == result["iteration_s"]
        assert row.compute_s == result["compute_s"]
        assert row.speedup_vs_full_graph == result["speedup_vs_full_graph"]
        assert row.memory_bytes == result["memory_bytes"]


def test_a_fault_is_that_of_the_command_line(answers: Answers, tmp_path: Path) -> None:
    question = read_address("?gpus=2&methods=pipegcn&inject=slow-gpu:worker%3D0,factor%3D3")
    (row,) = what_if.rows_of(question, answers, Files(tmp_path, tmp_path))
    (told,) = command_line(*shlex.split(question.command())[2:])["results"]
    (whole,) = what_if.rows_of(PageQuestion(gpus=2, methods=("pipegcn",)), answers, Files(tmp_path, tmp_path))
    assert row.iteration_s == told["iteration_s"] > whole.iteration_s
    assert "in 1 server, slow-gpu:worker=0,factor=3: computed" in str(of_question([row], None, question))
    linked = PageQuestion(gpus=2, link="efa", pcie="pcie5-x16", nvlink="100GB/s")
    assert "in 1 server, efa, pcie5-x16, NVLink 100GB/s: computed" in str(of_question([row], None, linked))
    pinned = what_if.against(PageQuestion(pin=linked.address()), [row], [row], Files(tmp_path, tmp_path))
    assert "at 15Gbps, efa, pcie5-x16, NVLink 100GB/s, pipegcn" in str(pinned)
    with pytest.raises(ScenarioError, match=r"^--inject slow: unknown fault"):
        read_address("?inject=slow:worker%3D0")


def test_measured_compute_stands_for_data_and_device(answers: Answers, tmp_path: Path) -> None:
    graph = write_graph(tmp_path)
    settings: list[Setting] = [("pipegcn", {}), ("psc-gcn", {"epsilon": 0.5})]
    core = {"kind": "cpu", "name": "a core", "threads": 1}
    measured_file(tmp_path, graph, 2, settings, graph={"file": str(graph)}, device=core)
    files = Files(tmp_path, tmp_path)
    requested = PageQuestion(measured="measured.parquet", gpus=2, epsilon=0.5, bandwidth=1.0)
    question, measured = what_if.of_measured(requested, files)
    assert question.methods == ("pipegcn", "psc-gcn")
    rows = what_if.rows_of(question, answers, files)
    words = question.command().replace("measured.parquet", str(tmp_path / "measured.parquet")).split()
    known = {row["method"]: row["iteration_s"] for row in command_line(*words[2:])["results"]}
    assert {row.method: row.iteration_s for row in rows} == known
    badge, text = of_question(rows, measured)
    assert badge.children == "MEASURED on a core"
    assert text.endswith("2 x a core in 1 server: compute measured, links assumed")
    assert question.command() == (
        "gcnsim what-if --gpus 2 --bandwidth 1Gbps --measured-compute measured.parquet --method pipegcn,psc-gcn"
        " --tau 2 --epsilon 0.5 --cache 0%"
    )
    with pytest.raises(GcnsimError, match=r"cluster\.gpus: 6 is not what .*measured\.parquet has measured: 2 parts"):
        what_if.rows_of(what_if.of_measured(PageQuestion(measured="measured.parquet"), files)[0], answers, files)


def test_what_a_slider_says_is_its_stop() -> None:
    kept = {name: stops(name, getattr(PageQuestion(), name)) for name in what_if.SLIDERS}
    values = (
        dict.fromkeys(what_if.SLIDERS, "0")
        | {"bandwidth": 4}
        | dict.fromkeys(("graph", "measured", "methods", "beside"))
    )
    fields = values | {"dataset": "reddit", "device": "t4", "figure": "breakdown"}
    question = what_if.question_of(fields, kept, PageQuestion())
    assert (question.bandwidth, question.gpus, question.tau, question.beside) == (15.0, 2, 0, None)
    with pytest.raises(ScenarioError):
        what_if.question_of(fields | {"beside": "-3"}, kept, PageQuestion())


def test_the_sentence_answers_whether_25_gbps_is_worth_it(answers: Answers, tmp_path: Path) -> None:
    question = PageQuestion(beside=25.0)
    rows = what_if.rows_of(question, answers, Files(tmp_path, tmp_path))
    best = {round(row.bandwidth_bytes_per_s * 8e-9): row for row in rows if row.recommended}
    assert best.keys() == {15, 25}
    assert rows[:2] == sorted(best.values(), key=lambda row: row.epoch_s), "recommended rows are the first"
    chosen = [best[number].iteration_s for number in (15, 25)]
    text = what_if.headline(question, rows)
    assert text.startswith(f"Use {best[15].method}")
    assert f" at 15 Gbps: {1000 * chosen[0]:.0f} ms per iteration (" in text
    assert str(what_if.tables(rows, [])).count("* ") == 2
    assert of_question(rows)[1].startswith("reddit, 6 x T4 in 3 servers")
    assert text.endswith(f"{chosen[0] / chosen[1]:.3g} times as fast.")


def test_a_wrong_question_is_one_line_and_not_kept(answers: Answers) -> None:
    for _ in range(2):
        with pytest.raises(ScenarioError, match=r"^cluster\.device: "):
            answers.rows([{"device": "rxt-4090", "gpus": 6}])


def test_an_altered_profile_is_refused_in_one_line(answers: Answers, tmp_path: Path) -> None:
    profile = bytearray((Path(what_if.__file__).parents[2] / "data/profiles/yelp-2.profile").read_bytes())
    profile[len(profile) // 2] ^= 0xFF
    files = Files(tmp_path, tmp_path)
    key = files.take("yelp-2.profile", bytes(profile))
    with pytest.raises(ScenarioError) as error:
        what_if.rows_of(PageQuestion(graph=key, gpus=2), answers, files)
    line = files.shown(str(error.value))
    assert key in line
    assert str(tmp_path) not in line
    assert "\n" not in line


def test_a_worker_that_ended_is_begun_again() -> None:
    made = Answers(1)
    try:
        made._workers[0].end()
        assert made.rows([{"gpus": 2, "method": "pipegcn"}])[0].gpus == 2
    finally:
        made.end()


def test_a_job_writes_its_files_and_can_be_cancelled(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    done = jobs.start("what-if", PageQuestion(gpus=2, methods=("pipegcn",)).options(None))
    done._process.wait(120)
    long = jobs.start("recommend", {"dataset": "reddit", "target_iteration": "0.5s"})
    long.cancel()
    for item in (done, long):
        item._thread.join(30)
    assert (done.done, done.error) == (True, None)
    names = {path.name for path in done.folder.iterdir()}
    assert {"answer.json", "answer.csv", "answer.html", "scenario.yaml", "timeline.json"} <= names
    assert "pipegcn" in str(found(done, "light"))
    assert (long.under_way, long.error) == (False, "cancelled")
    assert jobs.get(done.key) is done
    assert jobs.get("../" + done.key) is None


@pytest.mark.parametrize("form", forms.FORMS, ids=lambda form: form.title)
def test_a_form_reads_its_address(form: forms.Form, tmp_path: Path) -> None:
    assert forms.of_path(form.path) is form
    values = forms.read(form, "")
    assert list(values) == [field.name for field in form.fields]
    assert form.command(values)[0] == "gcnsim"
    with pytest.raises(ScenarioError, match="address: unknown"):
        forms.read(form, "?nothing=1")
    first = form.fields[0].name
    assert forms.read(form, f"?{first}=a%20b")[first] == "a b"


def test_forms_open_files_below_the_folder_alone(tmp_path: Path) -> None:
    compare = forms.of_path("/compare")
    assert compare is not None
    with pytest.raises(FileError, match="outside"):
        compare.options({"a": "/etc/passwd", "b": "x"}, Files(tmp_path, tmp_path))
    with pytest.raises(ScenarioError, match="a: is empty"):
        compare.options({"a": "", "b": ""}, Files(tmp_path, tmp_path))


def done(tmp_path: Path, kind: str, options: dict[str, Any]) -> tuple[Job, list[dict[str, Any]]]:
    """A job of a page, ended, and its figures."""
    job = Jobs(tmp_path).start(kind, options)
    job._thread.join(120)
    assert job.error is None
    return job, json.loads((job.folder / FIGURES).read_text(encoding="utf-8"))


def test_an_own_graph_says_what_was_read_of_it(answers: Answers, tmp_path: Path) -> None:
    files = Files(tmp_path, tmp_path)
    key = files.take("../my ring.txt", write_graph(tmp_path).read_bytes())
    question = PageQuestion(graph=key, gpus=2)
    rows = what_if.rows_of(question, answers, files)
    read = what_if.read_of(question, answers, files)
    # A ring of 40 nodes with two chords each: 120 edges, stored in both directions.
    assert read.startswith("Read from my ring.txt: 40 nodes, 240 stored entries")
    assert "at 2 parts; gcn, 4 layers, widths 128-256-256-256-16" in read
    assert read.endswith("not in the file, so assumed: features, classes.")
    assert read in str(of_question(rows, None, question, read))
    assert what_if.read_of(PageQuestion(), answers, files) == ""


def test_a_pinned_question_is_compared_with(answers: Answers, tmp_path: Path) -> None:
    files, first = Files(tmp_path, tmp_path), PageQuestion(gpus=2)
    question = PageQuestion(gpus=4, pin=first.address())
    rows, pinned = (what_if.rows_of(each, answers, files) for each in (question, first))
    shown = str(what_if.against(question, rows, pinned, files))
    now, then = (each[0].iteration_s for each in (rows, pinned))
    assert f"This is {then / now:.3g} times as fast." in shown or f"This is {now / then:.3g} times as long." in shown
    assert "reddit, 2 x t4 at 15Gbps" in shown
    assert f"href='/{first.address()}'" in shown
    assert len(what_if.tables(rows, pinned)) == 2
    assert what_if.against(first, pinned, [], files) == []


def test_a_pinned_upload_has_its_name_and_errors_of_a_name_it(answers: Answers, tmp_path: Path) -> None:
    files = Files(tmp_path, tmp_path)
    first = PageQuestion(graph=files.take("my ring.txt", write_graph(tmp_path).read_bytes()), gpus=2)
    question = PageQuestion(gpus=2, pin=first.address())
    rows, pinned = what_if.rows_of(question, answers, files), what_if.pinned_rows(question, answers, files)
    assert "my ring.txt, 2 x t4 at " in str(what_if.against(question, rows, pinned, files))
    for gone, words in ((PageQuestion(device="rxt-4090"), "A: device: "), (PageQuestion(graph="no.txt"), "A: no.txt")):
        with pytest.raises(ScenarioError, match=f"^{words}"):
            what_if.pinned_rows(PageQuestion(gpus=2, pin=gone.address()), answers, files)
    assert what_if.pinned_rows(first, answers, files) == []


def test_methods_of_other_epochs_are_compared_by_the_epoch(answers: Answers, tmp_path: Path) -> None:
    files, first = Files(tmp_path, tmp_path), PageQuestion(methods=("full-graph",))
    question = PageQuestion(methods=("graphsage",), pin=first.address())
    (now,), (then,) = (what_if.rows_of(each, answers, files) for each in (question, first))
    assert now.iteration_s < then.iteration_s
    assert now.epoch_s > then.epoch_s
    shown = str(what_if.against(question, [now], [then], files))
    assert f"This is {now.epoch_s / then.epoch_s:.3g} times as long per epoch." in shown
    assert what_if.headline(question, [now, then]).startswith("Use full-graph at 15 Gbps: ")


def test_compare_shows_where_the_difference_goes(tmp_path: Path) -> None:
    form = forms.of_path("/compare")
    assert form is not None
    values = {"a": "reddit-6xt4-full-graph.yaml", "b": "reddit-6xt4.yaml"}
    job, figures = done(tmp_path, form.kind, form.options(values, Files(tmp_path, SCENARIOS)))
    assert [figure["title"] for figure in figures] == ["Where the difference goes", "Where the time goes"]
    document = json_of(*form.command(values), folder=SCENARIOS)
    bars = [entry for entry in figures[0]["drawn"]["data"] if entry["type"] == "bar"]
    # Less than a second: in milliseconds.
    assert bars[-1]["x"] == pytest.approx([1000 * document["iteration_s"]["difference"]])
    shown = str(found(job, "light"))
    assert document["says"][0] in shown
    assert "PREDICTED" in shown
    assert "A: reddit-6xt4-full-graph.yaml, " in shown
    assert {"answer.json", "answer.html", "parts.csv"} <= {path.name for path in job.folder.iterdir()}


def test_validation_shows_each_run_and_each_configuration(folder: Path, tmp_path: Path) -> None:
    form = forms.of_path("/validation")
    assert form is not None
    values = {"runs": "run", "calibration": "", "measured_compute": "measured"}
    job, figures = done(tmp_path, form.kind, form.options(values, Files(tmp_path, folder)))
    titles = ["Predicted against measured", "Error by configuration", "Numbers"]
    assert [figure["title"] for figure in figures] == titles
    content = json.loads((job.folder / "answer.json").read_text(encoding="utf-8"))
    bar = figures[1]["drawn"]["data"][0]
    assert bar["x"] == pytest.approx([100 * content["bias"]])
    shown = str(found(job, "light"))
    assert "1 runs" not in shown
    assert "MEASURED compute, links assumed" in shown
    (run,) = content["rows"]
    assert run["setting"] in shown
    marks = figures[0]["drawn"]["layout"]["xaxis"]["tickvals"]
    assert len(marks) >= 2, "one run has axes"
    names = {True: "within its interval", False: "outside its interval", None: "without an interval"}
    assert [name for name, _, _ in figures[0]["legend"]] == [names[run["covered"]]]
    assert {"validation.csv", "validation.html", "answer.json"} <= {path.name for path in job.folder.iterdir()}


def test_lists_have_what_lies_below_the_folder(folder: Path, tmp_path: Path) -> None:
    files = Files(tmp_path, folder)
    assert {"run", "pipegcn", "full-graph", "bns-gcn"} <= set(files.listed(forms.RUNS))
    assert files.listed(forms.SWEEPS) == ["points"]
    assert files.listed(forms.YAML) == ["a.yaml", "b.yaml"]
    deep = tmp_path / "1/2/3/4/5"
    deep.mkdir(parents=True)
    (deep / "far.npz").touch()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "x.npz").touch()
    (tmp_path / "1/2/3/4/near.npz").touch()
    assert Files(tmp_path, tmp_path).listed(forms.GRAPHS) == ["1/2/3/4/near.npz"]


def test_lists_leave_out_what_no_page_should_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside.npz"
    inside.mkdir()
    outside.touch()
    for name in ("a.npz", ".hidden.npz"):
        (inside / name).touch()
    (inside / "link.npz").symlink_to(outside)
    (inside / "own.npz").symlink_to(inside / "a.npz")
    (inside / "mine.yaml").write_text("title: mine\ncores: 8\n")
    (inside / "gpu.yaml").write_text("title: mine\nkind: gpu\n")
    walks: list[object] = []
    walk = module._walk

    def counted(root: Path) -> Iterator[tuple[Path, list[str]]]:
        walks.append(root)
        return walk(root)

    monkeypatch.setattr(module, "_walk", counted)
    files = Files(tmp_path, inside)
    assert files.listed(forms.GRAPHS) == ["a.npz", "own.npz"]
    assert files.listed(forms.YAML) == ["gpu.yaml", "mine.yaml"]
    assert files.listed(forms.YAML, forms.HOST) == ["mine.yaml"]
    assert len(walks) == 1
    monkeypatch.setattr(module, "MOST_VISITED", 2)
    assert Files(tmp_path, inside).listed(forms.GRAPHS) == ["a.npz", "own.npz"]


def test_a_path_that_is_not_listed_can_be_entered(tmp_path: Path) -> None:
    form = forms.of_path("/validation")
    assert form is not None
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").touch()
    control = str(form.fields[0].control("", Files(tmp_path, tmp_path)))
    assert "Dropdown" in control
    assert "'of': 'more'" in control
    assert added("far/run, run", ["run"], ["run"]) == (["run", "far/run"], ["run", "far/run"], "")
    assert added(" ", ["run"], ["run"]) is None


@pytest.mark.parametrize(
    ("line", "marked"),
    [
        ("other.npz: does not exist", {}),
        ("cluster.host: unknown 'x'", {"host": "cluster.host: unknown 'x'"}),
        ("workload.hidden: 0 is not allowed", {"hidden": "workload.hidden: 0 is not allowed"}),
        ("method.rate: 2 is not allowed", {"rate": "method.rate: 2 is not allowed"}),
        ("--inject pause: write KIND", {"inject": "--inject pause: write KIND"}),
        ("--layers: 0 is not allowed", {"layers": "--layers: 0 is not allowed"}),
        ("cluster.gpus: 6 is not allowed", {}),
        ("a.npz: holds no array", {"graph": "a.npz: holds no array"}),
    ],
)
def test_a_message_stands_at_its_field(tmp_path: Path, line: str, marked: dict[str, str]) -> None:
    (tmp_path / "a.npz").touch()
    found = what_if.marks(line, {"graph": "a.npz"}, Files(tmp_path, tmp_path))
    assert {name: text for name, text in zip(what_if.MARKED, found, strict=True) if text} == marked


def test_each_wrong_path_is_marked(tmp_path: Path) -> None:
    files = Files(tmp_path, tmp_path)
    values = {"graph": "nothing.npz", "measured": "../out.parquet", "calibration": ""}
    with pytest.raises(FileError) as error:
        what_if.rows_of(PageQuestion(graph="nothing.npz"), None, files)  # type: ignore[arg-type]  # not reached
    marks = dict(zip(what_if.MARKED, what_if.marks(str(error.value), values, files), strict=True))
    assert marks["graph"].startswith("nothing.npz: does not exist")
    assert marks["measured"].startswith("../out.parquet: is outside the folder")
    assert not any(text for name, text in marks.items() if name not in ("graph", "measured"))


@pytest.mark.parametrize("text", ["x" * 5_000, "a\0b"])
def test_an_impossible_path_is_an_error_in_one_line(tmp_path: Path, text: str) -> None:
    files, form = Files(tmp_path, tmp_path), forms.of_path("/compare")
    with pytest.raises(FileError, match="cannot be a path"):
        files.path(text)
    assert form is not None
    assert "at most 300 printable characters" in form.wrong("a", text, files)
    assert "address: unknown 'nothing'" in form.wrong("nothing", "x", files)


@pytest.mark.parametrize(
    ("path", "name", "text", "wrong"),
    [
        ("/plan", "gpus", "-1", "--gpus: -1 is not allowed"),
        ("/plan", "gpus", "2,4", ""),
        ("/plan", "target_iteration", "fast", "--target-iteration: "),
        ("/plan", "host", "g5.xlarge,../x.yaml", "outside the folder"),
        ("/plan", "host", "g5.xlarge,g5.xlarg", "host: unknown 'g5.xlarg'"),
        ("/plan", "device", "t4,/etc/gpu.yaml", "device: unknown '/etc/gpu.yaml'"),
        ("/timeline", "epsilon", "2", "epsilon: '2' is not allowed"),
        ("/timeline", "run", "nothing", "does not exist"),
        ("/validation", "runs", "run,nothing", "nothing: does not exist"),
    ],
)
def test_a_field_says_what_is_wrong_with_it(folder: Path, path: str, name: str, text: str, wrong: str) -> None:
    form = forms.of_path(path)
    assert form is not None
    found = form.wrong(name, text, Files(folder, folder))
    assert found == wrong if not wrong else wrong in found


def test_no_two_parts_of_a_page_have_one_name() -> None:
    page = what_if.layout(PageQuestion(), what_if.Lists(("reddit",), ("t4",), (), (), ()), own=True)
    parts: Any = page._traverse()  # type: ignore[no-untyped-call]
    names = [str(part.id) for part in parts if getattr(part, "id", None)]
    assert "link" in names
    assert len(names) == len({*names})
