"""Where `make validate` keeps what it found: docs/validation.json, and tables of docs/validation.md between marks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from studies.validation_runs import Planned

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
JSON: Final = DOCS / "validation.json"
PAGE: Final = DOCS / "validation.md"
COMMITTED: Final = ""
SYSTEMS: Final = "systems"
KERNELS: Final = "kernels"
PARTS: Final = (SYSTEMS, KERNELS)
"""Of docs/validation.json: what the loops over other systems and kernels found; all else is of the committed set."""

TABLES: Final = {COMMITTED: "committed set", SYSTEMS: "systems", KERNELS: "kernels"}
"""The table of each set on the page."""


def write_kept(part: str, found: Mapping[str, Any], path: Path = JSON) -> None:
    """Write `found` as the file's part of this name ("": all but PARTS); the rest stays."""
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if part:
        known[part] = dict(found)
    else:
        known = dict(found) | {name: value for name, value in known.items() if name in PARTS}
    _replace(path, json.dumps(known, indent=1) + "\n")


def write_table(name: str, text: str, path: Path = PAGE) -> None:
    """Put `text` between the marks of the table `name`. Raises ValueError where the page has none."""
    page = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {name} table: begin -->\n", f"<!-- {name} table: end -->\n"
    head, parts, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not parts or not closed:
        raise ValueError(f"{path}: has no table {name}; allowed: one between {begin.strip()} and {end.strip()}")
    _replace(path, head + begin + text + end + tail)


def result_table(found: Mapping[str, Any], judged: list[tuple[str, bool]], *, settings: bool) -> str:
    """What became of each bound of a set and, if wanted, the errors by setting, in Markdown."""
    lines = ["| bound | kept |", "|---|---|"]
    lines += [f"| {words} | {'yes' if kept else '**missed**'} |" for words, kept in judged]
    lines += ["", "| figure | result |", "|---|---|"]
    lines += [f"| runs; configurations | {found['runs']}; {found['configurations']} |"]
    for words, name in (
        ("mean absolute error", "mape"),
        ("median absolute error", "median_ape"),
        ("90th percentile", "p90_ape"),
        ("largest", "max_ape"),
        ("coverage of the 90 % intervals", "coverage"),
    ):
        lines.append(f"| {words} | {_percent(found[name])} |")
    lines.append(f"| bias | {_percent(found['bias'], sign='+')} |")
    for phase, value in found["phases"].items():
        lines.append(f"| {phase}, 90th percentile of the iteration | {_percent(value['p90'])} |")
    if settings:
        lines += ["", "| setting | runs | mean error | bias |", "|---|---|---|---|"]
        by_setting: dict[str, list[float]] = {}
        for row in found["rows"]:
            by_setting.setdefault(row["setting"], []).append(row["error"])
        for setting, errors in sorted(by_setting.items()):
            mean, bias = sum(map(abs, errors)) / len(errors), sum(errors) / len(errors)
            lines.append(f"| {setting} | {len(errors)} | {_percent(mean)} | {_percent(bias, sign='+')} |")
    return "\n".join(lines) + "\n"


def by_method(
    question: Mapping[str, Any],
    runs: Sequence[Planned],
    rows: Sequence[Mapping[str, Any]],
    refused: Mapping[Planned, str],
) -> str:
    """A line for each method of a set: its runs, their errors, or why none was predicted. runs: all of the set."""
    args, words = {run.name: run.args for run in runs}, tuple(question["with"])
    errors: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        errors.setdefault(args[Path(row["run"]).name], []).append(row["error"])
    reasons = {run.args: why for run, why in refused.items()}
    lines = ["| trained with | runs | mean error | largest | bias |", "|---|---|---|---|---|"]
    for method in (*question["methods"], *question["alone"]):
        found = errors.get((*method, *words), [])
        line = f"| `{' '.join(method)}` | {len(found)} |"
        if found:
            sizes = [abs(value) for value in found]
            mean, bias = sum(sizes) / len(found), sum(found) / len(found)
            lines.append(f"{line} {_percent(mean)} | {_percent(max(sizes))} | {_percent(bias, sign='+')} |")
        else:
            lines.append(f"{line} {reasons.get((*method, *words), 'not made')} | | |")
    return "\n".join(lines) + "\n"


def _percent(value: float, sign: str = "") -> str:
    return f"{value:{sign}.1%}".replace("%", " %")


def _replace(path: Path, text: str) -> None:
    made = path.with_name(f".{path.name}.new")
    made.write_text(text, encoding="utf-8")
    made.replace(path)
