"""Devices of one's own: a YAML file in the catalogue's form, which may stand wherever a device of it may."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from gcnsim.errors import FileError, nearest
from gcnsim.fields import shown
from gcnsim.hardware.figure import Figure
from gcnsim.hardware.profiles import DeviceProfile
from gcnsim.hardware.tables import DEVICE, DEVICE_FACTS, DEVICE_OPTIONAL, QUANTITIES, SHARES, read_fact, read_figure
from gcnsim.io.yaml_files import read_yaml

DESCRIBED: Final = "any other is described by a file: --device my_gpu.yaml"
"""What to do where a device is none of the catalogue's."""

SUFFIXES: Final = (".yaml", ".yml")
KINDS: Final = ("gpu", "cpu")
_NEEDED: Final = ("title", "kind", "link", "memory", "memory_bandwidth", "flops_fp32")


def is_file(name: str) -> bool:
    """Whether a device's name is that of a file.

    >>> is_file("my_gpu.yaml"), is_file("t4")
    (True, False)
    """
    return name.endswith(SUFFIXES)


def file_stamp(name: str) -> tuple[int, int]:
    """Changes when the device file `name` does; of a name of the catalogue, and of a missing file, always the same."""
    if not is_file(name):
        return 0, 0
    try:
        found = os.stat(name)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino


def own_device(path: str, assumed: Mapping[str, Mapping[str, Any]], links: tuple[str, ...]) -> DeviceProfile:
    """The device in the file at `path`, called by its path. assumed: figures by kind for those it does not give.

    Raises FileError, the path first: a key that is missing, unknown or of another form, a value out of range.
    """
    raw: Any = read_yaml(path)
    known = ("title", "kind", "link", *DEVICE, *DEVICE_OPTIONAL, *DEVICE_FACTS)
    if not isinstance(raw, dict):
        raise FileError(f"{path}: is not a device; it has the keys {', '.join(known)}")
    unknown = [key for key in raw if key not in known]
    if unknown:
        raise FileError(f"{path}, {unknown[0]}: unknown key; {nearest(unknown[0], known)}")
    title = raw.get("title")
    if title is not None and not (isinstance(title, str) and title.isprintable() and title):
        raise FileError(f"{path}, title: {shown(title)} is not a title (one line of text)")
    for key, allowed in (("kind", KINDS), ("link", links)):
        if key in raw and raw[key] not in allowed:
            raise FileError(f"{path}, {key}: {shown(raw[key])} is not allowed; {nearest(str(raw[key]), allowed)}")
    needed = _NEEDED if raw.get("kind") != "cpu" else (*_NEEDED, *(key for key in DEVICE if key != "flops_fp16"))
    missing = [key for key in dict.fromkeys(needed) if raw.get(key) is None]
    if missing:
        raise FileError(f"{path}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    figures = {**dict.fromkeys(DEVICE), **assumed.get(raw["kind"], {}), **raw}
    found = {key: _figure(figures[key], key, f"{path}, {key}") for key in DEVICE}
    found |= {key: _figure(raw[key], key, f"{path}, {key}") for key in DEVICE_OPTIONAL if raw.get(key) is not None}
    facts: dict[str, Any] = {
        key: read_fact(raw[key], f"{path}, {key}") for key in DEVICE_FACTS if raw.get(key) is not None
    }
    return DeviceProfile(name=path, title=raw["title"], kind=raw["kind"], link=raw["link"], **found, **facts)


def _figure(raw: object, key: str, where: str) -> Any:
    if raw is None and key == "flops_fp16":
        return None
    figure: Figure = read_figure(raw, QUANTITIES[key], where)
    for value in (figure.low, figure.value, figure.high):
        if value is not None and not (value > 0.0 and (key not in SHARES or value <= 1.0)):
            limit = "above 0% and at most 100%" if key in SHARES else "above 0"
            quantity = QUANTITIES[key]
            raise FileError(f"{where}: {value if quantity is None else quantity.exact(value)} is not allowed; {limit}")
    return figure
