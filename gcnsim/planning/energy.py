"""Energy of a setting by the busy and waiting times of its GPUs, its cost and CO2; buying a machine against renting it.

Power is linear in the busy share of the time (Fan, Weber and Barroso 2007, "Power provisioning for a warehouse-sized
computer"): a GPU draws one share of its board power while it computes and a smaller one while it waits. The rest of its
server and the switch draw a share of the board power all the time, and the building takes all of it times its PUE (The
Green Grid). The shares are assumed, with ranges in the catalogue, and a draw of the answer draws them too. In a draw,
GPUs are busy for the share of the time that was simulated at the stated values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray
from gcnsim.hardware import Figure, PriceBook
from gcnsim.planning.candidate import Estimate, central
from gcnsim.planning.capacity_goal import DAYS
from gcnsim.planning.certainty import figure_words
from gcnsim.planning.failures import NEVER_S
from gcnsim.planning.rows import device_of, rent_of
from gcnsim.planning.time_to_accuracy import Target
from gcnsim.results import Assumed, EnergyReport, EnergyRow, OwnOrRent, TargetRow
from gcnsim.scenario import ClusterSpec
from gcnsim.simulation.assumed import Assumption, position

J_PER_KWH: Final = 3.6e6
HOURS_PER_MONTH: Final = 24.0 * DAYS["month"]
NEVER_MONTHS: Final = 1200.0
"""Months after which a purchase practically never pays: 100 years."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where the machine stands, as asked; None: not given.

    pue: energy of the building over that of its machines. price: of a kWh. carbon: kg CO2 a kWh. gpu_power: watts of a
    computing GPU. purchases: price of a server by its host or GPU, "" for any. life_years: until a server is worth
    nothing. in_use: share of all hours in which it trains. Money is in the currency of costs.
    """

    pue: float | None = None
    price: float | None = None
    carbon: float | None = None
    gpu_power: float | None = None
    purchases: Mapping[str, float] | None = None
    life_years: float = 0.0
    in_use: float = 1.0

    def purchase(self, cluster: ClusterSpec) -> float | None:
        """The price of a server of the cluster, by its host, else its GPU, else that of any; None: not given."""
        given = self.purchases or {}
        return next((given[name] for name in (cluster.host, device_of(cluster), "") if name in given), None)

    def refuse_idle(self, clusters: Collection[ClusterSpec]) -> None:
        """Raise ScenarioError for the price of a server that no machine of the question has."""
        have = {"", *(name for cluster in clusters for name in (cluster.host, device_of(cluster)))}
        for name in self.purchases or {}:
            if name not in have:
                there = ", ".join(sorted(have - {""}))
                raise ScenarioError(f"--purchase: {name} is in no machine of the question; they have {there}")


class Draws(NamedTuple):
    """An amount at the stated values, and under every joint draw of the assumptions, float64[draws]."""

    stated: float
    drawn: FloatArray

    @property
    def ends(self) -> tuple[float, float]:
        """The 90 % interval; it holds the stated amount."""
        low, high = central(self.drawn)
        return min(low, self.stated), max(high, self.stated)


def energy_report(
    estimates: Sequence[Estimate],
    site: Site,
    seed: int,
    book: PriceBook,
    target: Target | None = None,
    rows: Sequence[TargetRow] = (),
    *,
    last_apart: bool = False,
) -> EnergyReport:
    """Energy of settings. rows: their trainings, if asked. last_apart: the last one is the recommended setting."""
    trainings: Sequence[TargetRow | None] = rows or [None] * len(estimates)
    found = [_row(one, site, seed, book, target, row) for one, row in zip(estimates, trainings, strict=True)]
    assumed = {
        item.name: item for one in estimates for item in _assumptions(one, _figures(one, site) or {})
    }  # once by name
    words = [(item.name, *figure_words(item)) for item in assumed.values()]
    return EnergyReport(
        rows=tuple(found[:-1] if last_apart else found),
        currency=book.exchange.currency,
        assumptions=tuple(Assumed(*texts, in_interval=True) for texts in words),
        recommended=found[-1] if last_apart else None,
    )


def _row(
    estimate: Estimate, site: Site, seed: int, book: PriceBook, target: Target | None, row: TargetRow | None
) -> EnergyRow:
    """Energy of an iteration of a setting, and until its training is done."""
    figures, cluster = _figures(estimate, site), estimate.scenario.cluster
    if figures is None:
        return EnergyRow(unknown=f"the power of {device_of(cluster)} is not in the catalogue; --gpu-power gives it")
    watts = _power(estimate, figures, seed)
    joules = Draws(watts.stated * estimate.iteration_s, watts.drawn * estimate.times)
    thousand = 1000.0 * joules.stated / J_PER_KWH
    found = EnergyRow(
        None,
        watts.stated,
        joules.stated,
        *joules.ends,
        cost_per_1000_iterations=_times(thousand, site.price),
        kg_co2_per_1000_iterations=_times(thousand, site.carbon),
        own=_own_or_rent(site, cluster, book, watts),
    )
    failures = None if target is None else target.failures
    if row is None or row.iterations is None or row.seconds is None:
        return found
    stated, drawn = row.seconds, row.iterations * estimate.times
    if failures is not None:
        if failures.total(stated, cluster.servers) is None:
            return found
        stated = float(failures.seconds(stated, cluster.servers))
        drawn = np.minimum(failures.seconds(drawn, cluster.servers), NEVER_S)
    kwh = Draws(watts.stated * stated / J_PER_KWH, watts.drawn * drawn / J_PER_KWH)
    low, high = kwh.ends
    cost, carbon = _times(kwh.stated, site.price), _times(kwh.stated, site.carbon)
    return replace(found, kwh=kwh.stated, kwh_low=low, kwh_high=high, cost=cost, kg_co2=carbon)


def _times(kwh: float, per_kwh: float | None) -> float | None:
    return None if per_kwh is None else kwh * per_kwh


def _figures(estimate: Estimate, site: Site) -> dict[str, Figure] | None:
    """The figures behind a setting's power by `NAME.FIGURE`; None: one of them is not known."""
    machine = estimate.result.machine
    host, given = machine.host, site.gpu_power
    found: dict[str, Figure | None] = {}
    for device in (machine.device, *machine.devices):
        board = device.power if device.power is not None or given is None else _given(given)
        found[f"{device.name}.power"] = board
        # Power that is given is a computing GPU's: waiting and the rest of the server stay shares of the board's.
        busy = device.busy_power if given is None or board is None else _given(given / board.value)
        found[f"{device.name}.busy_power"] = busy
        found[f"{device.name}.waiting_power"] = device.waiting_power
    found[f"{host.name}.host_power"] = host.host_power
    found[f"{host.name}.pue"] = host.pue if site.pue is None else _given(site.pue)
    known = {name: figure for name, figure in found.items() if figure is not None}
    return known if len(known) == len(found) else None


