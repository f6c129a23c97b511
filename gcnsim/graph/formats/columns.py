"""The layout of an edge list: the column separator, the header line, and the two columns of the ends.

It is determined from the first lines, and from comments before them, which edge lists of public collections use as a
header.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gcnsim.core.errors import FileError, ScenarioError, nearest, plural
from gcnsim.graph.formats.headers import EndPlaces, marked_only, named_ends, only_ends, rivals, says_nothing

_SAMPLE: Final = 50
"""The number of lines examined."""

_SEPARATORS: Final = {False: (";", "|", ",", None, "\t"), True: ("\t", ";", "|", ",", None)}
"""By whether ids are names: possible column separators, in the order tried; None: whitespace."""

_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eEdD][+-]?\d+)?")
WHOLE = re.compile(r"[+-]?\d{1,25}(\.0*)?|[+-]?\d{1,25}(\.\d{0,25})?[eE][+-]?\d{1,3}")
"""A pattern for whole numbers, including notations with decimals or exponents."""
EXACT: Final = 2**53
"""Above this, numbers with decimals do not represent every whole number."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}.*")
_SECONDS: Final = 10**8
"""Seconds since 1970, from 1973 on; few graphs have as many nodes."""
_KONECT = re.compile(r"%\s*(sym|asym|bip)\s+\w+")
_TWO_KINDS = re.compile(r"%\s*bip\b|(?<!non-)(?<!not )(?<!not a )\bbipartite\b(?!\W*(no|false|0)\b)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[^\s,;|]+[ \t]+[^\s,;|]+[ \t]+[+-]?\d+,\d+")
"""Two ids and a weight with a decimal comma; here the comma is not a separator."""

CHOOSE: Final = "say which with --ends NAME,NAME (gcnsim graph, gcnsim trace) or workload.ends"
"""The advice in the error if nothing identifies the two ends."""


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The layout. separator: None for whitespace. skip: least number of lines before the first edge. ignored: names of
    other columns.
    """

    separator: str | None
    width: int
    ends: EndPlaces
    skip: int = 0
    ignored: tuple[str, ...] = ()
    weight: int | None = None
    """The index of an unnamed column that must contain numbers, if nothing else shows that it is not an end."""
    header: tuple[str, str] | None = None
    """Names of the ends in the line that is skipped."""


@dataclass(frozen=True, slots=True)
class LineSample:
    """The first lines: comments before the first data line, then data lines with their numbers from 1."""

    comments: tuple[str, ...]
    lines: tuple[tuple[int, str], ...]


def sample_of(text: bytes, *, trailing: bool) -> LineSample:
    """The first lines of an edge list; trailing: whether `#` and `%` start a comment within a line too."""
    comments: list[str] = []
    lines: list[tuple[int, str]] = []
    begin = number = 0
    while begin < len(text) and len(lines) < _SAMPLE:
        end = text.find(b"\n", begin)
        end = len(text) if end < 0 else end
        number += 1
        line = text[begin:end].decode("utf-8", "replace")
        begin = end + 1
        if line[:1] in ("#", "%") or (trailing and line.lstrip()[:1] in ("#", "%")):
            comments += [line.strip()] if not lines else []
            continue
        content = re.split("[#%]", line, maxsplit=1)[0] if trailing else line
        if content.strip():
            lines.append((number, content))
    return LineSample(tuple(comments), tuple(lines))


def layout_of(sample: LineSample, chosen: Sequence[str] | None, *, names: bool, where: str) -> ColumnLayout:
    """The layout that the sample shows; it has at least one line.

    chosen: the ends that the user named, by names in the header or numbers from 1. names: whether ids are texts. Raises
    FileError if the ends cannot be identified, and for chosen columns that do not exist.
    """
    separator = _separator(sample.lines, names)
    rows = [fields_of(line, separator) for _, line in sample.lines]
    first_line, first, after = sample.lines[0][0], rows[0], rows[1:]
    shorter = bool(after) and len(after[0]) == len(first) + 1
    if shorter and (not any(map(is_number, first)) or (sample.lines[0][1][0] == "\t" and _unnamed(["", *first]))):
        first = ["", *first]  # R writes row names without a heading; the first tab of pandas is whitespace
    width = len(first)
    header = _commented(sample.comments, separator, width)
    skip = 0
    if header is None and (_is_header(first, after, names) or (chosen is not None and not _positions(chosen))):
        header, skip = first, first_line
    at = f"{where}: line {first_line}"
    ends = _chosen(chosen, header, width, at) if chosen is not None else _ends(header, after if skip else rows, at)
    if any(map(_TWO_KINDS.search, sample.comments)):
        ends = replace(ends, two_kinds=True)
    others = [k for k in range(width) if k not in (ends.source, ends.target)]
    ignored = tuple((header[k].strip() if header else "") or f"column {k + 1}" for k in others)
    weight = others[0] if header is None and chosen is None and others else None
    names_of = (header[ends.source], header[ends.target]) if header and skip else None
    return ColumnLayout(separator, width, ends, skip, ignored, weight, names_of)


def ends_of_header(header: Sequence[str], chosen: Sequence[str] | None, where: str) -> EndPlaces:
    """The ends of a table whose columns all have names. Raises FileError as in `layout_of`."""
    return _ends(header, (), where) if chosen is None else _chosen(chosen, header, len(header), where)


def two_columns(text: str, path: str) -> tuple[str, str]:
    """Parse two column names, as in `source,target`. Raises ScenarioError, starting with the path, for others."""
    words = [word.strip() for word in text.split(",")]
    if len(words) != 2 or not all(words):
        raise ScenarioError(f"{path}: {text!r} is not allowed; two columns are needed, as in source,target or 1,3")
    return words[0], words[1]


def fields_of(line: str, separator: str | None) -> list[str]:
    """The fields of a line, without spaces and quotes around them."""
    if separator is None and '"' not in line:
        return line.split()
    if separator is None:
        return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line)]
    if separator == "\t" and '"' not in line:
        return [word.strip() for word in line.rstrip("\r\n").split("\t")]
    try:
        return [word.strip() for word in next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])]
    except csv.Error:
        return [word.strip() for word in line.split(separator)]


def is_number(text: str) -> bool:
    """Whether the text is a number, also with a decimal comma or Fortran's exponent."""
    return _NUMBER.fullmatch(text.strip()) is not None or text.strip().lower() in ("nan", "inf", "-inf")


