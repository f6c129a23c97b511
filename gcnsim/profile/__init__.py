"""Device, link and host profiles, each number with its origin, and the catalogue that ships with the package."""

from __future__ import annotations

from gcnsim.profile.catalogue import (
    GENERIC_LINK,
    device,
    devices,
    figure_names,
    host,
    hosts,
    link,
    links,
    prices,
)
from gcnsim.profile.figure import SOURCES, Curve, Figure, figures_of, origins
from gcnsim.profile.naming import gpu_named, gpu_of
from gcnsim.profile.own_device import file_stamp, is_file
from gcnsim.profile.platforms import Platform, platform, platforms, read_platform
from gcnsim.profile.profiles import DeviceProfile, HostProfile, LinkProfile, Price
from gcnsim.profile.tables import QUANTITIES

__all__ = [
    "GENERIC_LINK",
    "QUANTITIES",
    "SOURCES",
    "Curve",
    "DeviceProfile",
    "Figure",
    "HostProfile",
    "LinkProfile",
    "Platform",
    "Price",
    "device",
    "devices",
    "figure_names",
    "figures_of",
    "file_stamp",
    "gpu_named",
    "gpu_of",
    "host",
    "hosts",
    "is_file",
    "link",
    "links",
    "origins",
    "platform",
    "platforms",
    "prices",
    "read_platform",
]
