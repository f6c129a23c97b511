"""Devices of one's own: a YAML file in the catalogue's form, which may stand wherever a device of it may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gcnsim.hardware.own_files import own_figure, read_own, refuse_missing, refuse_other
from gcnsim.hardware.profiles import DeviceProfile
from gcnsim.hardware.tables import DEVICE, DEVICE_FACTS, DEVICE_OPTIONAL, read_fact

DESCRIBED: Final = "any other is described by a file: --device my_gpu.yaml"
"""What to do where a device is none of the catalogue's."""

KINDS: Final = ("gpu", "cpu")
_NEEDED: Final = ("title", "kind", "link", "memory", "memory_bandwidth", "flops_fp32")


def own_device(path: str, assumed: Mapping[str, Mapping[str, Any]], links: tuple[str, ...]) -> DeviceProfile:
    """The device in the file at `path`, called by its path. assumed: figures by kind for those it does not give.

    Raises FileError, the path first: a key that is missing, unknown or of another form, a value out of range.
    """
    raw = read_own(path, "device", ("title", "kind", "link", *DEVICE, *DEVICE_OPTIONAL, *DEVICE_FACTS))
    refuse_other(path, raw, "kind", KINDS)
    refuse_other(path, raw, "link", links)
    of_cores = () if raw.get("kind") != "cpu" else tuple(key for key in DEVICE if key != "flops_fp16")
    refuse_missing(path, raw, (*_NEEDED, *of_cores))
    figures = {**dict.fromkeys(DEVICE), **assumed.get(raw["kind"], {}), **raw}
    found = {key: _figure(figures[key], key, f"{path}, {key}") for key in DEVICE}
    more = [key for key in DEVICE_OPTIONAL if figures.get(key) is not None]
    found |= {key: _figure(figures[key], key, f"{path}, {key}") for key in more}
    facts: dict[str, Any] = {
        key: read_fact(raw[key], f"{path}, {key}") for key in DEVICE_FACTS if raw.get(key) is not None
    }
    return DeviceProfile(name=path, title=raw["title"], kind=raw["kind"], link=raw["link"], **found, **facts)


def _figure(raw: object, key: str, where: str) -> Any:
    return None if raw is None and key == "flops_fp16" else own_figure(raw, key, where)
