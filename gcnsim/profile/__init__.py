"""Device, link and host profiles, each number with its origin, and the catalogue that ships with the package."""

from __future__ import annotations

from gcnsim.profile.catalogue import (
    GENERIC_LINK,
    QUANTITIES,
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
from gcnsim.profile.platforms import Platform, platform, platforms, read_platform
from gcnsim.profile.profiles import DeviceProfile, HostProfile, LinkProfile, Price

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
    "gpu_named",
    "gpu_of",
    "host",
    "hosts",
    "link",
    "links",
    "origins",
    "platform",
    "platforms",
    "prices",
    "read_platform",
]
