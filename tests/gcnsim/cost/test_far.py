"""A core that trains: what comes from memory once an iteration touches more than the last cache holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gcnsim.cost import device_in_training, elementwise_seconds, host_in_training, rows_seconds
from gcnsim.cost.far import REUSED, far_share, trained_share
from gcnsim.cost.maps import map_seconds, weight_seconds
from gcnsim.hardware import MAP_TERMS, DeviceProfile, FarFigures, Figure, HostProfile, MapFigures

CACHE = 16e6
HALF = REUSED * CACHE
"""Bytes of an iteration of which half come from memory."""
FAR = FarFigures(
    CACHE,
    byte=3e-10,
    passes=1.5,
    rows=4.0,
    launch=3.0,
    host={"draw_s": 5e-4, "sample_edges_per_s": 1e7, "gather_bandwidth": 1e9, "load_s": 1e-4},
)
SECONDS = dict(zip(MAP_TERMS, (1e-5, 1e-11, 1e-10, 2e-10, 3e-5, 2e-11, 3e-10, 4e-10), strict=True))


def fitted(value: float) -> Figure:
    return Figure(value, "fitted", "a test", "2026")


@pytest.fixture
def core(gpu: DeviceProfile) -> DeviceProfile:
    figures: dict[str, Any] = {
        "elementwise_efficiency": fitted(0.5),
        "gather_efficiency": fitted(0.25),
        "launch_s": fitted(1e-5),
    }
    return replace(gpu, maps=MapFigures(SECONDS, ((4.0, 1e-7),)), far=FAR, **figures)


@pytest.fixture
def host(server: HostProfile) -> HostProfile:
    figures: dict[str, Any] = {
        "draw_s": fitted(1e-4),
        "sample_edges_per_s": fitted(4e7),
        "gather_bandwidth": fitted(4e9),
        "load_s": fitted(1e-5),
    }
    return replace(server, **figures)


@pytest.mark.parametrize(("between", "share"), [(0.0, 0.0), (8e6, 0.0), (16e6, 0.5), (32e6, 1.0), (1e9, 1.0)])
def test_half_is_far_once_as_much_is_touched_as_the_cache_holds(between: float, share: float) -> None:
    assert far_share(CACHE, between) == pytest.approx(share)


@pytest.mark.parametrize(("times", "share"), [(0.25, 0.0), (0.5, 0.25), (1.0, 0.5), (2.0, 0.75), (9.0, 1.0)])
def test_training_goes_less_far_than_the_bytes_it_touches(times: float, share: float) -> None:
    assert trained_share(CACHE, times * REUSED * CACHE) == pytest.approx(share)


def test_small_iterations_find_their_rows_in_the_last_cache(core: DeviceProfile, host: HostProfile) -> None:
    assert device_in_training(core, 1e6) == replace(core, far=None)
    # What draws and loads runs once an iteration: half of it comes from memory however little that touches.
    assert host_in_training(host, FAR, 1e6).draw_s.value == pytest.approx(3e-4)


@pytest.mark.parametrize(("between", "share"), [(HALF, 0.5), (1e9, 1.0)])
def test_every_byte_of_a_map_takes_longer_from_memory(core: DeviceProfile, between: float, share: float) -> None:
    trains = device_in_training(core, between)
    more = map_seconds(trains, 1_000, 8, 2) - map_seconds(core, 1_000, 8, 2)
    assert float(more) == pytest.approx(share * 4 * 1_000 * (8 + 2) * 3e-10)
    assert weight_seconds(trains, 1_000, 8, 2) == weight_seconds(core, 1_000, 8, 2), "backward memory was just freed"
    assert trains.launch_s.value == pytest.approx((1 + share * 2.0) * 1e-5)
    passes = (float(elementwise_seconds(profile, 1e6, 2)) - profile.launch_s.value for profile in (trains, core))
    assert next(passes) == pytest.approx((1 + share * 0.5) * next(passes))
    moved = (float(rows_seconds(profile, 1_000, 8)) - profile.launch_s.value for profile in (trains, core))
    assert next(moved) == pytest.approx((1 + share * 3.0) * next(moved))
    assert device_in_training(trains, 1e9) is trains, "no byte is far twice"


def test_what_a_host_does_takes_as_long_as_its_near_and_far_parts(host: HostProfile) -> None:
    half, whole = (host_in_training(host, FAR, between) for between in (HALF, 1e9))
    assert half.draw_s.value == pytest.approx(4e-4)
    assert half.sample_edges_per_s.value == pytest.approx(1 / (0.25 / 4e7 + 0.75 / 1e7)), "seconds are shared out"
    assert half.gather_bandwidth.value == pytest.approx(1 / (0.25 / 4e9 + 0.75 / 1e9))
    assert whole.draw_s.value == pytest.approx(5e-4)
    assert whole.gather_bandwidth.value == pytest.approx(1e9)
    assert half.load_s is not None
    assert half.load_s.value == pytest.approx(7.75e-5)
    assert half.build_entries_per_s == host.build_entries_per_s, "nothing is known of it"


def test_what_a_question_gives_stays(core: DeviceProfile, host: HostProfile) -> None:
    names = ("elementwise_efficiency", "gather_efficiency", "launch_s")
    question: dict[str, Any] = {name: replace(getattr(core, name), source="given") for name in names}
    trains = device_in_training(replace(core, **question), 1e9)
    assert {name: getattr(trains, name) for name in names} == question
    plain = replace(host, draw_s=replace(host.draw_s, source="given"), load_s=None)
    found = host_in_training(plain, FAR, 1e9)
    assert (found.draw_s, found.load_s) == (plain.draw_s, None)


def test_where_distances_were_not_measured_nothing_changes(core: DeviceProfile, host: HostProfile) -> None:
    for without in (replace(core, far=None), replace(core, maps=None)):
        assert device_in_training(without, 1e9) is without
    assert host_in_training(host, None, 1e9) is host
