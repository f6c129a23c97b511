"""The answer in sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.core.ids import FloatArray
from gcnsim.planning.answer import confidence_text, times_as_fast
from gcnsim.planning.recommend import Choice


@dataclass(frozen=True, slots=True)
class Drawn:
    """Times under four draws."""

    times: FloatArray

    def epochs_over(self, other: Drawn) -> FloatArray:
        """Times of an epoch over those of the other."""
        return self.times / other.times


def choice(times: list[float], pool: int) -> Choice:
    own = Drawn(np.array(times))
    wins = np.array([True, True, True, False])
    return Choice(own, (own,) * pool, wins, "why")  # type: ignore[arg-type]


def test_of_one_machine_its_settings_are_compared() -> None:
    assert confidence_text(choice([1.0], 5)) == (
        "75 %: in 3 of 4 random draws of the assumptions, this setting is the fastest of 5 tried or within 3 % of it"
    )
    assert confidence_text(choice([1.0], 1)) == "no other allowed setting was simulated"


def test_of_several_machines_they_are_compared_under_the_same_draws() -> None:
    own, slow, even = (choice(times, 1) for times in ([1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 3.0], [1.0, 1.0, 4.0, 5.0]))
    text = confidence_text(own, [slow.estimate])
    assert text.startswith("no other allowed setting")
    message = "; 75 %: in 3 of 4 random draws, it is as fast as the other machine's best or within 3 % of it"
    assert text.endswith(message)
    assert confidence_text(own, [slow.estimate, even.estimate]).endswith(
        "50 %: in 2 of 4 random draws, it is as fast as the best of every other machine or within 3 % of it"
    )


def test_ratios_are_read_either_way() -> None:
    ratios = (1.01, 1.5, 3.31, 202.4, 0.4, 1 / 202.4)
    assert [times_as_fast(ratio).removesuffix(" as") for ratio in ratios] == [
        "as fast",
        "1.50 times as fast",
        "3.3 times as fast",
        "202 times as fast",
        "2.5 times as slow",
        "202 times as slow",
    ]
