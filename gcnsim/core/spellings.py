"""Free spelling of names and units: `H100` is `h100`, `RTX4090` is `rtx-4090`; `15 GBit/s`, `16gb`, `5 sec`.

Of names, case, hyphens, underscores and spaces do not matter. A suggestion is made for a typing error and for a family
(`A100`: a100-40, a100-80 and the PCIe boards); model numbers must agree.

`gcnsim.core.units` has the proper symbols of units; this module has their aliases. A spelling with one meaning is
accepted, one with two is refused with both, because a wrong guess is off by 8 (bit or byte), 1000 or 1.02.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, TypeAlias

MOST: Final = 8
"""The most names of a family in a message."""

_CLOSE: Final = {False: 0.65, True: 0.7}
"""The least similarity by difflib of a name that may be meant, by whether it has a number."""

_DROPPED: Final = re.compile(r"[-_\s]+")
_MAKERS: Final = re.compile(r"(?:(?:nvidia|amd|tesla|geforce|radeon|instinct|quadro)[-_\s]+)+", re.IGNORECASE)
_MEMORY_UNIT: Final = re.compile(r"(?<=\d)\s?gi?b\b", re.IGNORECASE)


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
    """The known names that begin like an unknown one or have all of its words, else the closest one by difflib.

    Numbers must agree: `h20` is not h200.

    >>> meant_names("redit", ["reddit", "yelp"]), meant_names("A100", ["a100-40", "a100-80", "h100"])
    (['reddit'], ['a100-40', 'a100-80'])
    >>> meant_names("Tesla A100 80GB", ["a100-40", "a100-80", "a100-pcie-80"]), meant_names("h20", ["h200", "h100"])
    (['a100-80', 'a100-pcie-80'], [])
    """
    bare = _MEMORY_UNIT.sub("", _MAKERS.sub("", name.lower().strip(), count=1))
    names = {_plain(text): text for text in sorted(set(known)) if _numbers(bare) <= _numbers(text)}
    words = _words(bare)
    family = [text for key, text in names.items() if key.startswith(_plain(bare)) or words <= _words(text)]
    close = get_close_matches(_plain(bare), names, 1, _CLOSE[bool(_numbers(bare))])
    if close and (not family or (not _numbers(bare) and len(close[0]) <= len(_plain(bare)) + 1)):
        return [names[close[0]]]
    return family if len(family) <= MOST else []


def _key(name: str) -> str:
    return _DROPPED.sub("", name.lower())


def _plain(name: str) -> str:
    """The name also without dots and quotes."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", name.lower()))


def _numbers(name: str) -> set[str]:
    return set(re.findall(r"\d+", name))


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
