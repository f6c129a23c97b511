"""Who may see the pages, and what comes with every answer."""

from __future__ import annotations

import http.client
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gcnsim.cli import main
from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.guard import LARGEST, checked
from tests.dashboards import TOKEN


def response(
    address: str, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of one request."""
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode("utf-8", "replace")
    finally:
        connection.close()


def test_other_addresses_need_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", "--host", "0.0.0.0"]) == 2
    assert capsys.readouterr().err.startswith("gcnsim: --host: 0.0.0.0 can be reached by others; allowed: with --token")
    with pytest.raises(ScenarioError, match="at least 16"):
        checked("127.0.0.1", "short")
    checked("0.0.0.0", TOKEN)


def test_every_answer_has_the_headers(dashboard: str) -> None:
    for path in ("/", "/assets/dashboard.js", "/nothing/here", "/_dash-layout"):
        _, headers, _ = response(dashboard, path)
        policy = headers["Content-Security-Policy"]
        assert "unsafe-eval" not in policy
        assert "unsafe-inline" not in policy.partition("style-src")[0]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert "Server" not in headers


def test_the_token_is_asked_for_and_kept_in_a_cookie(guarded: str) -> None:
    status, _, text = response(guarded, "/")
    assert status == 401
    assert "needs its token" in text
    for path in ("/?token=wrong-token-of-length", "/?token=", "/_dash-layout", "/assets/dashboard.js"):
        assert response(guarded, path)[0] == 401, path
    assert response(guarded, "/_dash-update-component", "POST", b"{}", Content_Type="application/json")[0] == 401
    status, headers, _ = response(guarded, f"/plan?token={TOKEN}")
    assert (status, headers["Location"]) == (303, "/plan")
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    assert response(guarded, "/", Cookie=cookie.partition(";")[0])[0] == 200
    assert response(guarded, "/", Cookie="gcnsim-dashboard=0")[0] == 401


def test_pages_of_other_sites_and_other_names_are_refused(dashboard: str) -> None:
    assert response(dashboard, "/", Host="evil.example")[0] == 403
    assert response(dashboard, "/upload", "POST", b"x", X_File_Name="a.npz", Sec_Fetch_Site="cross-site")[0] == 403


def test_no_stack_trace_reaches_a_browser(dashboard: str) -> None:
    broken = b'{"output": "nothing.here", "inputs": 3}'
    status, _, text = response(dashboard, "/_dash-update-component", "POST", broken, Content_Type="application/json")
    assert status >= 400
    assert "Traceback" not in text
    assert ".py" not in text
    assert len(text.splitlines()) == 1


def test_a_request_of_a_gigabyte_is_refused_before_it_is_read(dashboard: str) -> None:
    place = urlsplit(dashboard)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    connection.putrequest("POST", "/upload")
    connection.putheader("Content-Length", str(1 << 30))
    connection.putheader("X-File-Name", "a.npz")
    connection.endheaders()
    connection.send(b"x" * 1024)
    assert connection.getresponse().status == 413
    connection.close()
    assert LARGEST < 1 << 30


def test_names_of_uploads_are_no_paths(dashboard: str, tmp_path: Path) -> None:
    files = Files(tmp_path, tmp_path)
    key = files.take("../../etc/<script>alert(1)</script>.npz", b"x")
    path = files.path(key)
    assert path is not None
    assert Path(path).parent == tmp_path
    assert "script" not in path
    key = files.take("folder\\../my graph.npz", b"x")
    assert (files.name(key), files.name("a/b.npz")) == ("my graph.npz", "a/b.npz")
    status, _, text = response(dashboard, "/upload", "POST", b"x", X_File_Name="../../<script>x")
    assert status == 400
    assert "script" not in text
    with pytest.raises(FileError, match="is empty"):
        files.take("a.npz", b"")


def test_pages_open_files_below_their_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.npz").touch()
    (tmp_path / "out.npz").touch()
    (tmp_path / "in" / "link.npz").symlink_to(tmp_path / "out.npz")
    files = Files(tmp_path, tmp_path / "in")
    assert files.path("a.npz") == str(tmp_path / "in" / "a.npz")
    assert files.path("") is None
    for text in ("../out.npz", "link.npz", "/etc/passwd"):
        with pytest.raises(FileError, match="outside the folder"):
            files.path(text)
    with pytest.raises(FileError, match="upload the file again"):
        files.path("upload:0")
    assert str(tmp_path) not in files.shown(f"{tmp_path / 'in' / 'a.npz'}: is broken")


def test_the_oldest_uploads_go_first(tmp_path: Path) -> None:
    files = Files(tmp_path, tmp_path)
    first = files.take("a.npz", b"x")
    for _ in range(16):
        files.take("b.npz", b"x")
    assert len(list(tmp_path.iterdir())) == 16
    with pytest.raises(FileError):
        files.path(first)


@pytest.mark.parametrize(
    "asked",
    [
        "{",
        "7",
        "{}",
        '{"output": "x.y", "outputs": {"id": "x", "property": "y"}, "inputs": []}',
        '{"output": ["x"], "outputs": {}, "inputs": []}',
        '{"output": "page.children", "outputs": {"id": "page", "property": "children"}, "inputs": [], "state": []}',
        '{"output": "page.children", "outputs": 1, "inputs": [{}], "state": [{}, {}]}',
        '{"output": "page.children", "outputs": {}, "inputs": [7], "state": [7, 7]}',
    ],
)
def test_an_update_that_no_page_asks_for_is_a_bad_request(dashboard: str, asked: str) -> None:
    address = "/_dash-update-component"
    status, _, text = response(dashboard, address, "POST", asked.encode(), Content_Type="application/json")
    assert (status, text) == (400, "gcnsim: 400 Bad Request\n")
