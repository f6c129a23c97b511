from __future__ import annotations

import math

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.methods import all_knobs
from gcnsim.workload import knobs


def test_defaults_are_allowed() -> None:
    for knob in knobs.KNOBS.values():
        if knob.standard is not None:
            knob.rule.check(knob.standard, knob.name)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("tau", -1, "at.tau: -1 is not allowed; a whole number of at least 0 and at most 1000"),
        ("tau", 1.5, "at.tau: 1.5 is not a whole number of at least 0"),
        ("tau", True, "True is not a whole number"),
        ("tau", 10**400, "a number of more than 300 digits is not allowed"),
        ("epsilon", 0.0, "above 0 and at most 1"),
        ("epsilon", 1.01, "1.01 is not allowed"),
        ("epsilon", math.nan, "nan is not allowed"),
        ("epsilon", "0.1", "'0.1' is not a number above 0"),
        ("cache", 0.3, "0.3 is not a cache size"),
        ("cache_policy", "degre", "did you mean 'degree'?"),
        ("refresh", 0, "of at least 1"),
        ("refresh", math.inf, "inf is not a whole number"),
        ("rate", -0.1, "of at least 0 and at most 1"),
    ],
)
def test_bad_values_are_refused_with_path_and_range(name: str, value: object, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        knobs.KNOBS[name].rule.check(value, f"at.{name}")
    assert str(caught.value).startswith(f"at.{name}: ")
    assert message in str(caught.value)


def test_edges_of_the_ranges_are_allowed() -> None:
    for name, value in (("tau", 0), ("epsilon", 1), ("epsilon", 1e-9), ("norms", "f"), ("rate", 0.0), ("rate", 1)):
        knobs.KNOBS[name].rule.check(value, name)


def test_every_kind_of_knob_has_its_rule_in_a_scenario() -> None:
    amounts = [knob for knob in all_knobs().values() if knob.kind == "list"]
    assert amounts
    for amount in amounts:
        assert amount.rule.read("25,10", "p") == (25, 10)
        shares = "or shares (10%)" in amount.rule.allowed
        assert shares == (amount.unit == "%")
    for knob in all_knobs().values():
        assert knob.rule.allowed
        if knob.kind in ("int", "real") and knob.low is not None:
            with pytest.raises(ScenarioError):
                knob.rule.check(knob.low - 1, "p")
