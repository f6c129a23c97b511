"""Mutations of valid files: bytes of any, and what stands in JSON, YAML, archives, gzip and our containers.

A container, an archive and a gzip file are also changed inside and then sealed again with the right checksums, so that
a reader is tried on its contents and not only on its checksums. Every draw comes from the generator that is given.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO
from typing import Any, Final

import yaml

from gcnsim.core.container import ALIGN, MAGIC
from gcnsim.core.errors import FileError
from gcnsim.core.yaml_files import parse_yaml
from tests.fuzz.values import VALUES, WORDS

MOST_BYTES: Final = 1 << 20
"""Of a mutated file: larger ones only make a read longer."""

_NUMBER: Final = re.compile(rb"-?\d+(?:\.\d+)?")

Draw = random.Random


def mutated(data: bytes, draw: Draw) -> bytes:
    """`data` changed in one to four places, inside its own structure or anywhere."""
    for _ in range(draw.choice((1, 1, 1, 2, 2, 4))):
        data = _once(data, draw)[:MOST_BYTES]
    return data


def _once(data: bytes, draw: Draw) -> bytes:
    if draw.random() < 0.6:
        inside = _inside(data)
        if inside is not None:
            with suppress(Exception):  # what one change has broken, the next one finds to be only bytes
                return inside(data, draw)
    return draw.choice(_BYTES)(data, draw)


def _inside(data: bytes) -> Callable[[bytes, Draw], bytes] | None:
    """How to change what stands in a file of this beginning; None where it is only bytes."""
    if data[:8] == MAGIC:
        return _container
    if data[:2] == b"PK":
        return _archive
    if data[:2] == b"\x1f\x8b":
        return _gzip
    if data[:6] == b"\x93NUMPY":
        return _npy
    if data[8:9] == b"{" and data[5:8] == b"\0\0\0":
        return _tensors
    if data.lstrip()[:1] in (b"{", b"["):
        return _json
    return _yaml if b": " in data[:4000] else _numbers


# bytes


def _flipped(data: bytes, draw: Draw) -> bytes:
    found = bytearray(data or b"\0")
    for _ in range(draw.choice((1, 1, 2, 8))):
        found[draw.randrange(len(found))] ^= 1 << draw.randrange(8)
    return bytes(found)


def _replaced(data: bytes, draw: Draw) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(WORDS) + data[at + draw.choice((0, 1, 2, 4, 8)) :]


def _number(data: bytes, draw: Draw) -> bytes:
    """A binary number of 1 to 8 bytes: a limit of its type, or one beside what stands there."""
    size = draw.choice((1, 2, 4, 8))
    if len(data) <= size:
        return _replaced(data, draw)
    at = draw.randrange(len(data) - size)
    now, most = int.from_bytes(data[at : at + size], "little"), 1 << 8 * size
    value = draw.choice((0, 1, most - 1, most // 2, most // 2 - 1, now + 1, now - 1, len(data), draw.randrange(most)))
    return data[:at] + (value % most).to_bytes(size, "little") + data[at + size :]


def _cut(data: bytes, draw: Draw) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _without(data: bytes, draw: Draw) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + data[at + draw.choice((1, 2, 8, 64, 1000)) :]


def _twice(data: bytes, draw: Draw) -> bytes:
    at = draw.randrange(len(data) + 1)
    span = data[at : at + draw.choice((1, 4, 16, 256, 4096))]
    to = draw.randrange(len(data) + 1)
    return data[:to] + span * draw.choice((1, 1, 2, 50)) + data[to:]


def _lines(data: bytes, draw: Draw) -> bytes:
    """A line less, a line twice, or two in the other order."""
    found = data.split(b"\n")
    one, other = draw.randrange(len(found)), draw.randrange(len(found))
    if draw.random() < 0.3:
        del found[one]
    elif draw.random() < 0.5:
        found.insert(other, found[one])
    else:
        found[one], found[other] = found[other], found[one]
    return b"\n".join(found)


def _numbers(data: bytes, draw: Draw) -> bytes:
    """One of the numbers of a text."""
    found = list(_NUMBER.finditer(data, 0, 1 << 16))
    if not found:
        return _replaced(data, draw)
    chosen = draw.choice(found)
    return data[: chosen.start()] + draw.choice(WORDS) + data[chosen.end() :]


_BYTES: Final = (_flipped, _replaced, _number, _cut, _without, _twice, _lines, _numbers)


# documents


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document: what holds it, and its key or index there."""
    left = [document]
    while left:
        each = left.pop()
        keys: Iterator[Any] = iter(each) if isinstance(each, dict) else iter(range(len(each)))
        for key in keys:
            yield each, key
            if isinstance(each[key], dict | list):
                left.append(each[key])


