"""Device, link and host profiles, each number with its origin, and the catalogue that ships with the package."""

from __future__ import annotations

from gcnsim.hardware.attention import ATTENTION_TERMS, AttentionFigures
from gcnsim.hardware.catalogue import (
    GENERIC_LINK,
    device,
    devices,
    figure_names,
    host,
    hosts,
    instance_of,
    is_host,
    link,
    links,
    prices,
)
from gcnsim.hardware.far import FarFigures
from gcnsim.hardware.figure import SOURCES, Curve, Fact, Figure, figures_of, origins
from gcnsim.hardware.kernels import AGGREGATORS, NUMBA, PLAIN, PLAIN_KERNELS, CoreKernels
from gcnsim.hardware.maps import MAP_TERMS, MapFigures
from gcnsim.hardware.naming import gpu_meant, gpu_named, gpu_of, known_device
from gcnsim.hardware.networks import (
    NETWORK,
    NetworkBandwidth,
    kind_of_network,
    network_named,
    networks,
)
from gcnsim.hardware.own_device import DESCRIBED
from gcnsim.hardware.own_files import file_stamp, is_file, kind_described
from gcnsim.hardware.own_host import DESCRIBED_HOST
from gcnsim.hardware.platforms import Platform, platform, platforms, read_platform
from gcnsim.hardware.pooling import POOLING_TERMS, PoolingFigures
from gcnsim.hardware.pricing import PRICINGS, Exchange, PriceBook, Rent, amount_in, exchange_rates
from gcnsim.hardware.profiles import DeviceProfile, HostProfile, LinkProfile, Price
from gcnsim.hardware.sums import SumFigures
from gcnsim.hardware.tables import CACHE, QUANTITIES, ZERO_ALLOWED

__all__ = [
    "AGGREGATORS",
    "ATTENTION_TERMS",
    "CACHE",
    "DESCRIBED",
    "DESCRIBED_HOST",
    "GENERIC_LINK",
    "MAP_TERMS",
    "NETWORK",
    "NUMBA",
    "PLAIN",
    "PLAIN_KERNELS",
    "POOLING_TERMS",
    "PRICINGS",
    "QUANTITIES",
    "SOURCES",
    "ZERO_ALLOWED",
    "AttentionFigures",
    "CoreKernels",
    "Curve",
    "DeviceProfile",
    "Exchange",
    "Fact",
    "FarFigures",
    "Figure",
    "HostProfile",
    "LinkProfile",
    "MapFigures",
    "NetworkBandwidth",
    "Platform",
    "PoolingFigures",
    "Price",
    "PriceBook",
    "Rent",
    "SumFigures",
    "amount_in",
    "device",
    "devices",
    "exchange_rates",
    "figure_names",
    "figures_of",
    "file_stamp",
    "gpu_meant",
    "gpu_named",
    "gpu_of",
    "host",
    "hosts",
    "instance_of",
    "is_file",
    "is_host",
    "kind_described",
    "kind_of_network",
    "known_device",
    "link",
    "links",
    "network_named",
    "networks",
    "origins",
    "platform",
    "platforms",
    "prices",
    "read_platform",
]
