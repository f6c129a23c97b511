"""How an edge list is laid out: what separates its columns, which line is a header, which two columns are the ends.

All of it follows from the first lines, and from comments before them, which edge lists of public collections use as a
header.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gcnsim.errors import FileError, ScenarioError, nearest, plural
from gcnsim.graph.formats.headers import Ends, marked_only, named_ends, only_ends

_SAMPLE: Final = 50
"""Lines that are looked at."""

_SEPARATORS: Final = {False: (";", "|", ",", None, "\t"), True: ("\t", ";", "|", ",", None)}
"""By whether ids are names: what may separate columns, in the order tried; None: whitespace."""

_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eEdD][+-]?\d+)?")
WHOLE = re.compile(r"[+-]?\d{1,25}(\.0*)?|[+-]?\d\.\d{1,25}[eE][+-]?\d{1,3}")
"""A whole number, also as it is written by those who keep all numbers with decimals."""
_INTEGER = re.compile(r"\d{1,18}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}.*")
_SECONDS: Final = 10**8
"""Since 1970, from 1973 on; few graphs have as many nodes."""
_KONECT = re.compile(r"%\s*(sym|asym|bip)\s+\w+")
_TWO_KINDS = re.compile(r"%\s*bip\b|(?<!non-)(?<!not )(?<!not a )\bbipartite\b(?!\W*(no|false|0)\b)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[^\s,;|]+[ \t]+[^\s,;|]+[ \t]+[+-]?\d+,\d+")
"""Two ids and a weight as many languages write it; the comma separates nothing."""

CHOOSE: Final = "say which with --ends NAME,NAME (gcnsim graph, gcnsim trace) or workload.ends"
"""What to do where nothing says which columns are the ends."""


@dataclass(frozen=True, slots=True)
class Layout:
    """separator: None for whitespace. skip: lines before the first edge, at least. ignored: names of other columns."""

    separator: str | None
    width: int
    ends: Ends
    skip: int = 0
    ignored: tuple[str, ...] = ()
    weight: int | None = None
    """The place of a column without a name that must hold numbers, where nothing else says that it is no end."""
    header: tuple[str, str] | None = None
    """Names of the ends in the line that is skipped."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The first lines: comments before the first line with data, then lines with data and their numbers from 1."""

    comments: tuple[str, ...]
    lines: tuple[tuple[int, str], ...]


def sample_of(text: bytes, *, trailing: bool) -> Sample:
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
    return Sample(tuple(comments), tuple(lines))


def layout_of(sample: Sample, chosen: Sequence[str] | None, *, names: bool, where: str) -> Layout:
    """The layout that the sample shows; it has a line at least.

    chosen: the ends as somebody named them, by names in the header or numbers from 1. names: whether ids are texts.
    Raises FileError where nothing says which columns are the ends, and for chosen ones that are not there.
    """
    separator = _separator(sample.lines, names)
    rows = [fields_of(line, separator) for _, line in sample.lines]
    first_line, first, after = sample.lines[0][0], rows[0], rows[1:]
    if after and len(after[0]) == len(first) + 1 and not any(map(is_number, first)):
        first = ["", *first]  # R writes names of rows, and no name above them
    width = len(first)
    header = _commented(sample.comments, separator, width)
    skip = 0
    if header is None and (_is_header(first, after, names) or (chosen is not None and not _positions(chosen))):
        header, skip = first, first_line
    at = f"{where}: line {first_line}"
    ends = _chosen(chosen, header, width, at) if chosen is not None else _ends(header, rows, at)
    if any(map(_TWO_KINDS.search, sample.comments)):
        ends = replace(ends, two_kinds=True)
    others = [k for k in range(width) if k not in (ends.source, ends.target)]
    ignored = tuple((header[k].strip() if header else "") or f"column {k + 1}" for k in others)
    weight = others[0] if header is None and chosen is None and others else None
    names_of = (header[ends.source], header[ends.target]) if header and skip else None
    return Layout(separator, width, ends, skip, ignored, weight, names_of)


def ends_of_header(header: Sequence[str], chosen: Sequence[str] | None, where: str) -> Ends:
    """The ends of a table whose columns all have names. Raises FileError as `layout_of` does."""
    return _ends(header, (), where) if chosen is None else _chosen(chosen, header, len(header), where)


