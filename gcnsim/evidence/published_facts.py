"""Published tables as facts: rows with their key, the metrics to predict, and the values where they are given.

A folder of YAML files, one per paper: `paper: {id}`, `tables: [{id, key, rows}]`. A row has the fields of its table's
key (those that apply to it), a `use`, the `metrics` to predict if its use is `calibrate` or `predict`, and values. The
values of `predict` rows are not given; other fields of a row say more about its setting.

Times that others measured of published systems: one file for several papers, a setting in every row.
`papers: {id: {...}}`, `platforms: {name: {...}}`, `rows: [...]`. A row names its paper, table and platform, the data
set, the model with its layers and width, the method, how many GPUs on how many servers, a metric with its value, and a
class: `calibrate` rows may be fitted, `predict` rows are to be predicted blind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gcnsim.core.errors import FileError, nearest
from gcnsim.core.fields import Number, shown
from gcnsim.core.yaml_files import read_yaml

SHIPPED: Final = Path(__file__).resolve().parent.parent / "data" / "published"
"""The facts that come with the package."""

USES: Final = ("calibrate", "context", "input", "predict")
PREDICTED: Final = ("calibrate", "predict")
OPTIONAL: Final = frozenset({"p", "tau", "epsilon", "replication_c"})
"""Fields of keys that only some methods have: a row may lack them."""

MAY_BE_ZERO: Final = frozenset({"compute_s", "communication_s", "reduce_s"})
"""Parts of an iteration, which may be published as nothing."""

REMEASURED_KEYS: Final = frozenset({"papers", "platforms", "rows"})
"""What tells a file of what others measured from one of a paper's own tables."""

REMEASURED_KEY: Final = (
    "platform", "dataset", "model", "layers", "hidden", "heads", "linear_layers", "inductive", "use_pp", "method",
    "rate", "fanout", "batch_per_gpu", "gpus", "servers",
)  # fmt: skip
"""Fields of its rows that say what was run."""


@dataclass(frozen=True, slots=True)
class FactRow:
    """One row of a published table.

    key: its fields of the table's key. metrics: those to be predicted. fields: all that it says. source: its file.
    """

    paper: str
    table: str
    key: Mapping[str, Any]
    use: str
    metrics: tuple[str, ...]
    fields: Mapping[str, Any]
    source: str

    @property
    def label(self) -> str:
        """The key as compact JSON with sorted keys."""
        return json.dumps(dict(self.key), sort_keys=True, separators=(",", ":"))

    @property
    def place(self) -> str:
        """Where the row stands, for messages."""
        return f"{self.source}: {self.table}, row {self.label}"

    def published(self, metric: str) -> float | None:
        """The value given for `metric`; None where it is to be predicted blind."""
        value = self.fields.get(metric)
        return None if self.use == "predict" or value is None else float(value)


def read_published(folder: str | Path = SHIPPED) -> list[FactRow]:
    """The rows of all papers in `folder`, by file name, in the order they are printed.

    Raises FileError for a folder without facts, a file that is not one, a row of unknown use or without its key.
    """
    files = sorted(Path(folder).glob("*.yaml")) if Path(folder).is_dir() else []
    if not files:
        raise FileError(f"{folder}: is not a folder of published facts; allowed: a folder that holds PAPER.yaml files")
    return [row for path in files for row in _rows(path)]


def of_papers(rows: Sequence[FactRow], papers: Sequence[str]) -> list[FactRow]:
    """The rows of `papers` alone; of all where none is named. Raises FileError for one that no file has."""
    known = {row.paper for row in rows}
    for name in papers:
        if name not in known:
            raise FileError(f"paper {name!r} has no published facts; {nearest(name, known)}")
    return [row for row in rows if not papers or row.paper in papers]


def _rows(path: Path) -> Iterator[FactRow]:
    raw = read_yaml(path)
    if isinstance(raw, dict) and raw.keys() >= REMEASURED_KEYS:
        yield from _remeasured_rows(str(path), raw)
        return
    if not isinstance(raw, dict) or not isinstance(raw.get("paper"), dict) or not isinstance(raw.get("tables"), list):
        raise FileError(f"{path}: is not a file of published facts; it has the keys paper and tables")
    paper = raw["paper"].get("id")
    if not isinstance(paper, str) or not paper:
        raise FileError(f"{path}: paper, id: {shown(paper)} is not allowed; the name of a paper, a text")
    if not raw["tables"]:
        raise FileError(f"{path}: tables: is empty; at least one table")
    seen: set[tuple[str, str]] = set()
    for table in raw["tables"]:
        if not isinstance(table, dict) or not {"id", "key", "rows"} <= table.keys():
            raise FileError(f"{path}: a table has the keys id, key and rows")
        if not isinstance(table["rows"], list) or not table["rows"]:
            raise FileError(f"{path}: {table['id']}, rows: is {shown(table['rows'])}; a list of rows")
        if not isinstance(table["key"], list) or not all(isinstance(name, str) for name in table["key"]):
            raise FileError(f"{path}: {table['id']}, key: is {shown(table['key'])}; a list of fields")
        for number, one in enumerate(table["rows"], start=1):
            row = _row(path, paper, table, number, one)
            if row.use in PREDICTED:
                if (row.table, row.label) in seen:
                    raise FileError(f"{row.place}: is given twice")
                seen.add((row.table, row.label))
            yield row


