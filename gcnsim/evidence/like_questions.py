"""The errors of answers to similar questions: measured times, predicted without fitted figures.

The times are in `gcnsim/data/given_rows.yaml`; others measured them on GPUs. A row is similar to a question if both
train mini-batches or both do not, and likewise for attention. Further criteria (`CRITERIA`, most important first) apply
as long as `ENOUGH` rows remain: a criterion that leaves fewer is skipped, and the answer says so. All rows were known
when formulas were chosen, so no share within ranges is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.errors import plural
from gcnsim.core.yaml_files import read_yaml
from gcnsim.hardware import device
from gcnsim.results import LikeQuestions, Unlike
from gcnsim.scenario import Scenario
from gcnsim.scenario.machine import resolve_machine

ROWS: Final = Path(__file__).resolve().parent.parent / "data" / "given_rows.yaml"

ENOUGH: Final = 5
"""The least number of rows for which a criterion is meaningful."""

FEWEST: Final = 3
"""With fewer rows no error is reported."""

MANY: Final = 16
"""The number of GPUs from which errors differ (docs/reproduce.md)."""

NONE: Final = "no measured row is like this question"
KNOWN: Final = "known when formulas were chosen"
"""What an error is worth: no row was left out with the formulas and readings that were chosen with it in view."""

ARCHITECTURES: Final[Mapping[str, Sequence[str]]] = {
    "Maxwell": ("m40",),
    "Pascal": ("gtx-1080-ti", "p100", "p100-pcie", "p4"),
    "Volta": ("v100-16", "v100-32", "v100-pcie-16", "v100-pcie-32"),
    "Turing": ("rtx-2080-ti", "t4", "titan-rtx"),
    "Ampere": (
        "a100-40", "a100-80", "a100-pcie-40", "a100-pcie-80", "a10", "a10g", "a30", "rtx-3080", "rtx-3090", "rtx-a4000",
        "rtx-a5000", "rtx-a6000",
    ),
    "Ada": ("l20", "l4", "l40", "l40s", "rtx-4090", "rtx-6000-ada"),
    "Hopper": ("gh200", "h100", "h100-nvl", "h100-pcie", "h20", "h200"),
    "Blackwell": ("b200", "b300", "gb200", "rtx-5090"),
    "Vega": ("mi60",),
    "CDNA": ("mi100",),
    "CDNA 2": ("mi210", "mi250x"),
    "CDNA 3": ("mi300x",),
}  # fmt: skip
"""The architecture of each catalogue device, by its maker's name."""


@dataclass(frozen=True, slots=True)
class SettingFacts:
    """The properties compared. generation: of the GPUs, in a word or two; transport: between several GPUs."""

    generation: str
    transport: str
    servers: int
    gpus: int
    method: str
    minibatch: bool
    attention: bool


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A measured time with its prediction. error: signed, relative, without fitted figures."""

    setting: SettingFacts
    error: float


CRITERIA: Final[tuple[Callable[[SettingFacts], str], ...]] = (
    lambda item: "one server" if item.servers == 1 else "several servers",
    lambda item: "" if item.gpus == 1 else item.transport,
    lambda item: f"at most {MANY} GPUs" if item.gpus <= MANY else f"more than {MANY} GPUs",
    lambda item: item.method,
    lambda item: item.generation,
)
"""The criteria in words, most important first; empty if a criterion does not apply."""


def like_questions(scenario: Scenario) -> LikeQuestions | None:
    """The errors for questions similar to this one.

    None for CPU cores, and for fitted figures or measured compute, whose error the interval includes.
    """
    machine = resolve_machine(scenario.cluster)
    fitted = machine.calibration is not None or machine.platform is not None or machine.measured is not None
    if machine.kind != "gpu" or fitted:
        return None
    cluster = scenario.cluster
    generations = {generation_of(name) for name in cluster.devices or (cluster.device,)}
    setting = SettingFacts(
        generation=generations.pop() if len(generations) == 1 else "unequal GPUs",
        transport=machine.between.transport,
        servers=cluster.servers,
        gpus=cluster.gpus,
        method=scenario.method.name,
        minibatch=scenario.method.mini_batches,
        attention=scenario.workload.model == "gat",
    )
    return answer_for(setting, measured_rows())


def answer_for(setting: SettingFacts, rows: Sequence[MeasuredRow]) -> LikeQuestions:
    """The answer of `rows` for `setting`."""
    found = [row for row in rows if _musts(row.setting) == _musts(setting)]
    alike = [word for word in _musts(setting) if word]
    if len(found) < FEWEST:
        return LikeQuestions(len(found), None, tuple(alike), (), NONE)
    passed_over = []
    for words in CRITERIA:
        if not (word := words(setting)):
            continue
        agreeing = [measured_row for measured_row in found if words(measured_row.setting) == word]
        if len(agreeing) >= min(ENOUGH, len(found)):
            found = agreeing
            alike.append(word)
        else:
            passed_over.append(words)
    unlike = [
        Unlike(words(setting), sum(words(measured_row.setting) == words(setting) for measured_row in found))
        for words in passed_over
    ]
    error = float(np.median([abs(measured_row.error) for measured_row in found]))
    text = _text(len(found), error, alike, unlike)
    return LikeQuestions(len(found), error, tuple(alike), tuple(unlike), text)


@cache
def measured_rows() -> tuple[MeasuredRow, ...]:
    """The bundled rows, in the order of their tables."""
    return tuple(_row(item) for item in read_yaml(ROWS))


def generation_of(name: str) -> str:
    """The architecture of a catalogue device; for a device file, its title."""
    profile = device(name)
    return next((key for key, names in ARCHITECTURES.items() if profile.name in names), profile.title)


def _row(raw: Mapping[str, Any]) -> MeasuredRow:
    names = ("transport", "servers", "gpus", "method", "minibatch", "attention")
    setting = SettingFacts(generation=generation_of(raw["device"]), **{name: raw[name] for name in names})
    return MeasuredRow(setting, raw["error"])


def _musts(setting: SettingFacts) -> tuple[str, str]:
    return ("mini-batches" if setting.minibatch else "", "attention" if setting.attention else "")


def _text(rows: int, error: float, alike: Sequence[str], unlike: Sequence[Unlike]) -> str:
    """The text; differences are in the first clause, which short answers show."""
    counts = ", ".join(f"{item.what}: {item.rows or 'none'}" for item in unlike)
    besides = f" (of them {counts})" if counts else ""
    found = f"{plural(rows, 'measured row')}, {KNOWN}: median error {100 * error:.0f} %{besides}"
    return f"{found}; alike: {', '.join(alike)}" if alike else found
