"""Free spelling of names and units: `H100` is `h100`, `RTX4090` is `rtx-4090`; `15 GBit/s`, `16gb`, `5 sec`.

Of names, case, hyphens, underscores and spaces do not matter. A suggestion is made for a typing error and for a family
(`A100`: a100-40, a100-80 and the PCIe boards), never for another product: model numbers must agree.

`gcnsim.core.units` has the proper symbols of units; this module has their aliases. A spelling with one meaning is
accepted, one with two is refused with both, because a wrong guess is off by 8 (bit or byte), 1000 or 1.02.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

MOST: Final = 8
"""The most names of a family in a message."""

_RUNS: Final = re.compile(r"[0-9]+|[^0-9]+")
_DROPPED: Final = re.compile(r"[-_\s]+")
_SEPARATORS: Final = "-_. "
_MAKERS: Final = re.compile(r"(?:(?:nvidia|amd|tesla|geforce|radeon|instinct|quadro)[-_\s]+)+", re.IGNORECASE)
_MEMORY_UNIT: Final = re.compile(r"(?<=\d)\s?gi?b\b", re.IGNORECASE)
_BOARDS: Final = frozenset(("pcie", "sxm", "nvl"))
"""Board forms of one GPU."""

_LEFT_OUT: Final = frozenset(("x", "xlarge"))
"""Suffixes that people omit after a number: `mi300` is mi300x, `p4d.24` is p4d.24xlarge."""

SHORTEST_WORD: Final = 3
"""The least letters of a word next to a number in which a typing error is assumed; shorter ones are products (l40,
l40s).
"""


def known_name(name: str, known: Iterable[str]) -> str | None:
    """The one of `known` that `name` is, in any case and with any hyphens, underscores and spaces; None for none.

    >>> known_name("RTX4090", ["rtx-3090", "rtx-4090"]), known_name("A100", ["a100-40", "a100-80"])
    ('rtx-4090', None)
    """
    names = tuple(known)
    return name if name in names else _alike(name, names)


@lru_cache(maxsize=1024)
def _alike(name: str, names: tuple[str, ...]) -> str | None:
    wanted = _key(name)
    same = [text for text in names if _key(text) == wanted]
    return same[0] if len(same) == 1 else None


def meant_names(name: str, known: Iterable[str]) -> list[str]:
    """The known names similar to an unknown one, sorted: after a typing error, otherwise the members of a family.

    >>> meant_names("redit", ["reddit", "yelp"]), meant_names("A100", ["a100-40", "a100-80", "h100"])
    (['reddit'], ['a100-40', 'a100-80'])
    >>> meant_names("volume", ["vol", "cut"])
    ['vol']
    >>> meant_names("Tesla A100 80GB", ["a100-40", "a100-80", "a100-pcie-80"])
    ['a100-80', 'a100-pcie-80']
    >>> meant_names("h20", ["h200", "h100"]), meant_names("rtx-2080", ["rtx-2080-ti"])
    ([], [])
    """
    names = sorted(set(known))
    slips = {text: distance for text in names if (distance := _slip(_plain(name), _plain(text))) is not None}
    bare = _MEMORY_UNIT.sub("", _MAKERS.sub("", name.lower().strip(), count=1))
    family = [
        text
        for text in names
        if _in_family(bare, text.lower()) or _has_words(bare, text.lower()) or _shortened(name, text)
    ]
    if slips and (min(slips.values()) <= 1 or not family):
        return [min(slips, key=lambda slip: (slips[slip], slip))]
    return family if len(family) <= MOST else []


def _key(name: str) -> str:
    return _DROPPED.sub("", name.lower())


def _plain(name: str) -> str:
    """The name also without dots and quotes, for comparing similarity."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _slip(name: str, known: str) -> int | None:
    """The number of mistyped, swapped, missing or extra letters; None if `known` is not similar.

    Numbers must agree, and so must short words next to them: `h20` is not `h200`, `l40` not `l40s`.
    """
    runs, others = _RUNS.findall(name), _RUNS.findall(known)
    if len(runs) != len(others):
        return None
    numbered, total = len(others) > 1 or known.isdigit(), 0
    for run, other in zip(runs, others, strict=True):
        if run == other:
            continue
        if run.isdigit() or other.isdigit() or (numbered and min(len(run), len(other)) < SHORTEST_WORD):
            return None
        total += _distance(run, other)
    return total if total < len(known) and total <= (1 if len(known) <= 4 else 2) else None


