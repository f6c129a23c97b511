"""Which settings of a grid that is too large are looked at: picked by a genetic search over their bounds (Optuna).

Least time and least cost at the analytic bound are minimised together (NSGA-II), its seed drawn from a named stream, so
the same question looks at the same settings.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gcnsim.capacity.effects import coordinates
from gcnsim.capacity.search import Setting
from gcnsim.errors import ScenarioError
from gcnsim.scenario import Scenario, knob_text
from gcnsim.streams import stream

LIMIT: Final = 2000
"""Settings of which bounds are computed, unless the question says otherwise."""

POPULATION: Final = 48
"""Settings of a generation, whose bounds are computed side by side."""

PATIENCE: Final = 8
"""Generations without a new setting after which the search ends."""

Bounded = Callable[[Sequence[Scenario]], list[Setting]]
"""The settings that are allowed, of some, with their bounds."""


def picked(every: Sequence[Scenario], limit: int, seed: int, bounded: Bounded) -> list[Setting]:
    """At most `limit` of `every`, with their bounds. Raises ScenarioError without Optuna."""
    optuna = _optuna(len(every), limit)
    drawn = int(stream(seed, "recommend").integers(2**31))
    sampler = optuna.samplers.NSGAIISampler(population_size=POPULATION, seed=drawn)
    search = optuna.create_study(directions=("minimize", "minimize"), sampler=sampler)
    places: dict[tuple[str, ...], list[Scenario]] = {}
    for scenario in every:
        places.setdefault(_place(scenario), []).append(scenario)
    axes = [sorted(set(values)) for values in zip(*places, strict=True)]
    known: dict[tuple[str, ...], list[Setting]] = {}
    idle = 0
    while idle < PATIENCE and sum(map(len, known.values())) < limit:
        trials = [search.ask() for _ in range(POPULATION)]
        asked = [tuple(_suggested(trial, axes)) for trial in trials]
        new = [place for place in dict.fromkeys(asked) if place in places and place not in known]
        idle = 0 if new else idle + 1
        told = {each.scenario: each for each in bounded([each for place in new for each in places[place]])}
        known |= {place: [told[each] for each in places[place] if each in told] for place in new}
        for trial, place in zip(trials, asked, strict=True):
            _tell(search, trial, known.get(place))
    return [each for settings in known.values() for each in settings][:limit]


def _suggested(trial: Any, axes: Sequence[Sequence[str]]) -> list[str]:
    return [trial.suggest_categorical(str(number), list(values)) for number, values in enumerate(axes)]


def _tell(search: Any, trial: Any, settings: Sequence[Setting] | None) -> None:
    """The least of what stands at a place; a failure where nothing does, or nothing that is allowed."""
    if settings:
        search.tell(trial, min(each.least for each in settings))
    else:
        search.tell(trial, state=importlib.import_module("optuna.trial").TrialState.FAIL)


def _place(scenario: Scenario) -> tuple[str, ...]:
    """Where a setting stands in each knob, the same knobs for all."""
    found: Mapping[str, str] = coordinates(scenario)
    names = ("machine", "GPUs", "bandwidth", "method", "tau", "rate", "cache")
    return (*(found.get(name, "") for name in names), knob_text(scenario.method))


def _optuna(settings: int, limit: int) -> Any:
    try:
        optuna = importlib.import_module("optuna")
    except ImportError:
        raise ScenarioError(
            f"--limit: {settings:,} settings are more than {limit:,}; ask for fewer, give a larger --limit, or install "
            "Optuna, which picks some of them (pip install 'gcnsim[recommend]')"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
