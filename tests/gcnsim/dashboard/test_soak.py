"""Twenty users at once: nobody is refused, and nobody's answer is another's."""

from __future__ import annotations

import pytest

from benchmarks.bench_dashboard import QUIET, USERS, together
from benchmarks.visitor import Visitor
from gcnsim.core.units import format_seconds
from tests.dashboards import command_line

SECONDS = 15.0


@pytest.mark.slow
def test_twenty_users_move_sliders_without_an_error(dashboard: str) -> None:
    taken, wrong = together(dashboard, SECONDS, QUIET)
    assert wrong == [], f"{len(taken)} moves"
    assert len(taken) >= USERS
    visitor = Visitor(dashboard)
    answered = visitor.open("?bandwidth=10&tau=1&epsilon=0.3")
    visitor.close()
    content = command_line(*str(answered.response["command"]["children"]).split()[2:])
    best = content["recommendation"]["row"]
    assert answered.headline.startswith(f"Use {best['method']}")
    assert f" at 10 Gbps: {format_seconds(best['iteration_s'])} per iteration (" in answered.headline
