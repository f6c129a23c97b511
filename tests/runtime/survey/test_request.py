"""What may be asked of a survey, and what it does unasked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from runtime.survey import RULE, SurveyRequest, read_rule


def survey_request(**fields: Any) -> SurveyRequest:
    return SurveyRequest(Path("survey"), read_rule(RULE), **fields)


def test_unasked_it_begins_runs_for_half_an_hour_on_two_workers() -> None:
    usual = survey_request()
    assert (usual.device, usual.workers, usual.minutes, usual.bandwidth, usual.json) == ("cpu", 2, 30.0, None, False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"device": "gpu"}, "--device: unknown 'gpu'; did you mean 'cpu'?"),
        *(
            ({"workers": count}, f"--workers: {count} is not allowed; a whole number of at least 1 and at most 4096")
            for count in (0, 4097)
        ),
        *(
            ({"minutes": wrong}, f"--minutes: {wrong} is not allowed; a number above 0 and at most 10000")
            for wrong in (0, 10_001, -1, math.inf, math.nan)
        ),
    ],
)
def test_what_means_nothing_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        survey_request(**fields)
    assert message in str(caught.value)


def test_the_ends_are_allowed() -> None:
    assert [survey_request(workers=count).workers for count in (1, 4096)] == [1, 4096]
    assert [survey_request(minutes=most).minutes for most in (0.1, 10_000)] == [0.1, 10_000]
