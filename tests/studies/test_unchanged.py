"""What counts as a difference between the answers of two versions."""

from __future__ import annotations

from studies.unchanged import differences

OLD = '{"run": {"iterations": 5, "settled": true}, "rows": [{"s": 1.5}, {"s": 2}]}'


def test_equal_answers_have_no_differences() -> None:
    assert list(differences(OLD, OLD)) == []
    assert list(differences("a table", "a table")) == []


def test_keys_that_were_added_are_none() -> None:
    added = OLD.replace('"settled": true', '"settled": true, "simulated": 5, "by_period": 0')
    assert list(differences(OLD, added)) == []
    # Once both versions have them they count.
    assert any("by_period" in line for line in differences(added, added.replace('"by_period": 0', '"by_period": 1')))


def test_other_values_and_keys_are() -> None:
    assert [line for line in differences(OLD, OLD.replace("1.5", "1.25")) if line[0] in "+-"][2:] == [
        '-   "s": 1.5',
        '+   "s": 1.25',
    ]
    assert any("new" in line for line in differences(OLD, OLD.replace('"rows"', '"new": 1, "rows"')))
    assert any("b table" in line for line in differences("a table", "b table"))
