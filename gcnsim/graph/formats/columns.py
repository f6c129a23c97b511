"""The layout of an edge list: the column separator, the header line, and the two columns of the ends.

It is determined from the first lines, and from comments before them, which edge lists of public collections use as a
header. A header names the ends by two known words (`PAIRS`), or by two names that differ in the last letter alone
(`gene1`, `gene2`); without a header the first two columns of whole numbers are the ends. Anything else is refused, for
two columns of other names may number nodes of two kinds: `--ends` says which.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gcnsim.core.errors import FileError, ScenarioError, nearest, plural

PAIRS: Final = (
    *(("source", "target"), ("source", "destination"), ("src", "dst"), ("src", "dest"), ("from", "to")),
    *(("head", "tail"), ("user", "item"), ("u", "v"), ("0", "1"), ("1", "2")),
)
"""Words for the first and the second end of an edge; `1` and `2` stand for `node1`, `node2`."""

_TWO_KINDS_PAIR: Final = ("user", "item")
_FILLERS: Final = frozenset(("node", "nodes", "vertex", "id", "ids"))
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_SAMPLE: Final = 50
"""The number of lines examined."""

_SEPARATORS: Final = {False: (";", "|", ",", None, "\t"), True: ("\t", ";", "|", ",", None)}
"""By whether ids are names: possible column separators, in the order tried; None: whitespace."""

_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eEdD][+-]?\d+)?")
WHOLE = re.compile(r"[+-]?\d{1,25}(\.0*)?|[+-]?\d{1,25}(\.\d{0,25})?[eE][+-]?\d{1,3}")
"""A pattern for whole numbers, including notations with decimals or exponents."""
EXACT: Final = 2**53
"""Above this, numbers with decimals do not represent every whole number."""
_SECONDS: Final = 10**8
"""Seconds since 1970, from 1973 on; few graphs have as many nodes."""
_KONECT = re.compile(r"%\s*(sym|asym|bip)\s+\w+")
_TWO_KINDS = re.compile(r"%\s*bip\b|(?<!non-)(?<!not )(?<!not a )\bbipartite\b(?!\W*(no|false|0)\b)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[^\s,;|]+[ \t]+[^\s,;|]+[ \t]+[+-]?\d+,\d+")
"""Two ids and a weight with a decimal comma; here the comma is not a separator."""

ADJACENCY: Final = (
    "an adjacency list, a node and its neighbours on each line, is not read; networkx.write_edgelist("
    "networkx.read_adjlist(FILE), 'edges.txt', data=False) converts it"
)

CHOOSE: Final = "say which with --ends NAME,NAME (gcnsim graph, gcnsim trace) or workload.ends"
"""The advice in the error if nothing identifies the two ends."""


@dataclass(frozen=True, slots=True)
class EndPlaces:
    """The positions of both columns, from 0. two_kinds: whether they number nodes of two kinds separately."""

    source: int
    target: int
    two_kinds: bool = False


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
    _check_layout(sample.lines, rows, where)
    ends = _chosen(chosen, header, width, at) if chosen is not None else _ends(header, rows, names, at)
    if any(map(_TWO_KINDS.search, sample.comments)):
        ends = replace(ends, two_kinds=True)
    others = [k for k in range(width) if k not in (ends.source, ends.target)]
    ignored = tuple((header[k].strip() if header else "") or f"column {k + 1}" for k in others)
    weight = next((k for k in others if k > ends.target), None) if header is None and chosen is None else None
    names_of = (header[ends.source], header[ends.target]) if header and skip else None
    return ColumnLayout(separator, width, ends, skip, ignored, weight, names_of)


def ends_of_header(header: Sequence[str], chosen: Sequence[str] | None, where: str) -> EndPlaces:
    """The ends of a table whose columns all have names. Raises FileError as in `layout_of`."""
    return _ends(header, (), False, where) if chosen is None else _chosen(chosen, header, len(header), where)


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
    rows = [row for row in after if len(row) == len(first)]
    if len(first) > 2 and not is_number(first[0]) and (_unnamed(first) or _counts_lines([row[0] for row in rows])):
        return True
    numbers = sum(map(is_number, first))
    if not any(first) or numbers > 1:
        return False
    ends = named_ends(first)
    below = bool(rows) and all(map(_holds_edge, rows if names else rows[:1]))
    if numbers == 0 and below:
        return True
    if ends is not None and not names:
        return below or len(first[ends.source]) > 1
    if ends is not None:
        # `u v` may be two nodes; what other lines name too is a node. Concatenated files repeat their header.
        longer = len(first[ends.source]) > 1 or all(len(row[ends.source]) > 1 for row in rows)
        met = {first[ends.source], first[ends.target]}
        return longer and not any(met.intersection(row) for row in rows if row != first)
    if len(first) == 2 or not names or not rows:
        return False
    columns = zip(first, zip(*rows, strict=True), strict=True)
    return not first[0] or any(not is_number(name) and all(map(is_number, column)) for name, column in columns)


def _unnamed(header: Sequence[str]) -> bool:
    """Whether the first cell is empty and the others count from 0, as pandas writes unnamed columns."""
    return len(header) > 2 and not header[0] and list(header[1:]) == [str(k) for k in range(len(header) - 1)]


def named_ends(header: Sequence[str]) -> EndPlaces | None:
    """The ends, if the names have exactly one pair of `PAIRS`; otherwise None.

    >>> named_ends(["weight", "FromNodeId", "ToNodeId"]), named_ends(["alpha", "beta", "gamma"])
    (EndPlaces(source=1, target=2, two_kinds=False), None)
    """
    pairs = _pairs(header)
    return pairs[0] if len(pairs) == 1 else None


def _pairs(header: Sequence[str]) -> list[EndPlaces]:
    words = [_word(name) for name in header]
    return [
        EndPlaces(j, k, pair == _TWO_KINDS_PAIR)
        for pair in PAIRS
        for j, one in enumerate(words)
        for k, other in enumerate(words)
        if (one, other) == pair
    ]


def _word(name: str) -> str:
    """The name in small letters without the words for a node's id: `source` for `source_id`, `1` for `Node1`."""
    words = [word.lower() for word in _WORDS.findall(name)]
    return "".join(word for word in words if word not in _FILLERS)


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