def _given(value: float) -> Figure:
    return Figure(value, "given", "as asked", "")


def _assumptions(estimate: Estimate, figures: Mapping[str, Figure]) -> list[Assumption]:
    """The assumed ones among the figures; those of hosts and those of GPUs share their positions over machines."""
    host = estimate.result.machine.host.name
    return [
        Assumption(name, figure, f"{'host' if name.startswith(f'{host}.') else 'device'}.{name.rpartition('.')[2]}")
        for name, figure in figures.items()
        if figure.source == "assumed"
    ]


def _power(estimate: Estimate, figures: Mapping[str, Figure], seed: int) -> Draws:
    """Mean power of a setting with its building."""
    size = estimate.times.size
    drawn = {name: np.full(size, figure.value) for name, figure in figures.items()}
    drawn |= {item.name: item.at(position(item.shared, seed, size)) for item in _assumptions(estimate, figures)}
    stated = {name: np.array([figure.value]) for name, figure in figures.items()}
    return Draws(float(_watts(estimate, stated)[0]), _watts(estimate, drawn))


def _watts(estimate: Estimate, values: Mapping[str, FloatArray]) -> FloatArray:
    """Mean power, float64[values], from the values of each figure.

    Per worker: board power x (busy share x busy_power + waiting share x waiting_power + host_power), all times the PUE.
    """
    machine = estimate.result.machine
    total = np.zeros_like(values[f"{machine.host.name}.pue"])
    for rank, busy in enumerate(estimate.result.metrics.gpu_busy):
        name = machine.device_of(rank).name
        share = busy * values[f"{name}.busy_power"] + (1.0 - busy) * values[f"{name}.waiting_power"]
        total = total + values[f"{name}.power"] * (share + values[f"{machine.host.name}.host_power"])
    return total * values[f"{machine.host.name}.pue"]


def _own_or_rent(site: Site, cluster: ClusterSpec, book: PriceBook, watts: Draws) -> OwnOrRent | None:
    """A bought machine against a rented one; None: not asked of this one.

    The price is spread evenly over the hours of use in the machine's life (straight-line depreciation); rent includes
    electricity. A bought server counts whole, also where GPUs that are rented one by one are only some of its own.
    """
    each = site.purchase(cluster)
    if each is None or site.price is None:
        return None
    paid, life, hours = each * cluster.servers, 12.0 * site.life_years, HOURS_PER_MONTH * site.in_use
    spread = paid / (life * hours)
    electricity = Draws(watts.stated * site.price / 1000.0, watts.drawn * site.price / 1000.0)
    low, high = electricity.ends
    owned = spread + electricity.stated, spread + low, spread + high
    rent = rent_of(cluster, book)
    if rent is None:
        return OwnOrRent(paid, *owned, None, None, None, None, life, hours)
    saved = [np.maximum(rent.per_hour - amount, 1e-300) for amount in (np.array(electricity.stated), electricity.drawn)]
    months = [np.minimum(paid / (amount * hours), NEVER_MONTHS) for amount in saved]
    even = Draws(float(months[0]), months[1])
    first, soon, late = (None if value >= NEVER_MONTHS else value for value in (even.stated, *even.ends))
    return OwnOrRent(paid, *owned, rent.per_hour, first, soon, late, life, hours)
