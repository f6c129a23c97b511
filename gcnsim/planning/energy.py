"""Energy of a setting at the machine, by the busy and waiting times of its GPUs, and what its electricity costs.

Power is linear in the busy share of the time (Fan, Weber and Barroso 2007, "Power provisioning for a warehouse-sized
computer"): a GPU draws one share of its board power while it computes, a smaller one while it waits, and the least if
nobody uses it. The rest of a server and the switch draw a share of its GPUs' board power all the time, a fixed power at
least. The building is not included. The shares are assumed, with ranges in the catalogue, and a draw of the answer
draws them too. In a draw, GPUs are busy for the share of the time that was simulated at the stated values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, NamedTuple

import numpy as np

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.core.ids import FloatArray
from gcnsim.core.units import FRACTION, POWER
from gcnsim.hardware import USD, Figure, is_file
from gcnsim.planning.candidate import Estimate, central
from gcnsim.planning.certainty import figure_words
from gcnsim.planning.failures import NEVER_S, Failures
from gcnsim.planning.time_to_accuracy import Target
from gcnsim.results import Assumed, EnergyReport, EnergyRow, TargetRow
from gcnsim.scenario.machine import Machine
from gcnsim.scenario.machine_profiles import GIVEN
from gcnsim.simulation.assumed import Assumption, gpus_of_a_server, position, power_figures

J_PER_KWH: Final = 3.6e6
ASKED: Final = "as asked"
"""The reference of a figure that an option gives."""
COMPUTING: Final = "computing_watts"
"""The figure of a GPU that holds the watts of `--gpu-power`, the same in every draw."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where the machine stands, as asked; None: not given.

    price: of a kWh, in US dollars. gpu_power: watts of a computing GPU. lower: GPUs whose board draws less than
    gpu_power, and so as much as without it.
    """

    price: float | None = None
    gpu_power: float | None = None
    lower: frozenset[str] = frozenset()


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
    target: Target | None = None,
    rows: Sequence[TargetRow] = (),
    *,
    last_apart: bool = False,
) -> EnergyReport:
    """Energy of settings. rows: their trainings, if asked. last_apart: the last one is the recommended setting."""
    trainings: Sequence[TargetRow | None] = rows or [None] * len(estimates)
    found = [_row(one, site, seed, target, row) for one, row in zip(estimates, trainings, strict=True)]
    assumed = {
        item.name: item for one in estimates for item in _assumptions(one, _figures(one.result.machine, site)[0])
    }  # once by name
    words = [(item.name, *figure_words(item)) for item in assumed.values()]
    return EnergyReport(
        rows=tuple(found[:-1] if last_apart else found),
        currency=USD,
        assumptions=tuple(Assumed(*texts, in_interval=True) for texts in words),
        recommended=found[-1] if last_apart else None,
    )


def _row(estimate: Estimate, site: Site, seed: int, target: Target | None, row: TargetRow | None) -> EnergyRow:
    """Energy of an iteration of a setting, and until its training is done."""
    figures, unknown = _figures(estimate.result.machine, site)
    if unknown:
        return EnergyRow(unknown=unknown)
    watts = _power(estimate, figures, seed)
    joules = Draws(watts.stated * estimate.iteration_s, watts.drawn * estimate.times)
    thousand = 1000.0 * joules.stated / J_PER_KWH
    found = EnergyRow(
        None, watts.stated, joules.stated, *joules.ends, cost_per_1000_iterations=_cost(thousand, site.price)
    )
    failures = None if target is None else target.failures
    if row is None or row.iterations is None or row.seconds is None:
        return found
    work = Draws(row.seconds, row.iterations * estimate.times)
    done = work if failures is None else _until_done(failures, work, estimate.scenario.cluster.servers)
    if done is None:
        return found
    kwh = Draws(watts.stated * done.stated / J_PER_KWH, watts.drawn * done.drawn / J_PER_KWH)
    low, high = kwh.ends
    never = row.failures is not None and row.failures.seconds_low is not None and row.failures.seconds_high is None
    last = None if never else high
    return replace(found, kwh=kwh.stated, kwh_low=low, kwh_high=last, cost=_cost(kwh.stated, site.price))


def _until_done(failures: Failures, work: Draws, servers: int) -> Draws | None:
    """Seconds of a training with its failures, as the answer gives them; None: it practically never ends."""
    stated = failures.total(work.stated, servers)
    return None if stated is None else Draws(stated, np.minimum(failures.seconds(work.drawn, servers), NEVER_S))


def _cost(kwh: float, price: float | None) -> float | None:
    return None if price is None else kwh * price


def refuse_power(machines: Iterable[Machine], site: Site) -> None:
    """Raise ScenarioError for power of the site that the figures of a machine do not allow."""
    for machine in machines:
        _figures(machine, site)


def without_lower(site: Site, machines: Iterable[Machine]) -> tuple[Site, str]:
    """The site without its power for GPUs whose board cannot draw it, and a line about these; as it is if no board can
    draw it, or all."""
    boards: dict[str, float] = {}
    for machine in machines:
        figures = power_figures(machine)
        for device in (machine.device, *machine.devices):
            board = figures.get(f"{device.name}.power")
            boards[device.name] = inf if board is None or not board.value else board.high or board.value
    watts = site.gpu_power or 0.0
    lower = frozenset(name for name, most in boards.items() if watts > most * (1 + 1e-9))
    if not lower or len(lower) == len(boards):
        return site, ""
    some = f"{len(lower)} of {plural(len(boards), 'kind')} of GPU ({', '.join(sorted(lower))})"
    line = f"--gpu-power: {some} cannot draw {POWER.exact(watts)}; they keep their own power"
    return replace(site, lower=lower), line


def _figures(machine: Machine, site: Site) -> tuple[dict[str, Figure], str]:
    """The figures behind a machine's power by `NAME.FIGURE`; and why power is unknown.

    Raises ScenarioError for a figure that an option and the scenario or a file give, and for a power of GPUs that their
    figures do not allow.
    """
    found = power_figures(machine)
    for device in (machine.device, *machine.devices):
        if device.kind == "cpu":
            return {}, f"the power of {device.name} is not modelled"
        board = found.setdefault(f"{device.name}.power", _given(site.gpu_power))
        if not board.value:
            where = "its file" if is_file(device.name) else "the catalogue"
            return {}, f"the power of {device.name} is not in {where}; --gpu-power gives it"
        if site.gpu_power and device.name not in site.lower:
            # It is a computing GPU's: waiting and the rest of the server stay shares of the board's.
            _replace(found, f"{device.name}.busy_power", site.gpu_power / board.value, "--gpu-power")
            found[f"{device.name}.{COMPUTING}"] = _given(site.gpu_power)
            _refuse_watts(found, device.name, site.gpu_power)
    return found, ""


def _refuse_watts(figures: Mapping[str, Figure], name: str, watts: float) -> None:
    """Raise ScenarioError for watts of a computing GPU above its board's, or below what is given of a waiting one."""
    board = figures[f"{name}.power"]
    most, given = board.high or board.value, POWER.exact(watts)
    if watts > most * (1 + 1e-9):
        raise ScenarioError(
            f"--gpu-power: {given} is not allowed for {name}; at most its board power ({POWER.exact(most)})"
        )
    for figure in (f"{name}.waiting_power", f"{name}.idle_power"):
        share = figures.get(figure)
        if share is not None and share.source != "assumed" and share.value * board.value > watts * (1 + 1e-9):
            least = f"{figure} is given as {FRACTION.exact(share.value)} of {POWER.exact(board.value)}"
            raise ScenarioError(f"--gpu-power: {given} is not allowed; {least}, and a computing GPU draws no less")


