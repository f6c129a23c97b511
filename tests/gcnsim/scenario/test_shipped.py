"""The scenarios of published platforms: what they assume has a range, and one is there for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.evidence.row_scenario import ONE_BY_ONE
from gcnsim.scenario import load_scenario

FOLDER = Path(__file__).parents[3] / "scenarios"
SHIPPED = sorted(FOLDER.glob("*.yaml"))

PLATFORMS = {
    (6, 2, "t4"),
    (10, 10, "rtx-2080-ti"),
    (24, 6, "v100-16"),
    (32, 8, "mi60"),
    (8, 8, "rtx-2080-ti"),
    (8, 4, "rtx-2080-ti"),
    (4, 4, "a100-40"),
    (4, 4, "v100-16"),
    (4, 4, "gtx-1080-ti"),
}
"""GPUs, per server, device. Of 32 servers of six V100 four stand for all."""


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_assumption_has_a_range_or_the_other_choice(path: Path) -> None:
    for line in path.read_text().splitlines():
        assert "# assumed" not in line or "(range: " in line or "(or: " in line, line


def test_every_published_platform_has_a_scenario() -> None:
    clusters = [load_scenario(path).cluster for path in SHIPPED]
    assert {(cluster.gpus, cluster.gpus_per_server, cluster.device) for cluster in clusters} >= PLATFORMS
    whole = [cluster for path in SHIPPED if "-gat" not in path.stem for cluster in [load_scenario(path).cluster]]
    assert (10, 10, "rtx-2080-ti") in {(item.gpus, item.gpus_per_server, item.device) for item in whole}


def test_some_servers_stand_for_all_where_there_are_many() -> None:
    papers = load_scenario(FOLDER / "bns_gcn-ogbn-papers100M.yaml")
    assert papers.partition.parts == 192 > ONE_BY_ONE
    assert papers.cluster.gpus % papers.cluster.gpus_per_server == 0


def test_every_readme_row_names_a_file() -> None:
    content = (FOLDER / "README.md").read_text()
    assert "v100-reddit.yaml" in content
    assert all(path.name in content or path.stem.split("-")[0] in content for path in SHIPPED)
