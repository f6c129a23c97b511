"""The price of a cluster per hour: prices of the catalogue, of files and of the user, in one currency.

A price applies to a whole instance. A cluster whose host is a priced instance pays for whole instances. Any other
cluster pays for its GPUs, each at its share of the cheapest instance that has it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, Final

from gcnsim.core import units
from gcnsim.core.errors import FileError, GcnsimError, ScenarioError, nearest
from gcnsim.core.fields import shown
from gcnsim.core.spellings import known_name
from gcnsim.core.yaml_files import read_yaml
from gcnsim.hardware.catalogue import DATA, devices, hosts, instance_of, is_host, prices
from gcnsim.hardware.naming import known_device
from gcnsim.hardware.own_files import is_file
from gcnsim.hardware.profiles import GIVEN, Price

ON_DEMAND: Final = "on-demand"
SPOT: Final = "spot"
PRICINGS: Final = (ON_DEMAND, SPOT)
USD: Final = "USD"

_AMOUNT: Final = re.compile(
    r"\s*(?P<number>[0-9.]+(?:[eE][+-]?\d{1,3})?)\s*(?P<code>[A-Za-z]{3})\s*/\s*(?:h|hr|hour)\s*"
)
_SUM: Final = re.compile(r"\s*(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*[A-Za-z]{3}\s*")
_KEYS: Final = ("device", "instance", "gpus", "price", "region", "source", "date", "pricing")


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """per_usd: units of `currency` for one US dollar; source: its source, with the date."""

    currency: str = USD
    per_usd: float = 1.0
    source: str = ""


@dataclass(frozen=True, slots=True)
class Rent:
    """The price of a cluster per hour, in US dollars and in the chosen currency. text: the price used. gpus: those
    paid for."""

    usd_per_hour: float
    per_hour: float
    currency: str
    text: str
    gpus: int


@dataclass(frozen=True, slots=True)
class PriceBook:
    """The prices for questions of cost.

    given: prices that take precedence over the catalogue's, in order. pricing: which prices of the catalogue count.
    exchange: the currency of costs. asked: whether the user chose any of this, so that an answer states it.
    """

    given: tuple[Price, ...] = ()
    pricing: str = ON_DEMAND
    exchange: ExchangeRate = ExchangeRate()
    asked: bool = False

    @classmethod
    def of(
        cls,
        price: Sequence[str] = (),
        file: str | Path | None = None,
        currency: str | None = None,
        exchange: float | None = None,
        pricing: str | None = None,
    ) -> PriceBook:
        """The book of `NAME=PRICE` texts (a device or an instance, `t4=0.35USD/h`), a price file, a currency, and
        on-demand or spot.

        exchange: units of the currency for one US dollar; None: the catalogue's rate. Raises ScenarioError, UnitError
        and FileError, one line each.
        """
        if pricing is not None and pricing not in PRICINGS:
            raise ScenarioError(f"--pricing: unknown pricing {pricing!r}; {nearest(pricing, PRICINGS)}")
        rate = _exchange(currency, exchange)
        rates = {name: exchange_rate.per_usd for name, exchange_rate in exchange_rates().items()} | {
            rate.currency: rate.per_usd
        }
        own = [_given(text, rates) for text in ([price] if isinstance(price, str) else price)]
        listed = () if file is None else _of_file(file, pricing or ON_DEMAND, rates)
        wanted = bool(own or file is not None or currency or pricing)
        return cls((*own, *listed), pricing or ON_DEMAND, rate, wanted)

    def rent(
        self, device: str, gpus: int, servers: int, gpus_per_server: int, host: str | None, *, alone: bool = True
    ) -> Rent | None:
        """The price of GPUs in servers; None if no price is known.

        An instance of the catalogue uses only its price: another instance's or cloud's price is not valid for it.
        alone: whether a GPU costs its share of an instance; otherwise the cheapest whole instances that have so many.
        """
        matching = [price for price in prices() if price.pricing == self.pricing and price.device == device]
        of_instance = [price for price in self.given if price.device == device and price.instance]
        of_gpu = [price for price in self.given if price.device == device and not price.instance]
        usual = (of_instance, True), (of_gpu, False), (matching, True)
        own = host is not None and _is_instance(host, device, gpus_per_server)
        for rows, whole in usual if own else (*usual, (of_instance, False), (matching, False)):
            fit = [row for row in rows if not whole or (row.instance == host and gpus_per_server <= row.gpus)]
            if fit and whole:
                return self._rent(fit[0], servers * fit[0].usd_per_hour, servers * fit[0].gpus, whole=True)
            if fit:
                paid = [gpus if alone else -(-gpus // row.gpus) * row.gpus for row in fit]
                usd = [count * row.usd_per_gpu_hour for count, row in zip(paid, fit, strict=True)]
                least = 0 if alone else usd.index(min(usd))
                return self._rent(fit[least], usd[least], paid[least], whole=False)
        return None

    def refuse_idle(self, devices: Collection[str]) -> None:
        """Raise ScenarioError for an option's price of something that no machine of the question has."""
        for price in self.given:
            if price.named and price.device not in devices:
                what = price.instance or price.device
                have = ", ".join(sorted(devices))
                raise ScenarioError(f"--price: no machine of the question has {what}; they have {have}")

    def _rent(self, price: Price, usd: float, gpus: int, *, whole: bool) -> Rent:
        rate, code = self.exchange.per_usd, self.exchange.currency
        each = price.usd_per_hour if whole else price.usd_per_gpu_hour
        what = f"an instance of {price.gpus} GPUs" if whole and price.gpus > 1 else "an instance" if whole else "a GPU"
        words = (price.instance, price.region, price.pricing, price.date)
        source = GIVEN if price.named else ", ".join(word for word in words if word)
        converted = f"; 1 USD = {rate:g} {code}, {self.exchange.source}" if code != USD else ""
        return Rent(usd, usd * rate, code, f"{each * rate:.4g} {code}/h {what} ({source}){converted}", gpus)