def changed(document: Any, draw: Draw) -> Any:
    """A document of which one value is another, gone, under another name, or there twice; it is changed in place."""
    found = list(_places(document)) if isinstance(document, dict | list) else []
    if not found or draw.random() < 0.02:
        return draw.choice(VALUES)
    holder, key = draw.choice(found)
    kind = draw.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        other, place = draw.choice(found)
        holder[key] = json.loads(json.dumps(other[place])) if place in _keys(other) else None
    elif kind == 2 and isinstance(holder, dict):
        holder[draw.choice(("", "x", f"{key} ", str(key).upper(), "__class__", "é\n"))] = holder.pop(key)
    elif kind == 2:
        holder.append(holder[key])
    elif kind == 3 and isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
        holder[key] = draw.choice((-holder[key], holder[key] + 1, holder[key] * 1e9, holder[key] * 10**9, 0))
    elif kind == 4:
        for _ in range(draw.choice((1, 3, 40))):
            holder[key] = [holder[key]]
    else:
        holder[key] = draw.choice(VALUES)
    return document


def _keys(holder: Any) -> Any:
    return holder if isinstance(holder, dict) else range(len(holder))


def _json(data: bytes, draw: Draw) -> bytes:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return _numbers(data, draw)
    return _text(changed(document, draw))


def _text(document: Any) -> bytes:
    try:
        return json.dumps(document).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return b"9" * 5000


def _yaml(data: bytes, draw: Draw) -> bytes:
    try:
        document = parse_yaml(data.decode(), "seed")
    except (FileError, UnicodeDecodeError, RecursionError):
        return _numbers(data, draw)
    found = changed(document, draw)
    if draw.random() < 0.5:
        return _text(found)
    try:
        return yaml.safe_dump(found, sort_keys=False, allow_unicode=True).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError, yaml.YAMLError):
        return _text(found)


# files of several parts


def _gzip(data: bytes, draw: Draw) -> bytes:
    inside = zlib.decompressobj(31).decompress(data, MOST_BYTES)
    if draw.random() < 0.004:
        inside += bytes(draw.choice((1 << 20, 1 << 23)))
    return gzip.compress(_once(inside, draw), 1, mtime=0)


