"""How tables show a value of a row. A column is declared once, on the field of `Row` that it shows.

The terminal's table, CSV, data frames, the JSON schema, pages, the dashboard and the glossary read it there. The order
of the fields is the order of the columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from enum import Enum, auto
from typing import Any, Final

from gcnsim.core.shapes import ABOUT

SHOWN_IN: Final = "columns"
"""Key of the metadata of a field with its columns."""

EMPTY: Final[Mapping[str, Any]] = {}


class Form(Enum):
    """How the values of a column are written."""

    TEXT = auto()
    """A name."""
    WORDS = auto()
    """A text that may be folded."""
    KNOBS = auto()
    """The knobs that identify the setting."""
    NUMBER = auto()
    SECONDS = auto()
    """In the unit that all times of the table share."""
    TIME = auto()
    """The same, and its interval in brackets."""
    ENDS = auto()
    """The interval of the time."""
    BYTES = auto()
    MEMORY = auto()
    """Bytes with at most one decimal; GPU memory is not known more precisely."""
    BYTE_RATE = auto()
    SHARE = auto()
    """A fraction as a percentage."""
    PERCENT = auto()
    """A fraction that was given, as a percentage with all its digits."""
    TIMES = auto()
    """How many times as fast."""
    MONEY = auto()
    SHARES = auto()
    """The shares of the iteration that it computes and waits."""
    DIFFERENCE = auto()
    """The interval of a difference, as percentages."""

    @property
    def left(self) -> bool:
        """Whether its cells are aligned to the left."""
        return self in (Form.TEXT, Form.WORDS, Form.KNOBS)


class Table(Enum):
    """The tables that show a column."""

    USUAL = auto()
    WIDE = auto()
    """Only tables of all columns."""
    ASKED = auto()
    """Only tables for which it is named, because other columns have its value too."""


class When(Enum):
    """The rows for which these tables show it."""

    KNOWN = auto()
    """Any row has a value."""
    DIFFERS = auto()
    """Rows differ in it; otherwise it stands in the title."""
    BATCHES = auto()
    """An epoch of any row has several iterations."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of tables of rows.

    head: the heading (lines split by a newline, `{unit}` filled in); brief: that of narrow tables, if another. says: a
    definition in a sentence. keep: 0 if a narrow table has it too, else its place among the columns that it keeps if it
    can. usual: characters of the longest usual text, beyond which it is folded before another column goes.
    explained: whether a legend below a table says what it is, up to the first semicolon. key: its
    name, if that is not the field's. of: the field on which it is declared, by which it is sorted.
    """

    head: str
    says: str
    form: Form = Form.NUMBER
    table: Table = Table.WIDE
    when: When = When.KNOWN
    brief: str = ""
    keep: int = 0
    usual: int = 0
    explained: bool = False
    key: str = ""
    of: str = ""


def column(
    head: str,
    says: str,
    form: Form = Form.NUMBER,
    table: Table = Table.WIDE,
    when: When = When.KNOWN,
    *,
    also: Column | None = None,
    default: Any = MISSING,
    json: Mapping[str, Any] = EMPTY,
    **more: Any,
) -> Any:
    """A field of `Row` that is shown in a column. The JSON schema describes it with the column's sentence.

    also: another column that tells of it, before this one. json: further metadata; more: further attributes.
    """
    own = Column(head, says, form, table, when, **more)
    described = {} if own.key else {ABOUT: says}
    shown = (own,) if also is None else (also, own)
    return field(default=default, metadata={SHOWN_IN: shown, **described, **json})