def _ends(header: Sequence[str] | None, rows: Sequence[Sequence[str]], names: bool, at: str) -> EndPlaces:
    """The ends by the header, or without one the first two columns of whole numbers."""
    if header is None:
        return _first_numbers(rows, names, at)
    pairs = _pairs(header)
    if len(pairs) > 1:
        shown = " and ".join(f"{header[pair.source]}, {header[pair.target]}" for pair in pairs)
        raise FileError(f"{at}: the header names the ends of an edge twice ({shown}); {CHOOSE}")
    named = [k for k, name in enumerate(header) if name.strip()]
    if not pairs and len(named) == 2 and len({_word(header[k])[:-1] for k in named}) == 1:
        return EndPlaces(named[0], named[1])
    if not pairs:
        listed = ", ".join(name or "''" for name in header)
        raise FileError(
            f"{at}: the header ({listed}) does not say which two columns are the ends of an edge, as source, target "
            f"do; {CHOOSE}"
        )
    return pairs[0]


def _first_numbers(rows: Sequence[Sequence[str]], names: bool, at: str) -> EndPlaces:
    """The first two columns, or among three or more those of whole numbers, where these are clear."""
    width = len(rows[0])
    even = [row for row in rows if len(row) == width]
    whole = [k for k in range(width) if all(WHOLE.fullmatch(row[k]) for row in even)]
    if width == 2 or (width == 3 and len(whole) < 2):
        return EndPlaces(0, 1)
    if len(whole) == 2 and not (names and whole != [0, 2]):
        return EndPlaces(whole[0], whole[1])
    if width == 3:
        _check_first(even, at)
        return EndPlaces(0, 1)
    raise FileError(
        f"{at}: {plural(width, 'column')}; source, target and at most a weight are allowed without a header that says "
        f"more; {CHOOSE}, numbers from 1 too; {ADJACENCY}"
    )


def _check_first(rows: Sequence[Sequence[str]], at: str) -> None:
    """Raise FileError if the first of three columns without a header holds times, or the numbers of lines or nodes."""
    ids = [[-1 if number is None else number for number in map(whole_number, row)] for row in rows]
    first, second, third = (list(column) for column in zip(*ids, strict=True))
    held = ""
    if min(first) >= _SECONDS > max(second):
        held = "times"
    elif len(rows) > 2 and _counts_lines([row[0] for row in rows]) and not _counts_on(second) and len({*third}) > 1:
        held = "the numbers of lines or of nodes"
    if held:
        raise FileError(
            f"{at}: 3 columns without a header, and the first looks like {held} ({rows[0][0][:40]}, ...); {CHOOSE}, as "
            f"in --ends 2,3, or --ends 1,2 where the third is a weight; {ADJACENCY}"
        )


_COLON = re.compile(r"\s*[^\s,;:]+:(?=[\s,;]|$)")
_DIMACS = re.compile(r"\s*p\s+[a-z]+\s+\d+\s+\d+\s*")
_FEWEST_RAGGED: Final = 2


def _check_layout(lines: Sequence[tuple[int, str]], rows: Sequence[Sequence[str]], where: str) -> None:
    """Raise FileError for an adjacency list, and for DIMACS: no two of their columns are the ends of every edge."""
    number, first = lines[0]
    begin = next((line for line in lines if not re.match(r"\s*c\b", line[1])), None)
    if begin and _DIMACS.fullmatch(begin[1]):
        raise FileError(
            f"{where}: line {begin[0]}: {begin[1].strip()[:40]!r} begins a DIMACS graph, which is not read; "
            f"grep '^[ae] ' {where} | cut -d' ' -f2,3 > edges.txt keeps its edges, with ids from 1 (--ids compact)"
        )
    colons = all(_COLON.match(line) for _, line in lines)
    numbers = [[whole_number(word) for word in row] for row in rows]
    whole = all(None not in row for row in numbers) and len({row[0] for row in numbers}) == len(numbers)
    ragged = sum(len(row) != len(rows[0]) for row in rows) >= _FEWEST_RAGGED and max(map(len, rows)) > 2
    if colons or (whole and (ragged or _mutual(numbers))):
        raise FileError(f"{where}: line {number}: {first.strip()[:40]!r}: {ADJACENCY}")


def _mutual(rows: Sequence[Sequence[int | None]]) -> bool:
    """Whether every node that a line lists lists that line's node too, as far as both lines are known."""
    listed = {row[0]: {*row[1:]} for row in rows}
    both = [node in listed[other] for node, others in listed.items() for other in others if other in listed]
    return max(map(len, rows)) > 2 and len(both) > 2 and all(both)


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
    kinds = {_word(header[place]) for place in places} == {*_TWO_KINDS_PAIR} if header else False
    return EndPlaces(places[0], places[1], kinds)