def two_columns(text: str, path: str) -> tuple[str, str]:
    """The two columns that `text` names, as in `source,target`. Raises ScenarioError, the path first, for others."""
    words = [word.strip() for word in text.split(",")]
    if len(words) != 2 or not all(words):
        raise ScenarioError(f"{path}: {text!r} is not allowed; two columns are needed, as in source,target or 1,3")
    return words[0], words[1]


def fields_of(line: str, separator: str | None) -> list[str]:
    """The fields of a line, without blanks and quotes around them."""
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
    """Whether the text reads as a number, with a decimal comma or Fortran's exponent too."""
    return _NUMBER.fullmatch(text.strip()) is not None or text.strip().lower() in ("nan", "inf", "-inf")


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
    return next((each for each in order if each in texts[0]), None)


def _is_header(first: Sequence[str], after: Sequence[Sequence[str]], names: bool) -> bool:
    """Whether the first line names the columns, judged by it and by the lines after it."""
    if not any(first) or _holds_edge(first):
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
        others = [row for row in rows if list(row) != list(first)]  # files put behind one another repeat their header
        return not any(met.intersection(row) for row in others) and (longer or not marked_only(first, ends))
    if len(first) == 2 or not rows:
        return False
    columns = zip(first, zip(*rows, strict=True), strict=True)
    return not first[0] or any(not is_number(name) and all(map(is_number, column)) for name, column in columns)


def _holds_edge(row: Sequence[str]) -> bool:
    return sum(WHOLE.fullmatch(word) is not None for word in row) > 1


def _commented(comments: Sequence[str], separator: str | None, width: int) -> list[str] | None:
    """The header that the comments before the data hold: a line of as many names, of which two are known as ends."""
    for line in reversed(comments):
        text = line.lstrip("#% \t")
        for names in (fields_of(text, separator), text.split()):
            if len(names) == width and named_ends(names) is not None:
                return names
    if comments and _KONECT.match(comments[0]) and 2 <= width <= 4:
        return ["source", "target", "weight", "timestamp"][:width]
    return None


def _ends(header: Sequence[str] | None, rows: Sequence[Sequence[str]], at: str) -> Ends:
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
        return Ends(0, 1)
    ends = named_ends(header) or only_ends(header)
    if ends is None:
        shown = ", ".join(name or "''" for name in header)
        raise FileError(
            f"{at}: the header ({shown}) does not say which two columns are the ends of an edge, as source, target do; "
            f"{CHOOSE}"
        )
    return ends


def _check_first(rows: Sequence[Sequence[str]], at: str) -> None:
    """Raises FileError where the first of three columns without names holds times or numbers the lines."""
    whole = [row for row in rows if len(row) == 3]
    if len(whole) < len(rows) or not all(_INTEGER.fullmatch(row[2]) or not is_number(row[2]) for row in whole):
        return
    first = [row[0] for row in whole]
    held = "times" if all(map(_DATE.fullmatch, first)) else ""
    if not held and all(map(_INTEGER.fullmatch, [word for row in whole for word in row])):
        if all(int(word) >= _SECONDS and int(row[1]) < _SECONDS for word, row in zip(first, whole, strict=True)):
            held = "times"
        counts = _counts_on(first) and int(first[0]) < 2 and not _counts_on([row[1] for row in whole])
        if counts and len(rows) > 2 and len({row[2] for row in whole}) > 1:
            held = "the numbers of lines"
    if held:
        raise FileError(
            f"{at}: 3 columns without a header, and the first looks like {held} ({first[0][:40]}, ...); {CHOOSE}, "
            "as in --ends 2,3, or --ends 1,2 where the third is a weight"
        )


def _counts_on(words: Sequence[str]) -> bool:
    """Whether each is the one before and one."""
    begin = int(words[0])
    return [int(word) for word in words] == [*range(begin, begin + len(words))]


def _positions(chosen: Sequence[str]) -> bool:
    return all(word.isdigit() for word in chosen)


def _chosen(chosen: Sequence[str], header: Sequence[str] | None, width: int, at: str) -> Ends:
    """The places of the columns that somebody named."""
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
    return Ends(places[0], places[1], kinds)
