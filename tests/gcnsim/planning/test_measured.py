"""A measured time as it is read, before anything is made of it."""

from __future__ import annotations

import pytest

from gcnsim.planning import read_measurement
from tests.gcnsim.validation.conftest import WriteRun


def test_how_sure_a_recorded_run_is_is_the_standard_error_of_its_mean(write_run: WriteRun) -> None:
    # The first five iterations are the warm-up. Student's interval of three times is 1.8 times as wide as a normal one.
    path = write_run("run", seconds=[9.0] * 5 + [0.1, 0.2, 0.3])
    found = read_measurement(f"psc-gcn={path}")
    assert found.method == "psc-gcn"
    assert found.seconds == pytest.approx(0.2)
    assert found.spread == pytest.approx(0.1 / 3**0.5 / 0.2)
    assert read_measurement("640ms").spread == 0.0
