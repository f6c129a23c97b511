"""Devices, hosts and links, each number with its origin; the catalogue, and the topology of a cluster."""

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
from gcnsim.hardware.naming import (
    NETWORK,
    NetworkBandwidth,
    gpu_meant,
    gpu_named,
    gpu_of,
    kind_of_network,
    known_device,
    networks,
)
from gcnsim.hardware.own_files import DESCRIBED, DESCRIBED_HOST, file_stamp, is_file, kind_described
from gcnsim.hardware.platforms import Platform, platform, platforms
from gcnsim.hardware.pricing import (
    ON_DEMAND,
    PRICINGS,
    SPOT,
    USD,
    ExchangeRate,
    PriceBook,
    Rent,
    amount_in,
    exchange_rates,
)
from gcnsim.hardware.profiles import (
    AGGREGATORS,
    BOUNDS,
    CACHE,
    CORE,
    PLAIN,
    PLAIN_KERNELS,
    POWER,
    QUANTITIES,
    SITE,
    ZERO_ALLOWED,
    CoreKernels,
    DeviceProfile,
    HostProfile,
    LinkProfile,
    Price,
    above_limit,
)
from gcnsim.hardware.tables import SOURCES, Curve, Fact, Figure, figures_of