def _is_instance(host: str, device: str, gpus_per_server: int) -> bool:
    """Whether the host is a catalogue instance type with this device and number of GPUs."""
    instance = instance_of(host) if is_host(host) else None
    return instance is not None and instance.device == device and gpus_per_server <= instance.gpus


@cache
def exchange_rates() -> Mapping[str, ExchangeRate]:
    """The catalogue's exchange rates by currency."""
    rows = read_yaml(DATA / "exchange.yaml")
    rates = [ExchangeRate(row["currency"], row["per_usd"], f"{row['source']}, {row['date']}") for row in rows]
    return {rate.currency: rate for rate in (ExchangeRate(), *rates)}


def _exchange(currency: str | None, per_usd: float | None) -> ExchangeRate:
    """The currency of costs with its rate."""
    if currency is None:
        if per_usd is not None:
            raise ScenarioError(f"--exchange: {per_usd:g} needs --currency, e.g. EUR")
        return ExchangeRate()
    code = str(currency).strip().upper()
    if per_usd is None:
        known = exchange_rates()
        if code not in known:
            hint = f"{nearest(code, known)}, or another with --exchange, its units for one US dollar"
            raise ScenarioError(f"--currency: no exchange rate of {currency!r} is known; {hint}")
        return known[code]
    if not re.fullmatch(r"[A-Z]{3}", code):
        raise ScenarioError(f"--currency: {currency!r} is not three letters, e.g. EUR")
    if isinstance(per_usd, bool) or not isfinite(per_usd) or per_usd <= 0:
        raise ScenarioError(f"--exchange: {per_usd!r} is not allowed; units of {code} for one US dollar, above 0")
    if code == USD and per_usd != 1:
        raise ScenarioError(f"--exchange: {per_usd:g} US dollars for one US dollar; allowed: 1, or another --currency")
    return ExchangeRate(code, float(per_usd), GIVEN)


def _usd(text: object, path: str, rates: Mapping[str, float]) -> float:
    """The US dollars per hour in `text`. Raises ScenarioError that starts with `path`."""
    match = _AMOUNT.fullmatch(text) if isinstance(text, str) else None
    code = match["code"].upper() if match else USD
    try:
        if match and code != USD:
            if code not in rates:
                raise ScenarioError(f"no exchange rate of {code} is known; {nearest(code, rates)}")
            return units.money(f"{match['number']}USD/h") / rates[code]
        return units.money(text)
    except GcnsimError as error:
        raise ScenarioError(f"{path}: {error}") from None


def amount_in(text: object, path: str, exchange: ExchangeRate, *, per_hour: bool) -> float:
    """The amount in `text` (`10USD/h`; `100USD` if not per hour), in the currency of `exchange`.

    Raises ScenarioError that starts with `path`.
    """
    rates = {name: rate.per_usd for name, rate in exchange_rates().items()} | {exchange.currency: exchange.per_usd}
    if per_hour:
        return _usd(text, path, rates) * exchange.per_usd
    match = _SUM.fullmatch(text) if isinstance(text, str) else None
    if match is None or not isinstance(text, str):
        raise ScenarioError(f"{path}: {shown(text)} is not an amount with its currency; write e.g. 100USD")
    if not isfinite(float(match["number"])):
        raise ScenarioError(f"{path}: {shown(text)} is too large")
    return _usd(f"{text.strip()}/h", path, rates) * exchange.per_usd


def _given(text: str, rates: Mapping[str, float]) -> Price:
    """Parse `NAME=PRICE` of a GPU or an instance."""
    name, equal, price = str(text).partition("=")
    name = name.strip()
    if not equal or not name:
        raise ScenarioError(f"--price: {text!r} is not NAME=PRICE, e.g. t4=0.35USD/h or g4dn.12xlarge=3.9USD/h")
    usd = _usd(price.strip(), f"--price {name}", rates)
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


def _of_file(path: str | Path, pricing: str, rates: Mapping[str, float]) -> tuple[Price, ...]:
    """The prices with this pricing in a file of the catalogue's form, the cheapest of a GPU first."""
    rows = read_yaml(path)
    if not isinstance(rows, list):
        raise FileError(f"{path}: is not a list of prices; each is {{{', '.join(_KEYS)}}}")
    rows_read = [_row(row, f"{path}: price {number}", rates) for number, row in enumerate(rows)]
    prices_ = [price for price in rows_read if price.pricing == pricing]
    if not prices_:
        raise FileError(f"{path}: has no {pricing} price; {nearest(pricing, {price.pricing for price in rows_read})}")
    return tuple(sorted(prices_, key=lambda price: price.order))


def _row(row: Any, path: str, rates: Mapping[str, float]) -> Price:
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
        usd = _usd(row["price"], "price", rates)
    except ScenarioError as error:
        raise FileError(f"{path}: {error}") from None
    words = (str(row[key]) if key in row else "" for key in ("instance", "region", "source", "date"))
    instance, region, source, date = words
    instance = known_name(instance, hosts()) or instance
    return Price(device, usd / gpus, instance, gpus, region, source, date, pricing)
