"""Mutants that were drawn once and proved to change nothing that anyone could see: not counted, each with its proof."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from studies.mutation.kinds import Mutation

PROVED: Final[Mapping[tuple[str, str], str]] = {
    ("self.had = 0.0", "self.had = 1.0"): (
        "core time is compared among threads only, all begin with the same, and a picosecond more is far below DONE"
    ),
    (
        "keys = list(zip(spans.iteration[chosen].tolist(), place.tolist(), strict=True))",
        "keys = list(zip(place.tolist(), spans.iteration[chosen].tolist(), strict=True))",
    ): "the pairs are only looked up, and as many are equal either way round",
    (
        "return (side.links[name].seconds or 0.0) / side.iteration_s",
        "return (side.links[name].seconds or 1.0) / side.iteration_s",
    ): "asked only of links whose seconds are known and above 0 on both sides",
    (
        "reach = np.where(spread < 0, seconds / max(result.low_s, 1e-300), result.high_s / seconds)",
        "reach = np.where(spread <= 0, seconds / max(result.low_s, 1e-300), result.high_s / seconds)",
    ): "either side is raised to the power `spread`, and to the power 0 both are 1",
    ("if exit.code < 0 or exit.code in ENDED_BY_TERM:", "if exit.code <= 0 or exit.code in ENDED_BY_TERM:"): (
        "only unwilling exits are judged, and one with code 0 is always willing"
    ),
}
"""The line as it is and as it would be: why both do the same."""


def proof(root: Path, mutation: Mutation) -> str | None:
    """Why a mutant changes nothing; None where nobody has proved it."""
    source = (root / mutation.path).read_bytes()
    if mutation.kind == "dropped" and _last_none(source, mutation.line):
        return "a function returns None at its end without being told to"
    lines = (text.decode().splitlines()[mutation.line - 1].strip() for text in (source, mutation.applied(source)))
    before, after = lines
    return PROVED.get((before, after))


def _last_none(source: bytes, line: int) -> bool:
    """Whether `return None` in `line` is the last statement of its function."""
    last = (
        node.body[-1]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return any(item.lineno == line and ast.unparse(item) in ("return", "return None") for item in last)
