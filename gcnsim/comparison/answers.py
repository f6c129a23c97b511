"""Sides out of files that the simulator wrote: a result, or one row of a what-if."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from gcnsim.breakdown import Parts, iteration_s
from gcnsim.comparison.iteration_report import WHOLE, IterationReport, report_of_result, report_of_row
from gcnsim.errors import FileError
from gcnsim.evidence.facts import facts_of_row
from gcnsim.io.json_files import mistake, parse_json, read_text
from gcnsim.results import Row, SimulationReport, from_plain

RESULT, ANSWER = "gcnsim.result/1", "gcnsim.what-if/1"
ROUNDING = 1e-3
"""Share by which parts in a file may miss their sum, because of rounded digits."""

ROW = "#"
"""Stands between a what-if's file and the number of a row, the first being 1."""


def read_answer(path: str, label: str) -> IterationReport:
    """The side in the JSON file at `path`: of `gcnsim simulate`, or a row (`FILE#2`) of `gcnsim what-if`.

    Raises FileError, naming the file and what is wrong with it.
    """
    name, mark, number = path.rpartition(ROW)
    file = Path(name if mark and not Path(path).exists() else path)
    number = number if file == Path(name) and mark else ""
    document = parse_json(read_text(file), file)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema not in (RESULT, ANSWER):
        raise FileError(f"{file}: schema: {schema!r} is not known; allowed: {RESULT} or {ANSWER}, by --json or --out")
    wrong = mistake(document, "result" if schema == RESULT else "what-if")
    if wrong:
        raise FileError(f"{file}: {wrong}")
    rows = [document["result"]] if schema == RESULT else document["results"]
    for told in rows:
        _check_row(told, file)
    if schema == RESULT:
        if number:
            raise FileError(f"{path}: {file} has one result; allowed: its name alone")
        _check_workers(document, file)
        try:
            report = from_plain(SimulationReport, document)
        except TypeError as error:
            raise FileError(f"{file}: {error}; not what gcnsim simulate writes") from None
        return report_of_result(report, label)
    place = _row(number, len(rows), file)
    row = Row.read(rows[place])
    return replace(report_of_row(row, label), facts=facts_of_row(document["scenario"], row))


def _check_row(row: dict[str, Any], file: Path) -> None:
    """Parts are no larger than what they are parts of. Raises FileError."""
    whole = row["iteration_s"]
    if not whole > 0:
        raise FileError(f"{file}: iteration_s is {whole}; allowed: above 0")
    parts = sum(row[name] for name in WHOLE)
    if abs(parts - whole) > ROUNDING * whole:
        raise FileError(f"{file}: {', '.join(WHOLE)} make {parts:g} s, iteration_s is {whole:g}; allowed: as much")
    low, high = row["iteration_s_low"], row["iteration_s_high"]
    if (low is None) is not (high is None):
        raise FileError(f"{file}: iteration_s_low, iteration_s_high: one is null; allowed: both or none")
    if low is not None and not low <= whole <= high:
        raise FileError(f"{file}: iteration_s {whole:g} is outside its interval")


def _check_workers(document: dict[str, Any], file: Path) -> None:
    """The slowest worker is one of those told, and its parts make its iteration. Raises FileError."""
    workers = document.get("workers", ())
    if not workers:
        return
    slowest = document.get("slowest", 0)
    if not 0 <= slowest < len(workers):
        raise FileError(f"{file}: slowest is {slowest}, it has {len(workers)} workers")
    parts = iteration_s(Parts(**workers[slowest]))
    whole = document["result"]["iteration_s"]
    if abs(parts - whole) > ROUNDING * whole:
        raise FileError(
            f"{file}: parts of worker {slowest} make {parts:g} s, iteration_s is {whole:g}; allowed: as much"
        )


def _row(number: str, rows: int, file: Path) -> int:
    """The place of a row. Raises FileError."""
    if not number and rows == 1:
        return 0
    if not re.fullmatch("[0-9]{1,9}", number) or not 1 <= int(number) <= rows:
        asked = f"there is no row {number!r}" if number else f"has {rows} rows"
        raise FileError(f"{file}: {asked}; name one: {file}{ROW}1 to {file}{ROW}{rows}")
    return int(number) - 1
