"""The text of a recommendation says times in words that cannot be misread."""

from __future__ import annotations

import pytest

from gcnsim.report.recommended import saved_by
from gcnsim.results import OtherRule


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.02, 0.48, "2 to 48 % shorter"),
        (-1.87, -1.0, "100 to 187 % longer"),
        (-0.18, 0.01, "18 % longer to 1.0 % shorter"),
        (-0.03, 0.0, "0 to 3 % longer"),
        (-0.0, 0.48, "0 to 48 % shorter"),
        (0.0, 0.0, "the same"),
    ],
)
def test_what_another_rule_saves_is_longer_or_shorter_and_never_negative(low: float, high: float, words: str) -> None:
    rule = OtherRule("--max-staleness 1", "psc-gcn", 1.0, None, 0.0, low, high, meets=True, chance=1.0)
    assert saved_by(rule) == words
