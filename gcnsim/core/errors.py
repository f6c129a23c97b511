"""The errors a user can cause, each one readable line: the place, the value, the allowed values.

The entry points turn every `GcnsimError` into that line and exit code 2; any other exception is an internal error (exit
code 1).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gcnsim.core.spellings import meant_names

LONGEST: Final = 1_500
"""The most characters of a message; longer ones would hide the allowed values."""

_END: Final = 300
"""The characters kept at the end of a longer message, where the allowed values are."""


class GcnsimError(Exception):
    """A user error: the message is complete, one line, and names the value.

    A file may contain anything. In a value in a message, line breaks become spaces and control characters are escaped
    (`\\x1b`). A message that is too long loses its middle.
    """

    def __init__(self, message: str = "") -> None:
        """Keep the message as one printable line."""
        line = message
        if not line.isprintable():
            line = " ".join(filter(None, map(str.strip, line.splitlines())))
            line = "".join(item if item.isprintable() else ascii(item)[1:-1] for item in line)
        if len(line) > LONGEST:
            line = f"{line[: LONGEST - _END]} ... {line[-_END:]}"
        super().__init__(line)


class UnitError(GcnsimError):
    """A quantity without a unit, with an unknown unit, or out of its range."""


class ScenarioError(GcnsimError):
    """A scenario field, option or knob that cannot be accepted; the message starts with its path."""


class FileError(GcnsimError):
    """A missing, truncated, altered or foreign file; the message starts with its path."""


class GraphError(GcnsimError):
    """A graph or partition that cannot be used (empty, fewer nodes than workers, ...)."""


class KilledError(Exception):
    """One of gcnsim's processes was killed from outside: one line, exit code 1."""


def plural(count: int, noun: str, several: str | None = None) -> str:
    """A number with its noun. several: the irregular plural.

    >>> plural(1, "server"), plural(2000, "server"), plural(0, "entry", "entries")
    ('1 server', '2,000 servers', '0 entries')
    """
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint after an unknown name: similar known names first, then all of them.

    >>> nearest("psc-gnc", ["full-graph", "psc-gcn"])
    "did you mean 'psc-gcn'? known: full-graph, psc-gcn"
    >>> nearest("A100", ["a100-40", "a100-80"])
    'did you mean a100-40 or a100-80? known: a100-40, a100-80'
    """
    names = sorted(known)
    *others, last = meant_names(name, names) or [""]
    meant = f"{', '.join(others)} or {last}" if others else f"{last!r}" if last else ""
    return f"{f'did you mean {meant}? ' if meant else ''}known: {', '.join(names)}"