def _row(path: Path, paper: str, table: Mapping[str, Any], number: int, raw: Any) -> FactRow:
    place = f"{path}: {table['id']}, row {number}"
    if not isinstance(raw, dict):
        raise FileError(f"{place}: is not a row; it has the fields of its key and a use")
    use = raw.get("use")
    if use not in USES:
        raise FileError(f"{place}: unknown use {shown(use)}; allowed: {', '.join(USES)}")
    lacking = [name for name in table["key"] if raw.get(name) is None and name not in OPTIONAL]
    if use in PREDICTED and lacking:
        raise FileError(f"{place}: has no {lacking[0]}; the key of {table['id']} is {', '.join(table['key'])}")
    metrics = raw.get("metrics", ()) if use in PREDICTED else ()
    if use in PREDICTED and not (isinstance(metrics, list) and metrics and all(isinstance(m, str) for m in metrics)):
        raise FileError(f"{place}: has no metrics; a row to {use} names them in a list")
    if len(set(metrics)) < len(metrics):
        raise FileError(f"{place}: metrics: {', '.join(metrics)}; each once")
    if use == "calibrate":
        for metric in metrics:
            _check(place, metric, raw.get(metric), metric)
    return FactRow(
        paper=paper,
        table=str(table["id"]),
        key={name: raw[name] for name in table["key"] if name in raw},
        use=use,
        metrics=tuple(metrics),
        fields=raw,
        source=str(path),
    )


def _check(place: str, metric: str, value: Any, field: str) -> None:
    """Refuse a published value that nothing can be compared with. A part of an iteration may take no time."""
    if wrong := Number(False, 0, low_open=metric not in MAY_BE_ZERO).wrong(value):
        raise FileError(f"{place}: {field}: {wrong}, as the row is to calibrate")


def _remeasured_rows(path: str, raw: Mapping[str, Any]) -> Iterator[FactRow]:
    """The rows of one file of what others measured.

    Raises FileError for one of an unknown paper, class or platform, without a method, a metric or, of class
    `calibrate`, its value, or given twice.
    """
    if not isinstance(raw["rows"], list) or not raw["rows"]:
        raise FileError(f"{path}: rows: is {shown(raw['rows'])}; a list of rows")
    seen: set[tuple[str, str, str, str]] = set()
    for number, one in enumerate(raw["rows"], start=1):
        row = _remeasured_row(path, raw, f"{path}: row {number}", one)
        key = (row.paper, row.table, row.label, row.metrics[0])
        if key in seen:
            raise FileError(f"{path}: row {number}: is given twice")
        seen.add(key)
        yield row


def _remeasured_row(path: str, raw: Mapping[str, Any], place: str, one: Any) -> FactRow:
    if not isinstance(one, dict):
        raise FileError(f"{place}: is not a row; it has a paper, a platform, a method and a metric")
    for name, known in (("paper", raw["papers"]), ("platform", raw["platforms"])):
        if not isinstance(known, dict) or not isinstance(one.get(name), str) or one[name] not in known:
            raise FileError(f"{place}: {name} {shown(one.get(name))} is not one of the file's {name}s")
    if not isinstance(one.get("class"), str) or one["class"] not in PREDICTED:
        raise FileError(f"{place}: unknown class {shown(one.get('class'))}; allowed: {', '.join(PREDICTED)}")
    for name in ("dataset", "model", "method", "metric", "table"):
        if not isinstance(one.get(name), str):
            raise FileError(f"{place}: {name} is {shown(one.get(name))}; allowed: a text")
    needed = ("layers", "hidden", "gpus", "servers")
    for name in (*needed, *(text for text in ("heads", "batch_per_gpu") if text in one)):
        if wrong := Number(True, 1).wrong(one.get(name)):
            raise FileError(f"{place}: {name}: {wrong}")
    if wrong := Number(True, 0).wrong(one.get("linear_layers", 0)):
        raise FileError(f"{place}: linear_layers: {wrong}")
    metric = one["metric"]
    if one["class"] == "calibrate":
        _check(place, metric, one.get("value"), "value")
    return FactRow(
        paper=one["paper"],
        table=one["table"],
        key={name: one[name] for name in REMEASURED_KEY if name in one},
        use=one["class"],
        metrics=(metric,),
        fields={**one, metric: one.get("value")},
        source=path,
    )
