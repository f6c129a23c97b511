"""The Timeline page: one steady iteration of a setting, or of a recorded run with its prediction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.state import PageQuestion, moved
from gcnsim.methods import methods
from gcnsim.scenario.option import plain, words

METHOD: Final = "psc-gcn"
SETTING: Final = ("dataset", "graph", "device", "gpus", "bandwidth", "tau", "epsilon", "cache")
"""Fields of the page that are fields of a What-if question."""

OF_RUNS: Final = {"calibration": "--calibration", "measured_compute": "--measured-compute"}
"""Fields of the page that are of a recorded run, and their options."""

FIRST: Final = PageQuestion()


def usual(name: str) -> str:
    """The initial value of a field."""
    return plain(getattr(FIRST, name))


def question(values: Mapping[str, str]) -> PageQuestion:
    """The setting, checked as in What-if. Raises ScenarioError."""
    method = values["method"]
    if method not in methods():
        raise ScenarioError(f"method: unknown {method[:40]!r}; {nearest(method, methods())}")
    return moved(FIRST, methods=[method], **{name: values[name] for name in SETTING})


def check(name: str, text: str) -> None:
    """Check one field. Raises ScenarioError."""
    if name == "worker":
        _worker(text)
    if name in (*SETTING, "method"):
        question({"method": METHOD} | {item: usual(item) for item in SETTING} | {name: text})


def options(values: Mapping[str, str], files: Files) -> dict[str, Any]:
    """The options of the page's job. Raises GcnsimError."""
    run, worker = files.path(values["run"]), _worker(values["worker"])
    given = {name: files.path(values[name]) for name in OF_RUNS}
    if run is not None:
        measured = [path for path in (given.pop("measured_compute"),) if path is not None]
        return {"run": run, "name": values["run"], "measured_compute": measured, "worker": worker, **given}
    for name, path in given.items():
        if path is not None:
            raise ScenarioError(f"{name}: needs a recorded run; give one, or leave this empty")
    chosen = question(values)
    return {"setting": chosen.row_options(files.path(chosen.graph), values["method"]), "worker": worker}


def _worker(text: str) -> int | None:
    """The one worker to show; None for an empty text. Raises ScenarioError."""
    if text and not text.isdecimal():
        raise ScenarioError(f"worker: {text[:40]!r} is not allowed; a whole number, or nothing for the slowest")
    return int(text) if text else None


def command(values: Mapping[str, str]) -> list[str]:
    """The command line that writes the same for Perfetto."""
    if values["run"]:
        given = [word for name, option in OF_RUNS.items() if values[name] for word in (option, values[name])]
        return ["gcnsim", "timeline", values["run"], *given, "--out", "timeline.json"]
    try:
        chosen = question(values)
    except ScenarioError:
        return ["gcnsim", "what-if"]
    row_options = chosen.row_options(chosen.graph or None, values["method"])
    return ["gcnsim", "what-if", *words(row_options), "--timeline", "timeline.json"]
