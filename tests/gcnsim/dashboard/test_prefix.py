"""The pages below a path of another server, which strips the path and names it, or passes it on."""

from __future__ import annotations

import http.client
import http.server
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

from gcnsim.cli import main
from gcnsim.core.errors import ScenarioError
from gcnsim.dashboard.prefix import inside, read_prefix
from tests.dashboards import TOKEN, Looking, served
from tests.gcnsim.dashboard.test_guard import response

PREFIX = "/user/kim/proxy/8050"
ADDRESS = re.compile(r'(?:src|href|action)="([^"]*)"')


@contextmanager
def proxied(behind: str, *, strips: bool = True) -> Iterator[str]:
    """The address of a proxy that shows `behind` below PREFIX. strips: it takes the path off, and names it."""

    class Proxy(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            if not self.path.startswith(f"{PREFIX}/"):
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
            headers = {name: text for name, text in self.headers.items() if name.lower() != "host"}
            path = self.path[len(PREFIX) :] if strips else self.path
            if strips:
                headers["X-Forwarded-Prefix"] = PREFIX
            connection = http.client.HTTPConnection(urlsplit(behind).netloc, timeout=60)
            try:
                connection.request(self.command, path, body, headers)
                reply = connection.getresponse()
                content = reply.read()
            finally:
                connection.close()
            self.send_response(reply.status)
            for name, text in reply.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                    self.send_header(name, text)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def root(address: str) -> str:
    """An address without its path."""
    return re.sub(r"(//[^/]*)/.*", r"\1", address)


def loads(seen: Looking, address: str) -> None:
    """Every address of the page is below the prefix and is there, and the page answers and leads on."""
    _, _, text = response(address, f"{PREFIX}/")
    found = ADDRESS.findall(text)
    assert len(found) > 5
    for path in found:
        assert path.startswith(f"{PREFIX}/"), path
        assert response(address, path)[0] == 200, path
    seen.open(f"{PREFIX}/")
    seen.page.wait_for_selector("#picture .main-svg")
    for path in seen.page.eval_on_selector_all("nav a, a.preset", "all => all.map(a => a.getAttribute('href'))"):
        assert path.startswith(f"{PREFIX}/"), path
    seen.page.click("nav a:has-text('Plan')")
    seen.page.wait_for_selector("#command:has-text('recommend')")
    assert seen.page.url.startswith(f"{address}{PREFIX}/plan")
    assert seen.said == []


def test_a_proxy_that_strips_the_path_and_names_it(chromium: Any, dashboard: str) -> None:
    with proxied(root(dashboard)) as address:
        page = chromium.new_page()
        loads(Looking(page, address), address)
        page.close()


def test_a_proxy_that_passes_the_path_on_needs_the_option(chromium: Any, tmp_path: Path) -> None:
    for behind in served(tmp_path, "--prefix", f"{PREFIX}/"):
        assert behind.endswith(f"{PREFIX}/")
        with proxied(root(behind), strips=False) as address:
            page = chromium.new_page()
            loads(Looking(page, address), address)
            page.close()


def test_the_token_is_asked_for_below_the_prefix(guarded: str) -> None:
    with proxied(root(guarded)) as address:
        status, _, text = response(address, f"{PREFIX}/plan")
        assert (status, ADDRESS.findall(text)) == (401, [f"{PREFIX}/token"])
        given = {"Content_Type": "application/x-www-form-urlencoded"}
        status, headers, _ = response(address, f"{PREFIX}/token", "POST", f"token={TOKEN}".encode(), **given)
        assert (status, headers["Location"]) == (303, f"{PREFIX}/")
        assert f"Path={PREFIX}" in headers["Set-Cookie"]


@pytest.mark.parametrize("prefix", ["//evil.example", "/a/../b", 'x"y', "/a b", "/" + "a" * 600, "https://hub/x"])
def test_a_prefix_that_is_no_path_is_refused(dashboard: str, prefix: str) -> None:
    status, _, text = response(dashboard, "/", X_Forwarded_Prefix=prefix)
    assert (status, text.count("\n")) == (400, 1)
    assert text.startswith("gcnsim: X-Forwarded-Prefix: ")
    with pytest.raises(ScenarioError, match=r"--prefix: .* is not allowed; allowed: a path such as"):
        read_prefix(prefix, "--prefix")


def test_a_path_loses_its_prefix_only_as_a_whole() -> None:
    assert [inside(path, "/a/b") for path in ("/a/b", "/a/b/", "/a/b/plan", "/a/bc", "/plan")] == [
        "/",
        "/",
        "/plan",
        "/a/bc",
        "/plan",
    ]
    assert inside("/plan", "") == "/plan"


def test_a_proxy_passes_on_names_that_were_allowed(dashboard: str, tmp_path: Path) -> None:
    status, _, text = response(dashboard, "/", Host="hub.example.org")
    assert (status, text.endswith("(--allow-host hub.example.org allows it)\n")) == (403, True)
    for address in served(tmp_path, "--allow-host", "hub.example.org", "--allow-host", "other"):
        assert [response(address, "/", Host=name)[0] for name in ("Hub.example.org:443", "other", "third")] == [
            200,
            200,
            403,
        ]


def test_an_allowed_name_is_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", "--allow-host", "https://hub"]) == 2
    assert capsys.readouterr().err == (
        "gcnsim: --allow-host: 'https://hub' is not allowed; allowed: a host name without port\n"
    )
