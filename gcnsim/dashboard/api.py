"""Questions from programs: JSON in, what `--json` prints out, and the description of both (OpenAPI 3.1).

The fields are the options of the commands. Every value is read from its text, as on the command line, so both refuse
the same with the same words. A question opens only files that pages may open, and runs as a job.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Final, get_args, get_type_hints

import flask

import gcnsim
from gcnsim.core.errors import GcnsimError, ScenarioError, UnitError, nearest
from gcnsim.core.fields import Choice, Number, denied
from gcnsim.core.json_files import parse_json
from gcnsim.core.schemas import schema_of
from gcnsim.core.units import SECONDS
from gcnsim.core.yaml_files import parse_yaml
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.jobs import BusyError, Jobs
from gcnsim.dashboard.prefix import outside
from gcnsim.dashboard.work import API, ASKED, RESULT
from gcnsim.hardware import is_file
from gcnsim.methods import is_method
from gcnsim.scenario.catalogue_fields import Words
from gcnsim.scenario.load import FILE_FIELDS, rule_at
from gcnsim.scenario.option import PAIRS, Option, flag
from gcnsim.scenario.question import Question, field_value, flat_options

MOST_BYTES: Final = 1 << 16
MOST_TEXT: Final = 4000
"""The most bytes of a question, and characters of one of its texts."""

MOST_WAITING: Final = 3
"""The most of the jobs that programs have at once: pages have one more."""

SERVERS: Final = ("processes",)
"""Fields that the server decides."""

JSON_TYPES: Final = {int: "integer", float: "number", str: "string", Mapping: "object"}


def fields_of(kind: type[Question]) -> dict[str, Option]:
    """The fields that a program may give."""
    return {name: each for name, each in flat_options(kind).items() if name not in SERVERS}


def document_of(body: bytes) -> Any:
    """The document in a request. Raises FileError."""
    return parse_json(body.decode("utf-8", "replace"), "the question")


def asked(kind: type[Question], document: object, files: Files) -> dict[str, Any]:
    """The values of the options in a JSON object, as `given_options` takes them. Raises GcnsimError."""
    if not isinstance(document, dict):
        raise ScenarioError(f"the question: {denied(document)} an object")
    known, found = fields_of(kind), {}
    for name, value in document.items():
        if name not in known:
            raise ScenarioError(f"{name[:40]!r}: unknown field; {nearest(name[:40], known)}")
        if value is None:
            continue
        option = known[name]
        texts = [_text(name, item, option) for item in (value if isinstance(value, list) and option.many else [value])]
        placed = [_placed(name, option, text, files) for text in texts]
        values = field_value(kind, name, ",".join(placed)) if option.many == "list" else None
        single = [field_value(kind, name, text) for text in placed] if values is None else []
        found[name] = values if values is not None else single if option.many else single[0]
    return found


def _text(name: str, value: object, option: Option) -> str:
    """A value as the text of its option. Raises ScenarioError."""
    if isinstance(value, dict) and option.many == PAIRS:
        value = ",".join(f"{key}={_text(name, item, Option())}" for key, item in value.items())
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ScenarioError(f"{flag(name)}: {denied(value)} text or a number")
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) > MOST_TEXT or not text.isprintable():
        raise ScenarioError(f"{flag(name)}: {text[:40]!r} is not allowed; at most {MOST_TEXT} printable characters")
    return text


def _placed(name: str, option: Option, text: str, files: Files) -> str:
    """The text of an option, its file as the server has it. Raises GcnsimError for a file that pages may not open."""
    if option.path:
        return ",".join(_confined(option.path, item, files) for item in text.split(",")) if option.many else _confined(
            option.path, text, files
        )  # fmt: skip
    if option.written == "file":
        return files.below(text)
    before, equals, last = text.partition("=")
    if name == "overrides" and equals:
        return f"{before}={json.dumps(_within(before.strip(), parse_yaml(last, f'--set {before[:40]}'), files))}"
    if name == "price" and is_file(before.strip()):
        return f"{files.below(before.strip())}={last}"
    if name == "measured":
        value = last if equals and is_method(before.strip()) else text
        try:
            SECONDS.parse(value.strip())
        except UnitError:
            return f"{text.removesuffix(value)}{files.below(value.strip())}"
    return text


def _within(path: str, value: Any, files: Files) -> Any:
    """The value of a scenario's field, its files as the server has them. Raises GcnsimError."""
    if isinstance(value, list):
        return [_within(path, item, files) for item in value]
    if isinstance(value, str) and isinstance(rule_at(path)[0], Words):
        return ",".join(_confined(path, item, files) for item in value.split(","))
    return _confined(path, value, files) if isinstance(value, str) else value


def _confined(path: str, text: str, files: Files) -> str:
    rule, text = rule_at(path)[0], text.strip()
    opens = isinstance(rule, Words) or (isinstance(rule, Choice) and (rule.own is not None or rule.names is None))
    if opens and (path in FILE_FIELDS or is_file(text) or os.sep in text):
        return files.below(text)
    return text


