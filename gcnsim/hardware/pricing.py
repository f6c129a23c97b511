"""The price of a cluster per hour: prices of the catalogue, of files and of the user, in US dollars.

A price applies to a whole instance. A cluster whose host is a priced instance pays for whole instances. Any other
cluster pays for its GPUs, each at its share of the nearest instance that has it, and its price says of which.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gcnsim.core import units
from gcnsim.core.errors import FileError, GcnsimError, ScenarioError, nearest
from gcnsim.core.fields import shown
from gcnsim.core.spellings import known_name
from gcnsim.core.yaml_files import read_yaml
from gcnsim.hardware.catalogue import devices, hosts, instance_of, is_host, prices
from gcnsim.hardware.naming import known_device
from gcnsim.hardware.own_files import is_file
from gcnsim.hardware.profiles import GIVEN, Price

ON_DEMAND: Final = "on-demand"
SPOT: Final = "spot"
PRICINGS: Final = (ON_DEMAND, SPOT)
USD: Final = "USD"

_KEYS: Final = ("device", "instance", "gpus", "price", "region", "source", "date", "pricing")


@dataclass(frozen=True, slots=True)
class Rent:
    """The price of a cluster in US dollars per hour.

    text: the price used. of: the instance whose price per GPU it is, where the cluster's servers are no such instances;
    empty if they are, or if a price of the GPU was given.
    """

    per_hour: float
    text: str
    of: str = ""


@dataclass(frozen=True, slots=True)
class PriceBook:
    """The prices for questions of cost.

    given: prices that take precedence over the catalogue's, in order. pricing: which prices of the catalogue count.
    asked: whether the user chose any of this, so that an answer states it.
    """

    given: tuple[Price, ...] = ()
    pricing: str = ON_DEMAND
    asked: bool = False

    @classmethod
    def of(
        cls,
        price: Sequence[str] = (),
        file: str | Path | None = None,
        pricing: str | None = None,
    ) -> PriceBook:
        """The book of `NAME=PRICE` texts (a device or an instance, `t4=0.35USD/h`), a price file, and on-demand or
        spot.

        Raises ScenarioError, UnitError and FileError, one line each.
        """
        if pricing is not None and pricing not in PRICINGS:
            raise ScenarioError(f"--pricing: unknown pricing {pricing!r}; {nearest(pricing, PRICINGS)}")
        own = [_given(text) for text in ([price] if isinstance(price, str) else price)]
        listed = () if file is None else _of_file(file, pricing or ON_DEMAND)
        return cls((*own, *listed), pricing or ON_DEMAND, bool(own or file is not None or pricing))

    def rent(self, device: str, gpus: int, servers: int, gpus_per_server: int, host: str | None) -> Rent | None:
        """The price of GPUs in servers; None if no price is known.

        An instance that is for rent has its own price only: another instance's or cloud's is not valid for it. Other
        servers have the price per GPU of the nearest instance: that with the most similar number of GPUs, of those the
        cheapest.
        """
        matching = [price for price in prices() if price.pricing == self.pricing and price.device == device]
        of_instance = [price for price in self.given if price.device == device and price.instance]
        of_gpu = [price for price in self.given if price.device == device and not price.instance]
        usual = (of_instance, True), (of_gpu, False), (matching, True)
        own = any(row.instance == host and gpus_per_server <= row.gpus for row in (*prices(device), *of_instance))
        for rows, whole in usual if own else (*usual, (of_instance, False), (matching, False)):
            fit = [row for row in rows if not whole or (row.instance == host and gpus_per_server <= row.gpus)]
            if fit and whole:
                return self._rent(fit[0], servers * fit[0].usd_per_hour, whole=True)
            if fit:
                near = fit[_nearest(fit, gpus_per_server)]
                return self._rent(near, gpus * near.usd_per_gpu_hour, whole=False)
        return None

    def refuse_idle(self, devices: Collection[str]) -> None:
        """Raise ScenarioError for an option's price of something that no machine of the question has."""
        for price in self.given:
            if price.named and price.device not in devices:
                what = price.instance or price.device
                have = ", ".join(sorted(devices))
                raise ScenarioError(f"--price: no machine of the question has {what}; they have {have}")

    def _rent(self, price: Price, usd: float, *, whole: bool) -> Rent:
        each = price.usd_per_hour if whole else price.usd_per_gpu_hour
        what = f"an instance of {price.gpus} GPUs" if whole and price.gpus > 1 else "an instance" if whole else "a GPU"
        words = (price.instance, price.region, price.pricing, price.date)
        source = GIVEN if price.named else ", ".join(word for word in words if word)
        return Rent(usd, f"{each:.4g} USD/h {what} ({source})", "" if whole else price.instance)