def _replace(figures: dict[str, Figure], name: str, value: float, option: str) -> None:
    """Put the value of an option in place of a figure. Raises ScenarioError if the scenario or a file gives the figure
    too."""
    if (old := figures.get(name)) is not None and old.source == "given" and old.reference != ASKED:
        where = "cluster.figures" if old.reference == GIVEN else "its file"
        raise ScenarioError(f"{option}: {where} gives {name} too; allowed: one of them")
    figures[name] = _given(value)


def _given(value: float | None) -> Figure:
    return Figure(value or 0.0, "given", ASKED, "")


def _assumptions(estimate: Estimate, figures: Mapping[str, Figure]) -> list[Assumption]:
    """The assumed ones among the figures; those of hosts and those of GPUs share their positions over machines."""
    host = estimate.result.machine.host.name
    return [
        Assumption(name, figure, f"{'host' if name.startswith(f'{host}.') else 'device'}.{name.rpartition('.')[2]}")
        for name, figure in figures.items()
        if figure.source == "assumed"
    ]


def _power(estimate: Estimate, figures: Mapping[str, Figure], seed: int) -> Draws:
    """Mean power of a setting."""
    size = estimate.times.size
    drawn = {name: np.full(size, figure.value) for name, figure in figures.items()}
    drawn |= {item.name: item.at(position(item.shared, seed, size)) for item in _assumptions(estimate, figures)}
    stated = {name: np.array([figure.value]) for name, figure in figures.items()}
    return Draws(float(_watts(estimate, stated)[0]), _watts(estimate, drawn))


def _watts(estimate: Estimate, values: Mapping[str, FloatArray]) -> FloatArray:
    """Mean power, float64[values], from the values of each figure.

    A GPU in use: board power x (busy share x busy_power + waiting share x waiting_power), the watts of `--gpu-power` in
    place of the first product; another one in its server: board power x idle_power; the rest of a server: its GPUs'
    board power x host_power, host_floor at least.
    """
    machine = estimate.result.machine
    host, all_gpus, count = machine.host.name, machine.spec.gpus, machine.spec.gpus_per_server
    total = np.zeros_like(values[f"{host}.host_floor"])
    for first in range(0, all_gpus, count):
        busy = estimate.result.metrics.gpu_busy[first : first + count]
        name = machine.device_of(first).name
        idle = gpus_of_a_server(machine) - len(busy)
        board = values[f"{name}.power"]
        computing = values.get(f"{name}.{COMPUTING}", board * values[f"{name}.busy_power"])
        # A cap on a computing GPU caps one that waits, too.
        waiting = np.minimum(board * values[f"{name}.waiting_power"], computing)
        total = total + sum(busy) * computing + (len(busy) - sum(busy)) * waiting
        if idle:
            total = total + idle * np.minimum(board * values[f"{name}.idle_power"], waiting)
        boards = (len(busy) + idle) * board
        total = total + np.maximum(boards * values[f"{host}.host_power"], values[f"{host}.host_floor"])
    return total
