"""What an answer with measured compute times says of them: the file, its device, how exactly its means are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gcnsim.errors import plural
from gcnsim.machine import Machine, resolve_machine
from gcnsim.results import MeasuredTimes
from gcnsim.scenario import Scenario, setting_text
from gcnsim.simulation import answering

LINKS: Final = "links and messages are still assumed; a calibration gives them (gcnsim calibrate, --calibration)"
LINKS_FITTED: Final = "links and messages are those of the calibration"
LABEL: Final = "MEASURED on {device}"
"""The heading's word for such an answer."""


def measured_times(scenarios: Sequence[Scenario]) -> MeasuredTimes | None:
    """What stands in the place of the cost laws of these settings; None where nothing does."""
    machine = resolve_machine(scenarios[0].cluster)
    found = machine.measured
    if found is None:
        return None
    answers = {each: answer for each in scenarios if (answer := answering(each)) is not None}
    between = tuple(dict.fromkeys(setting_text(each.method) for each, own in answers.items() if own.far is not None))
    error = max(each.error for each in answers.values())
    counts = [len(part.seconds) for each in answers.values() for part in each.near.parts.values()]
    times = f"{min(counts)}" + (f" to {max(counts)}" if max(counts) > min(counts) else "")
    text = (
        f"measured on {found.device['name']}: {plural(found.parts, 'part')}, each alone, {times} iterations, known "
        f"to {100 * error:.1f} %{_between(between)}; {found.path} (SHA-256 {found.sha256[:12]})"
    )
    return MeasuredTimes(found.path, found.sha256, str(found.device["name"]), error, between, links_of(machine), text)


def links_of(machine: Machine) -> str:
    """What network and messages are, in a clause."""
    return LINKS if machine.calibration is None else LINKS_FITTED


def _between(settings: Sequence[str]) -> str:
    return f", between two measured rates for {', '.join(settings)}" if settings else ""
