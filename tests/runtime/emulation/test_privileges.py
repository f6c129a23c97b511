"""Which limiter is used where, by what the system allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.core.errors import ScenarioError
from runtime.emulation import privileges
from runtime.emulation.privileges import limiter_of

REASON = "no luck"


@pytest.mark.parametrize(
    ("root", "own", "name", "found"),
    [
        (None, None, "auto", "netns"),
        (REASON, None, "auto", "userns"),
        (REASON, REASON, "auto", "exchange"),
        (None, REASON, "netns", "netns"),
        (None, None, "userns", "userns"),
        (None, None, "exchange", "exchange"),
    ],
)
def test_the_first_that_works(
    root: str | None, own: str | None, name: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privileges, "refused", lambda: root)
    monkeypatch.setattr(privileges, "_refused_own", lambda: own)
    assert limiter_of(name) == found


@pytest.mark.parametrize("name", ["netns", "userns"])
def test_one_that_was_asked_for_and_does_not_work_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges, "refused", lambda: REASON)
    monkeypatch.setattr(privileges, "_refused_own", lambda: REASON)
    with pytest.raises(ScenarioError, match=f"--limiter: {name} is not possible here: {REASON}; allowed: auto"):
        limiter_of(name)


def test_without_any_tool_the_exchange_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert limiter_of("auto") == "exchange"
