"""User files of devices and hosts: YAML in the catalogue's form, allowed wherever a catalogue name is."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from gcnsim.core import units
from gcnsim.core.errors import FileError, nearest
from gcnsim.core.fields import shown
from gcnsim.core.spellings import known_name
from gcnsim.core.stamps import Stamp, stamp_of
from gcnsim.core.yaml_files import read_yaml
from gcnsim.hardware.profiles import (
    DEVICE,
    DEVICE_FACTS,
    DEVICE_NAMES,
    DEVICE_OPTIONAL,
    HOST,
    HOST_FACTS,
    HOST_NAMES,
    INSIDE,
    INSTANCE,
    QUANTITIES,
    ZERO_ALLOWED,
    DeviceProfile,
    Figure,
    HostProfile,
    above_limit,
    read_fact,
    read_figure,
)

SUFFIXES: Final = (".yaml", ".yml")
_HOST: Final = "cores"
"""The figure that only a host file has."""


def is_file(name: str) -> bool:
    """Whether a device's or a host's name is a file name.

    >>> is_file("my_gpu.yaml"), is_file("t4")
    (True, False)
    """
    return name.endswith(SUFFIXES)


def file_stamp(name: str) -> Stamp:
    """A stamp that changes with the file `name`; constant for a catalogue name and for a missing file."""
    return stamp_of(name) if is_file(name) else ()


def kind_described(path: str) -> str:
    """What the file at `path` describes, `device` or `host`: a server has cores. Raises FileError."""
    return _kind(path, file_stamp(path))


@lru_cache(maxsize=64)
def _kind(path: str, stamp: Stamp) -> str:
    raw: Any = read_yaml(path)
    return "host" if isinstance(raw, dict) and _HOST in raw else "device"


def read_own(path: str, noun: str, known: Sequence[str]) -> dict[str, Any]:
    """The fields of the file at `path`, with its title checked. noun: what it describes. known: its keys.

    Raises FileError, starting with the path.
    """
    raw: Any = read_yaml(path)
    if not isinstance(raw, dict):
        raise FileError(f"{path}: is not a {noun}; it has the keys {', '.join(known)}")
    unknown = [key for key in raw if key not in known]
    if unknown:
        raise FileError(f"{path}, {unknown[0]}: unknown key; {nearest(unknown[0], known)}")
    title = raw.get("title")
    if title is not None and not (isinstance(title, str) and title.isprintable() and title):
        raise FileError(f"{path}, title: {shown(title)} is not a title (one line of text)")
    return raw


def refuse_other(path: str, raw: dict[str, Any], key: str, allowed: Collection[str]) -> None:
    """Raise FileError if `raw` has a value of `key` that is not allowed."""
    if raw.get(key) is not None and raw[key] not in allowed:
        raise FileError(f"{path}, {key}: {shown(raw[key])} is not allowed; {nearest(str(raw[key]), allowed)}")


def refuse_missing(path: str, raw: dict[str, Any], needed: Sequence[str]) -> None:
    """Raise FileError if one of the keys `needed` is missing in `raw`."""
    missing = [key for key in dict.fromkeys(needed) if raw.get(key) is None]
    if missing:
        raise FileError(f"{path}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")


def own_figure(raw: object, key: str, where: str, *, zero: bool = False, whole: bool = False) -> Figure:
    """The figure `key`, above 0; a share is at most 100%. zero: 0 is allowed. whole: must be a
    whole number. Raises FileError.
    """
    quantity = QUANTITIES[key]
    share = quantity is units.FRACTION and key != "work_spread"
    figure = read_figure(raw, quantity, where)
    most = 1.0 if share else math.inf
    for value in (figure.low, figure.value, figure.high):
        if value is None:
            continue
        if (value > 0.0 or (zero and value == 0.0)) and value <= most and not (whole and value % 1):
            continue
        limit = "a whole number of at least 1" if whole else "of at least 0" if zero else "above 0"
        if share:
            limit = "above 0% and at most 100%"
        raise FileError(f"{where}: {value if quantity is None else quantity.exact(value)} is not allowed; {limit}")
    return figure


DESCRIBED: Final = "any other is described by a file: --device my_gpu.yaml"
"""What to do about a device that is not in the catalogue."""

DEVICE_KINDS: Final = ("gpu", "cpu")
_DEVICE_NEEDED: Final = ("title", "kind", "link", "memory", "memory_bandwidth", "flops_fp32")


def own_device(
    path: str, assumed: Mapping[str, Mapping[str, Any]], links: tuple[str, ...], hosts: tuple[str, ...]
) -> DeviceProfile:
    """The device in the file at `path`, with the path as its name.

    assumed: figures by kind that it may omit. links, hosts: names that it may use, besides a host file. Raises
    FileError, starting with the path: a missing, unknown or malformed key, a value out of range.
    """
    raw = read_own(path, "device", ("title", "kind", *DEVICE_NAMES, *DEVICE, *DEVICE_OPTIONAL, *DEVICE_FACTS))
    refuse_other(path, raw, "kind", DEVICE_KINDS)
    refuse_other(path, raw, "link", links)
    named: dict[str, Any] = {key: raw.get(key) for key in DEVICE_NAMES}
    if not (isinstance(named["sold_in"], str) and is_file(named["sold_in"])):
        named["sold_in"] = _spelt(named["sold_in"], hosts)
        refuse_other(path, named, "sold_in", hosts)
    of_cores = () if raw.get("kind") != "cpu" else tuple(key for key in DEVICE if key != "flops_fp16")
    refuse_missing(path, raw, (*_DEVICE_NEEDED, *of_cores))
    figures = {**dict.fromkeys(DEVICE), **assumed.get(raw["kind"], {}), **raw}
    given_figures = {key: _device_figure(figures[key], key, f"{path}, {key}") for key in DEVICE}
    more = [key for key in DEVICE_OPTIONAL if figures.get(key) is not None]
    given_figures |= {key: _device_figure(figures[key], key, f"{path}, {key}") for key in more}
    if (wrong := above_limit(given_figures, raw)) is not None:
        value, limit = (units.FRACTION.exact(given_figures[key].value) for key in wrong)
        raise FileError(f"{path}, {wrong[0]}: {value} is not allowed; at most {wrong[1]} ({limit})")
    facts: dict[str, Any] = {
        key: read_fact(raw[key], f"{path}, {key}") for key in DEVICE_FACTS if raw.get(key) is not None
    }
    return DeviceProfile(name=path, title=raw["title"], kind=raw["kind"], **named, **given_figures, **facts)


def _device_figure(raw: object, key: str, where: str) -> Any:
    return None if raw is None and key == "flops_fp16" else own_figure(raw, key, where)


DESCRIBED_HOST: Final = "any other is described by a file: --host my_host.yaml"
"""What to do about a host that is not in the catalogue."""

_HOST_NEEDED: Final = ("title", "cores", "memory_bandwidth")
_WHOLE: Final = ("cores", "gpus", "nics", "nvlink_generation")


def own_host(
    path: str, assumed: Mapping[str, Mapping[str, Any]], devices: tuple[str, ...], links: tuple[str, ...]
) -> HostProfile:
    """The host in the file at `path`, with the path as its name.

    assumed: figures that it may omit. devices, links: names that it may use, besides a device file. Raises FileError,
    starting with the path: a missing, unknown or malformed key, a value out of range.
    """
    raw = read_own(path, "host", ("title", *HOST_NAMES, *HOST, *INSTANCE, *HOST_FACTS))
    named: dict[str, Any] = {key: raw.get(key) for key in HOST_NAMES}
    if not (isinstance(named["device"], str) and is_file(named["device"])):
        named["device"] = _spelt(named["device"], devices)
        refuse_other(path, named, "device", devices)
    refuse_other(path, named, "network", tuple(name for name in links if not name.startswith(INSIDE)))
    refuse_other(path, named, "pcie", tuple(name for name in links if name.startswith("pcie")))
    refuse_missing(path, raw, _HOST_NEEDED)
    given = {**assumed["host"], **{key: value for key, value in raw.items() if value is not None}}
    given_figures = {key: _host_figure(given[key], key, f"{path}, {key}") for key in HOST}
    given_figures |= {
        key: _host_figure(given[key], key, f"{path}, {key}") for key in INSTANCE if given.get(key) is not None
    }
    facts: dict[str, Any] = {
        key: read_fact(raw[key], f"{path}, {key}") for key in HOST_FACTS if raw.get(key) is not None
    }
    return HostProfile(name=path, title=raw["title"], **named, **given_figures, **facts)


def _spelt(name: object, known: tuple[str, ...]) -> object:
    """The catalogue's spelling of a known name."""
    return (known_name(name, known) or name) if isinstance(name, str) else name


def _host_figure(raw: object, key: str, where: str) -> Any:
    return own_figure(raw, key, where, zero=key in ZERO_ALLOWED, whole=key in _WHOLE)