def whole_number(text: str) -> int | None:
    """The whole number in the text, in any notation; None for others, and for inexact ones.

    >>> whole_number("1e+05"), whole_number("7.0"), whole_number("1.5"), whole_number("1e-3")
    (100000, 7, None, None)
    """
    if not WHOLE.fullmatch(text):
        return None
    if text.lstrip("+-").isdigit():
        return int(text)
    value = float(text)
    return int(value) if value.is_integer() and abs(value) <= EXACT else None


def _separator(lines: Sequence[tuple[int, str]], names: bool) -> str | None:
    texts = [line for _, line in lines]
    if all(_DECIMAL_COMMA.fullmatch(line.rstrip()) for line in texts[1:] or texts):
        return None
    for separator in _SEPARATORS[names]:
        rows = [fields_of(line, separator) for line in texts]
        widths = {len(row) for row in rows[1:]} or {len(rows[0])}
        fits = len(widths) == 1 and min(widths) >= 2 and len(rows[0]) in (min(widths), min(widths) - 1)
        data = rows[1:] or rows
        if fits and (names or all(map(_holds_edge, data))):
            return separator
    order = (",", "\t", ";", "|") if names else (",", ";", "|")
    return next((text for text in order if text in texts[0]), None)


def _is_header(first: Sequence[str], after: Sequence[Sequence[str]], names: bool) -> bool:
    """Whether the first line is a header, judged by it and by the lines after it."""
    if _unnamed(first) or _numbers_rows(first, after):
        return True
    if not any(first) or sum(map(is_number, first)) > 1:
        return False
    ends = named_ends(first)
    if not names:
        below = bool(after) and _holds_edge(after[0])
        return (below and not any(map(is_number, first))) or (
            ends is not None and (below or not marked_only(first, ends))
        )
    rows = [row for row in after if len(row) == len(first)]
    if rows and not any(map(is_number, first)) and all(map(_holds_edge, rows)):
        return True
    if ends is not None:
        met = {first[ends.source], first[ends.target]}
        longer = bool(rows) and all(len(row[k]) > 1 for row in rows for k in (ends.source, ends.target))
        others = [row for row in rows if list(row) != list(first)]  # concatenated files repeat their header
        return not any(met.intersection(row) for row in others) and (longer or not marked_only(first, ends))
    if len(first) == 2 or not rows:
        return False
    columns = zip(first, zip(*rows, strict=True), strict=True)
    return not first[0] or any(not is_number(name) and all(map(is_number, column)) for name, column in columns)


def _numbers_rows(first: Sequence[str], after: Sequence[Sequence[str]]) -> bool:
    """Whether the first line has no number in its first cell, and the lines after it have row numbers there."""
    if len(first) < 3 or not after or is_number(first[0]):
        return False
    return _counts_lines([row[0] for row in after if row])


def _unnamed(header: Sequence[str]) -> bool:
    """Whether the first cell is empty and the others count from 0, as pandas writes unnamed columns."""
    return len(header) > 2 and not header[0] and list(header[1:]) == [str(k) for k in range(len(header) - 1)]


def _holds_edge(row: Sequence[str]) -> bool:
    return sum(WHOLE.fullmatch(word) is not None for word in row) > 1


def _commented(comments: Sequence[str], separator: str | None, width: int) -> list[str] | None:
    """The header in the comments before the data: a line with as many names, two of which are known ends."""
    for line in reversed(comments):
        text = line.lstrip("#% \t")
        for names in (fields_of(text, separator), text.split()):
            if len(names) == width and named_ends(names) is not None:
                return names
    if comments and _KONECT.match(comments[0]) and 2 <= width <= 4:
        return ["source", "target", "weight", "timestamp"][:width]
    return None


