"""What a question with measured compute times asks where it names neither methods nor rates: what was measured."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from gcnsim.methods import COMPARED, has_knob
from gcnsim.planning.what_if import Progress
from gcnsim.scenario import Scenario
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation import measured_methods

RATES: Final = ("epsilon", "rate")


def those_measured(names: Sequence[str], base: Scenario, notice: Progress) -> list[str]:
    """The compared methods that the measured file contains, or all that it contains; empty without such a file.

    notice: called if they are not all of `names` (default: those usually compared).
    """
    measured = resolve_machine(base.cluster).measured
    if measured is None:
        return []
    usual, known = names or COMPARED, measured_methods(measured)
    shared_names = [name for name in usual if name in known] or list(known)
    if shared_names != list(usual):
        notice(f"methods: {', '.join(shared_names)}, of which {measured.path} has times")
    return shared_names


def rates_measured(
    names: Sequence[str], base: Scenario, fixed: Collection[str], overrides: Sequence[str]
) -> dict[str, list[Any]]:
    """The measured rates of the methods `names`, by knob, for knobs without a given value."""
    measured = resolve_machine(base.cluster).measured
    if measured is None:
        return {}
    fixed = {*fixed, *(text.partition("=")[0].strip().removeprefix("method.") for text in overrides)}
    own = [setting.knobs for setting in measured.settings if setting.method in names]
    rates = {
        knob: sorted({item[knob] for item in own if item.get(knob) is not None})
        for knob in RATES
        if knob not in fixed and any(has_knob(name, knob) for name in names if name != "all")
    }
    return {knob: values for knob, values in rates.items() if values}
