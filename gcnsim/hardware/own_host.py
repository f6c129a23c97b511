"""Hosts of one's own: a YAML file in the catalogue's form, which may stand wherever a host of it may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gcnsim.hardware.own_files import is_file, own_figure, read_own, refuse_missing, refuse_other
from gcnsim.hardware.profiles import HostProfile
from gcnsim.hardware.tables import HOST, HOST_FACTS, HOST_NAMES, INSIDE, INSTANCE, ZERO_ALLOWED, read_fact
from gcnsim.known_names import known_name

DESCRIBED_HOST: Final = "any other is described by a file: --host my_host.yaml"
"""What to do where a host is none of the catalogue's."""

_NEEDED: Final = ("title", "cores", "memory_bandwidth")
_WHOLE: Final = ("cores", "gpus", "nics", "nvlink_generation")


def own_host(
    path: str, assumed: Mapping[str, Mapping[str, Any]], devices: tuple[str, ...], links: tuple[str, ...]
) -> HostProfile:
    """The host in the file at `path`, called by its path. assumed: figures for those it does not give. devices, links:
    what it may name, beside the file of a device.

    Raises FileError, the path first: a key that is missing, unknown or of another form, a value out of range.
    """
    raw = read_own(path, "host", ("title", *HOST_NAMES, *HOST, *INSTANCE, *HOST_FACTS))
    named: dict[str, Any] = {key: raw.get(key) for key in HOST_NAMES}
    if not (isinstance(named["device"], str) and is_file(named["device"])):
        named["device"] = _spelt(named["device"], devices)
        refuse_other(path, named, "device", devices)
    refuse_other(path, named, "network", tuple(name for name in links if not name.startswith(INSIDE)))
    refuse_other(path, named, "pcie", tuple(name for name in links if name.startswith("pcie")))
    refuse_missing(path, raw, _NEEDED)
    given = {**assumed["host"], **{key: value for key, value in raw.items() if value is not None}}
    found = {key: _figure(given[key], key, f"{path}, {key}") for key in HOST}
    found |= {key: _figure(raw[key], key, f"{path}, {key}") for key in INSTANCE if raw.get(key) is not None}
    facts: dict[str, Any] = {
        key: read_fact(raw[key], f"{path}, {key}") for key in HOST_FACTS if raw.get(key) is not None
    }
    return HostProfile(name=path, title=raw["title"], **named, **found, **facts)


def _spelt(name: object, known: tuple[str, ...]) -> object:
    """The catalogue's own spelling of a name that it has."""
    return (known_name(name, known) or name) if isinstance(name, str) else name


def _figure(raw: object, key: str, where: str) -> Any:
    return own_figure(raw, key, where, zero=key in ZERO_ALLOWED, whole=key in _WHOLE)
