"""Rows of an answer for the table, CSV, figures and page: their common and their distinguishing values.

A CSV file has one line for each row: the keys of JSON in their order; seconds, bytes, shares unrounded. Nested
values are flat: `limited_by`, `limited_by_kind`, ..., `vs_recommended_low`. A recommended setting that was not
requested is the last line. Unknown values are empty.

The module also formats the provenance of an answer as plain text; `sentences` formats its findings. Terminal and page
print the same words. Control characters are removed here from external text (names, paths), so that a file name cannot
control a terminal. Pages escape such text as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from gcnsim.core.atomic import write_csv as write_table
from gcnsim.core.errors import ScenarioError, nearest, plural
from gcnsim.core.units import format_number, format_seconds, range_text
from gcnsim.hardware import ON_DEMAND
from gcnsim.planning.capacity_goal import money
from gcnsim.results import (
    COLUMNS,
    FLAT,
    Assumed,
    AssumptionEffect,
    Form,
    Row,
    SimulationReport,
    TargetRow,
    WhatIf,
    When,
    to_plain,
)


def varies(rows: Sequence[Row], key: str) -> bool:
    """Whether `rows` hold more than one value of the column `key`."""
    return len({getattr(row, key) for row in rows}) > 1


MACHINE: Final = tuple(key for key, column in COLUMNS.items() if column.when is When.DIFFERS)
"""The columns of the machine: shown if rows differ in them, otherwise in the title."""

MANY: Final = 12
"""A table with more rows than this shows the first `FIRST` by default."""

FIRST: Final = 10

_SORTED_BY: Final = {
    **dict(zip(FLAT, FLAT, strict=True)),
    **{key: column.of for key, column in COLUMNS.items() if column.form in (Form.TEXT, Form.TIME, Form.ENDS)},
}
"""What can be sorted by: by name, the field whose values are compared."""


def checked_order(column: str) -> str:
    """A column to sort by, with `-` in front for descending order. Raises ScenarioError for one without an order."""
    if column.removeprefix("-") not in _SORTED_BY:
        raise ScenarioError(f"--sort: unknown column {column!r}; {nearest(column.removeprefix('-'), _SORTED_BY)}")
    return column


def shown_rows(rows: Sequence[Row], sort: str | None, top: int | None) -> list[Row]:
    """The rows of a table, fastest first or sorted by the column `sort`, and of these the first `top`.

    Rows without a value come last. The recommended row is always included. top: None shows all up to `MANY`.
    """
    most = (len(rows) if len(rows) <= MANY else FIRST) if top is None else top
    ordered = list(rows)
    if sort is not None:
        key = _SORTED_BY[sort.removeprefix("-")]
        says = [row for row in rows if getattr(row, key) is not None]
        ordered = sorted(says, key=lambda row: getattr(row, key), reverse=sort.startswith("-"))
        ordered += [row for row in rows if getattr(row, key) is None]
    best = [row for row in ordered[most:] if row.recommended]
    return [*ordered[: max(0, most - len(best))], *best]


def shared_knobs(rows: Sequence[Row]) -> dict[str, str]:
    """The knobs with one value in at least two rows and in all of them, in words, for the title."""
    if len(rows) < 2:
        return {}
    words = [row.knob_words() for row in rows]
    return {name: text for name, text in words[0].items() if all(word.get(name) == text for word in words)}


def labels_of(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The method of each row and, if the method has several rows, the settings that distinguish them.

    >>> labels_of([])
    []
    """
    counts = Counter(row.method for row in rows)
    return [(row.method, _setting(row, rows) if counts[row.method] > 1 else "") for row in rows]


def _setting(row: Row, rows: Sequence[Row]) -> str:
    twins = [other for other in rows if other.method == row.method]
    return ", ".join(text for key, text in words_of(row).items() if varies(twins, key))


def words_of(row: Row) -> dict[str, str]:
    """What tells a row from others of a table, in words: by field, the machine first, then the method and its knobs."""
    return {
        "dataset": row.dataset,
        "gpus": plural(row.gpus, "GPU"),
        "device": row.device,
        "host": row.host or "",
        "gpus_per_server": f"{row.gpus_per_server} per server",
        "bandwidth_bytes_per_s": row.bandwidth,
        "method": row.method,
        "tau": f"tau {row.tau}",
        "epsilon": f"eps {row.epsilon:g}",
        "rate": f"rate {row.rate:g}",
        "cache_fraction": f"cache {100 * row.cache_fraction:.4g}%",
        "setting": row.setting or "default knobs",
    }


def write_csv(path: str | Path, answer: WhatIf) -> None:
    """Write the rows of `answer` to `path`, one line per row below a heading.

    Raises FileError if the file cannot be written.
    """
    write_table(path, FLAT, [[getattr(row, key) for key in FLAT] for row in answer.rows])


def columns_of_rows(answer: WhatIf) -> dict[str, list[Any]]:
    """The same rows column by column, for data frames."""
    return {key: [getattr(row, key) for row in answer.rows] for key in FLAT}


def target_title_of(answer: WhatIf) -> str:
    """The target, e.g. `Time to 90 % validation accuracy`; empty without one."""
    target = answer.target
    if target is None:
        return ""
    until = "until done" if target.accuracy is None else f"to {100 * target.accuracy:g} % validation accuracy"
    return f"Time {until}"


def target_of(answer: WhatIf) -> list[tuple[str, str]]:
    """Per row, its label, and iterations, time and cost, or why they are unknown."""
    target = answer.target
    if target is None:
        return []
    done = [*target.rows, *([] if target.recommended is None else [target.recommended])]
    labels = row_labels(answer, apart=target.recommended is not None)
    return [(label, plain(until_done(row))) for label, row in zip(labels, done, strict=True)]


