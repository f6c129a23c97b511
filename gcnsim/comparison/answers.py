"""Sides out of files that the simulator wrote: a result, or one row of a what-if."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gcnsim.comparison.sides import Side, side_of_result, side_of_row
from gcnsim.errors import FileError
from gcnsim.record import mistakes, parse_json, read_text

RESULT, ANSWER = "gcnsim.result/1", "gcnsim.what-if/1"
ROW = "#"
"""Stands between a what-if's file and the number of a row, the first being 1."""


def read_answer(path: str, label: str) -> Side:
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
    wrong = next(mistakes(document, "result" if schema == RESULT else "what-if"), None)
    if wrong:
        raise FileError(f"{file}: {wrong}")
    rows = [document["result"]] if schema == RESULT else document["results"]
    for row in rows:
        if not row["iteration_s"] > 0:
            raise FileError(f"{file}: iteration_s is {row['iteration_s']}; allowed: above 0")
    if schema == RESULT:
        if number:
            raise FileError(f"{path}: {file} has one result; allowed: its name alone")
        _check_workers(document, file)
        return side_of_result(document, label)
    place = _row(number, len(rows), file)
    grid = document["scenario"]["grid"]
    if len(grid) != len(rows):
        raise FileError(f"{file}: scenario.grid has {len(grid)} entries, results has {len(rows)}")
    return side_of_row(rows[place], grid[place], label)


def _check_workers(document: dict[str, Any], file: Path) -> None:
    """The slowest worker is one of those told. Raises FileError."""
    workers = document.get("workers", ())
    if workers and not 0 <= document.get("slowest", 0) < len(workers):
        raise FileError(f"{file}: slowest is {document['slowest']}, it has {len(workers)} workers")


def _row(number: str, rows: int, file: Path) -> int:
    """The place of a row. Raises FileError."""
    if not number and rows == 1:
        return 0
    if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= rows:
        asked = f"row {number!r} is not there" if number else f"has {rows} rows"
        raise FileError(f"{file}: {asked}; name one: {file}{ROW}1 to {file}{ROW}{rows}")
    return int(number) - 1
