"""Find the two columns of a table that are the ends of an edge, by the names in its header.

Names are compared word by word, in any case, with or without spaces, underscores and capitals inside: `FromNodeId`,
`from_node_id` and `From` all contain `from`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _pairs(words: str) -> tuple[tuple[str, str], ...]:
    return tuple((first, second) for first, _, second in (pair.partition("/") for pair in words.split()))


PAIRS: Final = _pairs(
    "source/target source/destination source/dest source/sink src/dst src/dest src/destination src/tgt src/trg "
    "source/tgt src/target from/to head/tail subject/object subj/obj sub/obj origin/destination origin/dest "
    "orig/dest citing/cited follower/followee follower/followed follower/following sender/receiver "
    "sender/recipient caller/callee truster/trustee trustor/trustee rater/ratee parent/child user/friend "
    "node/neighbor node/neighbour ego/alter row/column row/col start/end"
)
"""Words for the first and the second end of an edge, the clearest first."""

MARKS: Final = _pairs("u/v i/j 0/1 1/2 a/b x/y s/t h/t")
"""Marks that distinguish two columns of one name: `node_1` and `node_2`, `gene A` and `gene B`, `u` and `v`."""

KINDS: Final = _set(
    "user item movie film product book group artist business song track tag page repo repository customer author "
    "paper article person event actor reviewer gene disease drug protein doc document word term member playlist "
    "venue company director keyword conference team club ingredient recipe shop store sku game app host"
)
"""Nouns for kinds of nodes; two different ones mean two kinds, each numbered separately."""

_NO_ENDS: Final = _set(
    "weight weights wt w value val score count counts cost distance dist length rating stars strength sim similarity "
    "freq frequency prob probability confidence amount capacity quantity playcount "
    "time timestamp ts date datetime year since label labels type relation rel predicate edgetype class sign directed"
)
_ATTRIBUTES: Final = _NO_ENDS | _set("edge eid rowid rownum index unnamed serial")
_FILLERS: Final = _set("node nodes id ids vertex idx ix index nr no num number key")
_WORD_BREAKS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")


@dataclass(frozen=True, slots=True)
class EndPlaces:
    """The positions of both columns, from 0. two_kinds: whether they number nodes of two kinds separately."""

    source: int
    target: int
    two_kinds: bool = False


def named_ends(header: Sequence[str]) -> EndPlaces | None:
    """The ends, if the names identify exactly one pair; otherwise None."""
    names = [_words(name) for name in header]
    found = next(iter(_pairs_of(names)), None)
    if found is None and not _in_series(names):
        found = _marked(names)
    if found is None:
        kinds = [(k, words & KINDS) for k, words in enumerate(map(frozenset, names)) if not words & _NO_ENDS]
        nouns = [(k, noun) for k, noun in kinds if noun]
        if len(nouns) != 2 or nouns[0][1] & nouns[1][1]:
            return None
        found = nouns[0][0], nouns[1][0]
    first, second = (KINDS.intersection(names[place]) for place in found)
    return EndPlaces(*found, two_kinds=bool(first and second and not first & second))


def only_ends(header: Sequence[str]) -> EndPlaces | None:
    """The ends that remain without weights, times, labels and line numbers; None for more or fewer than two."""
    names = [_words(name) for name in header]
    if len(names) == 2:
        return None if any(_NO_ENDS.intersection(words) for words in names) else EndPlaces(0, 1)
    plain = [k for k, words in enumerate(names) if header[k].strip() and not _ATTRIBUTES.intersection(words)]
    if len(plain) > 2:
        plain = [k for k in plain if not _FILLERS.issuperset(_split(header[k]))]
    return EndPlaces(plain[0], plain[1]) if len(plain) == 2 else None


def rivals(header: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """The pairs of columns that name the ends equally clearly (`from, to, source, target`); empty if there is one pair.

    `start, end` next to another pair are times, and a pair of longer names (`from_name, to_name`) describes the ends.
    """
    names = [_words(name) for name in header]
    pairs = _pairs_of(names)
    if not pairs:
        return ()
    clear, *others = pairs
    length = sum(len(names[place]) for place in clear)
    times = {("start",), ("end",)}
    same = [
        pair
        for pair in others
        if pair[::-1] != clear and sum(len(names[k]) for k in pair) <= length and {names[k] for k in pair} != times
    ]
    return (clear, same[0]) if same else ()


def says_nothing(header: Sequence[str]) -> bool:
    """Whether no name indicates its column's content: an end, a weight, a time, a label or a line number."""
    names = [_words(name) for name in header if name.strip()]
    known = KINDS | _ATTRIBUTES
    return not _pairs_of(names) and not any(known.intersection(words) or _FILLERS.issuperset(words) for words in names)


def _in_series(names: Sequence[tuple[str, ...]]) -> bool:
    """Whether the names are a series such as `V1, V2, V3, V4`, which has no meaning.

    That is, there are more than three columns, and three names differ in one letter or number that counts up.
    """
    usable = set(_usable(names))
    return sum(map(bool, names)) > 3 and any(
        all((*words[:k], _after(words[k], step), *words[k + 1 :]) in usable for step in (1, 2))
        for words in usable
        for k in range(len(words))
    )


def _after(word: str, steps: int) -> str:
    """The letter or number after this many steps; empty if the word is neither."""
    if re.fullmatch(r"[0-9]{1,9}", word):
        return str(int(word) + steps)
    return chr(ord(word) + steps) if re.fullmatch(r"[a-z]", word) else ""


def marked_only(header: Sequence[str], ends: EndPlaces) -> bool:
    """Whether the ends are single letters (`u` and `v`), which may also be the names of two nodes."""
    return all(len(header[place].strip()) == 1 for place in (ends.source, ends.target))


def _usable(names: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [() if _NO_ENDS.intersection(words) else words for words in names]


def _pairs_of(names: Sequence[tuple[str, ...]]) -> list[tuple[int, int]]:
    """The pairs identified by `PAIRS`, clearest first."""
    usable, pairs = _usable(names), list[tuple[int, int]]()
    for first, second in PAIRS:
        found = _differing(usable, first, second)
        one, other = ([k for k, words in enumerate(usable) if word in words] for word in (first, second))
        if not found and len(one) == len(other) == 1 and one != other:
            found = [(one[0], other[0])]
        pairs += found[:1]
    return list(dict.fromkeys(pairs))


def _marked(names: Sequence[tuple[str, ...]]) -> tuple[int, int] | None:
    """The pair identified by `MARKS`; None if several pairs match."""
    for first, second in MARKS:
        found = _differing(_usable(names), first, second)
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _differing(names: Sequence[tuple[str, ...]], first: str, second: str) -> list[tuple[int, int]]:
    """Pairs of columns whose names differ in one word, `first` in one and `second` in the other.

    If the names have different numbers of words, the pairs with the fewest words are used.
    """
    found = [
        (len(one), j, k)
        for j, one in enumerate(names)
        for k, other in enumerate(names)
        if len(one) == len(other) and [(a, b) for a, b in zip(one, other, strict=True) if a != b] == [(first, second)]
    ]
    fewest = min((length for length, _, _ in found), default=0)
    return [(j, k) for length, j, k in found if length == fewest]


def _words(name: str) -> tuple[str, ...]:
    """The words of a column's name, without generic words for a node's id."""
    words = [re.sub(r"(?<=.)(node)?_?ids?$", "", word) for word in _split(name)]
    return tuple(word for word in words if word not in _FILLERS) or tuple(words)


def _split(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", _WORD_BREAKS.sub(" ", name.strip()).lower())
