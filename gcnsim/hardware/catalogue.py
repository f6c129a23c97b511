"""The bundled catalogue: one YAML file per device, link, host and platform, read on first use.

A device's efficiencies and launch cost, and a host's rates, default to those of its kind in `assumed.yaml`, with
ranges, until they are measured or fitted; a file that gives one overrides it.

A platform has figures that its datasheets do not contain, fitted to published runs on it. Each represents a physical
effect, and is fitted only to rows that are reserved for it (`use: calibrate`). Shares of the memory bandwidth belong to
a device and a family of kernels: platforms with the same device share them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from gcnsim.core import units
from gcnsim.core.errors import FileError, ScenarioError, nearest
from gcnsim.core.spellings import known_name
from gcnsim.core.stamps import Stamp
from gcnsim.core.yaml_files import read_yaml
from gcnsim.hardware.own_files import (
    DESCRIBED,
    DESCRIBED_HOST,
    file_stamp,
    is_file,
    kind_described,
    own_device,
    own_host,
)
from gcnsim.hardware.profiles import (
    CACHE,
    DEVICE,
    DEVICE_FACTS,
    DEVICE_NAMES,
    DEVICE_OPTIONAL,
    HOST,
    HOST_FACTS,
    HOST_NAMES,
    INSTANCE,
    LINK,
    POWER,
    SITE,
    DeviceProfile,
    Figure,
    HostProfile,
    LinkProfile,
    Price,
    Table,
    read_fact,
    read_figure,
)

DATA: Final = Path(__file__).resolve().parent.parent / "data"
GENERIC_LINK: Final = "ethernet"
"""The link whose bandwidth a scenario sets."""


def devices() -> tuple[str, ...]:
    """Names of the devices in the catalogue, sorted."""
    return _names("devices")


def links() -> tuple[str, ...]:
    """Names of the links in the catalogue, sorted."""
    return _names("links")


def hosts() -> tuple[str, ...]:
    """Names of the hosts in the catalogue, sorted."""
    return _names("hosts")


def figure_names(kind: str) -> tuple[str, ...]:
    """Names of the figures of a `device`, `link` or `host`."""
    return tuple(
        {"device": {**DEVICE, **CACHE, **POWER}, "link": LINK, "host": {**HOST, "memory": INSTANCE["memory"], **SITE}}[
            kind
        ]
    )


def device(name: str) -> DeviceProfile:
    """The device `name` of the catalogue, or the one in the file `name`, which ends in .yaml or .yml.

    Raises ScenarioError with the closest name if there is none, FileError for an unusable file.
    """
    return _own_device(name, file_stamp(name)) if is_file(name) else _device(_known("device", name))


@lru_cache(maxsize=64)
def _own_device(path: str, stamp: Stamp) -> DeviceProfile:
    return own_device(path, _assumed(), links(), hosts())


@cache
def _device(name: str) -> DeviceProfile:
    raw = _document("device", name)
    raw = {**_assumed().get(raw["kind"], {}), **raw}
    figures = {**_figures(raw, DEVICE, name), **_figures(raw, _given(raw, DEVICE_OPTIONAL), name)}
    facts = _facts(raw, DEVICE_FACTS, name)
    named: dict[str, Any] = {key: raw.get(key) for key in DEVICE_NAMES}
    return DeviceProfile(name=name, title=raw["title"], kind=raw["kind"], **named, **figures, **facts)


def link(name: str) -> LinkProfile:
    """The link `name`. Raises ScenarioError with the closest name if the catalogue has none."""
    return _link(_known("link", name))


@cache
def _link(name: str) -> LinkProfile:
    raw = _document("link", name)
    return LinkProfile(name=name, title=raw["title"], **_figures(raw, LINK, name))


def host(name: str) -> HostProfile:
    """The host `name` of the catalogue, or the one in the file `name`, which ends in .yaml or .yml.

    Raises ScenarioError with the closest name if there is none, FileError for an unusable file.
    """
    return _own_host(name, file_stamp(name)) if is_file(name) else _host(_known("host", name))


@lru_cache(maxsize=64)
def _own_host(path: str, stamp: Stamp) -> HostProfile:
    return own_host(path, _assumed(), devices(), links())


@cache
def _host(name: str) -> HostProfile:
    raw = {**_assumed()["host"], **_document("host", name)}
    figures = {**_figures(raw, HOST, name), **_figures(raw, _given(raw, INSTANCE), name)}
    named: dict[str, Any] = {key: raw.get(key) for key in HOST_NAMES}
    return HostProfile(name=name, title=raw["title"], **named, **figures, **_facts(raw, HOST_FACTS, name))


def is_host(name: str) -> bool:
    """Whether `name` is a host of the catalogue, or a host file."""
    return name in hosts() or (is_file(name) and kind_described(name) == "host")


def prices(device_name: str | None = None) -> tuple[Price, ...]:
    """Prices of `device_name` (None: of all devices), on demand and spot, cheapest first.

    Empty for a device that cannot be rented, and for a device file. Raises ScenarioError with the closest name if the
    catalogue has no such device.
    """
    if device_name is not None and is_file(device_name):
        return ()
    if device_name is not None:
        device_name = _known("device", device_name)
    return tuple(price for price in _prices() if device_name in (None, price.device))


class Instance(NamedTuple):
    """The properties of an instance type: its GPUs, bytes/s of its network per direction, its kind of link."""

    device: str
    gpus: int
    bandwidth: float
    network: str


def instance_of(host_name: str, used: int | None = None) -> Instance | None:
    """The properties of the host of this name; None if it is not an instance type.

    used: how many of its GPUs, which have the network of the adapters next to them; None: all.
    """
    profile = host(host_name)
    rate = network_of(profile, used)
    if profile.device is None or profile.gpus is None or rate is None:
        return None
    return Instance(profile.device, round(profile.gpus.value), rate, profile.network or GENERIC_LINK)


def network_of(server: HostProfile, used: object = None) -> float | None:
    """Bytes/s per direction of the network that `used` GPUs of a server have; None: not known.

    used: a whole number as given; anything else: all. Adapters serve the GPUs below the same PCIe switch, so of a
    server of more GPUs, those in use have the adapters next to them: the same share of all, rounded up.
    """
    if server.nic is None or server.nics is None or server.gpus is None or not str(used).isdigit():
        return None if server.nic is None else server.nic.value
    cards = round(server.nics.value)
    near = min(cards, max(1, -(-cards * int(str(used)) // round(server.gpus.value))))
    return server.nic.value * near / cards


def _figures(raw: Mapping[str, Any], table: Table, name: str) -> dict[str, Any]:
    """The figures of `table` in `raw`; null becomes None (a device without that rate)."""
    figures = {}
    for field, quantity in table.items():
        if field not in raw:
            raise FileError(f"catalogue, {name}: {field} is missing")
        value = raw[field]
        figures[field] = None if value is None else read_figure(value, quantity, f"catalogue, {name}.{field}")
    return figures


def _given(raw: Mapping[str, Any], table: Table) -> Table:
    """The entries of `table` that `raw` gives."""
    return {field: quantity for field, quantity in table.items() if field in raw}


def _facts(raw: Mapping[str, Any], names: Sequence[str], name: str) -> dict[str, Any]:
    """The facts `names` that `raw` gives."""
    return {text: read_fact(raw[text], f"catalogue, {name}.{text}") for text in names if text in raw}


@cache
def _names(folder: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (DATA / folder).glob("*.yaml")))


def _known(kind: str, name: str) -> str:
    """The catalogue's spelling of `name`. Raises ScenarioError with the closest name if it is unknown."""
    names = _names(f"{kind}s")
    known = known_name(name, names)
    if known is None:
        otherwise = {"device": f"; {DESCRIBED}", "host": f"; {DESCRIBED_HOST}"}.get(kind, "")
        raise ScenarioError(f"unknown {kind} {name!r}; {nearest(name, names)}{otherwise}")
    return known


