"""What one iteration gave, the same for the live line, the log and `iterations.csv`; and the log of losses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from gcnsim.errors import FileError
from gcnsim.ids import Iteration
from gcnsim.io.atomic import atomic_write, writable
from gcnsim.runs.files import COLUMN_RULES


@dataclass(frozen=True, slots=True)
class IterationRow:
    """One iteration. seconds: it lasted. loss: global, before its step; None where workers only wait.

    bytes_sent: by all workers.
    Accuracies are shares of one, None when not evaluated. hit_rate: of the feature cache, None without one.
    wait_s: the main stream of the worker that writes this was blocked, None when nothing is recorded.
    """

    iteration: Iteration
    seconds: float
    loss: float | None
    train_accuracy: float | None
    val_accuracy: float | None
    bytes_sent: int
    hit_rate: float | None
    wait_s: float | None


COLUMNS: Final = tuple(field.name for field in fields(IterationRow))
_MAY_BE_EMPTY: Final = ("loss", "train_accuracy", "val_accuracy", "hit_rate", "wait_s")
_LOSSES: Final = ("iteration", "loss")
_ITERATION: Final = re.compile("[0-9]{1,18}")
"""A number of more digits is none, and takes long to read."""


def write_iterations(path: str | Path, rows: Iterable[IterationRow]) -> None:
    """Write `rows` as CSV, numbers exactly; what is None stays empty. Raises FileError when it cannot be written."""
    with atomic_write(path, text=True) as file:
        file.write(_line(COLUMNS))
        for row in rows:
            file.write(_line(getattr(row, name) for name in COLUMNS))


def read_iterations(path: str | Path) -> tuple[IterationRow, ...]:
    """The rows of a file that `write_iterations` wrote.

    Raises FileError, with the line, when it is missing or damaged, or its iterations do not follow each other.
    """
    rows: list[IterationRow] = []
    for number, texts in _lines(path, COLUMNS):
        try:
            values = {
                name: None if text == "" and name in _MAY_BE_EMPTY else float(text)
                for name, text in zip(COLUMNS, texts, strict=True)
            }
            whole = {name: int(texts[COLUMNS.index(name)]) for name in ("iteration", "bytes_sent")}
        except ValueError:
            raise FileError(f"{path}:{number}: {','.join(texts)!r} is not a row of {','.join(COLUMNS)}") from None
        for name, value in (values | whole).items():
            if value is not None and (wrong := COLUMN_RULES[name].wrong(value)):
                raise FileError(f"{path}:{number}: {name}: {wrong}")
        row = IterationRow(**(values | whole))  # type: ignore[arg-type]
        if rows and row.iteration != rows[-1].iteration + 1:
            raise FileError(f"{path}:{number}: iteration {row.iteration} follows {rows[-1].iteration}")
        rows.append(row)
    return tuple(rows)


class LossLog:
    """A CSV `iteration,loss` that grows by a line per iteration and survives the end of the process.

    resume_from: the first iteration that will be logged. Of an earlier run's log what lies before it is kept, the rest
    is dropped; 0 starts anew. Raises FileError when the file cannot be read as such a log, or not be written.
    """

    def __init__(self, path: str | Path, resume_from: Iteration = 0) -> None:
        self._path = path
        kept = self._kept(resume_from) if writable(path) and resume_from else []
        with atomic_write(path, text=True) as file:
            file.write(_line(_LOSSES))
            for row in kept:
                file.write(_line(row))
        try:
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - open while the run lasts
        except OSError as error:
            raise FileError(f"{path}: cannot be written: {error.strerror}") from None

    def add(self, iteration: Iteration, loss: float) -> None:
        """Log the global loss of one iteration, every digit of it."""
        line = _line((iteration, float(loss))).encode()
        try:
            # Without a buffer: what a full disk does not take would be tried again, and fail again, at the end.
            while line:
                line = line[self._file.write(line) :]
        except OSError as error:
            raise FileError(f"{self._path}: cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """End the log."""
        self._file.close()

    def _kept(self, resume_from: Iteration) -> list[Sequence[str]]:
        if not Path(self._path).exists():
            return []
        kept: list[Sequence[str]] = []
        for number, texts in _lines(self._path, _LOSSES):
            if len(texts) != len(_LOSSES) or not _ITERATION.fullmatch(texts[0]):
                raise FileError(f"{self._path}:{number}: {','.join(texts)!r} is not a row of {','.join(_LOSSES)}")
            if int(texts[0]) < resume_from:
                kept.append(texts)
        return kept


def _line(values: Iterable[object]) -> str:
    """One line of CSV; a float as the shortest text that reads back as the same float."""
    return ",".join("" if value is None else str(value) for value in values) + "\n"


def _lines(path: str | Path, header: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The line number and cells of each row below `header`.

    A last line without its end, from a process that was killed, is left out.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise FileError(f"{path}: cannot be read: {reason}") from None
    first, *rows = text[: text.rfind("\n") + 1].split("\n")
    if first != ",".join(header):
        raise FileError(f"{path}: starts with {first[:60]!r}, wanted {','.join(header)}")
    for number, row in enumerate(rows[:-1], start=2):
        yield number, row.split(",")
