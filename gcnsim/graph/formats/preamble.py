"""What text files hold besides edges, by the programs that write them: counts, a spreadsheet's separator, JSON."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from gcnsim.errors import FileError
from gcnsim.graph.formats.columns import Sample, whole_number

_SEPARATOR = re.compile(rb"\A\"?sep=[^\n]?\"?[ \t]*(?=\n)", re.IGNORECASE)
"""The first line by which a spreadsheet is told what separates columns."""

_BLANK = re.compile(rb"[ \t]*[,;|][ \t,;|]*")
"""A row of empty cells."""

_DOCUMENT = re.compile(r"[\[{]|[\[{].*[\]}],?|\([^()]*,[^()]*\),?")
"""A line of JSON, or a tuple as Python prints it."""

_COUNT: Final = re.compile(r"\d{1,18}")
_MOST_COUNTS: Final = 3


def edges_only(data: bytes) -> bytes:
    """The text without a spreadsheet's separator line and the rows of empty cells at its end; lines keep their numbers.

    >>> edges_only(b"sep=;\\na;b\\n;\\n")
    b'#ep=;\\na;b\\n'
    """
    found = _SEPARATOR.match(data)
    data = b"#" + data[1:] if found else data
    while True:
        begin = data.rstrip(b"\n").rfind(b"\n") + 1
        if not _BLANK.fullmatch(data[begin:].rstrip(b"\n")):
            return data
        data = data[:begin]


def check_edge_list(sample: Sample, where: str) -> None:
    """Raises FileError where the first line with data is JSON or a tuple, whose pieces are no ids."""
    number, line = sample.lines[0]
    text = line.strip()
    if _DOCUMENT.fullmatch(text):
        raise FileError(
            f"{where}: line {number}: {text[:40]!r} is JSON or a list of Python, no edge; an edge list has the two ids "
            "of an edge a line, as in 0,1"
        )


def without_counts(sample: Sample, data: bytes) -> tuple[Sample, int]:
    """The sample without a first line that counts nodes and edges, and the number of that line; 0: there is none.

    It counts where its last number is that of the lines after it, or half of that, and its first is above the ids of
    all lines of the sample, or the largest of ids from 1.
    """
    first = [word for word in re.split(r"[\s,;|]+", sample.lines[0][1].strip()) if word]
    rows = [re.split(r"[\s,;|]+", line.strip())[:2] for _, line in sample.lines[1:]]
    if not rows or not 2 <= len(first) <= _MOST_COUNTS or not all(map(_COUNT.fullmatch, first)):
        return sample, 0
    nodes, edges = int(first[0]), int(first[-1])
    numbers = [whole_number(word) for row in rows for word in row]
    ids = [-1 if number is None else number for number in numbers]
    largest = nodes - 1 if 0 in ids else nodes
    if min(ids) < 0 or max(ids) > largest or (len(first) == _MOST_COUNTS and first[0] != first[1]):
        return sample, 0
    number = sample.lines[0][0]
    lines = data.rstrip().count(b"\n") + 1 - number
    if lines not in (edges, 2 * edges):
        return sample, 0
    return replace(sample, lines=sample.lines[1:]), number