def _nearest(rows: Sequence[Price], gpus_per_server: int) -> int:
    """The index of the price whose instance has the most similar number of GPUs; the first of several."""
    ratios = [max(row.gpus, gpus_per_server) / min(row.gpus, gpus_per_server) for row in rows]
    return ratios.index(min(ratios))


def _usd(text: object, path: str) -> float:
    """The US dollars per hour in `text`. Raises ScenarioError that starts with `path`."""
    try:
        return units.money(text)
    except GcnsimError as error:
        raise ScenarioError(f"{path}: {error}") from None


def _given(text: str) -> Price:
    """Parse `NAME=PRICE` of a GPU or an instance."""
    name, equal, price = str(text).partition("=")
    name = name.strip()
    if not equal or not name:
        raise ScenarioError(f"--price: {text!r} is not NAME=PRICE, e.g. t4=0.35USD/h or g4dn.12xlarge=3.9USD/h")
    usd = _usd(price.strip(), f"--price {name}")
    own = is_file(name) and is_host(name)
    if not own and (device := known_device(name)) is not None:
        return Price(device, usd, "", 1, "", GIVEN, "", ON_DEMAND)
    known = {item.instance: item for item in prices()}
    if (instance := known_name(name, known)) is not None:
        gpus = known[instance].gpus
        return Price(known[instance].device, usd / gpus, instance, gpus, "", GIVEN, "", ON_DEMAND)
    if (host := name if own else known_name(name, hosts())) is not None:
        facts = instance_of(host)
        if facts is not None:
            return Price(facts.device, usd / facts.gpus, host, facts.gpus, "", GIVEN, "", ON_DEMAND)
    raise ScenarioError(
        f"--price: unknown device or instance {name!r}; {nearest(name, {*devices(), *hosts(), *known})}"
    )


def _of_file(path: str | Path, pricing: str) -> tuple[Price, ...]:
    """The prices with this pricing in a file of the catalogue's form, the cheapest of a GPU first."""
    rows = read_yaml(path)
    if not isinstance(rows, list):
        raise FileError(f"{path}: is not a list of prices; each is {{{', '.join(_KEYS)}}}")
    rows_read = [_row(row, f"{path}: price {number}") for number, row in enumerate(rows)]
    prices_ = [price for price in rows_read if price.pricing == pricing]
    if not prices_:
        raise FileError(f"{path}: has no {pricing} price; {nearest(pricing, {price.pricing for price in rows_read})}")
    return tuple(sorted(prices_, key=lambda price: price.order))


def _row(row: Any, path: str) -> Price:
    if not isinstance(row, dict):
        raise FileError(f"{path}: {shown(row)} is not {{{', '.join(_KEYS)}}}")
    unknown = [str(key) for key in row if key not in _KEYS]
    if unknown:
        raise FileError(f"{path}: unknown key {shown(unknown[0])}; {nearest(unknown[0], _KEYS)}")
    missing = [key for key in _KEYS if key not in row and key not in ("region", "pricing")]
    if missing:
        raise FileError(f"{path}: {missing[0]} is missing")
    gpus, pricing, name = row["gpus"], row.get("pricing", ON_DEMAND), str(row["device"])
    if isinstance(gpus, bool) or not isinstance(gpus, int) or gpus < 1:
        raise FileError(f"{path}: gpus: {shown(gpus)} is not a whole number of at least 1")
    if pricing not in PRICINGS:
        raise FileError(f"{path}: unknown pricing {shown(pricing)}; {nearest(str(pricing), PRICINGS)}")
    device = known_device(name)
    if device is None:
        raise FileError(f"{path}: unknown device {shown(name)}; {nearest(name, devices())}")
    try:
        usd = _usd(row["price"], "price")
    except ScenarioError as error:
        raise FileError(f"{path}: {error}") from None
    words = (str(row[key]) if key in row else "" for key in ("instance", "region", "source", "date"))
    instance, region, source, date = words
    instance = known_name(instance, hosts()) or instance
    return Price(device, usd / gpus, instance, gpus, region, source, date, pricing)