def _document(kind: str, name: str) -> dict[str, Any]:
    raw: dict[str, Any] = read_yaml(DATA / f"{kind}s" / f"{name}.yaml")
    return raw


@cache
def _assumed() -> Mapping[str, Mapping[str, Any]]:
    raw: dict[str, Mapping[str, Any]] = read_yaml(DATA / "assumed.yaml")
    return raw


UNDATED: Final = "undated"
"""The date of a spot price, which is valid for a day; its source does not state the day."""


@cache
def _prices() -> tuple[Price, ...]:
    rows = [
        Price(
            device=row["device"],
            usd_per_gpu_hour=units.money(price) / row["gpus"],
            instance=row["instance"],
            gpus=row["gpus"],
            region=row["region"],
            source=row["source"],
            date=row["date"] if pricing == "on-demand" else UNDATED,
            pricing=pricing,
        )
        for row in read_yaml(DATA / "prices.yaml")
        for pricing, price in (("on-demand", row["price"]), ("spot", row.get("spot")))
        if price is not None
    ]
    return tuple(sorted(rows, key=lambda price: price.order))


FOLDER: Final = DATA / "platforms"
_FIGURES: Final = {
    "spmm_efficiency": units.FRACTION,
    "rate_beside_copies": units.FRACTION,
    "error": units.FRACTION,
}
_OPTIONAL: Final = {
    "stream_efficiency": units.FRACTION,
    "staging_bandwidth": units.BANDWIDTH,
    "operation_s": units.SECONDS,
    "unexplained_s": units.SECONDS,
}
_NOTHING: Final = Figure(0.0, "assumed", "not distinguished", "2026-11", 0.0, 0.0)
_SHARES: Final = ("spmm_efficiency", "stream_efficiency", "rate_beside_copies")


