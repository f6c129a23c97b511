"""The machines that are considered where nobody names any."""

from __future__ import annotations

import pytest

from gcnsim.hardware import ExchangeRate, PriceBook, prices
from gcnsim.planning.capacity_goal import read_budget
from gcnsim.planning.capacity_settings import Machines, priced_hosts, space_text, usual_gpus
from gcnsim.planning.rows import rent_of
from gcnsim.scenario import ClusterSpec

BASE = ClusterSpec()


def test_every_instance_with_a_price_is_considered_from_one_gpu_up() -> None:
    clusters = Machines().clusters(BASE, PriceBook(), 32)
    listed = {item.instance for item in prices() if item.pricing == "on-demand"}
    assert {cluster.host for cluster in clusters} == listed
    for price in prices():
        whole = [cluster for cluster in clusters if cluster.host == price.instance and cluster.gpus == price.gpus]
        assert [(cluster.device, cluster.servers) for cluster in whole] == [(price.device, 1)]
    single = {(cluster.device, cluster.gpus) for cluster in clusters if cluster.gpus_per_server == 1}
    assert {(device, gpus) for device in ("t4", "a10g", "l4", "l40s", "v100-16") for gpus in (1, 2, 3, 4)} <= single


def test_two_t4_cost_what_two_t4_described_cost() -> None:
    clusters = Machines().clusters(BASE, PriceBook(), 32)
    pair = [cluster for cluster in clusters if (cluster.device, cluster.gpus) == ("t4", 2)]
    described = Machines(devices=("t4",), gpus=(2,)).clusters(BASE, PriceBook(), 32)[0]
    rents = [rent_of(item, PriceBook()) for item in (*pair, described)]
    paid = [rent.usd_per_hour for rent in rents if rent is not None]
    assert len(paid) == len(pair) + 1
    assert min(paid[:-1]) == pytest.approx(paid[-1])
    assert {cluster.servers for cluster in pair} == {1, 2}, "two of one server, and one of each of two"


@pytest.mark.parametrize(
    ("of_one", "counts"), [(1, [1, 2, 3, 4]), (2, [2, 4, 6, 8]), (4, [2, 4, 8, 12, 16]), (8, [2, 4, 8, 16, 24, 32])]
)
def test_parts_of_an_instance_and_whole_ones_are_tried(of_one: int, counts: list[int]) -> None:
    assert usual_gpus(of_one) == counts


def test_prices_of_a_file_and_spot_have_their_own_instances() -> None:
    assert priced_hosts(PriceBook(pricing="spot"))
    assert set(priced_hosts(PriceBook(pricing="spot"))) < set(priced_hosts(PriceBook()))


def test_the_space_is_named() -> None:
    both = Machines(hosts=("g4dn.xlarge", "g4dn.12xlarge")).clusters(BASE, PriceBook(), 32)
    assert space_text(both) == "g4dn (2 instance types), 1 to 16 GPUs"
    assert space_text(Machines(hosts=("p4d.24xlarge",), gpus=(8,)).clusters(BASE, PriceBook(), 32)) == (
        "p4d.24xlarge, 8 GPUs"
    )
    described = Machines(devices=("t4", "l4"), bandwidths=(1.25e9,), gpus=(1,))
    assert space_text(described.clusters(BASE, PriceBook(), 32)) == "t4, l4 at 10Gbps, 1 GPU"


@pytest.mark.parametrize(
    ("text", "hours", "per_hour"),
    [
        ("10USD/h", None, 10.0),
        ("24 USD / day", None, 1.0),
        ("24usd/d", 8, 3.0),
        ("730USD/month", None, 1.0),
        ("500USD/mo", 8, 500 / 730 * 3),
        ("8760USD/year", None, 1.0),
    ],
)
def test_budgets_are_money_over_time(text: str, hours: float | None, per_hour: float) -> None:
    budget = read_budget(text, hours, ExchangeRate())
    assert budget is not None
    assert budget.per_hour == pytest.approx(per_hour)


def test_a_budget_in_another_currency_is_converted() -> None:
    budget = read_budget("730EUR/month", None, ExchangeRate("EUR", 0.5, "a test"))
    assert budget is not None
    assert budget.per_hour == pytest.approx(1.0)
    assert budget.text == "730 EUR a month (1.00 EUR an hour)"
    dollars = read_budget("730EUR/month", None, ExchangeRate())
    assert dollars is not None
    assert dollars.currency == "USD"
    assert dollars.per_hour > 1.0
