"""Somebody who looks at the dashboard's first page: its requests over HTTP, without a browser."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PATIENCE_S = 60.0
UPDATE = "/_dash-update-component"
SCRIPT = re.compile(r'<(?:script|link)[^>]* (?:src|href)="(/[^"]+)"')

SLIDERS = ("bandwidth", "gpus", "tau", "epsilon", "cache")


@dataclass(frozen=True, slots=True)
class Answered:
    """What a move brought: properties of components by their id; none where the server had nothing to say."""

    response: Mapping[str, Mapping[str, Any]]

    @property
    def bars(self) -> int:
        """Traces of the picture."""
        return len(self.response.get("picture", {}).get("figure", {}).get("data", ()))

    @property
    def headline(self) -> str:
        """The sentence above the picture."""
        return str(self.response.get("headline", {}).get("children", ""))

    @property
    def complete(self) -> bool:
        """Whether there is a picture with its sentence, and nothing that says what is wrong."""
        return self.bars > 0 and bool(self.headline) and not self.response.get("alert", {}).get("children")


class Visitor:
    """One tab of a browser. Raises RuntimeError where the server refuses."""

    def __init__(self, address: str) -> None:
        self._place = urlsplit(address)
        self._connection = self._connected()
        self._props: dict[str, dict[str, Any]] = {}
        self._callbacks: list[dict[str, Any]] = []

    def _connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._place.hostname or "", self._place.port, timeout=PATIENCE_S)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def get(self, path: str) -> str:
        """The text at a path."""
        return self._request(self._connection, "GET", path, None)

    def _request(self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None) -> str:
        connection.request(method, path, body, {} if body is None else {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        if answer.status not in (200, 204):
            raise RuntimeError(f"{method} {path}: {answer.status}: {text[:200]}")
        return text

    def load(self, query: str = "") -> None:
        """Everything that a browser fetches before there is a page: the document, its scripts, its callbacks."""
        for path in SCRIPT.findall(self.get(f"/{query}")):
            self.get(path)
        self._keep(json.loads(self.get("/_dash-layout")))
        self._callbacks = json.loads(self.get("/_dash-dependencies"))
        self._props["url"] |= {"pathname": "/", "search": query}
        self._props["theme"] |= {"data": "light"}

    def page(self) -> None:
        """The page of the address, without its picture."""
        for props in self._call("theme.data").values():
            self._keep(props["children"])

    def picture(self) -> Answered:
        """The first picture."""
        return Answered(self._call("bandwidth.value"))

    def open(self, query: str = "") -> Answered:
        """The page and its first picture."""
        self.load(query)
        self.page()
        return self.picture()

    def stops(self, name: str) -> list[float]:
        """The values of a slider."""
        found: list[float] = self._props["stops"]["data"][name]
        return found

    def place(self, name: str) -> int:
        """Where a slider stands."""
        return int(self._props[name]["value"])

    def move(self, name: str, place: int, *, apart: bool = False) -> Answered:
        """Move a slider to a stop; apart: on a connection of its own, beside an answer that is awaited."""
        self._props[name]["value"] = str(place)
        return Answered(self._call(f"{name}.value", apart=apart))

    def _keep(self, tree: Any) -> None:
        """Keep the properties of all components in a layout that have an id."""
        if isinstance(tree, list):
            for item in tree:
                self._keep(item)
        elif isinstance(tree, dict) and "props" in tree:
            props = tree["props"]
            if isinstance(props.get("id"), str):
                self._props[props["id"]] = props
            self._keep(props.get("children"))

    def _call(self, changed: str, *, apart: bool = False) -> dict[str, dict[str, Any]]:
        """Ask the callback of a property as the page does."""
        name, _, key = changed.rpartition(".")
        requested = next(
            callback
            for callback in self._callbacks
            if {"id": name, "property": key} in callback["inputs"] and callback["clientside_function"] is None
        )
        outputs = [word.rpartition(".") for word in requested["output"].strip(".").split("...")]
        content = [{"id": item, "property": what} for item, _, what in outputs]
        body = {
            "output": requested["output"],
            "outputs": content if requested["output"].startswith("..") else content[0],
            "inputs": [self._state(item) for item in requested["inputs"]],
            "changedPropIds": [changed],
            "parsedChangedPropsIds": [changed],
            "state": [self._state(item) for item in requested["state"]],
        }
        connection = self._connected() if apart else self._connection
        try:
            text = self._request(connection, "POST", UPDATE, json.dumps(body).encode())
        finally:
            if apart:
                connection.close()
        found: dict[str, dict[str, Any]] = json.loads(text)["response"] if text else {}
        return found

    def _state(self, entry: Mapping[str, str]) -> dict[str, Any]:
        document: dict[str, Any] = dict(entry)
        value = self._props.get(entry["id"], {}).get(entry["property"])
        return document if value is None else document | {"value": value}


@contextmanager
def dashboard(*options: str) -> Iterator[tuple[int, str]]:
    """A dashboard on loopback in a process of its own: its id and its address."""
    root = str(Path(__file__).resolve().parents[1])
    process = subprocess.Popen(
        [sys.executable, "-m", "gcnsim", "dashboard", "--port", "0", *options],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": root},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("gcnsim dashboard: has ended")
        yield process.pid, line.split()[0]
    finally:
        process.terminate()
        process.communicate(timeout=60)
