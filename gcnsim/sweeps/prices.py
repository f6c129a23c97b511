"""Prices of a sweep's question: as its writer chooses them, and written out, so that a folder needs no other file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from gcnsim.errors import GcnsimError, ScenarioError, nearest
from gcnsim.fields import denied, shown
from gcnsim.hardware import PRICINGS, Exchange, Price, PriceBook

CHOSEN: Final = ("price", "file", "pricing", "currency", "exchange")
"""Keys of somebody's choice: what options of what-if say."""

WRITTEN: Final = ("pricing", "currency", "per_usd", "rate_source", "given")
"""Keys of prices that are written out."""


def payload_of(book: PriceBook) -> dict[str, Any]:
    """The prices written out, as plain data; `read_prices` gives the same back. Empty where they are the usual ones."""
    if replace(book, asked=False) == PriceBook():
        return {}
    rate = book.exchange
    told = {"pricing": book.pricing, "currency": rate.currency, "per_usd": rate.per_usd, "rate_source": rate.source}
    return told | {"given": [asdict(each) for each in book.given]}


def read_prices(given: object) -> PriceBook:
    """The prices that a question's section chooses or has written out; None chooses nothing.

    Raises ScenarioError or FileError: path, value, what is allowed.
    """
    if given is None:
        return PriceBook()
    if not isinstance(given, Mapping):
        raise ScenarioError(f"prices: {denied(given)} a section; keys: {', '.join(CHOSEN)}")
    if "given" in given:
        return _written(given)
    for key in given:
        if key not in CHOSEN:
            raise ScenarioError(f"prices.{key}: unknown key; {nearest(str(key), CHOSEN)}")
    price = given.get("price", [])
    texts = [price] if isinstance(price, str) else price
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise ScenarioError(f"prices.price: {denied(price)} a list of NAME=PRICE, e.g. [t4=0.35USD/h]")
    for key in ("file", "pricing", "currency"):
        if given.get(key) is not None and not isinstance(given[key], str):
            raise ScenarioError(f"prices.{key}: {shown(given[key])} is not text")
    exchange = given.get("exchange")
    if exchange is not None and (isinstance(exchange, bool) or not isinstance(exchange, int | float)):
        raise ScenarioError(f"prices.exchange: {denied(exchange)} a number; units of currency for one US dollar")
    try:
        return PriceBook.of(texts, given.get("file"), given.get("currency"), exchange, given.get("pricing"))
    except ScenarioError as error:
        raise _in_section(error) from None


def _in_section(error: GcnsimError) -> GcnsimError:
    """What an option of what-if would be told, of the key of the same name."""
    text = str(error)
    return ScenarioError(f"prices.{text[2:]}") if text.startswith("--") else error


def _written(given: Mapping[str, Any]) -> PriceBook:
    """Prices that `payload_of` has written. Raises ScenarioError for what it has not."""
    damaged = ScenarioError(f"prices: is not what a sweep writes; allowed: {', '.join(CHOSEN)}")
    try:
        rows = tuple(Price(**row) for row in given["given"])
        rate = Exchange(str(given["currency"]), float(given["per_usd"]), str(given["rate_source"]))
        right = all(row.usd_per_gpu_hour >= 0 and row.gpus >= 1 for row in rows) and rate.per_usd > 0
    except (KeyError, TypeError, ValueError):
        raise damaged from None
    if not right or set(given) != set(WRITTEN) or given["pricing"] not in PRICINGS:
        raise damaged
    return PriceBook(rows, given["pricing"], rate, asked=True)
