"""Pages below a path of another server, as a notebook hub or nginx shows them: https://hub/user/kim/proxy/8050/.

The path (*prefix*) is `--prefix`, or what the other server sends as X-Forwarded-Prefix. It may be stripped from the
addresses that arrive or not. Inside, addresses begin at `/`; only what is sent to the browser has the prefix.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import flask
from dash import Dash

from gcnsim.core.errors import ScenarioError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

ALLOWED: Final = "a path such as /user/kim/proxy/8050, of letters, digits and . _ ~ @ % + - between single slashes"
MOST: Final = 500
"""Characters of a prefix."""

_PATH: Final = re.compile(r"(/[\w.~@%+-]+)*/?", re.ASCII)


def read_prefix(text: str, name: str) -> str:
    """Return a prefix without its last slash, "" for the root. Raises ScenarioError that begins with `name`."""
    if len(text) > MOST or not _PATH.fullmatch(text) or ".." in text.split("/"):
        raise ScenarioError(f"{name}: {text[:80]!r} is not allowed; allowed: {ALLOWED}")
    return text.rstrip("/")


class Prefixed:
    """A WSGI application whose requests know the prefix that the browser sees (SCRIPT_NAME)."""

    def __init__(self, inner: WSGIApplication, prefix: str) -> None:
        self._inner, self._prefix = inner, prefix

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        try:
            prefix = self._prefix or read_prefix(environ.get("HTTP_X_FORWARDED_PREFIX", ""), "X-Forwarded-Prefix")
        except ScenarioError as error:
            start("400 Bad Request", [("Content-Type", "text/plain; charset=utf-8")])
            return [f"gcnsim: {error}\n".encode()]
        path = environ.get("PATH_INFO", "")
        environ["SCRIPT_NAME"] = prefix
        environ["PATH_INFO"] = inside(path, prefix)
        return self._inner(environ, start)


def current() -> str:
    """Return the prefix of the request that is answered; none outside of a request."""
    return flask.request.script_root if flask.has_request_context() else ""


def inside(path: str, prefix: str | None = None) -> str:
    """Return an address as pages know it. prefix: the request's if None."""
    prefix = current() if prefix is None else prefix
    return path.removeprefix(prefix) or "/" if f"{path}/".startswith(f"{prefix}/") else path


def outside(address: str) -> str:
    """Return an address of a page, which begins with `/`, as the browser sees it."""
    return current() + address


class PrefixedDash(Dash):
    """Dash whose first page has the addresses of the request's prefix; Dash itself has one prefix for all requests."""

    def interpolate_index(self, **parts: Any) -> str:  # type: ignore[override]
        """Return the page of `parts`, in HTML."""
        root = outside("/")
        for name in ("css", "scripts", "favicon"):
            parts[name] = parts[name].replace('href="/', f'href="{root}').replace('src="/', f'src="{root}')
        # In JSON with escaped slashes.
        parts["config"] = re.sub(r'(?<="requests_pathname_prefix":)"[^"]*"', json.dumps(root), parts["config"], count=1)
        page: str = super().interpolate_index(**parts)  # type: ignore[no-untyped-call]
        return page
