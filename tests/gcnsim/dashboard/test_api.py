"""Questions of programs: the dashboard's JSON API and its description."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from gcnsim.cli import main
from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.dashboard.api import SERVERS, asked, fields_of, openapi
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.guard import Guard
from gcnsim.dashboard.jobs import BusyError, Jobs
from gcnsim.dashboard.serve import application_of
from gcnsim.dashboard.work import ASKED
from gcnsim.scenario.question import given_options
from gcnsim.scenario.what_if import WhatIf
from tests.dashboards import TOKEN, json_of
from tests.gcnsim.dashboard.test_guard import response
from tests.measured_files import write_graph


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder whose files may be opened."""
    found = tmp_path_factory.mktemp("files")
    write_graph(found)
    return found


@pytest.fixture(scope="module")
def client(place: Path) -> Iterator[FlaskClient]:
    with application_of(Guard("127.0.0.1", None), place, 1) as pages:
        yield pages.test_client()


@pytest.mark.parametrize(
    ("name", "question", "words"),
    [
        ("what-if", {"gpus": [2, 3], "tau": 1, "bandwidth": "10GbE"}, "--gpus 2,3 --tau 1 --bandwidth 10GbE"),
        ("what-if", {"graph": "ring.txt", "gpus": 2, "iterations_needed": {"pipegcn": 300}, "pricing": "spot"},
         "--graph ring.txt --gpus 2 --iterations-needed pipegcn=300 --pricing spot"),
        ("recommend", {"host": "g4dn.xlarge", "gpus": [1, 2], "target_iteration": "9s", "overrides": ["run.seed=3"]},
         "--host g4dn.xlarge --gpus 1,2 --target-iteration 9s --set run.seed=3"),
    ],
)  # fmt: skip
def test_a_program_is_told_what_the_command_line_says(
    client: FlaskClient, place: Path, name: str, question: dict[str, Any], words: str
) -> None:
    answer = client.post(f"/api/{name}", json={**question, "method": "pipegcn"})
    assert answer.status_code == 200, answer.text
    assert answer.json == json_of("gcnsim", name, *words.split(), "--method", "pipegcn", folder=place)
    registry = Registry().with_resource("urn:api", Resource.from_contents(openapi(), DRAFT202012))
    for part, document in (("question", question), ("answer", answer.json)):
        Draft202012Validator({"$ref": f"urn:api#/components/schemas/{name}-{part}"}, registry=registry).validate(
            document
        )


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"device": "rxt-4090"}, ["--device", "rxt-4090"]),
        ({"gpus": 2, "tau": -1}, ["--gpus", "2", "--tau=-1"]),
        ({"gpus": 2.5}, ["--gpus", "2.5"]),
        ({"bandwidth": 15}, ["--bandwidth", "15"]),
        ({"nodes": "3M"}, ["--nodes", "3M"]),
        ({"pricing": "spott"}, ["--pricing", "spott"]),
        ({"iterations_needed": "pipegcn=x"}, ["--iterations-needed", "pipegcn=x"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_in_the_words_of_the_command(
    client: FlaskClient, capsys: pytest.CaptureFixture[str], question: dict[str, Any], words: list[str]
) -> None:
    answer = client.post("/api/what-if", json=question)
    assert main(["what-if", *words]) == 2
    assert (answer.status_code, f"gcnsim: {answer.json['error']}\n") == (422, capsys.readouterr().err)  # type: ignore[index]


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        ("{", 400, "the question: not a JSON document"),
        ("[" * 99, 400, "the question: not a JSON document"),
        ('{"gpus": 1e999}', 400, "the question: gpus is inf"),
        ("[]", 422, "the question: a list is not an object"),
        ('{"gpu": 4}', 422, "'gpu': unknown field; did you mean"),
        ('{"processes": 64}', 422, "'processes': unknown field"),
        ('{"gpus": {"a": 1}}', 422, "--gpus: a mapping is not text or a number"),
        ('{"interruptions": true}', 422, "--interruptions: True is not text or a number"),
        ('{"model": ["gcn", "gat"]}', 422, "--model: a list is not text or a number"),
        ('{"graph": "' + "x" * 5000 + '"}', 422, "--graph: 'xxx"),
        ('{"graph": "' + "x" * 70_000 + '"}', 413, ""),
    ],
)
def test_no_question_is_one_line(client: FlaskClient, content: str, code: int, says: str) -> None:
    answer = client.post("/api/what-if", data=content)
    assert answer.status_code == code
    if says:
        assert answer.json is not None
        assert answer.json["error"].startswith(says)
    assert "\n" not in answer.text.strip()
    assert client.post("/api/simulate", data="{}").status_code == 404