def _in_family(name: str, known: str) -> bool:
    """Whether `known` is `name` with more at its end or words before it: `a100` and a100-40, `4090` and rtx-4090.

    Letters after a model number mean another product: `rtx-2080` is not rtx-2080-ti.
    """
    text, plain = _plain(name), _plain(known)
    if len(text) < 2 or text == plain:
        return False
    if plain.startswith(text):
        return _goes_on(text, _rest(known, len(text)))
    if plain.endswith(text):
        before = _rest(known[::-1], len(text))[::-1]
        return before[-1] in _SEPARATORS and not any(letter.isdigit() for letter in before)
    return False


def _has_words(name: str, known: str) -> bool:
    """Whether `known` has all words of `name` and otherwise only numbers and boards: `v100 32` and v100-pcie-32."""
    own, words = (set(re.split(r"[-_. ]+", text)) for text in (name, known))
    return len(own) > 1 and own <= words and all(word.isdigit() or word in _BOARDS for word in words - own)


def _shortened(name: str, known: str) -> bool:
    """Whether `known` is an abbreviation of `name`: `vol` for volume. Numbers mean another product."""
    text, plain = _plain(name), _plain(known)
    return len(plain) >= SHORTEST_WORD and text.startswith(plain) and text.isalpha()


def _goes_on(text: str, rest: str) -> bool:
    """Whether a known name that starts with `text` and ends with `rest` belongs to its family."""
    apart = rest[0] in _SEPARATORS
    if text[-1].isdigit():
        word = re.split(r"[-_. ]", rest)[1] if apart else ""
        return word in _BOARDS or any(letter.isdigit() for letter in word) or rest in _LEFT_OUT
    shortened = len(text) >= SHORTEST_WORD and not any(letter.isdigit() for letter in text + rest)
    shortened = shortened or (rest.isalpha() and text[-2:].isalpha())
    return apart or rest[0].isdigit() or shortened


def _rest(known: str, count: int) -> str:
    """What follows the first `count` letters and digits."""
    for index, letter in enumerate(known):
        count -= letter.isalnum()
        if not count:
            return known[index + 1 :]
    return ""


def _distance(one: str, other: str) -> int:
    """Letters to change, add, drop or swap with their neighbour (optimal string alignment)."""
    before, row = list[int](), list(range(len(other) + 1))
    for index, letter in enumerate(one, 1):
        before, last, row = row, before, [index]
        for at, wanted in enumerate(other, 1):
            best = min(before[at] + 1, row[at - 1] + 1, before[at - 1] + (letter != wanted))
            if index > 1 and at > 1 and letter == other[at - 2] and one[index - 2] == wanted:
                best = min(best, last[at - 2] + 1)
            row.append(best)
    return row[-1]


@dataclass(frozen=True, slots=True)
class AmbiguousUnit:
    """A spelling with several meanings. question: which one; choices: what to write instead."""

    question: str
    choices: tuple[str, ...]


UnitAlias: TypeAlias = str | AmbiguousUnit | None
"""The unit of a spelling; an ambiguity; None if it is unknown."""