def row_labels(answer: WhatIf, *, apart: bool) -> list[str]:
    """The labels of the rows of results; apart: and that of the recommended setting, which is none of them."""
    rows = [*answer.results, *([answer.recommendation.row] if apart else [])]
    labels = [f"{method} ({setting})" if setting else method for method, setting in labels_of(rows)]
    if apart:
        labels[-1] += ", recommended"
    return [*map(plain, labels)]


def until_done(row: TargetRow) -> str:
    """Time, cost and iterations of a training, also with failures and at the other price; or why unknown."""
    if row.seconds is None:
        return row.source
    seconds = f"{format_seconds(row.seconds)}{range_text(row.seconds_low, row.seconds_high)}"
    cost = "" if row.cost is None else f", {money(row.cost)} {row.currency}"
    count = plural(row.iterations or 0, "iteration")
    return f"{seconds}{cost}: {count} ({row.source}){with_failures(row)}{_other_pricing(row)}"


def with_failures(row: TargetRow) -> str:
    """How long and at what cost with failures and checkpoints; empty where that was not asked."""
    found = row.failures
    if found is None:
        return ""
    if found.seconds is None or found.failures is None:
        return "; with failures it practically never ends"
    ends = range_text(found.seconds_low, found.seconds_high)
    if found.seconds_low is not None and found.seconds_high is None:
        ends = f" ({format_seconds(found.seconds_low)} to practically never)"
    time = f"{format_seconds(found.seconds)}{ends}"
    cost = "" if found.cost is None else f", {money(found.cost)} {row.currency}"
    every = found.checkpoint_every_s
    written = "no checkpoint" if every is None else f"a checkpoint every {format_seconds(every)}"
    saved = "; interruptions lose no work" if found.saved else ""
    return f"; with failures ({format_number(found.failures, 2)} expected, {written}{saved}) {time}{cost}"


def _other_pricing(row: TargetRow) -> str:
    """What the training costs on demand in place of spot, or the reverse, and which is cheaper when."""
    other = row.other_pricing
    if other is None:
        return "; on demand and spot have one price, so they are not compared" if row.one_price else ""
    at = "on demand" if other.pricing == ON_DEMAND else "on spot servers without interruptions"
    even = other.break_even_per_hour
    when = (
        f"spot costs less below {format_number(even, 2)} interruptions of a server per hour"
        if even
        else "spot never costs less"
    )
    return f"; {at} {format_seconds(other.seconds)}, {money(other.cost)} {row.currency}: {when}"


_TITLES = {"like_questions": "similar questions"}
"""Titles that differ from the key in words."""


class Assumption(NamedTuple):
    """An assumed number: its value, range and basis, and whether the intervals cover it."""

    name: str
    value: str
    range: str
    basis: str
    covered: bool


def plain(text: object) -> str:
    """`text` on one line without control characters."""
    return "".join(char if char.isprintable() else " " for char in str(text))


def number(value: object) -> str:
    """A number in up to four significant digits; any other value as plain text."""
    return f"{value:.4g}" if isinstance(value, float) else plain(value)


def provenance_of(answer: WhatIf | SimulationReport) -> list[tuple[str, str]]:
    """The provenance of the numbers as (label, text) pairs, without assumptions and warnings."""
    document = to_plain(answer.provenance)
    graph = document["graph"]
    pairs = document | {"graph": f"{graph['text']} ({graph['kind']})"}
    if isinstance(answer, WhatIf) and any(varies(answer.rows, key) for key in ("gpus", "device", "host")):
        pairs["device"] = f"of several machines the first asked for: {document['device']}"
    if answer.provenance.like_questions is not None:
        pairs["like_questions"] = answer.provenance.like_questions.text
    if answer.provenance.measured_compute is not None:
        times = answer.provenance.measured_compute
        pairs["measured_compute"] = f"{times.text}; {times.links}"
    apart = ("assumptions", "measured", "bounds", "warnings")
    return [
        (_TITLES.get(name, name.replace("_", " ")), plain(text)) for name, text in pairs.items() if name not in apart
    ]


def assumptions_of(answer: WhatIf) -> list[Assumption]:
    """The assumed numbers in the answer's order."""
    return [
        Assumption(
            plain(assumption.name),
            plain(assumption.value),
            range_of(assumption),
            plain(assumption.basis),
            assumption.in_interval,
        )
        for assumption in answer.provenance.assumptions
    ]


def range_of(item: Assumed | AssumptionEffect) -> str:
    """The two ends of the assumed range."""
    return plain(f"{item.low} to {item.high}")


def bounds_of(answer: WhatIf) -> list[tuple[str, str]]:
    """Per row, its label and the bounds of its long-run mean; empty if there are none."""
    labels = [f"{method} ({setting})" if setting else method for method, setting in labels_of(answer.results)]
    return [
        (plain(label), f"{format_seconds(limit.lower_s)} to {format_seconds(limit.upper_s)}")
        for label, limit in zip(labels, answer.provenance.bounds, strict=False)
    ]


def measured_of(answer: WhatIf | SimulationReport) -> list[str]:
    """The measured figures with their values and sources."""
    return [plain(text) for text in answer.provenance.measured]


def warnings_of(answer: WhatIf | SimulationReport) -> list[str]:
    """The warnings to read before using a number."""
    return [plain(text) for text in answer.provenance.warnings]


def knobs_of(row: Row) -> str:
    """The knob values of a row; the rate only if nodes are sampled."""
    drawn = "" if row.rate == 1.0 else f", rate {row.rate:g}"
    text = f", {row.setting}" if row.setting else ""
    return f"tau {row.tau}, epsilon {row.epsilon:g}, cache {100 * row.cache_fraction:.4g}%{drawn}{text}"