@pytest.mark.parametrize(
    "question",
    [
        {"graph": "/etc/passwd"},
        {"prices": "../prices.yaml"},
        {"host": "/etc/host.yaml"},
        {"device": ["t4", "../t4.yaml"]},
        {"calibration": "/etc/passwd"},
        {"norms": "../norms.npy"},
        {"runs": ["/etc"]},
        {"measured": "pipegcn=/etc/passwd"},
        {"price": "/etc/t4.yaml=1USD/h"},
        {"overrides": "workload.profile=/etc/passwd"},
        {"overrides": "cluster.devices=[t4, '/etc/t4.yaml']"},
        {"overrides": "cluster.devices=t4,/etc/t4.yaml"},
        {"overrides": "cluster.platform=/etc/passwd"},
    ],
)
def test_no_field_opens_a_file_beside_the_folder(place: Path, question: dict[str, Any]) -> None:
    with pytest.raises(FileError, match=r"outside the folder of the dashboard"):
        asked(WhatIf, question, Files(place, place))


def test_values_are_those_of_the_options(place: Path) -> None:
    question = {
        "nodes": "3M", "edges": 9000, "tau": [0, 1], "epsilon": 0.5, "iterations_needed": [20, {"pipegcn": 30}],
        "measured": "640ms", "price": ["t4=1USD/h"], "overrides": "cluster.host_memory=200GB/s", "model": None,
    }  # fmt: skip
    given = given_options(WhatIf, asked(WhatIf, question, Files(place, place)))
    assert given["prices"].given[0].device == "t4"
    assert {name: given[name] for name in given if name != "prices"} == {
        "sizes": {"nodes": "3M", "edges": "9000"}, "tau": [0, 1], "epsilon": ["0.5"], "measured": ["640ms"],
        "iterations_needed": {"all": 20, "pipegcn": 30}, "overrides": ['cluster.host_memory="200GB/s"'],
    }  # fmt: skip
    with pytest.raises(ScenarioError, match="unknown field"):
        asked(WhatIf, {"scenario": "x.yaml"}, Files(place, place))


def test_the_description_has_every_field_with_its_help(client: FlaskClient) -> None:
    description = client.get("/api/openapi.json").json
    assert description == json.loads(json.dumps(openapi())) | {"servers": [{"url": "/"}]}
    below = client.get("/api/openapi.json", environ_overrides={"SCRIPT_NAME": "/hub"}).get_json()
    assert below["servers"] == [{"url": "/hub"}]
    assert description is not None
    registry = Registry().with_resource("", Resource.from_contents(description, DRAFT202012))
    for name, kind in ASKED.items():
        post = description["paths"][f"/api/{name}"]["post"]
        for part in (post["requestBody"], post["responses"]["200"]):
            path = part["content"]["application/json"]["schema"]["$ref"]
            schema = registry.resolver().lookup(path).contents
            Draft202012Validator.check_schema(schema)
        properties = description["components"]["schemas"][f"{name}-question"]["properties"]
        assert properties.keys() == fields_of(kind).keys()
        for key, option in fields_of(kind).items():
            assert properties[key]["description"].startswith(option.line)
        assert not properties.keys() & {*SERVERS}
    fields = description["components"]["schemas"]["what-if-question"]["properties"]
    assert "pipegcn" in fields["method"]["anyOf"][0]["enum"]
    assert "t4" in fields["device"]["anyOf"][0]["examples"]
    assert fields["layers"] | {"description": ""} == {
        "type": "integer", "minimum": 1, "maximum": 1000, "description": ""
    }  # fmt: skip
    assert fields["epsilon"]["anyOf"][0]["type"] == ["number", "string"]
    assert fields["iterations_needed"]["anyOf"][0]["type"] == ["integer", "object"]


def test_too_many_questions_are_refused_at_once(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise BusyError("3 jobs are under way; allowed: wait for one, or cancel it")

    monkeypatch.setattr(Jobs, "start", busy)
    answer = client.post("/api/what-if", json={})
    assert (answer.status_code, answer.json) == (503, {"error": busy.__code__.co_consts[1]})


def test_a_question_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    job = jobs.start("api", {"ask": "recommend", "values": {"target_iteration": "0.5s"}, "files": "."}, 1)
    with pytest.raises(BusyError, match="1 jobs are under way"):
        jobs.start("api", {}, 1)
    job.wait(lambda: True)
    assert job.error == "cancelled"
    jobs.drop(job.key)
    assert [*tmp_path.iterdir()] == []


def test_the_token_goes_in_a_header(guarded: str) -> None:
    assert response(guarded, "/api/openapi.json")[0] == 401
    assert response(guarded, "/api/what-if", "POST", b"{}")[0] == 401
    assert response(guarded, "/api/openapi.json", Authorization="Bearer wrong-token-of-length")[0] == 401
    status, headers, _ = response(guarded, "/api/openapi.json", Authorization=f"Bearer {TOKEN}")
    assert (status, headers["Cache-Control"]) == (200, "no-store")
