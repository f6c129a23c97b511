"""The command that measures what a file of measured times lacks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gcnsim.records.compute_facts import MeasuredCompute

SWITCHES: Final = ("preaggregate",)
"""Options without a value."""

BOTH: Final = ("bias",)
"""Options that are there, or with `no-` before them; the first is the default."""

TRAINING: Final = ("dtype", "aggregator", "threads", "overlap", "optimizer", "seed", "feature_dim")
"""Options of training that are repeated where the file says them."""

OF_MODEL: Final = (
    "model", "layers", "hidden", "heads", "norm", "dropout", "dropout_order", "sage_mean", "preaggregate",
    "bias",
)  # fmt: skip
"""Options of the model, by the name of the option."""


def measure_command(found: MeasuredCompute | None, graph: str | None, **question: Any) -> str:
    """`python -m runtime.measure ...` for what `question` asks and, of all else, as `found` was measured, if it was.

    graph: the graph's file. question: options by name; knobs of the method under `knobs`.
    """
    knobs = question.pop("knobs", {})
    content: dict[str, Any] = {}
    if found is not None:
        content |= {name: found.model[name] for name in OF_MODEL if found.model.get(name) is not None}
        content |= {name: found.training[name] for name in TRAINING if found.training.get(name) is not None}
        content |= {"device": found.device["kind"], "threads": found.device.get("threads") or content.get("threads")}
        graph, content["parts"] = graph or found.graph.get("file"), found.parts
    content |= {name: value for name, value in question.items() if value is not None}
    options = {"graph": graph or "GRAPH", "parts": content.pop("parts")}
    return shlex.join(["python", "-m", "runtime.measure", *written(options | content | dict(knobs)), "--out", "FILE"])


def written(options: Mapping[str, Any]) -> Iterable[str]:
    """Options of `runtime` as words of a command line."""
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if name in SWITCHES:
            yield from [option] if value else []
        elif name in BOTH:
            yield from [] if value else [f"--no-{name}"]
        else:
            yield from (option, _text(value))


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)
