"""Device, link and host profiles, each number with its origin, and the catalogue that ships with the package."""

from __future__ import annotations

from gcnsim.profile.catalogue import GENERIC_LINK, QUANTITIES, device, devices, host, hosts, link, links, prices
from gcnsim.profile.figure import SOURCES, Curve, Figure, figures_of, origins
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
    "Price",
    "device",
    "devices",
    "figures_of",
    "host",
    "hosts",
    "link",
    "links",
    "origins",
    "prices",
]
