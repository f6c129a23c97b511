"""The columns of tables and files of rows, as the fields of `Row` declare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Final

from gcnsim.core.shapes import JUDGED, OMITTED
from gcnsim.results.column import SHOWN_IN, Column, Form, When
from gcnsim.results.row import KEYS, Row

COLUMNS: Final[Mapping[str, Column]] = {
    shown.key or entry.name: replace(shown, key=shown.key or entry.name, of=entry.name)
    for entry in fields(Row)
    for shown in entry.metadata.get(SHOWN_IN, ())
}
"""The columns of tables by name."""

RESULTS: Final = tuple(key for key, shown in COLUMNS.items() if KEYS.index(shown.of) >= KEYS.index("iteration_s"))
"""The columns that do not identify a row."""

_JOINED: Final = (Form.KNOBS, Form.TIME, Form.ENDS, Form.SHARES, Form.DIFFERENCE)
"""Of columns that write the values of several fields."""

FLAT: Final = tuple(
    dict.fromkeys(
        name
        for entry in fields(Row)
        for name in (
            *(key for key, shown in COLUMNS.items() if shown.of == entry.name and shown.form not in _JOINED),
            entry.name,
        )
    )
)
"""The columns of files and data frames: every field, and the other values that tables show."""

_OF_PLACES: Final = frozenset(shown.of for shown in COLUMNS.values() if shown.when is When.DIFFERS)
"""Fields that rows state only where they differ in them."""

OF_SETTING: Final = tuple(
    entry.name
    for entry in fields(Row)
    if JUDGED not in entry.metadata and (OMITTED not in entry.metadata or entry.name not in _OF_PLACES)
)
"""The fields of a row that depend on no other row."""
