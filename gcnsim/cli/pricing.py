"""Options of prices, which several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gcnsim.api import PriceBook

OPTIONS = (
    click.option(
        "--price",
        multiple=True,
        metavar="NAME=PRICE",
        help="Price of a device's or an instance's hour, e.g. t4=0.35USD/h (repeatable).",
    ),
    click.option("--prices", type=click.Path(), help="File of prices, which go before those of the catalogue."),
    click.option("--pricing", help="on-demand or spot.  [default: on-demand]"),
    click.option("--currency", help="Of costs: EUR, GBP, CHF, JPY, or any with --exchange.  [default: USD]"),
    click.option("--exchange", type=float, help="Units of --currency for one US dollar.  [default: the catalogue's]"),
)


def price_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of prices, in the order of the help."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def price_book(question: dict[str, Any]) -> PriceBook:
    """What these options say; they are taken out of `question`. Raises GcnsimError."""
    from gcnsim import api

    names = ("price", "currency", "exchange", "pricing")
    return api.PriceBook.of(file=question.pop("prices"), **{name: question.pop(name) for name in names})