def attach(server: flask.Flask, jobs: Jobs, files: Files) -> None:
    """Add the routes of the API."""

    def refused(error: object, code: int) -> tuple[flask.Response, int]:
        return flask.jsonify(error=files.shown(str(error))), code

    @server.post("/api/<name>")
    def answer(name: str) -> Any:
        if name not in ASKED:
            flask.abort(404)
        flask.request.max_content_length = MOST_BYTES
        try:
            document = document_of(flask.request.get_data())
        except GcnsimError as error:
            return refused(error, 400)
        try:
            values = asked(ASKED[name], document, files)
            job = jobs.start(API, {"ask": name, "values": values, "files": files.folder}, MOST_WAITING)
        except BusyError as error:
            return refused(error, 503)
        except GcnsimError as error:
            return refused(error, 422)
        job.wait(flask.request.environ.get("waitress.client_disconnected", bool))
        try:
            if job.error is not None:
                return refused(job.error, 422 if job.refused else 500)
            text = files.shown((job.folder / RESULT).read_text(encoding="utf-8"))
        finally:
            jobs.drop(job.key)
        return flask.Response(text, mimetype="application/json")

    @server.get("/api/openapi.json")
    def described() -> Any:
        return flask.jsonify(openapi() | {"servers": [{"url": outside("/").rstrip("/") or "/"}]})


def openapi() -> dict[str, Any]:
    """The description of the API, from the fields of the questions and the schemas of the answers."""
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    codes = {"400": "no JSON", "422": "refused, in the words of the command", "503": "too many questions at once"}
    codes |= {"500": "a fault of the server"}
    refusals = {code: {"description": says, "content": _content(error)} for code, says in codes.items()}
    refusals |= {code: {"description": says} for code, says in {"401": "no token", "413": "too long"}.items()}
    paths: dict[str, Any] = {}
    for name in ASKED:
        question, answer = ({"$ref": f"#/components/schemas/{name}-{part}"} for part in ("question", "answer"))
        said = {"description": f"What `gcnsim {name} --json` prints", "content": _content(answer)}
        paths[f"/api/{name}"] = {
            "post": {
                "operationId": name,
                "summary": _first(getattr(gcnsim, name.replace("-", "_"))),
                "requestBody": {"required": True, "content": _content(question)},
                "responses": {"200": said, **refusals},
            }
        }
    schemas = {f"{name}-question": _schema(kind) for name, kind in ASKED.items()}
    for name in ASKED:
        schemas |= _answer(name)
    token = {"type": "http", "scheme": "bearer", "description": "The token of gcnsim dashboard"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "gcnsim dashboard", "version": gcnsim.__version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": token}},
        "security": [{}, {"token": []}],
    }


def _first(function: Callable[..., Any]) -> str:
    """The first line of a function's help."""
    return (function.__doc__ or "").partition("\n")[0].rstrip(".")


def _answer(name: str) -> dict[str, Any]:
    """The schema of an answer with its definitions, as components; many programs know no references into a schema."""
    text = json.dumps(schema_of(name)).replace('"#/$defs/', f'"#/components/schemas/{name}.')
    whole = json.loads(text)
    definitions = {f"{name}.{key}": value for key, value in whole.pop("$defs").items()}
    return {f"{name}-answer": {key: value for key, value in whole.items() if key[0] != "$"}} | definitions


def _content(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _schema(kind: type[Question]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    properties = {name: _property(each, hints.get(name, Any)) for name, each in fields_of(kind).items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _property(option: Option, hint: Any) -> dict[str, Any]:
    """The schema of a field: help, default, type, allowed values, unit."""
    rule = option.rule
    kinds = sorted(_types(hint)) or ["number", "string"]
    one: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds}
    if isinstance(rule, Number):
        one |= {"exclusiveMinimum" if rule.low_open else "minimum": rule.low}
        one |= {"maximum": rule.high} if rule.high < float("inf") else {}
    if isinstance(rule, Choice) and rule.names is not None:
        one["examples" if rule.own else "enum"] = [*option.names, *rule.names()]
    several = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]} if option.many else one
    allowed = f" Allowed: {rule.allowed}." if rule is not None and not isinstance(rule, Choice) else ""
    unit = {"x-unit": rule.unit} if rule is not None and rule.unit else {}
    return {**several, "description": f"{option.line}{allowed}", **unit}


def _types(hint: Any) -> set[str]:
    """The JSON types of a field's values, one by one."""
    kinds = get_args(hint)
    if hint in JSON_TYPES or getattr(hint, "__origin__", None) in JSON_TYPES:
        return {JSON_TYPES[hint if hint in JSON_TYPES else hint.__origin__]}
    return {name for kind in kinds if kind is not NoneType for name in _types(kind)}