def _archive(data: bytes, draw: Draw) -> bytes:
    """An archive with one member changed, dropped, renamed or there twice; its checksums are right."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    at, kind = draw.randrange(len(members)), draw.randrange(8)
    name, content = members[at]
    if kind == 0:
        del members[at]
    elif kind == 1:
        members[at] = (draw.choice((draw.choice(members)[0], f"{name}x", "\x1b[2J.npy", ".npy", "")), content)
    elif kind == 2:
        members[at] = (name, draw.choice(members)[1])
    else:
        members[at] = (name, _npy(content, draw))
    packed = draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    made = BytesIO()
    with zipfile.ZipFile(made, "w", packed) as archive:
        for key, inside in dict(members).items():
            archive.writestr(zipfile.ZipInfo(key), inside, packed)
    return made.getvalue()


_KINDS: Final = (
    "|b1",
    "|u1",
    "<u4",
    ">u4",
    "<u8",
    "<i2",
    "<i4",
    "<i8",
    "<f2",
    "<f4",
    "<f8",
    ">f8",
    "<c8",
    "|S8",
    "<U4",
    "|O",
    "<M8[s]",
)


def _npy(data: bytes, draw: Draw) -> bytes:
    """A .npy with another header, or other numbers of its own size."""
    if data[:6] != b"\x93NUMPY" or len(data) < 64:
        return draw.choice(_BYTES)(data, draw)
    end = 10 + int.from_bytes(data[8:10], "little")
    header, body = data[10:end], data[end:]
    kind = draw.randrange(4)
    if kind == 0:
        header = re.sub(rb"'descr': '[^']*'", b"'descr': '%s'" % draw.choice(_KINDS).encode(), header)
    elif kind == 1:
        shape = draw.choice(
            (
                b"()",
                b"(0,)",
                b"(1,)",
                b"(-1,)",
                b"(2, 3)",
                b"(99999999999,)",
                b"(0, 99999999999)",
                b"(3, 0)",
                b"(4, 2, 2)",
            )
        )
        header = re.sub(rb"\([^)]*\)", shape, header)
    elif kind == 2 and body:
        size = draw.choice((4, 8))
        at = draw.randrange(max(len(body) // size, 1)) * size
        value = draw.choice((b"\xff", b"\x00", b"\x7f", b"\x80"))
        body = (
            body[:at]
            + draw.choice((value * size, bytes(size - 1) + value, value + bytes(size - 1)))
            + body[at + size :]
        )
    else:
        body = draw.choice(_BYTES)(body, draw)
    header = header.rstrip()
    header += b" " * (-(11 + len(header)) % 64) + b"\n"
    return data[:8] + len(header).to_bytes(2, "little") + header + body


def _tensors(data: bytes, draw: Draw) -> bytes:
    """A safetensors file with another header, or other bytes below it."""
    size = int.from_bytes(data[:8], "little")
    header, body = data[8 : 8 + size], data[8 + size :]
    if draw.random() < 0.7:
        header = _json(header, draw)
        header += b" " * (-len(header) % 8)
    else:
        body = draw.choice(_BYTES)(body, draw)
    return len(header).to_bytes(8, "little") + header + body


def _container(data: bytes, draw: Draw) -> bytes:
    """A container of ours with one section or its header changed, and sealed again."""
    length = int.from_bytes(data[8:16], "little")
    header = json.loads(data[48 : 48 + length])
    start = -(-(48 + length) // ALIGN) * ALIGN
    sections = header["sections"]
    parts = {name: data[start + section["offset"] :][: section["bytes"]] for name, section in sections.items()}
    if draw.random() < 0.5 and parts:
        name = draw.choice(list(parts))
        parts[name] = _numbers_of(parts[name], sections[name]["dtype"], draw)
        _resize(sections[name], len(parts[name]))
    elif draw.random() < 0.5:
        header["meta"] = changed(header["meta"], draw)
    else:
        changed(header, draw)
    return sealed(header, parts)


def _resize(section: dict[str, Any], size: int) -> None:
    """The shape and size that a section of so many bytes has, where they do not fit any more."""
    if size != section["bytes"]:
        section["bytes"], section["shape"] = size, [size // int(section["dtype"][2])]


def _numbers_of(part: bytes, dtype: str, draw: Draw) -> bytes:
    """Numbers of a section, one of them a limit of its type, or some more or less of them."""
    size = int(dtype[2])
    count = len(part) // size
    if not count or draw.random() < 0.15:
        return draw.choice((part[: count // 2 * size], part + part[:size], bytes(size), b""))
    at = draw.randrange(count) * size
    most = (1 << 8 * size) - 1
    value = draw.choice(
        (0, 1, 2, most, most // 2, most // 2 + 1, 0x7F800000, 0x7FC00000, 0x7FF0 << 48, draw.randrange(most))
    )
    return part[:at] + (value & most).to_bytes(size, "little") + part[at + size :]


def sealed(header: Any, parts: dict[str, bytes]) -> bytes:
    """A container with its checksums put right; offsets where they fit."""
    body, offset = b"", 0
    for name, part in parts.items():
        section = header["sections"].get(name) if isinstance(header["sections"], dict) else None
        if isinstance(section, dict):
            section["sha256"] = hashlib.sha256(part).hexdigest()
            if section.get("offset", None) != offset and type(section.get("offset")) is int:
                section["offset"] = offset
        body += part + bytes(-len(part) % ALIGN)
        offset = len(body)
    raw = json.dumps(header, sort_keys=True).encode("utf-8", "surrogatepass")
    head = MAGIC + len(raw).to_bytes(8, "little") + hashlib.sha256(raw).digest() + raw
    return head + bytes(-len(head) % ALIGN) + body