_WORDS: Final = {"kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P"}
_WORDS_BINARY: Final = {"kibi": "Ki", "mebi": "Mi", "gibi": "Gi", "tebi": "Ti", "pebi": "Pi"}
_NAMES: Final = {symbol: word for word, symbol in (_WORDS | _WORDS_BINARY).items()} | {"": ""}
_SCALE: Final = rf"(?:(?P<word>{'|'.join((*_WORDS, *_WORDS_BINARY))})|(?P<prefix>[kmgtp]i?)?)"
_BYTES: Final = re.compile(rf"{_SCALE}(?P<base>bits?|bytes?|b)?(?P<per>/s|/sec|/second|ps)?", re.IGNORECASE)
_ETHERNET: Final = re.compile(r"(?P<prefix>[gm]) ?(?:be|ige|(?:b|bit)? ?ethernet)", re.IGNORECASE)
_FLOPS: Final = re.compile(rf"{_SCALE}(?:flops?/s|flops?/sec|flops?/second|flops)", re.IGNORECASE)
_EDGES: Final = re.compile(rf"{_SCALE}edges?(?:/s|/sec|/second|ps)", re.IGNORECASE)
_SECONDS: Final = re.compile(r"(?P<prefix>p|n|u|µ|μ|m|pico|nano|micro|milli)?(?:s|secs?|seconds?)", re.IGNORECASE)
_LONGER: Final = {
    "min": re.compile(r"min|mins|minutes?", re.IGNORECASE),
    "h": re.compile(r"h|hrs?|hours?", re.IGNORECASE),
    "d": re.compile(r"d|days?", re.IGNORECASE),
}
_MONEY: Final = re.compile(r"(?:usd|\$|us-?\$|dollars?)/(?:h|hr|hour)", re.IGNORECASE)
_SLASH: Final = re.compile(r"\s*(?:/|\bper\b)\s*")


def plain(unit: str) -> str:
    """`unit` with `/` for `per`, without spaces around it."""
    return _SLASH.sub("/", unit)


def data_rate(unit: str) -> UnitAlias:
    """A unit of bandwidth. `b` means bit in a proper symbol, in `bps` and in Ethernet names; `B` before `/s` means
    byte.

    >>> data_rate("GBit/s"), data_rate("Gb/s"), data_rate("mebibytes/s"), data_rate("GbE")
    ('Gbit/s', 'Gbit/s', 'MiB/s', 'Gbit/s')
    >>> data_rate("gb/s").question
    'gigabits or gigabytes per second?'
    """
    if (ethernet := _ETHERNET.fullmatch(unit)) is not None:
        return f"{ethernet['prefix'].upper()}bit/s"
    match = _BYTES.fullmatch(unit)
    if match is None or not unit:
        return None
    prefix, base, per = _symbol(match), match["base"] or "", match["per"]
    written = match["prefix"] or ""
    either = AmbiguousUnit(
        f"{_NAMES[prefix]}bits or {_NAMES[prefix]}bytes per second?", (f"{prefix}bps", f"{prefix}B/s")
    )
    if per is None or not base:
        return either if base in ("", "b", "B") else _per_second(prefix, base)
    if len(base) > 1:
        return f"{prefix}bit/s" if base.lower().startswith("bit") else _decimal_or_binary(written, prefix, "B/s")
    if per.lower() == "ps":
        if base == "b":
            return f"{prefix}bps" if per == "ps" else either
        return f"{prefix}B/s" if written.endswith("i") else either
    if base == "B":
        return _decimal_or_binary(written, prefix, "B/s")
    # A lower-case g, m or t is not a proper symbol, so the author may not mean the lower-case b either.
    return f"{prefix}bit/s" if written in (prefix, "K") else either


def size(unit: str) -> UnitAlias:
    """A unit of size, always in bytes: `gb` is the gigabyte, but a proper `Gb` could mean gigabit.

    >>> size("gb"), size("mib"), size("kilobytes")
    ('GB', 'MiB', 'kB')
    """
    match = _BYTES.fullmatch(unit)
    if match is None or not unit or match["per"] is not None:
        return None
    prefix, base, written = _symbol(match), match["base"] or "", match["prefix"] or ""
    if not base:
        binary = prefix if prefix.endswith("i") else f"{prefix[:1].upper()}i"
        choices = tuple(dict.fromkeys(f"{text}B" for text in (prefix, binary)))
        return (
            None if match["word"] else AmbiguousUnit("1000 or 1024 bytes?" if len(choices) > 1 else "bytes?", choices)
        )
    if base.lower().startswith("bit") or (base == "b" and written != written.lower()):
        return AmbiguousUnit(f"{_NAMES[prefix]}bits or {_NAMES[prefix]}bytes? a size is in bytes:", (f"{prefix}B",))
    return _decimal_or_binary(written, prefix, "B")