@dataclass(frozen=True, slots=True)
class Platform:
    """One published platform. device: the only one its figures apply to.

    spmm_efficiency: share of the memory bandwidth at which sparse sums read rows that are not in the device's cache.
    rate_beside_copies: relative speed of the GPU during transfers. error: half the width of the expected 90 % interval,
    relative. stream_efficiency: share of the memory bandwidth at which column-wise products read entries in order;
    None: that of any stream. staging_bandwidth: bytes/s that the host side of one worker moves between its buffers and
    its peers', sent and received together; None: unlimited. operation_s: replaces its host's figure. unexplained_s:
    seconds of an iteration in fitted rows that no figure explains, added to the upper end of an interval.
    """

    name: str
    title: str
    device: str
    spmm_efficiency: Figure
    rate_beside_copies: Figure
    error: Figure
    stream_efficiency: Figure | None = None
    staging_bandwidth: Figure | None = None
    operation_s: Figure | None = None
    unexplained_s: Figure = _NOTHING


def platforms() -> tuple[str, ...]:
    """Names of the platforms with fitted figures, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def platform(name: str) -> Platform:
    """The bundled platform `name`, or the one in the file `name`, which ends in .yaml.

    Raises ScenarioError with the closest name if there is none, FileError for an unusable file. A changed file is read
    again.
    """
    return _platform(name, file_stamp(name))


@cache
def _platform(name: str, stamp: Stamp) -> Platform:
    if (found := known_name(name, platforms())) is not None:
        return read_platform(FOLDER / f"{found}.yaml")
    if name.endswith(".yaml"):
        return read_platform(name)
    raise ScenarioError(f"unknown platform {name!r}; {nearest(name, platforms())}")


def read_platform(path: str | Path) -> Platform:
    """The platform in the file at `path`. Raises FileError."""
    raw: Any = read_yaml(path)
    wanted = {"title", "device", *_FIGURES}
    if not isinstance(raw, dict) or raw.keys() - _OPTIONAL.keys() != wanted:
        raise FileError(
            f"{path}: a platform has the keys {', '.join(sorted(wanted))}, and may have {', '.join(_OPTIONAL)}"
        )
    quantities = _FIGURES | {key: quantity for key, quantity in _OPTIONAL.items() if key in raw}
    figures = {key: read_figure(raw[key], quantity, f"{path}, {key}") for key, quantity in quantities.items()}
    for key in _SHARES:
        if key in figures and not 0.0 < figures[key].value <= 1.0:
            raise FileError(f"{path}, {key}: {raw[key]['value']} is not allowed; above 0% and at most 100%")
    return Platform(name=Path(path).stem, title=str(raw["title"]), device=str(raw["device"]), **figures)
