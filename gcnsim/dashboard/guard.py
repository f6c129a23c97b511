"""Access control of the pages, and the restrictions on their scripts.

On a loopback address, every user of this machine has access; on any other address, a token is needed. A page may run
only scripts of this server: `script-src` has neither `unsafe-inline` nor `unsafe-eval`. Plotly and React set styles in
elements, so `style-src` allows them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Sequence
from typing import Any, Final

import flask

from gcnsim.core.errors import ScenarioError

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
COOKIE: Final = "gcnsim-dashboard"
LEAST_TOKEN: Final = 16
"""The least characters of a token; shorter ones can be guessed."""

LARGEST: Final = 64 << 20
"""The most bytes of a request, and so of an upload."""

HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII | re.IGNORECASE)

ASK: Final = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>gcnsim: token</title></head><body><main>'
    '<h1>gcnsim dashboard</h1><p>{said}</p><form method="post" action="{root}/token"><label>Token '
    '<input type="password" name="token" autocomplete="current-password" required></label> <button>Open</button>'
    "</form></main></body></html>"
)


def checked(host: str, token: str | None) -> None:
    """Raise ScenarioError for a public address without a token, and for a short token."""
    if token is not None and (len(token) < LEAST_TOKEN or not token.isascii()):
        raise ScenarioError(f"--token: is too short or not ASCII; allowed: at least {LEAST_TOKEN} ASCII characters")
    if host not in LOOPBACK and token is None:
        raise ScenarioError(f"--host: {host} can be reached by others; allowed: with --token, or one of {_loopback()}")


def _loopback() -> str:
    return ", ".join(LOOPBACK)


def policy(hashes: Sequence[str]) -> str:
    """The content security policy; hashes: of the scripts in the page."""
    scripts = " ".join(["'self'", *hashes])
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


class Guard:
    """Checks every request before and after it is answered.

    names: host names that browsers may use besides this machine's own; with a token, any name is allowed. Raises
    ScenarioError for a host that needs a token, and for a name that is none.
    """

    def __init__(self, host: str, token: str | None, names: Sequence[str] = ()) -> None:
        checked(host, token)
        for name in names:
            if not _NAME.fullmatch(name):
                raise ScenarioError(f"--allow-host: {name[:80]!r} is not allowed; allowed: a host name without port")
        self._token = token
        self._names = {*LOOPBACK, "[::1]", *map(str.lower, names)} if token is None else None
        self._policy = ""
        self._seal = hmac.new(os.urandom(32), b"dashboard", hashlib.sha256).hexdigest()

    def attach(self, server: flask.Flask, hashes: Sequence[str]) -> None:
        """Guard all pages of `server`. hashes: of the scripts in its pages."""
        self._policy = policy(hashes)
        server.config["MAX_CONTENT_LENGTH"] = LARGEST
        server.before_request(self._before)
        server.after_request(self._after)
        server.add_url_rule("/token", "token", self._enter, methods=["POST"])
        server.register_error_handler(Exception, _failed)

    def _before(self) -> Any:
        request = flask.request
        if self._names is not None and (name := _name(request.host).lower()) not in self._names:
            hint = f"--allow-host {name} allows it" if _NAME.fullmatch(name) else "--allow-host NAME allows others"
            return _plain(f"this name is not one of this machine's own ({hint})", 403)
        if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none") and request.method != "GET":
            return _plain("asked by a page of another site", 403)
        if self._token is None or request.path == "/token" or self._entered():
            return None
        token = request.args.get("token")
        if token is None:
            given = request.headers.get("Authorization", "")
            if hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
                return None
            return _token_form("This address needs its token.", 401)
        return self._with(token)

    def _entered(self) -> bool:
        return hmac.compare_digest(flask.request.cookies.get(COOKIE, "").encode(), self._seal.encode())

    def _enter(self) -> Any:
        return self._with(flask.request.form.get("token", ""))

    def _with(self, token: str) -> Any:
        """Set a cookie for a correct token, and redirect to the address without it."""
        if self._token is None or not hmac.compare_digest(token.encode(), self._token.encode()):
            return _token_form("This is not the token.", 401)
        root = flask.request.script_root
        answer = flask.redirect(root + ("/" if flask.request.path == "/token" else flask.request.path), 303)
        secure = flask.request.is_secure
        answer.set_cookie(COOKIE, self._seal, path=root or "/", httponly=True, samesite="Strict", secure=secure)
        return answer

    def _after(self, answer: flask.Response) -> flask.Response:
        for name, value in HEADERS.items():
            answer.headers[name] = value
        answer.headers["Content-Security-Policy"] = self._policy
        if answer.mimetype in ("text/html", "application/json"):
            answer.headers["Cache-Control"] = "no-store"
        return answer


def _name(host: str) -> str:
    """The host without its port."""
    return host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


def _plain(message: str, code: int) -> flask.Response:
    return flask.Response(f"gcnsim: {message}\n", code, mimetype="text/plain")


def _token_form(message: str, code: int) -> flask.Response:
    return flask.Response(ASK.format(said=message, root=flask.request.script_root), code, mimetype="text/html")


def _failed(error: Exception) -> Any:
    """A one-line response to any exception; its details stay in the server's terminal."""
    from werkzeug.exceptions import HTTPException

    if isinstance(error, HTTPException):
        return _plain(f"{error.code} {error.name}", error.code or 500)
    flask.current_app.logger.error("internal error: %s: %s", type(error).__name__, error)
    return _plain("internal error; the server's terminal has its name", 500)
