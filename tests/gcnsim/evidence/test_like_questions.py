"""Measured rows like a question: what must agree, what is passed over, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gcnsim.evidence.like_questions import (
    ARCHITECTURES,
    ENOUGH,
    FEWEST,
    NONE,
    MeasuredRow,
    SettingFacts,
    answer_for,
    generation_of,
    measured_rows,
)
from gcnsim.evidence.like_questions import like_questions as of_scenario
from gcnsim.hardware import device, devices
from gcnsim.results import LikeQuestions, Unlike
from gcnsim.scenario import from_mapping

SETTING = SettingFacts("Turing", "staged", 1, 4, "full-graph", minibatch=False, attention=False)


def rows(count: int, error: float = 0.1, **changes: Any) -> list[MeasuredRow]:
    return [MeasuredRow(replace(SETTING, **changes), error)] * count


def test_all_rows_alike_are_counted_with_their_errors() -> None:
    measured = [*rows(4, -0.16), *rows(3, 0.02), *rows(3, 0.5)]
    found = answer_for(SETTING, measured)
    alike = ("one server", "staged", "at most 16 GPUs", "full-graph", "Turing")
    text = f"10 measured rows, known when formulas were chosen: median error 16 %; alike: {', '.join(alike)}"
    assert found == LikeQuestions(10, 0.16, alike, (), text)


@pytest.mark.parametrize("must", ["minibatch", "attention"])
def test_mini_batches_and_attention_must_agree(must: str) -> None:
    other = rows(20, **{must: True})
    assert answer_for(SETTING, [*rows(5), *other]).rows == 5
    none = answer_for(SETTING, [*rows(2), *other])
    assert (none.rows, none.median_error, none.text) == (2, None, NONE)
    word = {"minibatch": "mini-batches", "attention": "attention"}[must]
    question: dict[str, Any] = {must: True}
    assert answer_for(replace(SETTING, **question), [*rows(5), *other]).alike[0] == word


def test_few_rows_that_agree_in_the_musts_are_all_counted_in_what_they_share() -> None:
    measured = rows(FEWEST, attention=True)
    like_questions = answer_for(replace(SETTING, attention=True, method="pipegcn", servers=2), measured)
    assert like_questions.rows == FEWEST
    assert like_questions.alike == ("attention", "staged", "at most 16 GPUs", "Turing")
    assert like_questions.unlike == (Unlike("several servers", 0), Unlike("pipegcn", 0))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"servers": 3}, "several servers"),
        ({"transport": "direct"}, "direct"),
        ({"gpus": 17}, "more than 16 GPUs"),
        ({"method": "pipegcn"}, "pipegcn"),
        ({"generation": "Hopper"}, "Hopper"),
    ],
)
def test_a_criterion_that_leaves_too_few_rows_is_passed_over_and_named(change: dict[str, Any], word: str) -> None:
    setting = replace(SETTING, **change)
    few = answer_for(setting, [*rows(20), *rows(ENOUGH - 1, 0.9, **change)])
    assert (few.rows, few.unlike) == (20 + ENOUGH - 1, (Unlike(word, ENOUGH - 1),))
    assert f"% (of them {word}: {ENOUGH - 1}); alike: " in few.text
    none = answer_for(setting, rows(20))
    assert none.unlike == (Unlike(word, 0),)
    assert f"% (of them {word}: none); alike: " in none.text
    enough = answer_for(setting, [*rows(20), *rows(ENOUGH, 0.9, **change)])
    assert (enough.rows, enough.median_error, enough.unlike) == (ENOUGH, 0.9, ())
    assert word in enough.alike


def test_the_more_important_criterion_is_met_first() -> None:
    """Five rows have either, none both: the servers decide."""
    measured = [*rows(ENOUGH, servers=2), *rows(ENOUGH, generation="Hopper")]
    like_questions = answer_for(replace(SETTING, servers=2, generation="Hopper"), measured)
    assert "several servers" in like_questions.alike
    assert like_questions.unlike == (Unlike("Hopper", 0),)


def test_one_gpu_has_no_transport() -> None:
    assert answer_for(replace(SETTING, gpus=1, transport="direct"), rows(9)).unlike == ()


def test_every_gpu_of_the_catalogue_has_one_generation() -> None:
    named = sorted(name for names in ARCHITECTURES.values() for name in names)
    assert named == [name for name in devices() if device(name).kind == "gpu"]
    assert generation_of("rtx-2080-ti") == generation_of("t4") == "Turing"


def test_the_rows_of_the_package_are_of_known_methods_and_generations() -> None:
    assert len(measured_rows()) >= 30
    assert {row.setting.generation for row in measured_rows()} <= ARCHITECTURES.keys()
    assert all(row.error > -1.0 for row in measured_rows())


def scenario(**cluster: Any) -> Any:
    place = {"device": "t4", "gpus": 4, "gpus_per_server": 4, "bandwidth": "10Gbps"}
    return from_mapping(
        {"schema": "gcnsim.scenario/1", "workload": {"dataset": "reddit"}, "cluster": place | cluster}, "a test"
    )


def test_a_question_is_asked_as_its_machine_is() -> None:
    staged, direct = (of_scenario(scenario(transport=name)) for name in ("staged", "direct"))
    assert staged is not None
    assert direct is not None
    assert {"one server", "staged"} <= set(staged.alike)
    assert Unlike("direct", 0) in direct.unlike
    mixed = of_scenario(scenario(gpus_per_server=2, devices=["t4", "a10g"]))
    assert mixed is not None
    assert Unlike("unequal GPUs", 0) in mixed.unlike
