"""How far off answers to similar questions were: measured times, predicted without fitted figures.

The times are those of `gcnsim/data/given_rows.yaml`, which others measured on GPUs. A row is like a question where
mini-batches and attention agree. Of what else may agree (`CRITERIA`, the most important first) as much is asked as
leaves `ENOUGH` rows: a criterion that would leave fewer is passed over, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.errors import plural
from gcnsim.hardware import device
from gcnsim.io.yaml_files import read_yaml
from gcnsim.machine import resolve_machine
from gcnsim.results import LikeQuestions, Unlike
from gcnsim.scenario import Scenario

ROWS: Final = Path(__file__).resolve().parent.parent / "data" / "given_rows.yaml"

ENOUGH: Final = 5
"""Rows from which a share within ranges says anything."""

FEWEST: Final = 3
"""Of fewer rows no error is told."""

MANY: Final = 16
"""GPUs; the errors of more are others (docs/reproduce.md)."""

NONE: Final = "no measured row is like this question"

ARCHITECTURES: Final[Mapping[str, Sequence[str]]] = {
    "Maxwell": ("m40",),
    "Pascal": ("gtx-1080-ti", "p100", "p100-pcie"),
    "Volta": ("v100-16", "v100-32", "v100-pcie-16", "v100-pcie-32"),
    "Turing": ("rtx-2080-ti", "t4", "titan-rtx"),
    "Ampere": (
        "a100-40", "a100-80", "a100-pcie-40", "a100-pcie-80", "a10g", "a30", "rtx-3080", "rtx-3090", "rtx-a4000",
        "rtx-a5000", "rtx-a6000",
    ),
    "Ada": ("l20", "l4", "l40s", "rtx-4090"),
    "Hopper": ("gh200", "h100", "h100-nvl", "h100-pcie", "h200"),
    "Blackwell": ("b200", "b300", "rtx-5090"),
    "Vega": ("mi60",),
    "CDNA 2": ("mi210", "mi250x"),
    "CDNA 3": ("mi300x",),
}  # fmt: skip
"""A GPU's generation is its architecture, by its maker's name of it; the devices of the catalogue."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What may be alike. generation: of the GPUs, in a word or two; transport: between them, of several."""

    generation: str
    transport: str
    servers: int
    gpus: int
    method: str
    minibatch: bool
    attention: bool


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A measured time beside its prediction. error: signed, relative, without any figure that was fitted; inside:
    whether the time lies in the range."""

    setting: Setting
    error: float
    inside: bool


CRITERIA: Final[tuple[Callable[[Setting], str], ...]] = (
    lambda each: "one server" if each.servers == 1 else "several servers",
    lambda each: "" if each.gpus == 1 else each.transport,
    lambda each: f"at most {MANY} GPUs" if each.gpus <= MANY else f"more than {MANY} GPUs",
    lambda each: each.method,
    lambda each: each.generation,
)
"""In words, the most important first; no word where a criterion does not apply."""


def like_questions(scenario: Scenario) -> LikeQuestions | None:
    """What is known of questions like this one; None of CPU cores, and where figures are fitted to runs or compute
    is measured, whose own error the interval then has."""
    machine = resolve_machine(scenario.cluster)
    fitted = machine.calibration is not None or machine.platform is not None or machine.measured is not None
    if machine.kind != "gpu" or fitted:
        return None
    cluster = scenario.cluster
    generations = {generation_of(name) for name in cluster.devices or (cluster.device,)}
    asked = Setting(
        generation=generations.pop() if len(generations) == 1 else "unequal GPUs",
        transport=machine.between.transport,
        servers=cluster.servers,
        gpus=cluster.gpus,
        method=scenario.method.name,
        minibatch=scenario.method.mini_batches,
        attention=scenario.workload.model == "gat",
    )
    return told(asked, measured_rows())


def told(asked: Setting, rows: Sequence[MeasuredRow]) -> LikeQuestions:
    """What `rows` say of `asked`."""
    found = [each for each in rows if _musts(each.setting) == _musts(asked)]
    alike = [word for word in _musts(asked) if word]
    if len(found) < FEWEST:
        return LikeQuestions(len(found), None, None, tuple(alike), (), NONE)
    passed_over = []
    for words in CRITERIA:
        if not (word := words(asked)):
            continue
        agreeing = [each for each in found if words(each.setting) == word]
        if len(agreeing) >= min(ENOUGH, len(found)):
            found = agreeing
            alike.append(word)
        else:
            passed_over.append(words)
    unlike = [Unlike(words(asked), sum(words(each.setting) == words(asked) for each in found)) for words in passed_over]
    error = float(np.median([abs(each.error) for each in found]))
    inside = float(np.mean([each.inside for each in found]))
    text = _text(len(found), error, inside, alike, unlike)
    return LikeQuestions(len(found), error, inside, tuple(alike), tuple(unlike), text)


@cache
def measured_rows() -> tuple[MeasuredRow, ...]:
    """The rows of the package, in the order of their tables."""
    return tuple(_row(each) for each in read_yaml(ROWS))


def generation_of(name: str) -> str:
    """The architecture of a device of the catalogue; the title of one in a file."""
    found = device(name)
    return next((each for each, names in ARCHITECTURES.items() if found.name in names), found.title)


def _row(raw: Mapping[str, Any]) -> MeasuredRow:
    names = ("transport", "servers", "gpus", "method", "minibatch", "attention")
    setting = Setting(generation=generation_of(raw["device"]), **{name: raw[name] for name in names})
    return MeasuredRow(setting, raw["error"], raw["inside"])


def _musts(each: Setting) -> tuple[str, str]:
    return ("mini-batches" if each.minibatch else "", "attention" if each.attention else "")


def _text(rows: int, error: float, inside: float, alike: Sequence[str], unlike: Sequence[Unlike]) -> str:
    """What is unlike stands in the first clause, which short answers show."""
    counts = ", ".join(f"{each.what}: {each.rows or 'none'}" for each in unlike)
    besides = f" (of them {counts})" if counts else ""
    off = f"median error {100 * error:.0f} %, {100 * inside:.0f} % inside their range"
    found = f"{plural(rows, 'measured row')}, {off}{besides}"
    return f"{found}; alike: {', '.join(alike)}" if alike else found