def duration(unit: str) -> UnitAlias:
    """A unit of time. A capital M is refused, because milli and mega must not be confused, and so is a single m.

    >>> duration("msec"), duration("Seconds"), duration("minutes")
    ('ms', 's', 'min')
    """
    if unit in ("m", "M"):
        return AmbiguousUnit("minutes or milliseconds?", ("min", "ms"))
    match = _SECONDS.fullmatch(unit)
    if match is not None:
        prefix = match["prefix"] or ""
        if prefix in ("M", "P"):
            small, large = ("milli", "mega") if prefix == "M" else ("pico", "peta")
            return AmbiguousUnit(f"{small}seconds or {large}seconds?", (f"{prefix.lower()}s",))
        first = "u" if prefix.lower() == "micro" else prefix[:1].lower()
        return f"{'u' if first in ('µ', 'μ') else first}s"
    return next((symbol for symbol, pattern in _LONGER.items() if pattern.fullmatch(unit)), None)


def arithmetic(unit: str) -> UnitAlias:
    """A unit of floating-point operations per second, `tflops`.

    >>> arithmetic("TFlops"), arithmetic("gflop/s")
    ('TFLOP/s', 'GFLOP/s')
    """
    return _decimal(_FLOPS, unit, "FLOP/s")


def edge_rate(unit: str) -> UnitAlias:
    """A unit of edges per second, `million edges` aside."""
    return _decimal(_EDGES, unit, "edges/s")


def power(unit: str) -> UnitAlias:
    """A unit of power.

    >>> power("watts"), power("KW")
    ('W', 'kW')
    """
    return {"w": "W", "watt": "W", "watts": "W", "kw": "kW", "kilowatt": "kW"}.get(unit.lower())


def any_case(*units: str) -> Reader:
    """A reader of these units in any case."""
    named: dict[str, UnitAlias] = {unit.lower(): unit for unit in units}
    return lambda unit: named.get(unit.lower())


def unknown(_: str) -> UnitAlias:
    """A unit without other spellings."""
    return None


def price(unit: str) -> UnitAlias:
    """A price per hour: `usd/h`, `$/hour`."""
    return "USD/h" if _MONEY.fullmatch(unit) else None


def share(unit: str) -> UnitAlias:
    """A percentage in words."""
    return "%" if unit.lower() in ("percent", "pct") else None


Reader: TypeAlias = Callable[[str], UnitAlias]


def _symbol(match: re.Match[str]) -> str:
    """The proper prefix for the one that was written."""
    if match["word"]:
        return (_WORDS | _WORDS_BINARY)[match["word"].lower()]
    written = (match["prefix"] or "").lower()
    if written.endswith("i"):
        return f"{written[0].upper()}i"
    return written if written in ("", "k") else written.upper()


def _per_second(prefix: str, base: str) -> AmbiguousUnit:
    kind = "bit/s" if base.lower().startswith("bit") else "B/s"
    return AmbiguousUnit("per second?", (f"{prefix}{kind}",))


def _decimal_or_binary(written: str, prefix: str, unit: str) -> UnitAlias:
    """KB is 1000 bytes to some people and 1024 to others."""
    if written == "K":
        return AmbiguousUnit("1000 or 1024 bytes?", (f"k{unit}", f"Ki{unit}"))
    return f"{prefix}{unit}"


def _decimal(pattern: re.Pattern[str], unit: str, base: str) -> UnitAlias:
    match = pattern.fullmatch(unit)
    if match is None or (prefix := _symbol(match)).endswith("i"):
        return None
    return f"{prefix}{base}"