def _ends(header: Sequence[str] | None, rows: Sequence[Sequence[str]], at: str) -> EndPlaces:
    """The ends by the header; without one the first two of at most three columns."""
    if header is None:
        width = len(rows[0])
        if width not in (2, 3):
            more = f" without a header that says more; {CHOOSE}, numbers from 1 too" if width > 3 else ""
            allowed = "source, target and at most a weight are allowed"
            raise FileError(f"{at}: {plural(width, 'column')}; {allowed}{more}")
        whole = [{WHOLE.fullmatch(row[k]) is not None for row in rows if len(row) == width} for k in range(width)]
        if whole == [{True}, {False}, {True}]:
            raise FileError(
                f"{at}: 3 columns without a header, and the second holds no numbers ({rows[0][1][:40]!r}); "
                f"{CHOOSE}, as in --ends 1,3"
            )
        _check_first(rows, at)
        return EndPlaces(0, 1)
    pairs = [f"{header[one]}, {header[other]}" for one, other in rivals(header)]
    if pairs:
        raise FileError(f"{at}: the header names the ends of an edge twice ({' and '.join(pairs)}); {CHOOSE}")
    ends = named_ends(header) or only_ends(header)
    named = [k for k, name in enumerate(header) if name.strip()]
    if len(named) == 3 and ends == EndPlaces(named[0], named[1]) and says_nothing(header):
        _check_first([[row[k] for k in named] for row in rows if len(row) == len(header)], at, header)
    if ends is None or (_unnamed(header) and rows and not _counts_lines([row[0] for row in rows if row])):
        raise FileError(
            f"{at}: the header ({_shown(header)}) does not say which two columns are the ends of an edge, as source, "
            f"target do; {CHOOSE}"
        )
    return ends


def _shown(header: Sequence[str]) -> str:
    return ", ".join(name or "''" for name in header)


def _check_first(rows: Sequence[Sequence[str]], at: str, header: Sequence[str] = ()) -> None:
    """Raise FileError if the first of three columns contains times or line numbers.

    This applies without a header, and if some of its names have no meaning.
    """
    whole = [row for row in rows if len(row) == 3]
    numbers = [tuple(map(whole_number, row)) for row in whole]
    weights = any(ids[2] is None and is_number(row[2]) for ids, row in zip(numbers, whole, strict=True))
    if not whole or len(whole) < len(rows) or weights:
        return
    first = [row[0] for row in whole]
    held = "times" if all(map(_DATE.fullmatch, first)) else ""
    ids = [(one, two, three) for one, two, three in numbers if None not in (one, two, three)]
    if not held and len(ids) == len(whole):
        if all(int(one or 0) >= _SECONDS > int(two or 0) for one, two, _ in ids):
            held = "times"
        counts = _counts_lines(first) and not _counts_on([two for _, two, _ in ids])
        if counts and len(rows) > 2 and len({three for *_, three in ids}) > 1:
            held = "the numbers of lines"
    if held:
        what, ends = "3 columns without a header", ("2,3", "1,2")
        if header:
            ends = ",".join(header[-2:]), ",".join(header[-3:-1])
            what = f"the header ({_shown(header)}) does not say which columns are the ends of an edge"
        raise FileError(
            f"{at}: {what}, and the first looks like {held} ({first[0][:40]}, ...); {CHOOSE}, "
            f"as in --ends {ends[0]}, or --ends {ends[1]} where the third is a weight"
        )


def _counts_lines(words: Sequence[str]) -> bool:
    """Whether the texts are consecutive line numbers from 0 or 1."""
    numbers = [whole_number(word) for word in words]
    return _counts_on(numbers) and numbers[0] in (0, 1)


def _counts_on(numbers: Sequence[int | None]) -> bool:
    """Whether each number is one more than the previous one; unknown for none."""
    begin = numbers[0] if numbers else None
    return begin is not None and list(numbers) == [*range(begin, begin + len(numbers))]


def _positions(chosen: Sequence[str]) -> bool:
    return all(word.isdigit() for word in chosen)


def _chosen(chosen: Sequence[str], header: Sequence[str] | None, width: int, at: str) -> EndPlaces:
    """The positions of the columns that the user named."""
    if header is None or (_positions(chosen) and not set(chosen) <= set(header)):
        places = [int(word) - 1 for word in chosen]
        for place in places:
            if not 0 <= place < width:
                raise FileError(f"{at}: ends: column {place + 1} is not allowed; 1 to {width} are")
    else:
        known = [name.strip().lower() for name in header]
        for word in chosen:
            if word.lower() not in known:
                raise FileError(f"{at}: ends: no column {word!r} in the header; {nearest(word, list(header))}")
        places = [known.index(word.lower()) for word in chosen]
    if places[0] == places[1]:
        raise FileError(f"{at}: ends: {','.join(chosen)} is one column; two different ones are needed")
    named = None if header is None else named_ends(header)
    kinds = named is not None and named.two_kinds and {named.source, named.target} == set(places)
    return EndPlaces(places[0], places[1], kinds)
