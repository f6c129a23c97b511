from __future__ import annotations

import numpy as np
import pytest

from gcnsim.report.figures.links import LinkBar, links_data, links_figure, pairs_data, pairs_figure
from gcnsim.report.palette import LIGHT
from gcnsim.results import LinkTraffic
from tests.gcnsim.report.figures.spans import small_run


def test_links_the_busiest_first_and_how_many_besides() -> None:
    link_traffics = {f"nic{k}.tx": LinkTraffic(2.0**20 * k, k / 10) for k in range(4)}
    data = links_data(link_traffics, 2)
    assert data.bars == (LinkBar("nic3.tx", 3 * 2.0**20, 0.3), LinkBar("nic2.tx", 2.0**21, 0.2))
    assert data.left_out == 2


def test_a_link_that_sets_the_pace_has_its_own_colour() -> None:
    data = links_data({"nic0.tx": LinkTraffic(2.0**30, 0.99), "nic1.tx": LinkTraffic(2.0**20, 0.5)})
    bars = links_figure(data).to_dict()["data"][0]
    assert tuple(bars["marker"]["color"]) == (LIGHT.exposed, LIGHT.compute)
    assert tuple(bars["x"]) == pytest.approx((99.0, 50.0))
    assert bars["customdata"][0] == "nic0.tx<br>1.00 GiB per iteration, busy 99.0 % of it"


def test_bytes_of_each_pair_are_means_of_the_measured_iterations() -> None:
    timeline, _ = small_run()
    data = pairs_data(timeline, 1, 3)
    assert np.array_equal(data.nbytes, [[0.0, 3000.0, 0.0], [500.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert pairs_data(timeline, 2, 3).nbytes[0, 1] == 4000.0
    drawn = pairs_figure(data).to_dict()["data"][0]
    assert drawn["z"][0][0] is None
    assert drawn["z"][0][1] == pytest.approx(3000 / 1024)
    assert drawn["customdata"][0][1] == "worker 0 to worker 1: 2.93 KiB per iteration"
