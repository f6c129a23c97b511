"""The folder of a sweep: its question, one file per finished chunk, and finally one file of all points.

sweep.json: the question, the versions that answer it, the number of points. parts/*.parquet: chunks in the order in
which they finished, each written atomically. results.parquet: all points in order; the parts are removed once it
exists.

An interrupted sweep resumes from these files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from filelock import FileLock, Timeout

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError
from gcnsim.core.json_files import parse_json
from gcnsim.planning.sweep_points import Point
from gcnsim.planning.sweep_question import Question, read_question
from gcnsim.planning.sweep_table import joined, read_table, schema_of, table_of, write_table, wrong_rows
from gcnsim.planning.sweep_work import LOST, versions

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA: Final = "gcnsim.sweep-folder/1"
MANIFEST: Final = "sweep.json"
PARTS: Final = "parts"
RESULTS: Final = "results.parquet"


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of a sweep. points: the number of points."""

    path: Path
    question: Question
    points: int
    about: Mapping[str, str]

    @property
    def results(self) -> Path:
        """The file of all points; it exists once they are done."""
        return self.path / RESULTS

    @property
    def schema(self) -> pa.Schema:
        """The columns of its tables."""
        return schema_of(self.question.axes, self.about)

    def keep(self, points: Sequence[Point], rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows of a chunk. Raises FileError."""
        (self.path / PARTS).mkdir(exist_ok=True)
        names = (self.path / PARTS / f"{points[0].index:08}-{turn}.parquet" for turn in count())
        # A retried point starts a chunk whose file may exist already; the new file gets another name.
        write_table(next(name for name in names if not name.exists()), table_of(points, rows, self.schema))

    def table(self) -> pa.Table:
        """The rows so far, in the order of the points; a later answer replaces a lost point.

        Raises FileError for a damaged file.
        """
        files = [self.results] if self.results.exists() else []
        files += sorted((self.path / PARTS).glob("*.parquet"))
        table = joined((self._rows(file) for file in files), self.schema)
        points, lost = (
            table["point"].to_numpy(),
            np.array([state == LOST for state in table["state"].to_pylist()], bool),
        )
        order = np.lexsort((lost, points))
        first = np.flatnonzero(np.diff(points[order], prepend=-1))
        return table.take(order[first]).combine_chunks()

    def _rows(self, path: Path) -> pa.Table:
        """The table at `path`. Raises FileError, also for columns or points of another sweep."""
        table = read_table(path)
        wrong = wrong_rows(table, self.schema, self.points)
        if wrong:
            raise FileError(f"{path}: not a file of this sweep: {wrong}")
        return table

    def done(self) -> frozenset[int]:
        """The points that are finished."""
        table = self.table()
        rows = zip(table["point"].to_pylist(), table["state"].to_pylist(), strict=True)
        return frozenset(point for point, state in rows if state != LOST)

    def finish(self) -> None:
        """Write all points to one file and remove the parts. Raises FileError."""
        parts = self.path / PARTS
        if not self.results.exists() or any(parts.glob("*.parquet")):
            write_table(self.results, self.table())
        # Including files that a killed process left incomplete.
        shutil.rmtree(parts, ignore_errors=True)


def open_folder(path: str | Path) -> Folder:
    """Open the sweep in the folder at `path`. Raises FileError if there is no readable sweep."""
    place = Path(path)
    manifest = place / MANIFEST
    if not place.is_dir():
        raise FileError(f"{path}: is not a folder of a sweep")
    if not manifest.is_file():
        raise FileError(f"{path}: is not a folder of a sweep: it has no {MANIFEST}")
    try:
        manifest_data = parse_json(manifest.read_text(encoding="utf-8"), manifest)
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{manifest}: cannot be read: {error}") from None
    if not isinstance(manifest_data, dict) or manifest_data.get("schema") != SCHEMA:
        raise FileError(f"{manifest}: its schema is not {SCHEMA}")
    points, made = manifest_data.get("points"), manifest_data.get("versions")
    if not isinstance(points, int) or not isinstance(made, dict) or not isinstance(manifest_data.get("question"), dict):
        raise FileError(f"{manifest}: lacks points, versions or question")
    return _folder(place, read_question(manifest_data["question"]), points, made)


def begin(path: str | Path, question: Question, points: int, files: Mapping[str, str]) -> Folder:
    """Create a folder for the question's points, or reopen it if it exists.

    points: the number of points of a new sweep. files: hashes of the files that the question names. Raises FileError
    for a folder with another question, changed files, other versions or unrelated contents.
    """
    place = Path(path)
    if (place / MANIFEST).exists():
        folder = open_folder(place)
        if folder.question.hash != question.hash:
            raise FileError(
                f"{path}: this folder holds the results of another question; use a new folder, or ask the question in "
                f"its {MANIFEST}"
            )
        held = parse_json((place / MANIFEST).read_text(encoding="utf-8"), place / MANIFEST).get("files", {})
        changed = next((name for name, one in files.items() if held.get(name) != one), None)
        if changed is not None:
            raise FileError(f"{path}: was started with other contents of {changed}; allowed: a new folder")
        own = versions()
        for name, begun in json.loads(folder.about["versions"]).items():
            if own.get(name) != begun:
                raise FileError(
                    f"{path}: was started with {name} {begun}, this is {own.get(name)}; allowed: a new folder"
                )
        return folder
    refuse_foreign(place)
    made = _folder(place, question, points, versions())
    manifest_data = {
        "schema": SCHEMA,
        "hash": question.hash,
        "points": points,
        "versions": versions(),
        "files": dict(files),
    }
    try:
        (place / PARTS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{path}: cannot be made: {error.strerror}") from None
    with atomic_write(place / MANIFEST, text=True) as file:
        json.dump(manifest_data | {"question": question.payload()}, file, indent=2, allow_nan=False)
    return made


def refuse_foreign(path: str | Path) -> None:
    """Raise FileError if the folder has contents that are not a sweep's; an empty folder passes. Nothing is written."""
    place = Path(path)
    if (place / MANIFEST).exists() or not place.exists():
        return
    if not place.is_dir() or any(one.name != LOCK for one in place.iterdir()):
        raise FileError(f"{path}: exists and is not a folder of a sweep; allowed: a new or an empty folder")


def _folder(path: Path, question: Question, points: int, made: Mapping[str, str]) -> Folder:
    about = {
        "schema": "gcnsim.sweep-results/1",
        "question_hash": question.hash,
        "question": json.dumps(question.payload(), sort_keys=True, allow_nan=False),
        "versions": json.dumps(made, sort_keys=True),
        "interval": question.interval,
    }
    return Folder(path, question, points, about)


LOCK: Final = ".lock"


@contextmanager
def alone(path: str | Path) -> Iterator[None]:
    """Lock the folder (created if missing) for this process while the block runs. Raises FileError if it is locked."""
    place = Path(path)
    try:
        place.mkdir(parents=True, exist_ok=True)
        lock = FileLock(place / LOCK).acquire(blocking=False)
    except Timeout:
        raise FileError(f"{path}: another sweep is writing there; wait until it ends") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}") from None
    with lock:
        yield
