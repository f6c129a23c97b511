from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim import hardware
from gcnsim.core.errors import FileError, GcnsimError
from gcnsim.hardware import Price, PriceBook, Rent


def of_t4s(book: PriceBook, gpus: int = 8, number: int = 4, host: str = "generic-16") -> Rent:
    rent = book.rent("t4", gpus, -(-gpus // number), number, host)
    assert rent is not None
    return rent


def listed(instance: str, pricing: str = "on-demand") -> Price:
    (found,) = (price for price in hardware.prices() if (price.instance, price.pricing) == (instance, pricing))
    return found


def test_a_cluster_of_no_instance_pays_for_gpus_at_the_price_of_the_nearest_instance() -> None:
    """The nearest has the most similar number of GPUs; the price says whose it is."""
    assert of_t4s(PriceBook(), 8, 8).of == "g4dn.metal"
    assert of_t4s(PriceBook(), 8, 2).of == "g4dn.xlarge", "as near as one of four GPUs, and cheaper"
    assert of_t4s(PriceBook(), 8, 4, "g4dn.12xlarge").of == ""
    assert of_t4s(PriceBook.of("t4=1USD/h")).of == ""
    server = PriceBook().rent("h100", 8, 1, 8, "hgx-h100-8")
    assert server is not None
    assert server.per_hour == pytest.approx(55.04)
    assert server.of == "p5.48xlarge"
    least = min(price.usd_per_gpu_hour for price in hardware.prices("t4") if price.pricing == "on-demand")
    rent = of_t4s(PriceBook(), 8, 2)
    assert rent.per_hour == 8 * least
    assert rent.text.startswith("0.526 USD/h a GPU (g4dn.xlarge, us-east-1, on-demand, ")


def test_a_cluster_of_instances_pays_for_whole_ones() -> None:
    price = listed("g4dn.12xlarge").usd_per_hour
    assert of_t4s(PriceBook(), 8, 4, "g4dn.12xlarge").per_hour == 2 * price
    assert of_t4s(PriceBook(), 6, 4, "g4dn.12xlarge").per_hour == 2 * price, "the second is rented whole"
    eight = of_t4s(PriceBook(), 8, 8, "g4dn.12xlarge")
    assert eight.text.startswith("0.978 USD/h a GPU"), "no such instance has eight; the nearest that has is g4dn.metal"


def test_spot_prices_are_others_than_on_demand_ones() -> None:
    spot = of_t4s(PriceBook.of(pricing="spot"), 8, 2)
    assert spot.per_hour == pytest.approx(8 * 0.062699)
    assert "spot" in spot.text
    assert PriceBook.of(pricing="spot").rent("a10g", 1, 1, 1, None) is None
    assert all(price.usd_per_hour < listed(price.instance).usd_per_hour for price in hardware.prices()
               if price.pricing == "spot")  # fmt: skip


def test_no_price_of_another_cloud_stands_for_an_instance() -> None:
    spot = PriceBook.of(pricing="spot")
    assert of_t4s(spot, 8, 4, "Standard_NC64as_T4_v3").per_hour == pytest.approx(2 * 0.518758)
    assert spot.rent("t4", 8, 2, 4, "g4dn.12xlarge") is None, "no spot price of AWS is in the catalogue"
    google = PriceBook().rent("l4", 4, 1, 4, "g2-standard-48")
    assert google is not None
    assert google.of == "g6.12xlarge", "no price of Google's L4s is in the catalogue: that of another cloud, marked"
    assert PriceBook.of("g4dn.metal=1USD/h").rent("t4", 4, 1, 4, "g4dn.12xlarge") is not None, "its own, as listed"
    rent = PriceBook.of("t4=0.2USD/h", pricing="spot").rent("t4", 8, 2, 4, "g4dn.12xlarge")
    assert rent is not None
    assert rent.per_hour == pytest.approx(1.6)
    assert all(price.date == "undated" for price in hardware.prices() if price.pricing == "spot")


def test_what_was_given_goes_before_the_catalogue() -> None:
    book = PriceBook.of(["t4=0.35USD/h", "g4dn.12xlarge=1USD/h"])
    assert of_t4s(book).per_hour == pytest.approx(8 * 0.35)
    assert of_t4s(book, 8, 4, "g4dn.12xlarge").per_hour == pytest.approx(2.0)
    assert of_t4s(PriceBook.of("g4dn.12xlarge=1USD/h")).per_hour == pytest.approx(2.0), "a quarter for each GPU"
    assert "as given" in of_t4s(book).text


ROW = '{device: t4, instance: mine, gpus: 4, price: "2USD/h", source: contract, date: "2026"'


def test_a_file_of_prices_goes_before_the_catalogue(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(f"- {ROW}}}\n- {ROW.replace('2USD', '1USD')}, pricing: spot}}\n", encoding="utf-8")
    rent = of_t4s(PriceBook.of(file=file))
    assert rent.per_hour == pytest.approx(2 / 4 * 8)
    assert of_t4s(PriceBook.of(file=file, pricing="spot")).per_hour == pytest.approx(2.0)
    assert PriceBook.of(file=file).rent("a10g", 1, 1, 1, None) == PriceBook().rent("a10g", 1, 1, 1, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"- {ROW.replace('2USD/h', '2')}}}", "has no unit"),
        (f"- {ROW.replace('t4', 'rxt-4090')}}}", "unknown device 'rxt-4090'; did you mean 'rtx-4090'"),
        (f"- {ROW}, prcing: spot}}", "unknown key 'prcing'; did you mean 'pricing'"),
        (f"- {ROW}, pricing: spot}}", "has no on-demand price"),
        (f"- {ROW.replace('gpus: 4', 'gpus: 0')}}}", "gpus: 0 is not a whole number"),
        ("- {device: t4}", "instance is missing"),
        ("- t4", "'t4' is not {device"),
        ("device: t4", "is not a list of prices"),
    ],
)
def test_wrong_files_are_refused_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(FileError) as error:
        PriceBook.of(file=file)
    assert message in str(error.value)
    assert str(error.value).startswith(str(file))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"price": "t4=0.35"}, "--price t4: '0.35' has no unit; write a price per hour with its unit"),
        ({"price": "t4"}, "is not NAME=PRICE"),
        ({"price": "rxt-4090=1USD/h"}, "unknown device or instance 'rxt-4090'; did you mean 'rtx-4090'"),
        ({"price": "t4=1XYZ/h"}, "--price t4: '1XYZ/h': unknown unit 'XYZ/h'; write e.g. 0.526USD/h"),
        ({"pricing": "sport"}, "did you mean 'spot'"),
    ],
)
def test_what_cannot_be_a_price_is_refused_in_one_line(given: dict[str, object], message: str) -> None:
    with pytest.raises(GcnsimError) as error:
        PriceBook.of(**given)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert "\n" not in str(error.value)
